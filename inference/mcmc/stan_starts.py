"""Starting points for a Stan program: the best of several optima, or given values, as CmdStan's init files.

Optima are those of CmdStan's L-BFGS with the log Jacobian, that is of the density that its samplers move in.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.stan import command
from onebasin.stan.errors import StanRunError
from onebasin.stan.output import Output, read
from onebasin.stan.program import ReadyProgram
from onebasin.stan.run import run

from ..errors import InferenceError

ITERATIONS = 2000


def best_optimum(
    program: ReadyProgram,
    folder: Path,
    *,
    init_radius: float,
    seeds: list[int],
    cancel: threading.Event | None = None,
) -> Path:
    """Optimise once a seed, and write the parameters of the highest log density.

    Parameters
    ----------
    program : ReadyProgram
        Compiled, with its data.
    folder : Path
        For all files.
    init_radius : float
        Runs start uniformly within +-init_radius in the unconstrained space.
    seeds : list of int
        One a run.
    cancel : Event, optional
        Ends the run at work once it is set.

    Returns
    -------
    Path
        An init file.

    Raises
    ------
    InferenceError
        If every run fails; the message holds the last one's words.
    """
    best: Output | None = None
    failure = "the log density is not finite there"
    for seed in seeds:
        csv = folder / "optimum.csv"
        csv.unlink(missing_ok=True)
        arguments = command.optimise(
            command.Files(data=program.data, output=csv),
            command.Start(seed=seed, init=init_radius),
            iterations=ITERATIONS,
        )
        try:
            run(program, arguments, folder, cancel=cancel)
        except StanRunError as error:
            failure = str(error).splitlines()[-1].strip()
        found = _read(csv)
        if found and (best is None or _log_density(found) > _log_density(best)):
            best = found
    if best is None:
        raise InferenceError(
            f"No optimum was found from {len(seeds)} starting points (init='optimum'), the last time: {failure}; raise "
            "`init_starts`, or use init='random'."
        )
    return write(folder, {name: best.variables[name][-1] for name in program.info.parameters})


def write(folder: Path, values: Mapping[str, Any]) -> Path:
    """Write values of a program's parameters as an init file."""
    from cmdstanpy import write_stan_json

    path = folder / "init.json"
    write_stan_json(str(path), values)
    return path


def seeds_of(seed: int, chain: int, count: int) -> list[int]:
    """Seeds of a chain's optimisations, which depend on the run's seed and the chain's number alone."""
    words = np.random.SeedSequence([seed, chain]).generate_state(count)
    return [int(word) for word in words]


def _read(csv: Path) -> Output | None:
    """Where a run ended, if its log density is finite there.

    A run whose line search fails, mostly because an optimum can be held no more exactly, ends with an error but
    writes the point that it had reached.
    """
    try:
        output = read(csv)
    except StanRunError:
        return None
    lp = output.method.get("lp__", np.empty(0))
    return output if len(lp) and np.isfinite(lp[-1]) else None


def _log_density(output: Output) -> float:
    return float(output.method["lp__"][-1])
