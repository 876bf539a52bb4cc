"""HMC and NUTS on a Stan program, with one process per chain, and starting points for Stan programs.

Optima come from CmdStan's L-BFGS with the log Jacobian: they are optima of the density that its samplers use.

A program writes its draws into the folder of the chain, one whole row at a time. If it was killed, or more draws are
wanted, its complete rows are read. The chain's next program continues from the last draw, with the step size and the
metric of the warmup. It uses a new random stream, because CmdStan does not report the state of the first one. If the
warmup was killed, it is started again, with the same result.
"""

import json
import math
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import InferenceError, OnebasinError, RunCancelled, StanRunError
from onebasin.base.precision import precision
from onebasin.base.progress import ChainBar
from onebasin.base.run_log import notice
from onebasin.models.target import Target
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.program import name_draws
from onebasin.stan.run import (
    Adaptation,
    CommandStart,
    Files,
    Output,
    ReadyProgram,
    command_line,
    keep_whole_rows,
    make_ready,
    read,
    read_adaptation,
    read_blocks,
    run,
    sample,
)

from ..contracts.method import Job
from ..density.start import check_names
from ..runs.checkpoint import state_file
from .chains import ChainPlace, Standing
from .nuts import Nuts

SIGNIFICANT_FIGURES = 12
ITERATIONS = 2000
_CONVERGED = "Convergence detected"
_ROUNDING = 1e-7  # Optima are the same if log densities agree to this relative precision.


def best_optimum(
    program: ReadyProgram,
    folder: Path,
    *,
    init_radius: float,
    seeds: list[int],
    cancel: threading.Event | None = None,
) -> Path:
    """Optimise once per seed, and write the parameters with the highest log density to an init file.

    Runs start at points uniform within +-`init_radius` in the unconstrained space. If every run fails, the
    InferenceError quotes the last failure.
    """
    try:
        best, _ = find_optimum(program, folder, init_radius=init_radius, seeds=seeds, cancel=cancel)
    except InferenceError as error:
        raise InferenceError(
            f"{error} You can also raise `init_starts`, or use init='random'."
        ) from error
    return write(folder, parameters_of(program, best))


def find_optimum(
    program: ReadyProgram,
    folder: Path,
    *,
    init_radius: float,
    seeds: list[int],
    iterations: int = ITERATIONS,
    jacobian: bool = True,
    cancel: threading.Event | None = None,
    done: Callable[[int], None] = lambda _: None,
) -> tuple[Output, bool]:
    """Optimise once per seed as in `best_optimum`, and choose the highest log density.

    Return the program's output, whose last row is the optimum, and whether a run that met its criterion ended as high,
    up to rounding. A run takes at most `iterations` steps. `jacobian` includes the log Jacobian of the constraints.
    After each run, `done` is called with the number of runs so far.
    """
    found: list[tuple[Output, bool]] = []
    failure = "the last log density is not finite"
    for number, seed in enumerate(seeds, 1):
        csv = folder / "optimum.csv"
        csv.unlink(missing_ok=True)
        arguments = command_line(
            Files(data=program.data, output=csv),
            CommandStart(seed=seed, init=init_radius),
            "optimize",
            jacobian=int(jacobian),
            algorithm="lbfgs",
            iter=iterations,
        )
        printed = ""
        try:
            printed = run(program, arguments, folder, cancel=cancel)
        except StanRunError as error:
            failure = str(error).splitlines()[-1].strip(" .")
        # A line search usually fails because the optimum cannot be located more precisely. Such a run ends with an
        # error but writes its last point, which counts if its log density is finite.
        with suppress(StanRunError):
            output = read(csv)
            if np.isfinite(output.method.get("lp__", np.empty(0))[-1:]).any():
                found.append((output, _CONVERGED in printed))
        done(number)
    if not found:
        raise InferenceError(
            f"No optimum was found (starting points: {len(seeds)}; last failure: {failure}). Check the data and the "
            "prior."
        )
    best = max((output for output, _ in found), key=_log_density)
    level = _log_density(best) - _ROUNDING * (1 + abs(_log_density(best)))
    return best, any(met and _log_density(output) >= level for output, met in found)


def pathfinder_draw(
    program: ReadyProgram,
    folder: Path,
    *,
    init_radius: float,
    seed: int,
    cancel: threading.Event | None = None,
) -> Path:
    """Run Pathfinder along one path, and write the parameters of a draw to an init file."""
    csv = folder / "pathfinder.csv"
    arguments = command_line(
        Files(data=program.data, output=csv),
        CommandStart(seed=seed, init=init_radius),
        "pathfinder",
        history_size=5,
        num_psis_draws=1,
        num_paths=1,
        save_single_paths=0,
        max_lbfgs_iters=ITERATIONS,
        num_draws=1,
        num_elbo_draws=25,
    )
    run(program, arguments, folder, cancel=cancel)
    return write(folder, parameters_of(program, read(csv)))


