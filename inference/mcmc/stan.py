"""HMC and NUTS on a Stan program, a process a chain."""

import json
import math
import re
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import OnebasinError, RunCancelled, StanRunError
from onebasin.base.progress import ChainBar
from onebasin.base.run_log import notice
from onebasin.stan.choice import STANLI
from onebasin.stan.program import name_draws
from onebasin.stan.run import (
    Adaptation,
    Adapted,
    CommandStart,
    Files,
    keep_whole_rows,
    make_ready,
    read_blocks,
    run,
    sample,
)

from ..contracts.method import Job
from .chains import ChainPlace, Standing
from .nuts import Nuts
from .stan_start import (
    LAST,
    SIGNIFICANT_FIGURES,
    best_optimum,
    going_on,
    pathfinder_draw,
    seconds_of,
    seed_of,
    seeds_of,
    write,
)

_ITERATION = re.compile(r"Iteration:\s+(\d+) /")
_STEP, _DIVERGENT, _ACCEPT = b"stepsize__", b"divergent__", b"accept_stat__"


BUFFERED = 2**18
"""Bytes of draws that may wait in a program's buffers: where more of them have not come to the file, none will."""
FEWEST_BYTES = 2  # Bytes of a number in a file of draws, with its comma.


class NotWritten(StanRunError):
    """Draws that do not reach their file, as on a full disk: CmdStan itself does not check, and continues."""


class ChainWatch:
    """Moves the bar of a chain as its program prints.

    Where the bar is seen, what has been added to the CSV file since the last time is read: divergences, step sizes and
    probabilities of acceptance stand in the first columns of its rows. Nothing is asked of the program, and nothing is
    slower for it.

    The program takes `warmup` iterations without draws, of which its file begins with `saved` rows, after `before` ones
    that programs before it have done. After its warmup `warmed` is called once, with the seconds since the beginning.
    `grows` says whether the file grows with every draw; the interpreter writes it at the end.
    """

    def __init__(
        self,
        bar: ChainBar,
        csv: Path,
        *,
        warmup: int,
        saved: int = 0,
        before: int = 0,
        warmed: Callable[[float], None] = lambda _: None,
        grows: bool = True,
    ) -> None:
        self._bar, self._csv, self._before = bar, csv, before
        self._warmup, self._warmed, self._began = warmup, warmed, time.monotonic()
        self._grows, self._unseen = grows, saved
        self._place = self._size = 0
        self._grew: int | None = None  # the iteration at which the file was last seen to have grown
        self._columns: list[bytes] | None = None
        self._step_size: float | None = None
        self._divergences: int | None = None
        self._accepted, self._rows = 0.0, 0

    def __call__(self, printed: str) -> None:
        """Take in what was printed."""
        numbers = _ITERATION.findall(printed)
        if not numbers:
            return
        if (iteration := int(numbers[-1])) > self._warmup:
            self._check_grows(iteration)
        if self._bar.moving:
            self._look()
        self._bar.show(
            self._before + iteration,
            step_size=self._step_size,
            divergences=self._divergences,
            acceptance=self._accepted / self._rows if self._rows else None,
        )

    def _check_grows(self, iteration: int) -> None:
        """Look whether rows have come, as far as they do not wait in a buffer: those of small models do for long."""
        if self._grew is None:
            self._grew = self._warmup
            if self._warmup:
                self._warmed(time.monotonic() - self._began)
        if not self._grows:
            return
        size = self._csv.stat().st_size if self._csv.exists() else 0
        if size != self._size:
            self._size, self._grew = size, iteration
        elif (iteration - self._grew) * self._row_bytes() > BUFFERED:
            raise NotWritten(f"Stan's draws are no longer written to {self._csv}.")

    def _row_bytes(self) -> int:
        """The fewest bytes that a row of the file has."""
        with suppress(OSError), self._csv.open("rb") as file:
            for line in file:
                if not line.startswith(b"#"):
                    return FEWEST_BYTES * (line.count(b",") + 1)
        return FEWEST_BYTES

    def _look(self) -> None:
        """Read the whole lines that have been added."""
        try:
            with self._csv.open("rb") as file:
                file.seek(self._place)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # still being written
                    self._place += len(line)
                    self._read(line)
        except OSError:  # not there yet
            return

    def _read(self, line: bytes) -> None:
        if line.startswith(b"#"):
            return
        if self._columns is None:
            self._columns = [name for name in line.split(b",", 7)[:7] if name.endswith(b"__")]
            return
        if self._unseen:
            self._unseen -= 1
            return
        values = dict(zip(self._columns, line.split(b",", 7), strict=False))
        if _STEP in values:
            self._step_size = float(values[_STEP])
        if _ACCEPT in values:
            self._accepted, self._rows = self._accepted + float(values[_ACCEPT]), self._rows + 1
        if _DIVERGENT in values:
            self._divergences = (self._divergences or 0) + int(float(values[_DIVERGENT]))


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

_NOT_WRITTEN = "cannot write output file"
"""The last message of our driver of Stan's services on a full disk; CmdStan's own does not check."""

