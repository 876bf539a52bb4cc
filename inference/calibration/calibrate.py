"""Simulation-based calibration: simulate from the prior, infer, and rank the true values among the draws.

One compiled program infers many simulations by NUTS or static HMC (`compiled`); other methods infer them one by one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import (
    check_class,
    check_count,
    check_path,
    check_seed,
    checks_arguments,
    choose,
)
from onebasin.base.errors import ArgumentError, InferenceError, StanRunError, code_of_user
from onebasin.base.files.writing import locked
from onebasin.base.machine import available_cores
from onebasin.base.precision import precision
from onebasin.base.processes.tasks import connected, run_tasks, succeeded
from onebasin.base.progress import ProgressBars
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.target import Target

from ..contracts.method import Method, chosen, density_by, engine_for, engine_named
from ..infer import METHODS, WORDS, method_named
from ..runs import checkpoint
from ..runs.checkpoint import fingerprint
from ..runs.run import run
from .compiled import AT_ONCE, Densities, Infer, compiled_densities, together
from .family import (
    LOG_LIKELIHOOD,
    LP,
    Family,
    LogDensities,
    Looking,
    Quantity,
    Ranked,
    Simulation,
    SimulationDraws,
    draws_of,
    rank,
    simulated,
    target_of,
)
from .result import Calibration

Arrays = dict[str, np.ndarray]
MEASURES = Ranked._fields  # Names of the numbers saved for each true value.

Own = Callable[[Target, int], xr.DataTree]
"""A method supplied by the user: a function that maps a target and a seed to a posterior."""


@dataclass(frozen=True)
class Way:
    """Method that infers the simulations; `densities` evaluates the log density at points (simulation, point, ...)."""

    method: str
    engine: str
    settings: Any
    infer: Infer
    densities: Densities
    at_once: int  # Number of simulations passed to `infer` in one call.
    together: bool = False  # Whether one compiled program infers all of them.


@checks_arguments
def calibrate(
    family: Family,
    method: Method | str | Own = "nuts",
    engine: str | None = None,
    *,
    simulations: int = 200,
    seed: int = 0,
    quantities: Mapping[str, Quantity] | None = None,
    folder: str | Path | None = None,
    workers: int | None = None,
    client: Any = None,
    progress: bool | None = None,
) -> Calibration:
    """Check, on data simulated from the model's prior, that a method returns the correct posterior.

    Parameters are drawn from the prior, data from the likelihood, and the method is run on the data. The parameters
    are then one more draw from the posterior, so their rank among the method's draws is uniform (simulation-based
    calibration). Ranks that are not uniform reveal an error in the program (a Jacobian, a prior, a likelihood) or in
    the method, and show how large it is.

    Parameters
    ----------
    family : Family
        The model before it is conditioned on data.
    method : Method, str or callable
        A method, such as `ob.Nuts(chains=1)`. Or the name of a method: "nuts", "hmc", "mclmc", "modes", "advi",
        "dadvi", "symmetrised", "laplace" or "pathfinder"; samplers then run 2 short chains of 500 draws after 500
        warmup iterations. Or a function that takes a target and a seed and returns a posterior.
    engine : {"numpyro", "stan", "nutpie"}, optional
        Engine of the method; by default an engine that the family's targets support, NumPyro if possible.
    simulations : int
        Number of simulations. 200 detect an sd that is wrong by a third; 2,000 detect one that is wrong by a tenth.
    seed : int
        From 0 to 2^32 - 1. Simulation i depends only on the seed and i, so a call with more simulations adds to the
        same ones.
    quantities : mapping of str to callable, optional
        Test quantities in addition to the family's own: see `Family`.
    folder : path, optional
        Folder in which ranks are saved; repeat the call to resume.
    workers : int, optional
        Number of groups of simulations that run in parallel if one compiled program infers many simulations; by
        default one per core. Otherwise simulations run one after another, and only their chains run in parallel. The
        result does not depend on this number.
    client : distributed.Client or str, optional
        A Dask cluster whose workers run the simulations, or the address of its scheduler. The result is the same.
    progress : bool, optional
        Whether to show progress; by default only in terminals and notebooks.

    Returns
    -------
    Calibration
        The verdict in words, and for every test quantity its ranks, the p-value, and the errors of means and sds.

    Raises
    ------
    TypeError
        If `family` is not a Family.
    ValueError
        If a name is unknown, a number is out of range, or a true value does not fit the posterior's variables.
    InUse
        If another run is using the folder.
    StanError
        If Stan cannot compile the program.

    Notes
    -----
    The test quantities are the log likelihood, the log density, the parameters, and those of the family. Parameters
    that a declared symmetry moves are put into a labelling that depends only on the draw itself; other parameters are
    used unchanged. Simulations on which a method fails, or whose chains do not converge, are left out and counted.
    Whether that happens depends on the data, not on the true values, so the ranks of the other simulations stay
    uniform.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari and Gelman 2018, arXiv:1804.06788. Modrák, Moon, Kim, Bürkner, Huurre,
    Faltejsková, Gelman and Vehtari 2023, Bayesian Analysis (quantities of the data). Säilynoja, Bürkner and Vehtari
    2022, Statistics and Computing 32 (bands).

    Examples
    --------
    >>> def normal(y=None):
    ...     mu = numpyro.sample("mu", dist.Normal(0, 1))
    ...     numpyro.sample("y", dist.Normal(mu, 1).expand([5]), obs=y)
    >>> family = ob.truth.Family.of_numpyro(normal, observed="y")
    >>> found = ob.calibrate(family, ob.Nuts(chains=1, warmup=200, draws=200), simulations=100, seed=1)
    >>> found.verdict
    'calibrated'
    """
    check_class("family", family, Family, remedy="give a Family, such as Family.of_numpyro(...)")
    check_count("simulations", simulations, most=10**6)
    seed = check_seed(seed)
    looked_at = family.looking_at(quantities or {})
    first = simulated(looked_at, seed, 0)
    asked = method_of(method) if isinstance(method, str) else method
    if not first.parameters:
        raise ArgumentError(
            "`family` has no parameters to calibrate. Give a model that draws parameters as well as the observed "
            "data."
        )
    like = target_of(looked_at, first)
    way = way_of(looked_at, asked, engine, like)
    looking = Looking(like.symmetry, looked_at.quantities)
    with ExitStack() as held, ProgressBars(progress) as bars:
        kept = None if folder is None else check_path("folder", folder)
        mark = None
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(kept, argument="folder"))
            # Fingerprint all that determines ranks; functions are identified by results at the first true values.
            truth = {name: value[None] for name, value in first.parameters.items()}
            how: dict[str, Any] = {"method": way.method, "settings": way.settings, "seed": seed}
            how["looked"] = looking.at(truth, first.data, {})
            how |= {"symmetry": to_json(looking.symmetry), "at_once": way.at_once}
            mark = fingerprint(like, engine=way.engine, progress=bars.say, calibration=1, **how)
        bar = bars.add(f"calibrating {family.name}, {way.method}", simulations)
        groups = range(-(-simulations // way.at_once))
        # Only a compiled program may run in several threads: JAX traces a model in one thread at a time.
        at_once = (workers or available_cores()) if way.together else 1
        if client is None:
            make = partial(_groups_here, partial(_group, looked_at, way, looking, seed), at_once)
        else:
            sent = looked_at, asked, engine, like, seed
            make = partial(_groups_on_workers, sent, client, bars.say)
        many = _groups(make, groups, kept, mark)
        parts: dict[int, Arrays] = {}
        for number, part in many:
            parts[number] = part
            bars.move(bar, min(simulations, way.at_once * len(parts)))
    # A group in which every simulation failed has no names, so take them from another group.
    each = [parts[g] for g in groups]
    names = next((part["names"] for part in each if len(part["names"])), np.array([], np.str_))
    measures = {}
    for key in MEASURES:
        columns = [part[key] for part in each]
        columns = [c if c.shape[1] else np.full((len(c), len(names)), np.nan) for c in columns]
        measures[key] = np.concatenate(columns)[:simulations]
    failures = np.concatenate([part["failure"] for part in each])[:simulations]
    return Calibration(
        family=family.name,
        method=way.method,
        engine=way.engine,
        settings=way.settings.recorded() if isinstance(way.settings, Method) else {},
        seed=seed,
        names=tuple(str(name) for name in names),
        **measures,
        divergences=np.concatenate([part["divergences"] for part in each])[:simulations],
        failures=tuple(str(reason) for reason in failures),
    )


def _group(family: Family, way: Way, looking: Looking, seed: int, number: int) -> Arrays:
    """Simulate, infer and rank a group of simulations."""
    first = number * way.at_once
    simulations = [simulated(family, seed, first + i) for i in range(way.at_once)]
    drawn = way.infer(simulations)
    there = [i for i, d in enumerate(drawn) if not d.failure]
    points: dict[int, dict[str, np.ndarray]] = {}
    places: dict[int, int] = {}
    # Collect all draws (point, ...), with the true values inserted at a random position.
    for i in there:
        simulation, own = simulations[i], drawn[i].draws
        for name, truth in simulation.parameters.items():
            if name not in own:
                known = ", ".join(own) or "no parameters"
                raise ArgumentError(
                    f"`simulate` returns the parameter {name}, but the posterior has no parameter of this name (the "
                    f"posterior has {known}). Use the program's names for the parameters in `simulate`."
                )
            if truth.shape != (shape := own[name].shape[2:]):
                raise ArgumentError(
                    f"`simulate` must return {name} with the shape of the posterior's draws, {shape}; got "
                    f"{truth.shape}."
                )
        flat = {n: own[n].reshape(-1, *own[n].shape[2:]) for n in simulation.parameters}
        places[i] = int(simulation.rng.integers(len(next(iter(flat.values()))) + 1))
        points[i] = {
            n: np.insert(v, places[i], simulation.parameters[n], axis=0) for n, v in flat.items()
        }
    given = [simulations[i] for i in there], [points[i] for i in there]
    densities = way.densities(*given) if there else []
    names: list[str] = []
    ranked: dict[int, list[Ranked]] = {}
    for i, at in zip(there, densities, strict=True):
        numbers = looking.at(points[i], simulations[i].data, at)
        names = names or list(numbers)
        chains = len(next(iter(drawn[i].draws.values())))
        ranked[i] = [
            rank(
                np.delete(found, places[i]).reshape(chains, -1),
                float(found[places[i]]),
                simulations[i].rng,
                independent=drawn[i].independent,
            )
            for found in numbers.values()
        ]
    # The table (measure, simulation, quantity) is NaN if a simulation failed.
    table = np.full((len(MEASURES), len(drawn), len(names)), np.nan)
    for i, row in ranked.items():
        table[:, i] = np.transpose(row)
    return {
        **dict(zip(MEASURES, table, strict=True)),
        "names": np.array(names, dtype=np.str_),
        "divergences": np.array([d.divergences for d in drawn]),
        "failure": np.array([d.failure for d in drawn], dtype=np.str_),
    }


Make = Callable[[Sequence[int]], Iterator[tuple[int, Arrays]]]  # Make these groups.


def _groups(
    make: Make, groups: Sequence[int], kept: Path | None, mark: str | None
) -> Iterator[tuple[int, Arrays]]:
    """Read the groups that are in the folder, make the others, and save them there."""
    files = {} if kept is None else {n: kept / f"ranks-{n:05d}.npz" for n in groups if mark}
    missing: list[int] = []
    for number in groups:
        found = checkpoint.read(files[number], mark or "") if files else None
        if found is None:
            missing.append(number)
        else:
            yield number, found
    for number, found in make(missing):
        if files:
            checkpoint.write(files[number], mark or "", found)
        yield number, found


def _groups_here(
    make: Callable[[int], Arrays], at_once: int, groups: Sequence[int]
) -> Iterator[tuple[int, Arrays]]:
    """Make groups in parallel, after the first group has compiled the shared program."""
    if groups:
        yield groups[0], make(groups[0])
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        futures = {number: pool.submit(make, number) for number in groups[1:]}
        try:
            for number, future in futures.items():
                yield number, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


MOST_TOGETHER = 8
"""Maximum number of groups per process of a cluster. A process compiles once for all its groups."""


def _groups_on_workers(
    sent: tuple[Any, ...], client: Any, say: Callable[[str], None], groups: Sequence[int]
) -> Iterator[tuple[int, Arrays]]:
    """Make groups on the workers of a cluster, a few per process."""
    with connected(client) as cluster:
        threads = max(1, sum(cluster.nthreads().values()))
        size = min(MOST_TOGETHER, max(1, -(-len(groups) // threads)))
        parts = [groups[at : at + size] for at in range(0, len(groups), size)]
        tasks = {f"group {part[0]} and those after it": (*sent, part) for part in parts}
        what = f"The family {sent[0].name!r}"
        for key, found in run_tasks(_groups_of_worker, tasks, cluster, what=what, say=say):
            yield from succeeded(key, found).items()


def _groups_of_worker(
    family: Family,
    method: Method | Own,
    engine: str | None,
    like: Target,
    seed: int,
    groups: Sequence[int],
) -> dict[int, Arrays]:
    way, looking = way_of(family, method, engine, like), Looking(like.symmetry, family.quantities)
    return {number: _group(family, way, looking, seed, number) for number in groups}


def method_of(word: str) -> Method:
    """Return the method with this name; its chains are short because there are hundreds of runs."""
    able = [name for name, (method, _) in WORDS.items() if METHODS[method].gives_posterior]
    return method_named(choose("method", word, able), METHODS[WORDS[word][0]].for_calibration)


def way_of(family: Family, method: Method | Own, engine: str | None, like: Target) -> Way:
    """Choose how a method infers simulations; `like` is the target of one simulation."""
    if not isinstance(method, Method):
        engine = engine_for(like, engine)
        name = getattr(method, "__name__", type(method).__name__)

        def users(target: Target, seed: int) -> xr.DataTree:
            with code_of_user(f"`method` ({name}), at seed {seed},"):
                tree = method(target, seed)
            check_class("method", tree, xr.DataTree, remedy="it must return a posterior")
            return tree

        densities = _densities(family, engine)
        return Way(name, engine, None, _one_by_one(family, users), densities, ONE_BY_ONE)
    engine = chosen(like, type(method), engine)[0]
    densities = _densities(family, engine)
    if engine == "numpyro" and (infer := together(family, method)) is not None:
        return Way(method.word, engine, method, infer, densities, AT_ONCE, together=True)

    def own(target: Target, seed: int) -> xr.DataTree:
        how: dict[str, Any] = dict.fromkeys(("symmetry", "check_symmetry", "progress"), False)
        how["predictive_mb"] = 0
        return run(target, method, engine=engine, seed=seed, **how)

    alone = _one_by_one(family, own, independent=not method.correlated)
    return Way(method.word, engine, method, alone, densities, ONE_BY_ONE)


POINTWISE = "log_lik"  # A Stan program's name for the log likelihood of each observation.
ONE_BY_ONE = 5
"""Number of simulations per saved file if simulations are inferred one by one."""


def _one_by_one(family: Family, method: Own, *, independent: bool = False) -> Infer:
    """Infer simulations one by one; a failure affects only its own simulation."""

    def one(simulation: Simulation) -> SimulationDraws:
        target = target_of(family, simulation)
        try:
            tree = method(target, simulation.seed)
        except (InferenceError, StanRunError) as error:
            return SimulationDraws(failure=str(error))
        return draws_of(simulation, tree, independent=independent)

    return lambda simulations: [one(simulation) for simulation in simulations]


def _densities(family: Family, engine: str) -> Densities:
    """Return the function that evaluates points: a compiled model for all simulations, or the engine for each one."""
    if family.model is not None:
        return compiled_densities(family)
    by = engine_named(engine).name

    def one(simulation: Simulation, points: Mapping[str, Any]) -> LogDensities:
        target = target_of(family, simulation)
        with precision("float64"):
            density = density_by(by, target)
            values = {name: points[name] for name in density.names}
            found = {LP: np.asarray(density.log_density(values))}
            likelihood = density.log_likelihood(values)
            if likelihood is None and POINTWISE in density.derived:
                each = density.derived_at(values, simulation.seed)[POINTWISE]
                likelihood = each.reshape(len(each), -1).sum(axis=1)
        return found if likelihood is None else {LOG_LIKELIHOOD: likelihood, **found}

    return lambda simulations, points: [
        one(*each) for each in zip(simulations, points, strict=True)
    ]
