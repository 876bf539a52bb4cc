"""A method of inference: frozen settings with a name, its requirements and its engines; and which engine runs it.

A new method is a class made of `Method` in a file of its own, and a line in `methods.METHODS`; the command line,
calibration and the documentation read it there. Its `run` turns a `Job` into a `Found`. A function of
the same name, such as `nuts`, has its fields and the arguments of `infer` as arguments, and describes them.
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
from onebasin.base.extras import is_installed, lacks
from onebasin.base.settings import settings

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.base.progress import ProgressBars
    from onebasin.models.target import Target
    from onebasin.posteriors.pointwise import Values


@settings
class Method:
    """Settings of a method, and all that is known of it before it runs."""

    name: ClassVar[str]  # the word by which `infer`, the command line and `calibrate` know it
    # Where its implementation on each engine is, ``module:attribute``; see also `Engine.methods`.
    engines: ClassVar[Mapping[str, str]] = {}
    # What it needs of a target: "network", or "symmetry", which is then always checked.
    needs: ClassVar[frozenset[str]] = frozenset()
    resumes: ClassVar[bool] = False  # takes a `checkpoint`
    takes_start: ClassVar[bool] = False  # takes initial values
    takes_adaptation: ClassVar[bool] = False  # takes step size and metric of an earlier run
    takes_client: ClassVar[bool] = False  # divides its work among workers; else one has all of it
    correlated: ClassVar[bool] = False  # chains are autocorrelated; draws of a fit are independent
    gives_posterior: ClassVar[bool] = True  # draws approximate the posterior: no point estimates
    by_jax: ClassVar[bool] = False  # moves by JAX on either definition, NumPyro's where both are
    stan_by_jax: ClassVar[bool] = False  # its NumPyro engine also takes a Stan program alone
    # Fields that a posterior records as attributes of their own, or in the name of the method.
    apart: ClassVar[tuple[str, ...]] = ()
    # Fields recorded only where they differ from their defaults: they came after records were made.
    later: ClassVar[tuple[str, ...]] = ()
    numpyro_alone: ClassVar[frozenset[str]] = frozenset({"dtype"})  # Stan has no use for them
    networks_alone: ClassVar[frozenset[str]] = frozenset()  # fields that are for networks
    for_calibration: ClassVar[Mapping[str, Any]] = {}  # defaults for hundreds of simulations

    @property
    def amount(self) -> tuple[int, int]:
        """Chains, and draws of each."""
        return getattr(self, "chains", 1), getattr(self, "draws", 1)

    @property
    def keeps(self) -> bool:
        """Check whether a run with these settings takes a `checkpoint`."""
        return self.resumes

    @property
    def label(self) -> str:
        """Value of a posterior's attribute `method`."""
        return self.name

    @property
    def word(self) -> str:
        """The method's name in studies, with what distinguishes it there."""
        return self.name

    def recorded(self) -> dict[str, Any]:
        """The fields that a posterior records as its settings."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in self.apart
            and (field.name not in self.later or getattr(self, field.name) != field.default)
        }

    def check(self, target: Target, engine: str) -> None:
        """Reject a target or an engine that the method is not for, before any work."""

    def run(self, job: Job[Any]) -> Found:
        """Do the method's own work; by default all of it is the engine's implementation."""
        found: Found = job.implementation(job)
        return found


def weighs(method: Method, *, is_network: bool) -> bool:
    """Check whether a fit is corrected by importance weights: if it is requested, and by default but for networks."""
    weights = getattr(method, "weights", False)
    return bool(weights) or (weights is None and not is_network)


@dataclass(frozen=True)
class Job[M: Method]:
    """One run of a method; made once by `run`, and handed down."""

    target: Target  # the model conditioned on data
    method: M  # the settings
    engine: str  # who runs it
    seed: int  # of everything that is random
    bars: ProgressBars  # where progress is shown
    implementation: Any = None  # the engine's part of the method, where it has one
    start: Any = None  # initial values: of chains as the user gave them, of a fit a mapping
    checkpoint: Path | None = None  # in which what is done is kept as it goes
    folder: Path | None = None  # for the engine's own files; the caller removes it
    given: Any = None  # starts, metric and step size of chains, if they are given (`mcmc.given`)
    # The earlier run of which chains take step size and metric, as the user gave it.
    adapt_from: Any = None
    client: Any = None  # the cluster whose workers do the work, or the address of its scheduler


@dataclass(frozen=True)
class Found:
    """The result of a method's own work."""

    draws: Mapping[str, Values]  # variable name to array (chain, draw, ...), in memory or on disk
    stats: Mapping[str, Values]  # statistic name to array (chain, draw), likewise
    # What the posterior says of this method, besides what it says of every one.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    # More groups of the posterior: `variational`, `modes`, `training`.
    groups: Mapping[str, xr.Dataset] = field(default_factory=dict)
    # What holds the arrays that are on disk; it is closed with the posterior.
    filed: xr.DataTree | None = None
    folder: Path | None = None  # in which more can be laid down
    proposals: Any = None  # density and Gaussians from which importance weights may start
    # Called with the whole posterior, to add what follows from its draws.
    finish: Callable[[xr.DataTree], None] | None = None
    warmup: Found | None = None  # draws and statistics of the warmup, where they are kept


