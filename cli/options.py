"""The fields of methods as options of a command: one word for one thing, in Python and in a shell."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer


def setting_options(
    methods: Mapping[str, type], wanted: Callable[[type, str], bool]
) -> list[inspect.Parameter]:
    """Make an option of every field of some methods' settings.

    Parameters
    ----------
    methods : mapping
        Method to its class of settings. A field of several is one option.
    wanted : callable
        Whether a field of a class, by its name, is to be one.

    Returns
    -------
    list of Parameter
        Keyword-only, by default None: an option that was not given leaves the field's default.
    """
    holders: dict[str, dict[str, type]] = {}
    for method, cls in methods.items():
        for field in fields(cls):
            if wanted(cls, field.name):
                holders.setdefault(field.name, {})[method] = cls
    return [_option(name, by_method, len(methods)) for name, by_method in holders.items()]


def with_options(
    command: Callable[..., None], options: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give a command that takes ``**given`` these options in their place, for Typer to read.

    One with the name of an option of the command's own takes its place.
    """
    own = inspect.signature(command).parameters.values()
    named = {option.name: option for option in options}
    kept = [
        named.pop(p.name, p.replace(kind=p.KEYWORD_ONLY))
        for p in own
        if p.kind is not p.VAR_KEYWORD
    ]

    @wraps(command)
    def taking_options(**values: Any) -> None:
        command(**values)

    setattr(taking_options, "__signature__", inspect.Signature([*kept, *named.values()]))  # noqa: B010
    return taking_options


def _option(name: str, holders: Mapping[str, type], methods: int) -> inspect.Parameter:
    from onebasin.base.settings import descriptions

    cls = next(iter(holders.values()))
    annotation = cls.__pydantic_fields__[name].annotation  # type: ignore[attr-defined]
    words = tuple(dict.fromkeys(word for each in holders.values() for word in _words(each, name)))
    meaning = descriptions(cls)[name].partition(". ")[0].rstrip(".")
    scope = "" if len(holders) == methods else f" {', '.join(holders)}."
    allowed = f" One of {', '.join(words)}." if words else ""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            (str if words else _plain(annotation)) | None,
            typer.Option(
                help=f"{meaning}.{allowed}{scope} By default {_defaults(name, holders)}.",
                autocompletion=lambda: list(words),
            ),
        ],
    )


def _words(cls: type, name: str) -> tuple[str, ...]:
    """The words that a field allows; none where it is a number."""
    annotation = cls.__pydantic_fields__[name].annotation  # type: ignore[attr-defined]
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _defaults(name: str, holders: Mapping[str, type]) -> str:
    """The default of a field, or that of each method where they differ."""
    found: dict[str, list[str]] = {}
    for method, cls in holders.items():
        value = next(field.default for field in fields(cls) if field.name == name)
        found.setdefault(_written(value), []).append(method)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{value} ({', '.join(methods)})" for value, methods in found.items())


def _plain(annotation: Any) -> Any:
    """The number or text of an annotation that may also be None."""
    parts = [part for part in get_args(annotation) if part is not NoneType]
    plain = parts[0] if parts else annotation
    return get_args(plain)[0] if get_origin(plain) is Annotated else plain


def _written(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:.4g}" if isinstance(default, float) else str(default)
