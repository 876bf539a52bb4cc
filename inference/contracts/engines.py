"""The engines, and the answer to every question about them: which one, on which definition, with which methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onebasin.base.checks import choose
from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.extras import is_installed, lacks

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from .method import Method
    from .values import ValueDensity


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
    """Tell whether an engine runs a method on a definition, "numpyro" or "stan"."""
    if definition not in ENGINES[engine].takes or not implemented(method, engine):
        return False
    return (engine, definition) != ("numpyro", "stan") or method.by_jax or method.stan_by_jax


def implemented(method: type[Method], engine: str) -> str:
    """Return where an engine's implementation of a method is; empty where it has none."""
    return method.engines.get(engine) or ENGINES[engine].methods.get(method.name, "")


def _has(target: Target, definition: str) -> bool:
    """Tell whether a target has a definition for NumPyro or for Stan."""
    own = target.numpyro_model if definition == "numpyro" else target.stan_program
    return target.is_network or own is not None
