"""Optima, Laplace's approximation and Pathfinder for a Stan program, by Stan's algorithms."""

import re
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError, OnebasinError, StanRunError
from onebasin.base.files.writing import working_folder
from onebasin.base.progress import ProgressBars
from onebasin.posteriors import schema
from onebasin.stan.choice import STANLI
from onebasin.stan.library import open_library
from onebasin.stan.program import definition, name_draws
from onebasin.stan.run import (
    CommandStart,
    Files,
    Output,
    ReadyProgram,
    command_line,
    make_ready,
    read,
    run,
)

from ..contracts.method import Found, Job, one_chain
from ..mcmc.stan import SIGNIFICANT_FIGURES, find_optimum, parameters_of, seeds_of, write
from ..runs.run import spread
from .edge import at_optimum, no_peak, running_off
from .methods import Laplace, Optimize, Pathfinder

_ITERATION = re.compile(r"^iteration: (\d+)", re.MULTILINE)
_NO_PEAK = "Hessian"
_TIGHT = {"ftol": 1e-14, "gtol": 1e-8, "maxcor": 10}  # SciPy's L-BFGS then resembles Stan's.


def optimize(job: Job[Optimize]) -> Found:
    """Find the highest point of the log density, with or without the log Jacobian."""
    if job.engine == STANLI and not job.method.jacobian:
        return _highest_density(job)
    with working_folder("optimize") as folder:
        ready = make_ready(job.target, folder, engine=job.engine, progress=job.bars.say)
        best, converged = _search(ready, folder, job, jacobian=job.method.jacobian)
        last = {name: values[-1:] for name, values in best.variables.items()}
        variable = _edge(job, ready, best, jacobian=job.method.jacobian)
        lp = best.method["lp__"][-1:]
    return at_optimum(name_draws(job.target, last), lp, converged, job.target.name, variable)


def _edge(job: Job[Any], ready: ReadyProgram, best: Output, *, jacobian: bool) -> str | None:
    """Return the variable that runs to its boundary at the end of a search, if the interpreter supports the program."""
    if job.target.is_network:
        return None
    with suppress(OnebasinError, ValueError):
        library = open_library(definition(job.target), engine=STANLI, seed=job.seed)
        vector = library.unconstrain(library.pack(parameters_of(ready, best)))
        return _edge_of(library, vector, jacobian=jacobian)
    return None


def _edge_of(library: Any, vector: np.ndarray, *, jacobian: bool) -> str | None:
    def climb(point: np.ndarray) -> tuple[float, np.ndarray]:
        level, slope = library.log_density_gradient(point, jacobian=jacobian)
        return float(level), np.asarray(slope)

    def values(point: np.ndarray) -> dict[str, np.ndarray]:
        return {n: v[0] for n, v in library.unpack(library.constrain(point)[None]).items()}

    return running_off(climb, values, vector)


def _highest_density(job: Job[Optimize]) -> Found:
    """Maximise the density without the Jacobian by SciPy, because the interpreter's optimiser always adds it."""
    from scipy.optimize import minimize

    s, rng = job.method, np.random.default_rng(job.seed)
    library = open_library(definition(job.target), engine=STANLI, seed=job.seed)
    bar = job.bars.add("optimum", s.starts)

    def fall(point: np.ndarray) -> tuple[float, np.ndarray]:
        level, slope = library.log_density_gradient(point, jacobian=False)
        return -float(level), -np.nan_to_num(slope)

    found = []
    for number in range(1, s.starts + 1):
        start = rng.uniform(-s.init_radius, s.init_radius, library.dim)
        options = _TIGHT | {"maxiter": s.iterations}
        found.append(minimize(fall, start, jac=True, method="L-BFGS-B", options=options))
        job.bars.move(bar, number)
    best = min(found, key=lambda end: end.fun)
    if not np.isfinite(best.fun):
        raise InferenceError(
            f"No optimum of {job.target.name!r} was found (starting points: {s.starts}). Raise `starts`, or lower "
            "`init_radius`."
        )
    everything = {"include_tp": True, "include_gq": True}
    values = library.constrain(best.x, generator=library.generator(job.seed), **everything)
    draws = name_draws(job.target, library.unpack(values[None], **everything))
    variable = _edge_of(library, best.x, jacobian=False)
    return at_optimum(draws, np.array([-best.fun]), bool(best.success), job.target.name, variable)


