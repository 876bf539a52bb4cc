"""Settings: frozen dataclasses that pydantic checks when they are made, with onebasin's own error messages.

The type of a field says which values are allowed: one of the types below, a `Literal` of words, or one of these or
`None`. The text in a type follows "`name` must" in messages. Values are checked and never converted, so that the record
equals the user's input. The docstring of a method's function describes the fields under "Parameters", in NumPy's style;
`descriptions` reads it for the command line's options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Annotated, Any, Literal, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, Field, ValidationError, WrapValidator
from pydantic.dataclasses import dataclass

from .checks import LARGEST, MOST, choose, kind_of
from .errors import MAX_SEED, ArgumentError, ArgumentTypeError


def _as_given(value: Any, check: Callable[[Any], Any]) -> Any:
    """Check a number without pydantic's conversion of 1 to 1.0; integers beyond 64 bits become floats."""
    number = check(value)
    return value if abs(value) < LARGEST else number


_KEPT = WrapValidator(_as_given)

Count = Annotated[int, Field(ge=1, le=MOST), "be a whole number of at least 1"]
WholeNumber = Annotated[int, Field(ge=0, le=MOST), "be a whole number of at least 0"]
Several = Annotated[int, Field(ge=2, le=MOST), "be a whole number of at least 2"]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED), f"be a whole number from 0 to {MAX_SEED}"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), _KEPT, "be a positive finite number"]
NonNegative = Annotated[
    float, Field(ge=0, allow_inf_nan=False), _KEPT, "be a finite number of at least 0"
]
Probability = Annotated[float, Field(gt=0, lt=1), _KEPT, "lie between 0 and 1"]
Share = Annotated[float, Field(ge=0, le=1), _KEPT, "be a share from 0 to 1"]
"""A number from 0 to 1; unlike a `Probability`, it may be 0 or 1."""


@dataclass_transform(frozen_default=True)
def settings[T](cls: type[T]) -> type[T]:
    """Turn a class with annotated fields into a class of settings.

    The class raises `ValueError` for a value that a field does not allow, and `TypeError` for an unknown field or for a
    choice that is not a string.
    """
    made: Any = dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))(cls)
    check: Callable[..., None] = made.__init__

    @wraps(check)
    def init(self: Any, *args: Any, **values: Any) -> None:
        try:
            check(self, *args, **values)
        except ValidationError as error:
            refusal = _refusal(type(self), error)
        else:
            return
        raise refusal

    made.__init__ = init
    return made


def descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each argument in one line, from a function's docstring."""
    text = inspect.cleandoc(function.__doc__ or "").partition("\nParameters\n----------\n")[2]
    found = {}
    for entry in re.split(r"\n(?=\S)", re.split(r"\n\n(?=\w[\w ]*\n---)", text)[0]):
        head, _, meaning = entry.partition("\n")
        for name in head.partition(" : ")[0].split(", "):
            found[name] = " ".join(meaning.split())
    return found


def _refusal(cls: Any, error: ValidationError) -> Exception:
    first = error.errors()[0]
    if not first["loc"]:  # The class itself checks several fields together.
        return first["ctx"]["error"]
    name, value = str(first["loc"][0]), first["input"]
    known = {field.name: field for field in fields(cls)}
    if name not in known:
        return ArgumentTypeError(
            f"{cls.__name__} has no field `{name}`; it has {', '.join(known)}."
        )
    if first["type"] == "less_than_equal" and first["ctx"]["le"] == MOST:
        return ArgumentError(f"`{name}` must be at most {MOST:,}; got {value!r}.")
    default = known[name].default
    hint = "" if default is MISSING else f" The default is {default!r}."
    field = cls.__pydantic_fields__[name]
    parts = [*field.metadata, field.annotation]
    for part in parts:  # The list grows: the arguments of a type are appended below.
        if isinstance(part, str):
            return ArgumentError(f"`{name}` must {part}; got {value!r}.{hint}")
        if get_origin(part) is Literal:
            try:
                choose(name, value, get_args(part))
            except (TypeError, ValueError) as refusal:
                return refusal
        parts += get_args(part)
    kind = kind_of(field.annotation)
    assert kind is not None, "fields are of kinds that have words"
    return ArgumentError(f"`{name}` must be {kind.words}; got {value!r}.{hint}")