def one_chain(
    draws: Mapping[str, Any],
    stats: Mapping[str, Any],
    variational: xr.Dataset | None = None,
    *,
    converged: bool,
) -> Found:
    """Put the result of a fit together, as one chain of draws.

    Draws are arrays (draw, ...) by variable, one of an optimum; statistics are ``lp`` and, but for an optimum,
    ``log_q``. `variational` has the approximation's parameters and traces, or importance ratios of draws that were
    resampled; `converged` says whether an optimiser came to the end that it sought.
    """
    import numpy as np

    def chain(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.asarray(value)[None] for name, value in values.items()}

    groups = {} if variational is None else {"variational": variational}
    return Found(chain(draws), chain(stats), {"converged": int(converged)}, groups)


def as_dict(value: Any) -> Any:
    """Like `dataclasses.asdict`, but a method's fields that it records apart are left out where they have the default.

    So a study's settings and their hashes are those of times when these fields were arguments.
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
    """A program that runs methods. Its packages are imported when a method first asks for them."""

    name: str  # word of the argument `engine`
    # Definitions of a target that it runs, the preferred one first: "numpyro", "stan".
    takes: tuple[str, ...]
    # Where the class of its log density over values is, ``module:attribute``.
    density: str = ""
    # Methods that it brings along, and where they are; a method may also list engines itself.
    methods: Mapping[str, str] = field(default_factory=dict)
    # The optional package that it needs, whose version is recorded with each run.
    package: str = ""


def found_at(place: str) -> Any:
    """Import what stands at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


NUMPYRO = Engine("numpyro", ("numpyro", "stan"), "onebasin.inference.density.numpyro:NumpyroValues")
"""JAX, in this process; a Stan program's log density is that of its library."""
STANLI = Engine("stanli", ("stan",), "onebasin.inference.density.stan:stan_density")
"""The interpreter of Stan programs, a process a run."""
CMDSTAN = Engine("cmdstan", ("stan",), "onebasin.inference.density.stan:stan_density")
"""CmdStan's executables, a process a run."""
NUTPIE = Engine(
    "nutpie",
    ("numpyro", "stan"),
    methods={"nuts": "onebasin.inference.mcmc.nutpie:NutpieChains"},
    package="nutpie",
)
"""The sampler of the package nutpie, on either definition."""

ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (NUMPYRO, STANLI, CMDSTAN, NUTPIE)
}
"""Every engine by its name; a new one is a line here."""

LIBRARIES = (STANLI.name, CMDSTAN.name)  # The engines whose libraries evaluate Stan programs.

DEFINED = (NUMPYRO.name, *LIBRARIES)  # The engines that evaluate a log density.

FORMER = {"stan": "cmdstan"}  # Former names of engines.


def named(word: str) -> str:
    """Return the name of an engine that may be given by a former one."""
    return FORMER.get(word, word)


def engine_named(name: str) -> Engine:
    """Find an engine by its name.

    ValueError says that there is no such engine, InferenceError that its package is not installed.
    """
    engine = ENGINES[choose("engine", named(name), ENGINES)]
    if engine.package and not is_installed(engine.package):
        raise InferenceError(lacks(f"`engine={engine.name!r}`", engine.package))
    return engine


def engine_for(target: Target, engine: str | None) -> str:
    """Return the name of the engine that was asked for; else NumPyro where the target has a model for it.

    A Stan program is left to the interpreter where that takes it, and to CmdStan elsewhere; see `library_of`.
    """
    if engine is not None:
        return named(engine)
    return "numpyro" if _has(target, "numpyro") or not _has(target, "stan") else library_of(target)


def library_of(target: Target) -> str:
    """Return the engine whose library evaluates a target's Stan program: "stanli" or "cmdstan".

    A program that does not parse, or rejects its data, raises StanError, here and below.
    """
    from onebasin.stan.program import definition

    return definition(target).chosen().engine


