"""Make a method from options that are named like its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from onebasin.base.checks import choose
from onebasin.base.errors import StudyError
from onebasin.base.settings import descriptions
from onebasin.inference.contracts.method import ENGINES, Method, named, takes
from onebasin.inference.infer import FUNCTIONS, METHODS, WORDS, method_named

from .options import described, keyword

OFFERED: Mapping[str, type[Method]] = {
    name: method for name, method in METHODS.items() if "network" not in method.needs
}
"""The methods that work for any program or model."""


def setting_options(methods: Mapping[str, type[Method]]) -> list[inspect.Parameter]:
    """Make an option for every field of these methods, except fields that apply only to networks.

    A field that several methods share is one option; None means the field's default.
    """
    holders: dict[str, dict[str, Any]] = {}
    for method, cls in methods.items():
        for field in fields(cls):
            if field.name not in cls.networks_alone:
                holders.setdefault(field.name, {})[method] = cls
    options = []
    for name, held in holders.items():
        annotations = [cls.__pydantic_fields__[name].annotation for cls in held.values()]
        literals = [get_args(a) for a in annotations if get_origin(a) is Literal]
        words = tuple(dict.fromkeys(word for each in literals for word in each))
        meaning = (
            descriptions(FUNCTIONS[next(iter(held.values()))])
            .get(name, "")
            .partition(". ")[0]
            .rstrip(".")
        )
        scope = "" if len(held) == len(methods) else f" For {', '.join(held)}."
        allowed = f" One of {', '.join(words)}." if words else ""
        text = f"{meaning}.{allowed}{scope} By default {_defaults(name, held)}."
        kind: Any = str
        if not words:  # without None
            parts = [part for part in get_args(annotations[0]) if part is not NoneType]
            kind = parts[0] if parts else annotations[0]
            kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        hint = Annotated[kind | None, described(text, autocompletion=_offering(words))]
        options.append(keyword(name, None, hint))
    return options


def _offering(words: Sequence[str]) -> Callable[[], list[str]]:
    return lambda: list(words)


def _defaults(name: str, holders: Mapping[str, type]) -> str:
    """Describe the default of a field, separately for each method if the defaults differ."""
    found: dict[str, list[str]] = {}
    for method, cls in holders.items():
        default = next(field.default for field in fields(cls) if field.name == name)
        if isinstance(default, bool):
            written = "yes" if default else "no"
        elif isinstance(default, float):
            written = f"{default:.4g}"
        else:
            written = "chosen for the model" if default is None else str(default)
        found.setdefault(written, []).append(method)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{value} ({', '.join(methods)})" for value, methods in found.items())


def settings_for(word: str, options: Mapping[str, Any], *, definition: str = "stan") -> Method:
    """Make a method from its name in `methods.WORDS` and from options by field name, where None means not given.

    `definition` is "numpyro" or "stan".
    """
    if word in METHODS and word not in OFFERED:
        raise StudyError(
            f"`--method` is {word}, which trains networks. For a Stan program, choose one of {', '.join(OFFERED)}."
        )
    choose("method", word, [*OFFERED, *(each for each in WORDS if each not in METHODS)])
    name, fixed = WORDS[word]
    method = METHODS[name]
    if not _takes(method, definition):
        rest = ", ".join(other for other, cls in OFFERED.items() if _takes(cls, definition))
        raise StudyError(
            f"`--method` is {word}, which runs only Stan programs. For a NumPyro model, use one of {rest}."
        )
    given = {option: value for option, value in options.items() if value is not None}
    # Reject options that do not apply to the method or the engine, or that the method's name fixes.
    own = [each.name for each in fields(method)]
    known = [name for name in own if name not in fixed and name not in method.networks_alone]
    without = () if definition == "numpyro" else method.numpyro_alone
    taken = [name for name in known if name not in without]
    flags = {name: "--" + name.replace("_", "-") for name in (*taken, *given)}
    allowed = ", ".join(flags[name] for name in taken)
    for field in given:
        if field in known and field not in taken:
            raise StudyError(
                f"`{flags[field]}` applies only to NumPyro models; for Stan programs, --method {word} accepts "
                f"{allowed}."
            )
        if field not in known:
            raise StudyError(
                f"`{flags[field]}` does not apply to --method {word}, which accepts {allowed}."
            )
    if "init_starts" in given and given.get("init") != "optimum":
        raise StudyError("`--init-starts` applies only to --init optimum. Add --init optimum.")
    return method_named(word, given)


def _takes(method: type[Method], definition: str) -> bool:
    """Check whether any engine for this kind of definition has the method."""
    return any(definition in ENGINES[name].takes for name in method.engines)


def engine_for(method: Method, asked: str | None, definition: str) -> str:
    """Return the requested engine or an empty string; reject one that does not fit the definition or the method."""
    if asked is None:
        return ""
    asked = named(asked)
    of = "a Stan program" if definition == "stan" else "a NumPyro model"
    able = {
        name: [each for each, cls in OFFERED.items() if takes(cls, name, definition)]
        for name, engine in ENGINES.items()
        if definition in engine.takes
    }
    if asked not in able:
        raise StudyError(f"`--engine` is {asked}, which cannot run {of}: use {' or '.join(able)}.")
    if method.name not in able[asked]:
        raise StudyError(
            f"`--engine` is {asked}, which does not offer {method.name} for {of}. Use --method "
            f"{' or '.join(able[asked])}."
        )
    return asked
