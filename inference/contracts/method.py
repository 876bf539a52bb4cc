"""Methods of inference (frozen settings with a name, requirements and engines) and the choice of an engine.

To add a method, write a subclass of `Method` in its own file and a line in `infer.FUNCTIONS`, which the command
line, calibration and the documentation read. Its `run` turns a `Job` into a `Found`. A function of the same name, such
as `nuts`, takes and documents the fields of the method and the arguments of `infer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import choose
from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.machine import is_installed, lacks
from onebasin.base.settings import settings

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.base.progress import ProgressBars
    from onebasin.models.target import Target
    from onebasin.posteriors.pointwise import Values


@settings
class Method:
    """The settings of a method, and class variables that describe it."""

    name: ClassVar[str]  # Name in `infer`, the command line and `calibrate`.
    engines: ClassVar[Mapping[str, str]] = {}  # implementation on each engine, ``module:attribute``
    needs: ClassVar[frozenset[str]] = frozenset()
    """Requirements: "network", "symmetry" or both. A needed symmetry is always checked."""
    resumes: ClassVar[bool] = False  # Accepts a `checkpoint`.
    takes_start: ClassVar[bool] = False  # Accepts initial values.
    takes_adaptation: ClassVar[bool] = False  # Accepts step sizes and metrics from an earlier run.
    takes_client: ClassVar[bool] = False
    """Divides its work among workers; otherwise one worker does all of it."""
    correlated: ClassVar[bool] = False
    """True for chains, whose draws are autocorrelated; False for the independent draws of a fit."""
    gives_posterior: ClassVar[bool] = True
    """Draws approximate the posterior; False for point estimates."""
    by_jax: ClassVar[bool] = False  # JAX evaluates either definition; it prefers NumPyro's.
    stan_by_jax: ClassVar[bool] = False  # The NumPyro engine also accepts a Stan program.
    apart: ClassVar[tuple[str, ...]] = ()  # Fields that a posterior records as separate attributes.
    later: ClassVar[tuple[str, ...]] = ()  # fields recorded only if they differ from their defaults
    numpyro_alone: ClassVar[frozenset[str]] = frozenset({"dtype"})  # Fields that Stan does not use.
    networks_alone: ClassVar[frozenset[str]] = frozenset()  # Fields that only networks use.
    for_calibration: ClassVar[Mapping[str, Any]] = {}  # Defaults for hundreds of simulations.

    @property
    def amount(self) -> tuple[int, int]:
        """Number of chains, and number of draws per chain."""
        return getattr(self, "chains", 1), getattr(self, "draws", 1)

    @property
    def keeps(self) -> bool:
        """Return whether a run with these settings accepts a `checkpoint`."""
        return self.resumes

    @property
    def label(self) -> str:
        """The value that a posterior records in its attribute `method`."""
        return self.name

    @property
    def word(self) -> str:
        """The method's name in studies."""
        return self.name

    def recorded(self) -> dict[str, Any]:
        """Return the fields that a posterior records as its settings."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in self.apart
            and (field.name not in self.later or getattr(self, field.name) != field.default)
        }

    def check(self, target: Target, engine: str) -> None:
        """Reject targets and engines that the method does not support, before any work."""

    def run(self, job: Job[Any]) -> Found:
        """Run the method; by default the engine's implementation does all the work."""
        found: Found = job.implementation(job)
        return found


def weighs(method: Method, *, is_network: bool) -> bool:
    """Return whether importance weights correct a fit: on request, and by default except for networks."""
    weights = getattr(method, "weights", False)
    return bool(weights) or (weights is None and not is_network)


@dataclass(frozen=True)
class Job[M: Method]:
    """One run of a method, created by `run` and passed down to the method and its engine."""

    target: Target
    method: M
    engine: str
    seed: int
    bars: ProgressBars
    implementation: Any = None  # The engine's implementation of the method, if there is one.
    start: Any = None  # Initial values: as the user gave them for chains, or a mapping for a fit.
    checkpoint: Path | None = None  # Folder for the state of the run.
    folder: Path | None = None  # Folder for the engine's files; the caller removes it.
    given: Any = None  # starting points, metrics and step sizes of chains, if given (`mcmc.starts`)
    adapt_from: Any = None  # Earlier run that provides step sizes and metrics.
    client: Any = None  # Dask cluster that does the work, or the address of its scheduler.