def bound(target: Target, engine: str | None) -> Target:
    """Return a target whose Stan program has its library: that of an engine, or the rule's.

    What is computed from the target then neither examines the program again nor forgets the rule's reason. A program
    that the engine does not take raises StanError.
    """
    program, library = target.stan_program, engine if engine in LIBRARIES else None
    if program is None or (library is None and target.numpyro_model is not None):
        return target
    choice = program.chosen(library)
    if choice is program.choice:
        return target
    return replace(target, stan_program=replace(program, choice=choice))


def defined_by(target: Target, engine: str | None) -> str:
    """Return the engine that evaluates a target's log density: the one that was asked for, or that of `engine_for`.

    One that evaluates none raises ValueError.
    """
    return _evaluating(target, choose("engine", engine_for(target, engine), DEFINED))


def _evaluating(target: Target, engine: str) -> str:
    """Return the engine whose log density a run of an engine on a target has."""
    if definition_of(target, engine) == "stan":
        return engine if engine in LIBRARIES else library_of(target)
    return engine if engine in DEFINED else "numpyro"


def definition_of(target: Target, engine: str) -> str:
    """Return whose definition of a target an engine takes; of no engine of ours, its own name."""
    takes = ENGINES[engine].takes if engine in ENGINES else (engine,)
    return next((name for name in takes if _has(target, name)), takes[0])


def density_by(
    engine: str, target: Target, progress: Callable[[str], None] | None = None
) -> ValueDensity:
    """Return a target's log density over values as an engine evaluates it."""
    engine = _evaluating(target, engine)
    found: ValueDensity = found_at(ENGINES[engine].density)(bound(target, engine), progress)
    return found


def chosen(target: Target, method: type[Method], engine: str | None) -> tuple[str, Any]:
    """Choose who runs a method on a target: the engine's name, and its implementation of the method.

    ValueError says that there is no such engine or that it does not have the method, InferenceError that its package is
    not installed.
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
                f"`engine` is {engine!r}, but {method.name} moves by JAX on the definition that the target has, "
                f"{usual_definition}'s of {target.name!r}; leave it out."
            )
    place = implemented(method, engine)
    if not place:
        able = [repr(name) for name in ENGINES if implemented(method, name)]
        brings = ", ".join(found.methods)
        has = f" (it has {brings})" if brings else ""
        use = " or ".join(able)
        raise ArgumentError(
            f"`engine` is {engine!r}, which has no {method.name}{has}; use engine={use}, or another method."
        )
    definition = definition_of(target, engine)
    there = _has(target, definition)
    if not there or not takes(method, engine, definition):
        other, lacks = "stanli", "NumPyro model"
        if not there and definition == "stan":
            other, lacks = "numpyro", "Stan program"
        if not takes(method, other, definition_of(target, other)):
            has = "NumPyro model" if lacks == "Stan program" else "Stan program"
            raise ArgumentError(
                f"`target` is {target.name!r}, which has no {lacks}, and {method.name} takes no {has}; use another "
                "method: `dadvi`, `laplace`, `advi` or `nuts`."
            )
        raise ArgumentError(
            f"`engine` is {engine!r}, but the target {target.name!r} has no {lacks}; use engine={other!r}."
        )
    return engine, found_at(place)


def takes(method: type[Method], engine: str, definition: str) -> bool:
    """Check whether an engine runs a method on a definition, "numpyro" or "stan"."""
    if definition not in ENGINES[engine].takes or not implemented(method, engine):
        return False
    return (engine, definition) != ("numpyro", "stan") or method.by_jax or method.stan_by_jax


def implemented(method: type[Method], engine: str) -> str:
    """Return where an engine's implementation of a method is; empty if it has none."""
    return method.engines.get(engine) or ENGINES[engine].methods.get(method.name, "")


def _has(target: Target, definition: str) -> bool:
    """Check whether a target has a definition for NumPyro or for Stan."""
    own = target.numpyro_model if definition == "numpyro" else target.stan_program
    return target.is_network or own is not None


@runtime_checkable
class ValueDensity(Protocol):
    """A log density over values, which both engines have."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Quantities that follow from the variables."""

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return the derived quantities at points (point, ...); `seed` is that of random quantities among them."""

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Points to try, uniform within +-2 in the unconstrained space: name to array (point, ...)."""

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log density at points (point, ...), up to one constant; -inf outside the support."""

    def log_likelihood(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"] | None:
        """Log likelihood of all data at points (point, ...); None from an engine that does not tell it apart."""