def parameters_of(program: ReadyProgram, output: Output) -> dict[str, Any]:
    """Return the parameter values in the last row; parameters of size zero are not in the file, and are empty."""
    found = output.variables
    return {n: found[n][-1] if n in found else np.empty(0) for n in program.info.parameters}


def write(folder: Path, values: Mapping[str, Any]) -> Path:
    """Write parameter values to an init file."""
    from stanio import write_stan_json

    path = folder / "init.json"
    write_stan_json(str(path), values)
    return path


def init_values(target: Target, info: ProgramInfo, start: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a start to values of the program's parameters; CmdStan rejects wrong shapes and values."""
    from onebasin.stan.network import pack_unconstrained

    from ..density.network import NetworkDensity  # Imported here, because it loads JAX.

    if target.is_network:
        with precision("float64"):
            density = NetworkDensity.of(target)
            return pack_unconstrained(density.target, density.unravel(density.given_start(start)))
    check_names(start, info.parameters)
    return start


def seeds_of(seed: int, chain: int, count: int) -> list[int]:
    """Return the seeds of a chain's optimisations, which depend only on the run's seed and the chain's number."""
    words = np.random.SeedSequence([seed, chain]).generate_state(count)
    return [int(word) for word in words]


def seed_of(seed: int, chain: int, program: int) -> int:
    """Return the seed of a program that continues a chain; `program` counts from 1."""
    return int(np.random.SeedSequence([seed, chain, program]).generate_state(1)[0])


def _log_density(output: Output) -> float:
    return float(output.method["lp__"][-1])


LAST = "last-"  # Prefix of parameter names in a chain's state.


def going_on(
    state: Mapping[str, np.ndarray],
    block: Output,
    stats: Mapping[str, np.ndarray],
    names: Iterable[str],
) -> dict[str, np.ndarray]:
    """Return the state from which a chain continues after a block of draws with their statistics (draw,).

    The state holds the number `program` of the next program, where program 0 warms up; the warmup's `step_size` and
    `inverse_metric`; the last draw of the parameters `names`; the sum `accepted` of the acceptance probabilities; and
    the number of `divergences`, if the method reports them.
    """
    found = dict(state)
    if "step_size" not in found:
        adapted = read_adaptation(block.comments, float(stats["step_size"][-1]))
        if adapted is not None:
            found["step_size"] = np.array(adapted.step_size)
            found["inverse_metric"] = adapted.inverse_metric
    found["accepted"] = np.array(found.get("accepted", 0.0) + stats["acceptance_rate"].sum())
    if "diverging" in stats:
        found["divergences"] = np.array(found.get("divergences", 0) + stats["diverging"].sum())
    last = {n: np.asarray(block.variables[n][-1]) for n in names if n in block.variables}
    return found | {f"{LAST}{name}": value for name, value in last.items()}


def seconds_of(csv: Path, before: Standing, folder: Path | None) -> tuple[float, float]:
    """Return the seconds of a chain's warmup and of its draws, including a program that ended or was killed.

    `before` is the state of the chain when the program began or its warmup ended. It was saved at that moment.
    """
    output = next(read_blocks(csv))
    warmup, sampling = output.seconds("Warm-up"), output.seconds("Sampling")
    if math.isnan(sampling):
        warmup, sampling = before.warmup_seconds, 0.0
        if folder is not None:  # Use the time of a killed program's last row.
            began = state_file(folder).stat().st_mtime
            sampling = max(0.0, csv.stat().st_mtime - began)
    elif before.draws:  # A program that continues does not warm up.
        warmup = before.warmup_seconds
    return warmup, before.sampling_seconds + sampling


_ITERATION = re.compile(r"Iteration:\s+(\d+) /")


STATS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
"""CmdStan's names of statistics and ArviZ's; static HMC has neither tree depth nor divergences."""

_NOT_WRITTEN = "cannot write output file"
"""Last message of onebasin's driver of Stan's services when the disk is full; CmdStan itself does not check."""

KINDS = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}