@dataclass(frozen=True)
class Found:
    """The result that a method's `run` returns."""

    draws: Mapping[str, Values]  # Variable name to array (chain, draw, ...), in memory or on disk.
    stats: Mapping[str, Values]  # Statistic name to array (chain, draw), in memory or on disk.
    attributes: Mapping[str, Any] = field(default_factory=dict)  # attributes specific to the method
    groups: Mapping[str, xr.Dataset] = field(default_factory=dict)
    """`variational`, `modes`, `training`."""
    filed: xr.DataTree | None = None  # Owner of arrays on disk; closed with the posterior.
    folder: Path | None = None  # Folder for more arrays on disk.
    proposals: Any = None  # Density and Gaussian proposals for importance weights.
    finish: Callable[[xr.DataTree], None] | None = None  # Completes the finished posterior.
    warmup: Found | None = None  # Draws and statistics of the warmup, if they are kept.


def one_chain(
    draws: Mapping[str, Any],
    stats: Mapping[str, Any],
    variational: xr.Dataset | None = None,
    *,
    converged: bool,
) -> Found:
    """Return the result of a fit as one chain of draws.

    Draws are arrays (draw, ...) by variable; an optimum is a single draw. Statistics are ``lp`` and, except for an
    optimum, ``log_q``. `variational` has the approximation's parameters and traces, or importance ratios of resampled
    draws; `converged` is false if the optimiser stopped early.
    """

    def chain(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.asarray(value)[None] for name, value in values.items()}

    groups = {} if variational is None else {"variational": variational}
    return Found(chain(draws), chain(stats), {"converged": int(converged)}, groups)


def as_dict(value: Any) -> Any:
    """Convert a dataclass like `dataclasses.asdict`, but omit fields in `apart` and `later` that have their default.

    The settings of recorded studies thus keep their hashes when a method gains a field.
    """
    if is_dataclass(value) and not isinstance(value, type):
        apart = (*value.apart, *value.later) if isinstance(value, Method) else ()
        return {
            f.name: as_dict(getattr(value, f.name))
            for f in fields(value)
            if f.name not in apart or getattr(value, f.name) != f.default
        }
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(as_dict(each) for each in value)
    if isinstance(value, dict):
        return {key: as_dict(each) for key, each in value.items()}
    return value


@dataclass(frozen=True)
class Engine:
    """A program that runs methods. Its packages are imported when a method first needs them."""

    name: str
    takes: tuple[str, ...]  # Definitions of a target that it can run, in order of preference.
    density: str = ""  # Class of its log density over values, ``module:attribute``.
    methods: Mapping[str, str] = field(default_factory=dict)
    """Methods that only this engine implements."""
    package: str = ""  # Optional package that it needs; its version is recorded with each run.


def found_at(place: str) -> Any:
    """Import the object at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


NUMPYRO = Engine("numpyro", ("numpyro", "stan"), "onebasin.inference.density.numpyro:NumpyroValues")
"""JAX in this process; it evaluates a Stan program through the program's compiled library."""
STANLI = Engine("stanli", ("stan",), "onebasin.inference.density.stan:stan_density")
"""The interpreter of Stan programs, one process per run."""
CMDSTAN = Engine("cmdstan", ("stan",), "onebasin.inference.density.stan:stan_density")
"""CmdStan's executables, one process per run."""
NUTPIE = Engine(
    "nutpie",
    ("numpyro", "stan"),
    methods={"nuts": "onebasin.inference.mcmc.nutpie:NutpieChains"},
    package="nutpie",
)
"""The sampler of the package nutpie; it runs either definition."""

ENGINES: Mapping[str, Engine] = {e.name: e for e in (NUMPYRO, STANLI, CMDSTAN, NUTPIE)}
"""All engines by name. A new engine needs a line here."""

LIBRARIES = (STANLI.name, CMDSTAN.name)  # Engines whose libraries evaluate Stan programs.
DEFINED = (NUMPYRO.name, *LIBRARIES)  # Engines that evaluate a log density.


def named(word: str) -> str:
    """Return the name of an engine; "stan" is a former name of "cmdstan"."""
    return CMDSTAN.name if word == "stan" else word


def engine_named(name: str) -> Engine:
    """Find an engine; raise ValueError for an unknown name, InferenceError if its package is not installed."""
    engine = ENGINES[choose("engine", named(name), ENGINES)]
    if engine.package and not is_installed(engine.package):
        raise InferenceError(lacks(f"`engine={engine.name!r}`", engine.package))
    return engine


def engine_for(target: Target, engine: str | None) -> str:
    """Return the requested engine; by default NumPyro if the target has a model for it, else that of `library_of`."""
    if engine is not None:
        return named(engine)
    return "numpyro" if _has(target, "numpyro") or not _has(target, "stan") else library_of(target)


def library_of(target: Target) -> str:
    """Return the engine that evaluates a target's Stan program: "stanli" if it accepts the program, else "cmdstan".

    This function and those below raise StanError if the program does not parse or rejects its data.
    """
    from onebasin.stan.program import definition

    return definition(target).chosen().engine


