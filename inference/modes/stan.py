"""Optima, Laplace's approximation and Pathfinder of a Stan program, by CmdStan."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError
from onebasin.base.files.leftovers import working_folder
from onebasin.posteriors import schema
from onebasin.stan import command
from onebasin.stan.home.errors import StanRunError
from onebasin.stan.output import read
from onebasin.stan.program import ReadyProgram, make_ready, name_draws
from onebasin.stan.run import run

from ..contracts.method import Found, Job
from ..mcmc.stan import SIGNIFICANT_FIGURES
from ..mcmc.stan_start import Optimum, find_optimum, parameters_of, seeds_of, write
from .approximation import approximation
from .laplace import Laplace
from .optimize import Optimize
from .pathfinder import Pathfinder

_ITERATION = re.compile(r"^iteration: (\d+)", re.MULTILINE)
_NO_PEAK = "Hessian"


def optimize(job: Job[Optimize]) -> Found:
    """Find the highest point of the log density, with or without the log Jacobian."""
    with working_folder("optimize") as folder:
        ready = make_ready(job.target, folder, progress=job.bars.say)
        best = _search(ready, folder, job, jacobian=job.method.jacobian)
    last = {name: values[-1:] for name, values in best.output.variables.items()}
    lp = best.output.method["lp__"][-1:]
    return approximation(_chain(name_draws(job.target, last)), _chain({"lp": lp}), best.converged)


def laplace(job: Job[Laplace]) -> Found:
    """Draw from the Gaussian at the mode.

    Raises
    ------
    InferenceError
        If the Hessian at the optimum is not that of a peak.
    """
    s = job.method
    with working_folder("laplace") as folder:
        ready = make_ready(job.target, folder, progress=job.bars.say)
        best = _search(ready, folder, job, jacobian=True)
        files = _files(ready, folder)
        mode = write(folder, parameters_of(ready, best))
        arguments = command.laplace(files, mode, seed=job.seed, draws=s.draws)
        watch = _watch(job, "draws", s.draws)
        try:
            output = read(files.output, printed=run(ready, arguments, folder, watch=watch))
        except StanRunError as error:
            if _NO_PEAK not in str(error):
                raise
            raise InferenceError(
                f"`target` {job.target.name!r} has no peak at its highest point that was found (log density "
                f"{best.output.method['lp__'][-1]:.4g}), so that no Gaussian has its curvature; use `nuts`, or `advi`."
            ) from error
    stats = {"lp": output.method["log_p__"], "log_q": output.method["log_q__"]}
    draws = name_draws(job.target, output.variables)
    return approximation(_chain(draws), _chain(stats), best.converged)


def pathfinder(job: Job[Pathfinder]) -> Found:
    """Run all paths, and resample their draws where there are several."""
    s = job.method
    several = s.paths > 1
    with working_folder("pathfinder") as folder:
        ready = make_ready(job.target, folder, progress=job.bars.say)
        files = _files(ready, folder)
        arguments = command.pathfinder(
            files,
            command.Start(seed=job.seed, init=s.init_radius),
            paths=s.paths,
            draws=s.draws,
            path_draws=s.path_draws if several else s.draws,
            iterations=s.iterations,
            elbo_samples=s.elbo_samples,
            history=s.history,
            save_paths=several,
        )
        output = read(files.output, printed=run(ready, arguments, folder))
        own = [_own_ratios(path) for path in sorted(folder.glob("draws_path_*.csv"))]
    stats = {
        "lp": output.method["lp__"],
        "log_q": output.method["lp_approx__"],
        "path": output.method["path__"].astype(np.int64),
    }
    ratios = [ratio for ratio in own if ratio.size]
    return approximation(
        _chain(name_draws(job.target, output.variables)),
        _chain(stats),
        converged=len(ratios) == s.paths if several else True,
        variational=xr.Dataset({schema.LOG_RATIO: ("path_draw", np.concatenate(ratios))})
        if ratios
        else None,
    )


def _files(ready: ReadyProgram, folder: Path) -> command.Files:
    return command.Files(data=ready.data, output=folder / "draws.csv", digits=SIGNIFICANT_FIGURES)


def _search(ready: ReadyProgram, folder: Path, job: Job[Any], *, jacobian: bool) -> Optimum:
    """The highest optimum from the starts that the settings ask for; the first start is that of the seed."""
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


def _watch(job: Job[Any], what: str, total: int) -> Callable[[str], None]:
    """Moves a bar by the iterations that are printed."""
    bar = job.bars.add(what, total)

    def watch(printed: str) -> None:
        if numbers := _ITERATION.findall(printed):
            job.bars.move(bar, int(numbers[-1]))

    return watch


def _own_ratios(path: Path) -> np.ndarray:
    """`lp - log_q` of a path's own draws; none of a path that came nowhere."""
    try:
        method = read(path).method
    except StanRunError:
        return np.empty(0)
    return method["lp__"] - method["lp_approx__"]


def _chain(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Draws as those of one chain."""
    return {name: value[None] for name, value in values.items()}
