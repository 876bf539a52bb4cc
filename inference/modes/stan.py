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

from ..mcmc.stan import SIGNIFICANT_FIGURES
from ..mcmc.stan_start import Optimum, find_optimum, parameters_of, seeds_of, write
from .request import Approximation, ModeRequest
from .settings import LaplaceSettings, OptimizeSettings, PathfinderSettings

_ITERATION = re.compile(r"^iteration: (\d+)", re.MULTILINE)
_NO_PEAK = "Hessian"


def optimize(request: ModeRequest[OptimizeSettings]) -> Approximation:
    """Find the highest point of the log density, with or without the log Jacobian."""
    with working_folder("optimize") as folder:
        ready = make_ready(request.target, folder, progress=request.bars.say)
        best = _search(ready, folder, request, jacobian=request.settings.jacobian)
    last = {name: values[-1:] for name, values in best.output.variables.items()}
    lp = best.output.method["lp__"][-1:]
    return Approximation(
        _chain(name_draws(request.target, last)), _chain({"lp": lp}), best.converged
    )


def laplace(request: ModeRequest[LaplaceSettings]) -> Approximation:
    """Draw from the Gaussian at the mode.

    Raises
    ------
    InferenceError
        If the Hessian at the optimum is not that of a peak.
    """
    s = request.settings
    with working_folder("laplace") as folder:
        ready = make_ready(request.target, folder, progress=request.bars.say)
        best = _search(ready, folder, request, jacobian=True)
        files = _files(ready, folder)
        mode = write(folder, parameters_of(ready, best))
        arguments = command.laplace(files, mode, seed=request.seed, draws=s.draws)
        watch = _watch(request, "draws", s.draws)
        try:
            output = read(files.output, printed=run(ready, arguments, folder, watch=watch))
        except StanRunError as error:
            if _NO_PEAK not in str(error):
                raise
            raise InferenceError(
                f"`target` {request.target.name!r} has no peak at its highest point that was found (log density "
                f"{best.output.method['lp__'][-1]:.4g}), so that no Gaussian has its curvature; use `nuts`, or `advi`."
            ) from error
    stats = {"lp": output.method["log_p__"], "log_q": output.method["log_q__"]}
    draws = name_draws(request.target, output.variables)
    return Approximation(_chain(draws), _chain(stats), best.converged)


def pathfinder(request: ModeRequest[PathfinderSettings]) -> Approximation:
    """Run all paths, and resample their draws where there are several."""
    s = request.settings
    several = s.paths > 1
    with working_folder("pathfinder") as folder:
        ready = make_ready(request.target, folder, progress=request.bars.say)
        files = _files(ready, folder)
        arguments = command.pathfinder(
            files,
            command.Start(seed=request.seed, init=s.init_radius),
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
    return Approximation(
        _chain(name_draws(request.target, output.variables)),
        _chain(stats),
        converged=len(ratios) == s.paths if several else True,
        variational=xr.Dataset({schema.LOG_RATIO: ("path_draw", np.concatenate(ratios))})
        if ratios
        else None,
    )


def _files(ready: ReadyProgram, folder: Path) -> command.Files:
    return command.Files(data=ready.data, output=folder / "draws.csv", digits=SIGNIFICANT_FIGURES)


def _search(
    ready: ReadyProgram, folder: Path, request: ModeRequest[Any], *, jacobian: bool
) -> Optimum:
    """The highest optimum from the starts that the settings ask for; the first start is that of the seed."""
    s = request.settings
    bar = request.bars.add("optimum", s.starts)
    return find_optimum(
        ready,
        folder,
        init_radius=s.init_radius,
        seeds=[request.seed, *seeds_of(request.seed, 0, s.starts - 1)],
        iterations=s.iterations,
        jacobian=jacobian,
        done=lambda number: request.bars.move(bar, number),
    )


def _watch(request: ModeRequest[Any], what: str, total: int) -> Callable[[str], None]:
    """Moves a bar by the iterations that are printed."""
    bar = request.bars.add(what, total)

    def watch(printed: str) -> None:
        if numbers := _ITERATION.findall(printed):
            request.bars.move(bar, int(numbers[-1]))

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