def bound(target: Target, engine: str | None) -> Target:
    """Return the target with its Stan program bound to the library of the engine, by default that of `library_of`.

    Later computations then need not examine the program again. Raise StanError if the engine does not accept it.
    """
    program, library = target.stan_program, engine if engine in LIBRARIES else None
    if program is None or (library is None and target.numpyro_model is not None):
        return target
    choice = program.chosen(library)
    if choice is program.choice:
        return target
    return replace(target, stan_program=replace(program, choice=choice))


def defined_by(target: Target, engine: str | None) -> str:
    """Return the engine that evaluates a target's log density; raise ValueError if the requested engine cannot."""
    return _evaluating(target, choose("engine", engine_for(target, engine), DEFINED))


def _evaluating(target: Target, engine: str) -> str:
    """Return the engine that evaluates a target's log density when `engine` draws."""
    if definition_of(target, engine) == "stan":
        return engine if engine in LIBRARIES else library_of(target)
    return engine if engine in DEFINED else "numpyro"


def definition_of(target: Target, engine: str) -> str:
    """Return the definition that an engine uses, "numpyro" or "stan"; return an unknown engine's name as it is."""
    takes = ENGINES[engine].takes if engine in ENGINES else (engine,)
    return next((name for name in takes if _has(target, name)), takes[0])


def density_by(
    engine: str, target: Target, progress: Callable[[str], None] | None = None
) -> ValueDensity:
    """Return a target's log density over values, evaluated by an engine."""
    engine = _evaluating(target, engine)
    found: ValueDensity = found_at(ENGINES[engine].density)(bound(target, engine), progress)
    return found


def chosen(target: Target, method: type[Method], engine: str | None) -> tuple[str, Any]:
    """Choose the engine that runs a method on a target; return its name and its implementation of the method.

    Raise ValueError if the engine is unknown or does not have the method, InferenceError if its package is missing.
    """
    if engine is None:
        usual = engine_for(target, None)
        fitting = [name for name in (usual, *DEFINED) if implemented(method, name)]
        able = [name for name in fitting if _has(target, definition_of(target, name))]
        engine = (able or fitting)[0]
        if engine == "stanli" != usual and able:
            engine = library_of(target)
    found = engine_named(engine)
    engine = found.name
    if method.by_jax and engine in DEFINED:
        usual_definition = "numpyro" if _has(target, "numpyro") else "stan"
        if definition_of(target, engine) != usual_definition:
            raise ArgumentError(
                f"`engine` is {engine!r}, but {method.name} uses JAX to evaluate the {usual_definition} definition of "
                f"{target.name!r}. Omit `engine`."
            )
    place = implemented(method, engine)
    if not place:
        able = [repr(name) for name in ENGINES if implemented(method, name)]
        brings = ", ".join(found.methods)
        has = f" (it has {brings})" if brings else ""
        use = " or ".join(able)
        raise ArgumentError(
            f"`engine` is {engine!r}, which cannot run {method.name}{has}. Use engine={use} or another method."
        )
    definition = definition_of(target, engine)
    there = _has(target, definition)
    if not there or not takes(method, engine, definition):
        other, lacks = "stanli", "NumPyro model"
        if not there and definition == "stan":
            other, lacks = "numpyro", "Stan program"
        if not takes(method, other, definition_of(target, other)):
            raise ArgumentError(
                f"`target` {target.name!r} has no {lacks}, which {method.name} needs. Use `dadvi`, `laplace`, `advi` "
                "or `nuts`."
            )
        raise ArgumentError(
            f"`engine` is {engine!r}, but the target {target.name!r} has no {lacks}. Use engine={other!r}."
        )
    return engine, found_at(place)


def takes(method: type[Method], engine: str, definition: str) -> bool:
    """Return whether an engine runs a method on a definition, "numpyro" or "stan"."""
    if definition not in ENGINES[engine].takes or not implemented(method, engine):
        return False
    return (engine, definition) != ("numpyro", "stan") or method.by_jax or method.stan_by_jax


def implemented(method: type[Method], engine: str) -> str:
    """Return the import path of an engine's implementation of a method; empty if there is none."""
    return method.engines.get(engine) or ENGINES[engine].methods.get(method.name, "")


def _has(target: Target, definition: str) -> bool:
    """Return whether a target has the definition "numpyro" or "stan"."""
    own = target.numpyro_model if definition == "numpyro" else target.stan_program
    return target.is_network or own is not None


@runtime_checkable
class ValueDensity(Protocol):
    """Protocol of a log density over values of the variables, on any engine."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Names of quantities that are computed from the variables."""

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return the derived quantities at points (point, ...); `seed` is for random ones among them."""

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Return random points, uniform within +-2 in the unconstrained space: name to array (point, ...)."""

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Return the log density at points (point, ...), up to one constant; -inf outside the support."""

    def log_likelihood(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"] | None:
        """Return the log likelihood of all data at points (point, ...); None if the engine does not separate it."""
