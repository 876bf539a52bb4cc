"""Arguments of public functions, held to their annotations before any work is done.

A value of another kind is refused in one sentence that names the argument; whether a number is in range is for the
function to say. Checked are words, numbers, paths, functions, and sequences and mappings of them. Annotations of arrays
and of classes of our own are passed over: what takes those says more of them.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from .errors import ArgumentError, ArgumentTypeError
from .text import dotted

_OF_VARIABLES = {"positive", "var_name", "var_names"}
"""Arguments that name variables, which may be spelt as in the model: `net/Dense_0.kernel`."""
LARGEST = 2**63
"""Whole numbers that arrays hold are below."""


@dataclass(frozen=True)
class Kind:
    """The values that an annotation allows, and their name in a message."""

    allows: Callable[[Any], bool]
    words: str


def checks_arguments[F: Callable[..., Any]](function: F) -> F:
    """Refuse arguments of another kind than their annotations say; defaults are as they are.

    Names of variables are handed on as posteriors store them.

    The error is `ArgumentTypeError`, and `ArgumentError` for NaN and infinity.
    """
    signature = inspect.signature(function)
    kinds: dict[str, Kind] = {}

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if not kinds:  # at the first call: annotations may name what is imported later
            kinds.update(_kinds(function))
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise ArgumentTypeError(
                _misfit(function.__name__, signature, given, named) or f"{error}."
            ) from None
        for name, value in bound.arguments.items():
            kind = kinds.get(name)
            if kind and value is not signature.parameters[name].default and not kind.allows(value):
                # NaN and infinity are of the right kind, and no value for it.
                no_number = isinstance(value, float) and not math.isfinite(value)
                refusal = ArgumentError if no_number else ArgumentTypeError
                words = repr(value)
                if len(words) > 60 or "object at 0x" in words:
                    words = f"a {type(value).__name__}"
                raise refusal(f"`{name}` must be {kind.words}; got {words}.")
        for name in _OF_VARIABLES & bound.arguments.keys():
            bound.arguments[name] = dotted(bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def no_argument(name: str, of: str, known: Sequence[str], meant: Sequence[str] = ()) -> str:
    """Say that a function has no such argument, which it has, and which was probably meant."""
    near = meant or get_close_matches(name, known, n=1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return f"`{name}` is no argument of {of}; it takes {', '.join(known)}.{hint}"


def _misfit(
    name: str, signature: inspect.Signature, given: Sequence[Any], named: Mapping[str, Any]
) -> str:
    """Say which argument is unknown, which is missing, or which must be named; empty where none of these is wrong."""
    known = {
        w: p
        for w, p in signature.parameters.items()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    if unknown := [word for word in named if word not in known]:
        return no_argument(unknown[0], name, list(known))
    places = [word for word, of in known.items() if of.kind is of.POSITIONAL_OR_KEYWORD]
    rest = [word for word in known if word not in places]
    if len(given) > len(places):
        first = ", ".join(places) or "nothing"
        if not rest:
            return ""
        return f"{name} takes {first} without names; name the others, as `{rest[0]}=...`."
    needed = [word for word, of in known.items() if of.default is of.empty and word not in named]
    missing = [word for word in needed if word not in places[: len(given)]]
    return f"{name} needs `{missing[0]}`: give it, as `{missing[0]}=...`." if missing else ""


def _kinds(function: Callable[..., Any]) -> dict[str, Kind]:
    """Return the kinds of a function's arguments that have one, by their names."""
    own = inspect.unwrap(function)
    found = {}
    for name, hint in own.__annotations__.items():
        if isinstance(hint, str):
            try:
                hint = eval(hint, own.__globals__)
            except Exception:  # it names what is imported for checkers of types alone
                continue
        if (kind := kind_of(hint)) is not None:
            found[name] = kind
    return found


def kind_of(hint: Any) -> Kind | None:
    """Return the kind that a type allows; None where it is not for us to say."""
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if Callable in (hint, origin):
        return Kind(callable, "a function")
    if origin is Annotated:
        return kind_of(parts[0])
    if origin is Literal:
        return Kind(
            lambda v: isinstance(v, str) and v in parts, f"one of {', '.join(map(repr, parts))}"
        )
    if origin in (Union, UnionType):
        kinds = [kind_of(part) for part in parts]
        known = [kind for kind in kinds if kind is not None]
        words = " or ".join(dict.fromkeys(kind.words for kind in known))
        whole = len(known) == len(kinds)
        return Kind(lambda v: any(k.allows(v) for k in known), words) if whole else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, member = map(kind_of, parts)
        return Kind(
            lambda v: isinstance(v, Mapping) and _all(v, key) and _all(v.values(), member),
            "a mapping of names",
        )
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _several([kind_of(part) for part in parts if part is not Ellipsis], origin, parts)
    return None


def _several(members: list[Kind | None], origin: type, parts: tuple[Any, ...]) -> Kind | None:
    member = members[0] if members else None
    if member is None:
        return None
    fixed = len(parts) if origin is tuple and Ellipsis not in parts else None

    def allows(given: Any) -> bool:
        several = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
        if not several or (isinstance(given, np.ndarray) and given.ndim != 1):
            return False
        return fixed in (None, len(given)) and _all(given, member)

    count = "several" if fixed is None else f"a tuple of {fixed}"
    return Kind(allows, f"{count}, each {member.words}")


def _all(values: Iterable[Any], kind: Kind | None) -> bool:
    return kind is None or all(map(kind.allows, values))


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


_PATH = Kind(lambda value: isinstance(value, str | os.PathLike), "a path")
_PLAIN: dict[type, Kind] = {
    NoneType: Kind(lambda value: value is None, "None"),
    bool: Kind(_is_bool, "true or false"),
    int: Kind(
        lambda v: isinstance(v, Integral) and not _is_bool(v) and abs(int(v)) < LARGEST,
        "a whole number",
    ),
    float: Kind(
        lambda v: isinstance(v, Real) and not _is_bool(v) and math.isfinite(v), "a finite number"
    ),
    str: Kind(lambda value: isinstance(value, str), "text"),
    Path: _PATH,
    os.PathLike: _PATH,
}