def laplace(job: Job[Laplace]) -> Found:
    """Draw from the Gaussian at the mode."""
    s = job.method
    with working_folder("laplace") as folder:
        ready = make_ready(job.target, folder, engine=job.engine, progress=job.bars.say)
        best, converged = _search(ready, folder, job, jacobian=True)
        height = float(best.method["lp__"][-1])
        if variable := _edge(job, ready, best, jacobian=True):
            raise InferenceError(f"{no_peak(job.target.name, variable, height)}.")
        output = folder / "draws.csv"
        files = Files(data=ready.data, output=output, digits=SIGNIFICANT_FIGURES)
        mode = write(folder, parameters_of(ready, best))
        arguments = command_line(
            files, CommandStart(seed=job.seed), "laplace", mode=mode, jacobian=1, draws=s.draws
        )
        bar = job.bars.add("draws", s.draws)

        def watch(printed: str) -> None:
            if numbers := _ITERATION.findall(printed):
                job.bars.move(bar, int(numbers[-1]))

        try:
            read_in = read(output, printed=run(ready, arguments, folder, watch=watch))
        except StanRunError as error:
            if _NO_PEAK not in str(error):
                raise
            raise InferenceError(f"{no_peak(job.target.name, None, height)}.") from error
    stats = {"lp": read_in.method["log_p__"], "log_q": read_in.method["log_q__"]}
    draws = name_draws(job.target, read_in.variables)
    return one_chain(draws, stats, converged=converged)


def pathfinder(job: Job[Pathfinder]) -> Found:
    """Run all paths; if there are several, resample their draws.

    The interpreter runs one path at a time, with the same random stream as the path of this number in CmdStan.
    """
    s = job.method
    several, apart = s.paths > 1, s.paths > 1 and job.engine == STANLI
    sent = replace(job, bars=cast(Any, None), client=None)
    tasks = {f"path {n}": (sent, n) for n in range(1, s.paths + 1)} if apart else {"paths": (sent,)}
    what = f"The model {job.target.name!r}"
    ended = sorted(spread(job.client, job.bars, what, _run_paths, tasks), key=itemgetter(0))
    found = [output for _, output, _ in ended if isinstance(output, Output)]
    if not found:
        raise cast(StanRunError, ended[-1][1])
    ratios = [ratio for *_, own in ended for ratio in own if ratio.size]
    output = _resampled(found, np.concatenate(ratios), job) if apart else found[0]
    stats = {
        "lp": output.method["lp__"],
        "log_q": output.method["lp_approx__"],
        "path": output.method["path__"].astype(np.int64),
    }
    group = {schema.LOG_RATIO: ("path_draw", np.concatenate(ratios))} if ratios else None
    return one_chain(
        name_draws(job.target, output.variables),
        stats,
        None if group is None else xr.Dataset(group),
        converged=len(ratios) == s.paths if several else True,
    )


def _run_paths(
    bars: ProgressBars, job: Job[Pathfinder], number: int = 0
) -> tuple[int, Output | StanRunError, list[np.ndarray]]:
    """Run path `number`, or all paths if 0; return the number, the draws or an error, and each path's `lp - log_q`."""
    s, several = job.method, job.method.paths > 1 and not number
    with working_folder("pathfinder") as folder:
        ready = make_ready(job.target, folder, engine=job.engine, progress=bars.say)
        files = Files(data=ready.data, output=folder / "draws.csv", digits=SIGNIFICANT_FIGURES)
        start = CommandStart(seed=job.seed, chain=number or None, init=s.init_radius)
        draws = s.path_draws if number else s.draws
        arguments = command_line(
            files,
            start,
            "pathfinder",
            history_size=s.history,
            num_psis_draws=draws,
            num_paths=s.paths if several else 1,
            save_single_paths=int(several),
            max_lbfgs_iters=s.iterations,
            num_draws=s.path_draws if several else draws,
            num_elbo_draws=s.elbo_samples,
        )
        try:
            output = read(files.output, printed=run(ready, arguments, folder))
        except StanRunError as error:
            if not number:
                raise
            return number, error, []
        parts = [output] if number else []
        for path in sorted(folder.glob("draws_path_*.csv")):
            with suppress(StanRunError):  # Failed paths have no draws.
                parts.append(read(path))
    if number:
        output.method["path__"][:] = number
    return number, output, [part.method["lp__"] - part.method["lp_approx__"] for part in parts]


def _resampled(found: list[Output], log_ratio: np.ndarray, job: Job[Pathfinder]) -> Output:
    """Draw rows with replacement according to their Pareto-smoothed importance weights."""
    from arviz_stats.base import array_stats

    # psislw expects log likelihoods, which are the negatives of log weights.
    log_weights = np.asarray(array_stats.psislw(-log_ratio)[0])
    weights = np.exp(log_weights - log_weights.max())
    rng = np.random.default_rng([job.seed, len(log_ratio)])
    rows = rng.choice(len(log_ratio), size=job.method.draws, p=weights / weights.sum())

    def joined(kind: str) -> dict[str, np.ndarray]:
        first = getattr(found[0], kind)
        return {n: np.concatenate([getattr(part, kind)[n] for part in found])[rows] for n in first}

    return Output(joined("method"), joined("variables"), ())


def _search(ready: ReadyProgram, folder: Path, job: Job, *, jacobian: bool) -> tuple[Output, bool]:
    """Find the highest optimum from all starts; the first uses the seed of the job."""
    s = job.method
    bar = job.bars.add("optimum", s.starts)
    return find_optimum(
        ready,
        folder,
        init_radius=s.init_radius,
        seeds=[job.seed, *seeds_of(job.seed, 0, s.starts - 1)],
        iterations=s.iterations,
        jacobian=jacobian,
        done=lambda number: job.bars.move(bar, number),
    )
