"""Starting points for a Stan program: the best of several optima, or given values, as CmdStan's init files.

Optima are those of CmdStan's L-BFGS with the log Jacobian, that is of the density that its samplers move in.

What a chain of CmdStan continues from, when the program that ran it was killed or more draws are wanted.

A program writes its draws into the chain's folder, a whole row at a time. The rows that are whole are taken into the
chain's chunks, and a program of the chain's next number continues: from the last draw, with the step size and the
metric that the warmup came to, and with a random stream of its own, since CmdStan does not tell the state of the
first. A warmup that was killed is started again, with the same outcome.
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import InferenceError, StanRunError
from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.run import (
    CommandStart,
    Files,
    Output,
    ReadyProgram,
    command_line,
    read,
    read_adaptation,
    read_blocks,
    run,
)

from ..density.start import check_names
from ..runs.checkpoint import state_file
from .chains import Standing

SIGNIFICANT_FIGURES = 12
ITERATIONS = 2000
_CONVERGED = "Convergence detected"
_ROUNDING = 1e-7  # Rounding of a log density: optima that differ by less are one.


def best_optimum(
    program: ReadyProgram,
    folder: Path,
    *,
    init_radius: float,
    seeds: list[int],
    cancel: threading.Event | None = None,
) -> Path:
    """Optimise once a seed, and write the parameters of the highest log density as an init file.

    Runs start uniformly within +-`init_radius` in the unconstrained space; `cancel` ends the run at work once it is
    set. Where every run fails, the message holds the last one's words.
    """
    try:
        best, _ = find_optimum(program, folder, init_radius=init_radius, seeds=seeds, cancel=cancel)
    except InferenceError as error:
        raise InferenceError(
            f"{str(error).removesuffix('.')} (init='optimum'); raise `init_starts`, or use init='random'."
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
    """Optimise once a seed, and take the highest log density; arguments as in `best_optimum`.

    Return what the program wrote, whose last row is the optimum; and whether a run that met its criterion ended as
    high, up to rounding. A run takes at most `iterations` steps; `jacobian` says whether the log Jacobian of the
    constraints is part of the density. After each run `done` is called with how many there were.
    """
    found: list[tuple[Output, bool]] = []
    failure = "the log density is not finite there"
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
            failure = str(error).splitlines()[-1].strip()
        # A run whose line search fails, usually because the optimum cannot be located more precisely, ends with an
        # error but
        # writes the point that it had reached; it counts if its log density is finite there.
        with suppress(StanRunError):
            output = read(csv)
            if np.isfinite(output.method.get("lp__", np.empty(0))[-1:]).any():
                found.append((output, _CONVERGED in printed))
        done(number)
    if not found:
        raise InferenceError(
            f"No optimum was found from {len(seeds)} starting points, the last time: {failure}."
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
    """Run Pathfinder along one path, and write the parameters of a draw as an init file."""
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
    """Values of parameters in the last row; those of size zero, of which nothing is written, are empty."""
    found = output.variables
    return {n: found[n][-1] if n in found else np.empty(0) for n in program.info.parameters}


def write(folder: Path, values: Mapping[str, Any]) -> Path:
    """Write values of a program's parameters as an init file."""
    from stanio import write_stan_json

    path = folder / "init.json"
    write_stan_json(str(path), values)
    return path


def init_values(target: Target, info: ProgramInfo, start: Mapping[str, Any]) -> Mapping[str, Any]:
    """A start as values of the program's own parameters; CmdStan rejects shapes and values that they cannot have."""
    from onebasin.stan.network import pack_unconstrained

    from ..density.network import NetworkDensity  # here: it loads JAX

    if target.is_network:
        with precision("float64"):
            density = NetworkDensity.of(target)
            return pack_unconstrained(density.target, density.unravel(density.given_start(start)))
    check_names(start, info.parameters)
    return start


def seeds_of(seed: int, chain: int, count: int) -> list[int]:
    """Seeds of a chain's optimisations, which depend only on the run's seed and the chain's number."""
    words = np.random.SeedSequence([seed, chain]).generate_state(count)
    return [int(word) for word in words]


def seed_of(seed: int, chain: int, program: int) -> int:
    """Seed of the program that continues with a chain, for the `program`-th time from 1."""
    return int(np.random.SeedSequence([seed, chain, program]).generate_state(1)[0])


def _log_density(output: Output) -> float:
    return float(output.method["lp__"][-1])


LAST = "last-"  # Before the name of a parameter in a chain's state.


def going_on(
    state: Mapping[str, np.ndarray],
    block: Output,
    stats: Mapping[str, np.ndarray],
    names: Iterable[str],
) -> dict[str, np.ndarray]:
    """Return the state that a chain continues from after some more draws, at least one; empty before the first.

    It holds the number `program` of the next program, 0 for the one that warms up; `step_size` and `inverse_metric`,
    which the warmup came to; the values of the parameters, `names`, in the last draw; the sum `accepted` of the draws'
    probabilities of acceptance; and how many `divergences` there were, where the method tells. `block` are the draws,
    and `stats` their statistics (draw,).
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
    """Seconds of a chain's warmup and of its draws, with those of a program that has ended or was killed.

    `before` says how the chain stood as the program began, or as its warmup ended; the state in the chain's folder was
    written at that moment.
    """
    output = next(read_blocks(csv))
    warmup, sampling = output.seconds("Warm-up"), output.seconds("Sampling")
    if math.isnan(sampling):
        warmup, sampling = before.warmup_seconds, 0.0
        if (
            folder is not None
        ):  # of a killed program nothing else tells than when it wrote its last row
            began = state_file(folder).stat().st_mtime
            sampling = max(0.0, csv.stat().st_mtime - began)
    elif before.draws:  # a program that continues does not warm up
        warmup = before.warmup_seconds
    return warmup, before.sampling_seconds + sampling
