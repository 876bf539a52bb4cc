"""HMC and NUTS on a Stan program, a process a chain."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from onebasin.stan import command
from onebasin.stan.errors import StanRunError
from onebasin.stan.output import Output, read
from onebasin.stan.program import make_ready, name_draws
from onebasin.stan.run import run

from .chains import ChainsRequest, how_it_went
from .places import ChainPlace, Standing
from .settings import HmcSettings, NutsSettings
from .stan_progress import ChainWatch
from .stan_starts import best_optimum, seeds_of

STATS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
"""CmdStan's names and ArviZ's; static HMC has neither tree depth nor divergences."""

KINDS = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}
SIGNIFICANT_FIGURES = 12


class ChainRunner:
    """Runs chains of one target; the program is compiled and the data written once.

    Parameters
    ----------
    request : ChainsRequest
        Its target has a Stan definition; a chain's number is its CmdStan id.

    Raises
    ------
    StanError
        If there is no CmdStan, the program does not compile or its data are incomplete.
    """

    def __init__(self, request: ChainsRequest) -> None:
        self.request, self.settings, self.bars = request, request.settings, request.bars
        self.ready = make_ready(request.target, request.folder, progress=request.bars.say)

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        started = time.perf_counter()
        s, number = self.settings, place.number
        bar = self.bars.chain(number, warmup=s.warmup, draws=s.draws)
        folder = Path(tempfile.mkdtemp(dir=self.request.folder))
        csv = folder / "draws.csv"
        arguments = self._arguments(number, csv, self._init(number, folder, cancel))
        watch = ChainWatch(bar, csv)
        printed = run(self.ready, arguments, folder, cancel=cancel, watch=watch)
        output = read(csv, printed=printed)
        _check_complete(output, self.settings, csv)
        csv.unlink()  # twice the size of the draws, where other chains are still to write theirs
        stats = _stats(self.settings, output)
        place.put(0, name_draws(self.request.target, output.variables), stats)
        place.finish(Standing(s.draws, output.seconds("Warm-up"), output.seconds("Sampling")))
        bar.end(time.perf_counter() - started, **how_it_went(stats))

    def _init(self, number: int, place: Path, cancel: threading.Event) -> Path | float:
        """Where the chain starts: within a radius, or at the values of a file."""
        s = self.settings
        if s.init == "random":
            return s.init_radius
        return best_optimum(
            self.ready,
            place,
            init_radius=s.init_radius,
            seeds=seeds_of(self.request.seed, number, s.init_starts),
            cancel=cancel,
        )

    def _arguments(self, number: int, csv: Path, init: Path | float) -> list[str]:
        s = self.settings
        engine = (
            command.nuts(max_tree_depth=s.max_tree_depth)
            if isinstance(s, NutsSettings)
            else command.static_hmc(trajectory_length=s.trajectory_length)
        )
        return command.sample(
            engine,
            command.Files(data=self.ready.data, output=csv, digits=SIGNIFICANT_FIGURES),
            command.Start(seed=self.request.seed, chain=number + 1, init=init),
            draws=s.draws,
            warmup=s.warmup,
            target_acceptance=s.target_acceptance,
            metric=s.metric,
            refresh=max(1, (s.warmup + s.draws) // 50),
        )


def _check_complete(output: Output, settings: NutsSettings | HmcSettings, csv: Path) -> None:
    """Refuse a file that was not written to its end: CmdStan itself does not look whether the disk was full.

    Raises
    ------
    StanRunError
        If draws are missing, or the times that stand after the last of them.
    """
    found = len(output.method["lp__"])
    if found != settings.draws or math.isnan(output.seconds("Sampling")):
        raise StanRunError(
            f"Stan wrote {found} of {settings.draws} draws to {csv} and did not come to its end; make room there, or "
            "set TMPDIR to a folder on another disk."
        )


def _stats(settings: NutsSettings | HmcSettings, output: Output) -> dict[str, np.ndarray]:
    stats: dict[str, np.ndarray] = {
        name: output.method[column].astype(KINDS.get(name, np.float64))
        for column, name in STATS.items()
        if column in output.method
    }
    if isinstance(settings, HmcSettings):
        # CmdStan writes the integration time instead; the number of steps follows from it as in Stan's source.
        time = output.method["int_time__"]
        stats["n_steps"] = np.maximum(1, time / stats["step_size"]).astype(np.int64)
    return stats