class StanChains:
    """Chains of one target. The program is compiled and the data are written once. Raises StanError."""

    def __init__(self, job: Job[Any]) -> None:
        assert job.folder is not None, "chains have a folder"
        self.job, self.settings, self.bars, self.folder = job, job.method, job.bars, job.folder
        threads = job.method.threads_per_chain > 1
        self.ready = make_ready(
            job.target, job.folder, engine=job.engine, threads=threads, progress=job.bars.say
        )
        if job.given is not None:
            from .starts import for_stan

            self.values, self.metric = for_stan(job.target, job.given)

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain, as `chains.RunChain` describes."""
        _StanChain(self, place).run(cancel)

    def start(self, number: int, scratch: Path, cancel: threading.Event) -> Path | float:
        """Return the start of a chain: a radius or a file of values."""
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
        adapted: Sequence[str] = (),
    ) -> list[str]:
        """Compose the command line of a program that runs a chain or the rest of a chain."""
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
    """One chain: the draws of earlier programs, and the program that draws the rest."""

    def __init__(self, runner: StanChains, place: ChainPlace) -> None:
        self._runner, self._place = runner, place
        self._scratch = Path(tempfile.mkdtemp(dir=runner.folder))
        self._folder = self._scratch if place.folder is None else place.folder.resolve()
        self._standing = place.standing or Standing(0, state={"program": np.array(0)})

    @property
    def _program(self) -> int:
        return int(self._standing.state["program"])

    @property
    def _saved(self) -> int:
        """The number of warmup rows in the file; a single program runs a chain with such rows."""
        s = self._runner.settings
        return s.warmup if s.save_warmup else 0

    @property
    def _csv(self) -> Path:
        """The file of the chain's next program."""
        return self._folder / f"stan-{self._program}.csv"

    def run(self, cancel: threading.Event) -> None:
        """Run the chain to its end."""
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
        """Read the draws of a program that was killed; draws of earlier programs are already stored."""
        if self._csv.exists() and keep_whole_rows(self._csv):
            self._take()
            self._place.save(lambda: self._standing, now=True)
        self._remove_files()

    def _remove_files(self) -> None:
        for path in self._folder.glob("stan-*"):
            path.unlink()

    def _sample(self, bar: ChainBar, done: int, cancel: threading.Event) -> None:
        """Draw the rest of the chain after `done` iterations."""
        runner, begun, csv = self._runner, self._standing, self._csv
        arguments = self._going_on() if begun.draws else self._beginning(cancel)
        self._place.save(lambda: begun, now=True)  # Record when the program began.
        warmup, started = 0 if begun.draws else runner.settings.warmup, time.monotonic()

        def watch(printed: str) -> None:
            if not (numbers := _ITERATION.findall(printed)):
                return
            iteration = int(numbers[-1])
            if warmup and iteration > warmup and not self._standing.warmup_seconds:
                # If the program is killed later, it does not report how long its warmup took.
                self._standing = replace(begun, warmup_seconds=time.monotonic() - started)
                self._place.save(lambda: self._standing, now=True)
            bar.show(done + iteration)

        try:
            printed = run(runner.ready, arguments, self._scratch, cancel=cancel, watch=watch)
            seconds = self._take(printed)
        except (RunCancelled, StanRunError) as error:
            if self._place.folder is not None:
                with suppress(
                    OSError, OnebasinError
                ):  # If this fails, the draws stay in their file.
                    self._recover()
            if _NOT_WRITTEN in str(error):
                raise self._incomplete(csv) from error
            raise
        if self._standing.draws != runner.settings.draws or math.isnan(seconds):
            self._place.save(lambda: self._standing, now=True)
            self._remove_files()
            raise self._incomplete(csv)

    def _beginning(self, cancel: threading.Event) -> list[str]:
        """Compose the command line of a chain that starts with its warmup."""
        runner, number = self._runner, self._place.number
        init = runner.start(number, self._scratch, cancel)
        if isinstance(init, Path):
            self._place.start = {n: np.array(v) for n, v in json.loads(init.read_text()).items()}
        start = CommandStart(seed=runner.job.seed, chain=number + 1, init=init)
        s, given = runner.settings, runner.job.given
        adapted: list[str] = []
        if given is not None:
            step_size = None if given.step_size is None else float(given.step_size[number])
            metric = np.empty(0) if runner.metric is None else runner.metric[number]
            adapted = Adaptation(step_size, metric).arguments(self._scratch)
        return runner.arguments(self._csv, start, draws=s.draws, warmup=s.warmup, adapted=adapted)

    def _going_on(self) -> list[str]:
        """Compose the command line that continues a warmed-up chain, and report the new random stream."""
        runner, number, state = self._runner, self._place.number, self._standing.state
        draws, wanted = self._standing.draws, runner.settings.draws
        notice(
            f"chain {number} continues after {draws:,} of {wanted:,} draws, with the same step size and metric but a "
            "new random stream"
        )
        seed = seed_of(runner.job.seed, number, self._program)
        last = {n.removeprefix(LAST): v for n, v in state.items() if n.startswith(LAST)}
        start = CommandStart(seed=seed, chain=number + 1, init=write(self._scratch, last))
        adaptation = Adaptation(float(state["step_size"]), state["inverse_metric"])
        adapted = adaptation.arguments(self._scratch)
        return runner.arguments(self._csv, start, draws=wanted - draws, warmup=0, adapted=adapted)

    def _incomplete(self, csv: Path) -> StanRunError:
        """Return the error for a file that lacks draws or the times that follow the last draw."""
        found, wanted = self._standing.draws, self._runner.settings.draws
        remedy = "Set TMPDIR to a folder on another disk, or free space on this one"
        if self._place.folder is not None:
            remedy = "Free space on the disk, and repeat the call to resume"
        return StanRunError(
            f"Stan wrote only {found} of {wanted} draws to {csv}; the disk is probably full. {remedy}."
        )

    def _take(self, printed: str = "") -> float:
        """Read the complete rows that a program wrote; return its seconds of sampling, or NaN if it was killed."""
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
                    # CmdStan writes only the integration time. Compute the number of steps from it as Stan does.
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