KINDS = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}


class StanChains:
    """Runs chains of one target; the program is compiled, which may raise StanError, and the data written once."""

    def __init__(self, job: Job[Any]) -> None:
        assert job.folder is not None, "chains have one"
        self.job, self.settings, self.bars, self.folder = job, job.method, job.bars, job.folder
        threads = job.method.threads_per_chain > 1
        self.ready = make_ready(
            job.target, job.folder, engine=job.engine, threads=threads, progress=job.bars.say
        )
        if job.given is not None:
            from .given import for_stan

            self.values, self.metric = for_stan(job.target, job.given)

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        _StanChain(self, place).run(cancel)

    def start(self, number: int, scratch: Path, cancel: threading.Event) -> Path | float:
        """Return the start of a chain: a radius, or a file of values."""
        s = self.settings
        if self.job.given is not None:
            return write(scratch, self.values[number])
        if s.init == "random":
            return s.init_radius
        if s.init == "pathfinder":
            (seed,) = seeds_of(self.job.seed, number, 1)
            return pathfinder_draw(
                self.ready, scratch, init_radius=s.init_radius, seed=seed, cancel=cancel
            )
        return best_optimum(
            self.ready,
            scratch,
            init_radius=s.init_radius,
            seeds=seeds_of(self.job.seed, number, s.init_starts),
            cancel=cancel,
        )

    def arguments(
        self,
        csv: Path,
        start: CommandStart,
        *,
        draws: int,
        warmup: int,
        adapted: Adapted | None = None,
    ) -> list[str]:
        """Compose the command line of a program that runs a chain, or what is left of it."""
        s = self.settings
        if isinstance(s, Nuts):
            engine = ["engine=nuts", f"max_depth={s.max_tree_depth}"]
        else:
            engine = ["engine=static", f"int_time={s.trajectory_length!r}"]
        return sample(
            engine,
            Files(data=self.ready.data, output=csv, digits=SIGNIFICANT_FIGURES),
            start,
            draws=draws,
            warmup=warmup,
            target_acceptance=s.target_acceptance,
            metric=s.metric,
            refresh=max(1, (s.warmup + s.draws) // 50),
            threads=s.threads_per_chain,
            adapt=s.adapt and warmup > 0,
            adapted=adapted,
            save_warmup=s.save_warmup,
        )


class _StanChain:
    """One chain: what earlier programs have drawn of it, and the program that draws the rest."""

    def __init__(self, runner: StanChains, place: ChainPlace) -> None:
        self._runner, self._place = runner, place
        self._scratch = Path(tempfile.mkdtemp(dir=runner.folder))
        self._folder = self._scratch if place.folder is None else place.folder.resolve()
        self._standing = place.standing or Standing(0, state={"program": np.array(0)})

    @property
    def _program(self) -> int:
        """The number of the chain's next program."""
        return int(self._standing.state["program"])

    @property
    def _saved(self) -> int:
        """Rows of warmup in the file; a chain that has any is run by one program."""
        s = self._runner.settings
        return s.warmup if s.save_warmup else 0

    @property
    def _csv(self) -> Path:
        """The file that the chain's next program writes."""
        return self._folder / f"stan-{self._program}.csv"

    def run(self, cancel: threading.Event) -> None:
        """Run it to its end."""
        started, s = time.perf_counter(), self._runner.settings
        self._recover()
        done = s.warmup + self._standing.draws if self._standing.draws else 0
        bar = self._runner.bars.chain(self._place.number, warmup=s.warmup, draws=s.draws, done=done)
        if self._standing.draws < s.draws:
            self._sample(bar, done, cancel)
        self._place.finish(self._standing)
        self._remove_files()
        state = self._standing.state
        bar.end(
            time.perf_counter() - started,
            acceptance=float(state.get("accepted", 0.0)) / self._standing.draws,
            step_size=float(state["step_size"]) if "step_size" in state else None,
            divergences=int(state["divergences"]) if "divergences" in state else None,
        )

    def _recover(self) -> None:
        """Take what a program that was killed has written; other programs' draws were taken before."""
        if self._csv.exists() and keep_whole_rows(self._csv):
            self._take()
            self._place.save(lambda: self._standing, now=True)
        self._remove_files()

    def _remove_files(self) -> None:
        for path in self._folder.glob("stan-*"):
            path.unlink()

    def _sample(self, bar: ChainBar, done: int, cancel: threading.Event) -> None:
        """Let a program draw what is missing after the given number of iterations."""
        runner, begun, csv = self._runner, self._standing, self._csv
        arguments = self._going_on() if begun.draws else self._beginning(cancel)
        self._place.save(lambda: begun, now=True)  # tells when the program began
        warmup = 0 if begun.draws else runner.settings.warmup
        watch = ChainWatch(
            *(bar, csv),
            warmup=warmup,
            saved=self._saved,
            before=done,
            warmed=self._warmed,
            grows=runner.job.engine != STANLI,
        )
        printed = ""
        try:
            with suppress(NotWritten):  # what is there is looked at below
                printed = run(runner.ready, arguments, self._scratch, cancel=cancel, watch=watch)
            seconds = self._take(printed)
        except (RunCancelled, StanRunError) as error:
            self._keep_what_is_there()
            if _NOT_WRITTEN in str(error):
                raise self._incomplete(csv) from error
            raise
        self._check_complete(seconds, csv)

    def _beginning(self, cancel: threading.Event) -> list[str]:
        """Compose the command line of a chain that is to warm up."""
        runner, number = self._runner, self._place.number
        init = runner.start(number, self._scratch, cancel)
        if isinstance(init, Path):
            self._place.start = {n: np.array(v) for n, v in json.loads(init.read_text()).items()}
        start = CommandStart(seed=runner.job.seed, chain=number + 1, init=init)
        s, given = runner.settings, runner.job.given
        adapted = None
        if given is not None:
            step_size = None if given.step_size is None else float(given.step_size[number])
            metric = None
            if runner.metric is not None:
                metric = Adaptation(1.0, runner.metric[number]).write(self._scratch)
            adapted = Adapted(step_size=step_size, metric=metric)
        return runner.arguments(self._csv, start, draws=s.draws, warmup=s.warmup, adapted=adapted)

    def _going_on(self) -> list[str]:
        """Compose the command line of a chain that has warmed up, and say that its random stream is another."""
        runner, number, state = self._runner, self._place.number, self._standing.state
        draws, wanted = self._standing.draws, runner.settings.draws
        notice(
            f"chain {number} continues after {draws:,} of {wanted:,} draws: from its last draw, with its step size "
            "and metric, and with a new random stream"
        )
        seed = seed_of(runner.job.seed, number, self._program)
        last = {n.removeprefix(LAST): v for n, v in state.items() if n.startswith(LAST)}
        start = CommandStart(seed=seed, chain=number + 1, init=write(self._scratch, last))
        adaptation = Adaptation(float(state["step_size"]), state["inverse_metric"])
        adapted = Adapted(step_size=adaptation.step_size, metric=adaptation.write(self._scratch))
        return runner.arguments(self._csv, start, draws=wanted - draws, warmup=0, adapted=adapted)

    def _warmed(self, seconds: float) -> None:
        """Write down how long the warmup took, which nobody else tells of a program that is killed later."""
        self._standing = replace(self._standing, warmup_seconds=seconds)
        self._place.save(lambda: self._standing, now=True)

    def _check_complete(self, seconds: float, csv: Path) -> None:
        """Reject a file that was not written to its end; what it held is kept, where anything is."""
        if self._standing.draws == self._runner.settings.draws and not math.isnan(seconds):
            return
        self._place.save(lambda: self._standing, now=True)
        self._remove_files()
        raise self._incomplete(csv)

    def _incomplete(self, csv: Path) -> StanRunError:
        """Say that draws are missing, or the times that stand after the last of them."""
        found, wanted = self._standing.draws, self._runner.settings.draws
        remedy = "or set TMPDIR to a folder on another disk"
        if self._place.folder is not None:
            remedy = "and run the same again, which continues from there"
        return StanRunError(
            f"Stan wrote {found} of {wanted} draws to {csv} and did not come to its end; make room there, {remedy}."
        )

    def _take(self, printed: str = "") -> float:
        """Take what a program has drawn, but for a row that is cut short; how long that took, NaN if it was killed."""
        csv, runner, before, program = self._csv, self._runner, self._standing, self._program
        draws, seconds, state = before.draws, math.nan, before.state
        if csv.exists():
            keep_whole_rows(csv)
        for block in read_blocks(csv, printed=printed):
            seconds = block.seconds("Sampling")
            if len(block.method["lp__"]):
                stats: dict[str, np.ndarray] = {
                    name: block.method[column].astype(KINDS.get(name, np.float64))
                    for column, name in STATS.items()
                    if column in block.method
                }
                if not isinstance(runner.settings, Nuts):
                    # CmdStan writes the integration time instead; the number of steps follows from it as in Stan's
                    # source.
                    steps = block.method["int_time__"] / stats["step_size"]
                    stats["n_steps"] = np.maximum(1, steps).astype(np.int64)
                self._place.put(draws, name_draws(runner.job.target, block.variables), stats)
                sampled = {n: v[max(0, self._saved - draws) :] for n, v in stats.items()}
                if len(sampled["lp"]):
                    state = going_on(state, block, sampled, runner.ready.info.parameters)
                draws += len(stats["lp"])
        draws -= self._saved
        if draws > before.draws:
            again = (before.draws,) if before.draws else ()
            took = seconds_of(csv, before, self._place.folder)
            state = {**state, "program": np.array(program + 1)}
            self._standing = Standing(draws, *took, state, (*before.restarts, *again))
        return seconds

    def _keep_what_is_there(self) -> None:
        """Keep the draws of a program that has ended early; where that fails, they stay in its file."""
        if self._place.folder is not None:
            with suppress(OSError, OnebasinError):
                self._recover()
