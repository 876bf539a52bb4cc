"""A method's settings from the options of `onebasin sample`: which apply to which method and engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onebasin.base.checks import choose
from onebasin.base.errors import StudyError
from onebasin.inference import AdviSettings, MclmcSettings, PathfinderSettings
from onebasin.inference.definition import NUTPIE
from onebasin.inference.method_words import METHODS, NETWORK_METHODS, Settings

NUMPYRO_ALONE = ("dtype", "init_scale", "learning_rate", "max_steps", "schedule", "anneal")
"""Fields of settings that Stan has no use for."""
BY_JAX = ("dtype",)
"""The same for MCLMC, which moves by JAX whatever states the model."""
NETWORKS_ALONE = ("batch_size", "local_reparametrisation", "trace_parameters")
"""Fields of settings that neither a program nor a model of one's own has a use for; traces are read in Python."""


def has_use(settings: type, name: str) -> bool:
    """Whether programs and models have a use for a field; of ADVI's starts, one is for networks and one is left."""
    return name not in NETWORKS_ALONE and not (settings is AdviSettings and name == "init")


def settings_for(method: str, options: Mapping[str, Any], *, engine: str = "stan") -> Settings:
    """Make a method's settings from the options that were given.

    Parameters
    ----------
    method : str
        One of `methods.METHODS`.
    options : mapping
        Field name to value; None where the option was not given.
    engine : {"numpyro", "stan"}
        What runs it.

    Raises
    ------
    ValueError
        If there is no such method, it has no such option or needs a network, or a value is not allowed.
    """
    if method in NETWORK_METHODS:
        raise StudyError(
            f"`--method` is {method}, which trains networks, and a Stan program has none; choose one of "
            f"{', '.join(METHODS)}."
        )
    choose("method", method, METHODS)
    if engine == "numpyro" and METHODS[method] is PathfinderSettings:
        rest = ", ".join(name for name in METHODS if METHODS[name] is not PathfinderSettings)
        raise StudyError(
            f"`--method` is {method}, which runs Stan programs alone; for a NumPyro model choose one of {rest}."
        )
    given = {name: value for name, value in options.items() if value is not None}
    _check_fields(method, given, engine)
    if "init_starts" in given and given.get("init") != "optimum":
        raise StudyError(
            f"`--init-starts` is {given['init_starts']}, but only --init optimum looks from several starting points; "
            "give both."
        )
    return METHODS[method](**given)


def engine_for(method: str, asked: str | None, definition: str) -> str:
    """Say who runs a method: what a program or a model is defined for, or nutpie.

    Raises
    ------
    StudyError
        If another engine is asked for, or nutpie for what it has not.
    """
    if asked is None or asked == definition:
        return definition
    of = "a Stan program" if definition == "stan" else "a NumPyro model"
    if asked != NUTPIE:
        raise StudyError(
            f"`--engine` is {asked}; {of} takes {definition}, or {NUTPIE} for --method nuts."
        )
    if method != "nuts":
        raise StudyError(f"`--engine` is {NUTPIE}, which has NUTS alone; use --method nuts.")
    return NUTPIE


def _check_fields(method: str, given: Mapping[str, Any], engine: str) -> None:
    """Refuse an option that the method, or the engine, has no use for."""
    cls = METHODS[method]
    known = [field.name for field in fields(cls) if has_use(cls, field.name)]
    without = BY_JAX if cls is MclmcSettings else NUMPYRO_ALONE
    taken = [name for name in known if engine == "numpyro" or name not in without]
    for name in given:
        if name in taken:
            continue
        allowed = ", ".join(map(flag, taken))
        if name in known:
            raise StudyError(
                f"`{flag(name)}` is for NumPyro models; --method {method} of a Stan program takes {allowed}."
            )
        raise StudyError(
            f"`{flag(name)}` does not apply to --method {method}, which takes {allowed}."
        )


def flag(name: str) -> str:
    """Spell an option as on the command line."""
    return "--" + name.replace("_", "-")
