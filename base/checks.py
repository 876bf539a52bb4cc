"""Check users' arguments: single values and data, and all arguments of a call by their annotations.

Nothing is clipped, dropped or filled in: a wrong value raises an error that names the argument in one sentence.
`checks_arguments` checks strings, numbers, paths, functions, and sequences and mappings of them, but not ranges. It
skips arrays and onebasin's own classes, which the functions check themselves.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np

from .errors import MAX_SEED, ArgumentError, ArgumentTypeError
from .text import dotted


def choose(argument: str, value: str, allowed: Iterable[str]) -> str:
    """Return a word if it is allowed, or raise an error that lists the allowed words and suggests the nearest."""
    names = list(allowed)
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"`{argument}` must be a string, one of {', '.join(names)}; got {value!r}."
        )
    if value in names:
        return value
    near = difflib.get_close_matches(value, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ArgumentError(f"`{argument}` is {value!r}; choose one of {', '.join(names)}.{hint}")


def check_class(argument: str, value: object, kind: type | UnionType, *, remedy: str) -> None:
    """Reject an object of the wrong class; `remedy` says what to give instead."""
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"`{argument}` is of type {type(value).__name__}; {remedy}.")


def check_path(argument: str, value: Any) -> Path:
    """Return a path; reject values that are neither strings nor paths, and invalid file names."""
    if not isinstance(value, str | os.PathLike):
        raise ArgumentTypeError(
            f"`{argument}` must be a path (a string or a `Path`); got {value!r}."
        )
    text = os.fsdecode(value)
    if not text or "\0" in text:
        raise ArgumentError(
            f"`{argument}` is {text!r}, which is not a valid file name: give a nonempty path without null characters."
        )
    return Path(text)


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def check_paths(argument: str, value: Any) -> list[Path]:
    """Return one or more paths as a list; reject the values that `check_path` rejects."""
    several = isinstance(value, list | tuple)
    if several and not value:
        raise ArgumentError(f"`{argument}` is empty. Give one path, or the paths of all chains.")
    return [check_path(argument, path) for path in (value if several else [value])]


def check_positive(argument: str, value: object) -> None:
    """Reject anything but a positive finite number."""
    if not _is_finite(value) or value <= 0:  # type: ignore[operator]
        raise ArgumentError(f"`{argument}` must be a positive finite number; got {value!r}.")


def check_not_negative(argument: str, value: object) -> None:
    """Reject anything but a finite number of at least 0."""
    if not _is_finite(value) or value < 0:  # type: ignore[operator]
        raise ArgumentError(f"`{argument}` must be a finite number, 0 or more; got {value!r}.")


MOST = 10**9
"""Largest count; longer loops would never finish."""


def check_count(argument: str, value: object, *, least: int = 1, most: int = MOST) -> None:
    """Reject anything but a whole number from `least` to `most`."""
    if not _is_whole(value) or value < least:  # type: ignore[operator]
        raise ArgumentError(
            f"`{argument}` must be a whole number, at least {least}; got {value!r}."
        )
    if value > most:  # type: ignore[operator]
        raise ArgumentError(f"`{argument}` must be at most {most:,}; got {value!r}.")


def check_seed(seed: Any) -> int:
    """Return a seed as an `int`; reject one that an engine cannot take."""
    if not _is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise ArgumentError(f"`seed` must be a whole number from 0 to {MAX_SEED}; got {seed!r}.")
    return int(seed)


def check_inputs(x: Any, in_dim: int) -> np.ndarray:
    """Return a copy of inputs as float64 (obs, in), or raise a clear error."""
    x = as_numbers("x", x)
    if x.ndim != 2 or x.shape[1] != in_dim:
        raise ArgumentError(
            f"`x` must have shape (obs, {in_dim}), with one column per input of the network; got {x.shape}."
        )
    if not len(x):
        raise ArgumentError("`x` has no rows. Give at least one observation.")
    _check_finite("x", x)
    return x


def check_outputs(y: Any, num_obs: int, out_dim: int) -> np.ndarray:
    """Return a copy of regression targets as float64 (obs, out), or raise a clear error."""
    y = as_numbers("y", y)
    given = y.shape
    y = y[:, None] if y.ndim == 1 else y
    if y.shape != (num_obs, out_dim):
        raise ArgumentError(
            f"`y` must have shape ({num_obs}, {out_dim}), for {num_obs} row(s) of `x` and {out_dim} output(s); got "
            f"{given}."
        )
    _check_finite("y", y)
    return y


def check_labels(y: Any, num_obs: int, num_classes: int) -> np.ndarray:
    """Return a copy of class labels as int64 (obs,), or raise a clear error."""
    y = as_numbers("y", y)
    if y.shape != (num_obs,):
        raise ArgumentError(f"`y` must have shape ({num_obs},); got {y.shape}.")
    _check_finite("y", y[:, None])
    if (y != np.floor(y)).any() or y.min() < 0 or y.max() >= num_classes:
        raise ArgumentError(
            f"`y` must contain whole-number labels from 0 to {num_classes - 1}, because the network has one output "
            f"per class; got values from {y.min():g} to {y.max():g}."
        )
    return y.astype(np.int64)


def as_numbers(argument: str, value: Any) -> np.ndarray:
    """Return a copy as float64; reject masked arrays and anything but real numbers."""
    if np.ma.is_masked(value):
        raise ArgumentError(f"`{argument}` has masked entries. Fill them, or omit their rows.")
    try:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            raise ArgumentTypeError("complex numbers")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            kind = f"an array of {'complex numbers' if value.dtype.kind == 'c' else value.dtype}"
        raise ArgumentError(
            f"`{argument}` must be an array of real numbers, with rows of equal length; got {kind}."
        ) from error


def _check_finite(argument: str, value: np.ndarray) -> None:
    bad = np.argwhere(~np.isfinite(value))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        place = f"row {row}, column {column}" if value.shape[1] > 1 else f"row {row}"
        raise ArgumentError(
            f"`{argument}` has {len(bad)} value(s) that are not finite. The first is {value[row, column]} in {place} "
            "(indices start at 0). Remove or impute such values."
        )


_OF_VARIABLES = {"positive", "var_name", "var_names"}
"""Arguments that name variables, possibly in the model's own form: `net/Dense_0.kernel`."""
LARGEST = 2**63
"""Upper bound of the whole numbers that an array can store."""


