"""Support for functions such as `nuts`, which take a method's fields and the arguments of `infer` as keywords."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from onebasin.base.checks import checks_names, no_argument
from onebasin.base.errors import ArgumentError, ArgumentTypeError

from ..contracts.method import Method

if TYPE_CHECKING:
    import xarray as xr

LIMIT_MB = 256.0
"""The value of `posteriors.pointwise.LIMIT_MB`, repeated because that module takes long to import."""


class Running(TypedDict, total=False):
    """The arguments of `infer` that every method has."""

    engine: str | None
    seed: int
    start: Any
    adapt_from: Any
    checkpoint: str | Path | None
    client: Any
    predictive_mb: float
    symmetry: bool
    check_symmetry: bool
    progress: bool | None


RUNNING: Mapping[str, Any] = dict.fromkeys(Running.__annotations__) | {
    "seed": 0,
    "predictive_mb": LIMIT_MB,
    "symmetry": True,
    "check_symmetry": True,
}
"""The defaults of these arguments."""


def takes_running[F: Callable[..., Any]](function: F) -> F:
    """Check the names of a function's arguments; show those of `Running` in its signature instead of `**running`."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())[:-1]
    running = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=RUNNING[name], annotation=kind
        )
        for name, kind in Running.__annotations__.items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *running])  # type: ignore[attr-defined]
    return checks_names(function)


def run_by_keywords(method: type[Method], arguments: Mapping[str, Any]) -> "xr.DataTree":
    """Run a method with the arguments of its function: the target, fields of its class, and arguments of `infer`."""
    from .run import run  # Imported here, because it takes long.

    given = with_start({**RUNNING, **arguments, **arguments["running"]})
    target, _ = given.pop("target"), given.pop("running")
    how = {name: given.pop(name) for name in RUNNING}
    return run(target, made(method, given), **how)


def with_start(given: Mapping[str, Any]) -> dict[str, Any]:
    """Pass values given as `init` under the name `start`; names given as `init` are a field of methods."""
    rest = dict(given)
    init = rest.get("init")
    if init is None or (isinstance(init, str) and not is_data(init)):
        return rest
    if rest.get("start") is not None:
        raise ArgumentError("`init` and `start` both give initial values. Give only one of them.")
    rest["start"] = rest.pop("init")
    return rest


def is_data(word: str) -> bool:
    """Return whether a string names a file."""
    return bool(Path(word).suffix) or Path(word).exists()


def made(method: type[Method], given: Mapping[str, Any]) -> Method:
    """Make a method from its fields."""
    known = [field.name for field in fields(method)]
    if given.get("init") == "uniform":
        given = {**given, "init": "random"}
    for name in given:
        if name not in known:
            raise ArgumentTypeError(no_argument(name, method.name, [*known, *RUNNING]))
    return method(**given)
