"""A method from the options of `onebasin sample`: which apply to which method and engine; the registry knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onebasin.base.checks import choose
from onebasin.base.errors import StudyError
from onebasin.inference.contracts.engines import ENGINES, named, takes
from onebasin.inference.contracts.method import Method
from onebasin.inference.methods import METHODS, WORDS, method_named

OFFERED: Mapping[str, type[Method]] = {
    name: method for name, method in METHODS.items() if "network" not in method.needs
}
"""The methods that a program or a model of one's own can be inferred by."""


def has_use(method: type[Method], name: str) -> bool:
    """Whether programs and models have a use for a field."""
    return name not in method.networks_alone


def settings_for(word: str, options: Mapping[str, Any], *, engine: str = "stan") -> Method:
    """Make a method from the options that were given.

    Parameters
    ----------
    word : str
        One of `methods.WORDS`.
    options : mapping
        Field name to value; None where the option was not given.
    engine : {"numpyro", "stan"}
        What the program or the model is defined for.

    Raises
    ------
    ValueError
        If there is no such method, it has no such option or needs a network, or a value is not allowed.
    """
    if word in METHODS and word not in OFFERED:
        raise StudyError(
            f"`--method` is {word}, which trains networks, and a Stan program has none; choose one of "
            f"{', '.join(OFFERED)}."
        )
    choose("method", word, [*OFFERED, *(each for each in WORDS if each not in METHODS)])
    if not _takes(METHODS[WORDS[word][0]], engine):
        rest = ", ".join(other for other, cls in OFFERED.items() if _takes(cls, engine))
        raise StudyError(
            f"`--method` is {word}, which runs Stan programs alone; for a NumPyro model choose one of {rest}."
        )
    given = {option: value for option, value in options.items() if value is not None}
    _check_fields(word, given, engine)
    if "init_starts" in given and given.get("init") != "optimum":
        raise StudyError(
            f"`--init-starts` is {given['init_starts']}, but only --init optimum looks from several starting points; "
            "give both."
        )
    return method_named(word, given)


def _takes(method: type[Method], definition: str) -> bool:
    """Whether an engine that takes a definition has a method."""
    return any(definition in ENGINES[name].takes for name in method.engines)


def engine_for(method: Method, asked: str | None, definition: str) -> str:
    """Return the engine that was asked for, where it takes the definition and has the method; else nothing.

    Raises
    ------
    StudyError
        If another engine is asked for, or one that does not have the method.
    """
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
        raise StudyError(f"`--engine` is {asked}; {of} takes {' or '.join(able)}.")
    if method.name not in able[asked]:
        raise StudyError(
            f"`--engine` is {asked}, which does not have {method.name} for {of}; use --method "
            f"{' or '.join(able[asked])}."
        )
    return asked


def _check_fields(word: str, given: Mapping[str, Any], engine: str) -> None:
    """Refuse an option that the method, or the engine, has no use for, or that the word fixes."""
    name, fixed = WORDS[word]
    method = METHODS[name]
    own = (field.name for field in fields(method) if field.name not in fixed)
    known = [field for field in own if has_use(method, field)]
    without = () if engine == "numpyro" else method.numpyro_alone
    taken = [name for name in known if name not in without]
    for option in given:
        if option in taken:
            continue
        allowed = ", ".join(map(flag, taken))
        if option in known:
            raise StudyError(
                f"`{flag(option)}` is for NumPyro models; --method {word} of a Stan program takes {allowed}."
            )
        raise StudyError(
            f"`{flag(option)}` does not apply to --method {word}, which takes {allowed}."
        )


def flag(name: str) -> str:
    """Spell an option as on the command line."""
    return "--" + name.replace("_", "-")