class Kind(NamedTuple):
    """The values that an annotation allows, and how messages describe them."""

    words: str
    allows: Callable[[Any], bool]


def checks_arguments[F: Callable[..., Any]](function: F) -> F:
    """Raise `ArgumentTypeError` for arguments that do not fit their annotations, `ArgumentError` for NaN and infinity.

    Names of variables are converted to the names that posteriors store.
    """
    signature = inspect.signature(function)
    several = {name for name, p in signature.parameters.items() if p.kind is p.VAR_POSITIONAL}
    kinds: dict[str, Kind] = {}

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if not kinds:  # Wait for the first call: annotations may name later imports.
            own = inspect.unwrap(function)
            for name, hint in own.__annotations__.items():
                # A name that is imported only for type checkers cannot be evaluated.
                with suppress(NameError, AttributeError, TypeError):
                    hint = eval(hint, own.__globals__) if isinstance(hint, str) else hint
                    if (kind := kind_of(hint)) is not None:
                        kinds[name] = kind
        bound = _bound(function.__name__, signature, given, named)
        for name, given_value in bound.arguments.items():
            kind, default = kinds.get(name), signature.parameters[name].default
            for value in given_value if name in several else (given_value,):
                if kind and value is not default and not kind.allows(value):
                    not_finite = isinstance(value, float) and not math.isfinite(value)
                    words = repr(value)
                    if len(words) > 60 or "object at 0x" in words:
                        words = f"a {type(value).__name__}"
                    refusal = ArgumentError if not_finite else ArgumentTypeError
                    raise refusal(f"`{name}` must be {kind.words}; got {words}.")
        for name in _OF_VARIABLES & bound.arguments.keys():
            bound.arguments[name] = dotted(bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


def checks_names[F: Callable[..., Any]](function: F) -> F:
    """Raise `ArgumentTypeError` for an unknown or a missing argument."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        _bound(function.__name__, signature, given, named)
        return function(*given, **named)

    return call  # type: ignore[return-value]


ELSEWHERE = {
    "draws": ("num_samples", "iter_sampling"),
    "warmup": ("num_warmup", "iter_warmup", "tune"),
    "chains": ("num_chains",),
    "target_acceptance": ("adapt_delta", "target_accept", "target_accept_prob"),
    "max_tree_depth": ("max_treedepth",),
    "init": ("inits",),
}
"""Names of onebasin's arguments in NumPyro, cmdstanpy and PyMC."""
PARALLEL = ("parallel_chains", "chain_method", "cores")


def no_argument(name: str, of: str, known: Sequence[str]) -> str:
    """Return the message for an unknown argument, with the valid arguments and the one that was probably meant."""
    meant = [ours for ours, theirs in ELSEWHERE.items() if name in theirs and ours in known]
    near = meant or difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    hint = " Chains run in parallel without it." if name in PARALLEL else hint
    return f"`{name}` is not an argument of {of}.{hint} It takes {', '.join(known)}."


def _bound(
    name: str, signature: inspect.Signature, given: Sequence[Any], named: Mapping[str, Any]
) -> inspect.BoundArguments:
    try:
        return signature.bind(*given, **named)
    except TypeError as error:
        kinds = {word: parameter.kind.name for word, parameter in signature.parameters.items()}
        known = [word for word, kind in kinds.items() if not kind.startswith("VAR")]
        if unknown := [word for word in named if word not in known]:
            raise ArgumentTypeError(no_argument(unknown[0], name, known)) from None
        places = [word for word in known if kinds[word].startswith("POSITIONAL")]
        few = f"all but {', '.join(places)}" if places else "all"
        hint = f"; pass {few} by name" if len(given) > len(places) else ""
        raise ArgumentTypeError(f"{name}: {error}{hint}.") from None


def kind_of(hint: Any) -> Kind | None:
    """Return the values that a type allows, or None if the type is not checked."""
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if Callable in (hint, origin):
        return Kind("a function", callable)
    if origin is Annotated:
        return kind_of(parts[0])
    if origin is Literal:
        words = f"one of {', '.join(map(repr, parts))}"
        return Kind(words, lambda v: isinstance(v, str) and v in parts)
    if origin in (Union, UnionType):
        kinds = [kind for part in parts if (kind := kind_of(part)) is not None]
        words = " or ".join(dict.fromkeys(kind.words for kind in kinds))
        whole = len(kinds) == len(parts)
        return Kind(words, lambda v: any(kind.allows(v) for kind in kinds)) if whole else None
    if not isinstance(origin, type) or not issubclass(origin, Iterable):
        return None
    key, member = kind_of(parts[0]), kind_of(parts[-1])
    if issubclass(origin, Mapping):
        return Kind(
            "a mapping from names",
            lambda v: isinstance(v, Mapping) and _all(v, key) and _all(v.values(), member),
        )
    if key is None:
        return None
    fixed = len(parts) if origin is tuple and Ellipsis not in parts else None

    def allows(given: Any) -> bool:
        several = isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping)
        flat = not isinstance(given, np.ndarray) or given.ndim == 1
        return several and flat and fixed in (None, len(given)) and _all(given, key)

    many = "a sequence of items" if fixed is None else f"a tuple of {fixed} items"
    return Kind(f"{many} that are each {key.words}", allows)


def _all(values: Iterable[Any], kind: Kind | None) -> bool:
    return kind is None or all(map(kind.allows, values))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


_PATH = Kind("a path", lambda value: isinstance(value, str | os.PathLike))
_PLAIN: dict[type, Kind] = {
    NoneType: Kind("None", lambda value: value is None),
    bool: Kind("true or false", lambda value: isinstance(value, bool | np.bool_)),
    int: Kind("a whole number", lambda v: _is_whole(v) and abs(int(v)) < LARGEST),
    float: Kind("a finite number", _is_finite),
    str: Kind("text", lambda value: isinstance(value, str)),
    Path: _PATH,
    os.PathLike: _PATH,
}
