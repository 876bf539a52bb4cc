"""A NumPyro model with its arguments as a target."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.checks import check_path, checks_arguments
from onebasin.base.errors import ArgumentTypeError, ModelDataError
from onebasin.base.jsonable import read_json_file

from .symmetry.blocks import Symmetry
from .symmetry.words import as_symmetry
from .target import Target


@dataclass(frozen=True, kw_only=True, repr=False)
class NumpyroTarget(Target):
    """A NumPyro model conditioned on its arguments; made by `numpyro_model`."""

    data: Mapping[str, Any] = field(default_factory=dict)  # The model's arguments, by name.

    def _data(self) -> Mapping[str, Any]:
        return self.data


@checks_arguments
def numpyro_model(
    model: Callable[..., Any],
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    symmetry: Symmetry | str | Sequence[str] = (),
    name: str | None = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Target:
    """Take a NumPyro model with its arguments as a target, as `stan_program` takes a Stan program with its data.

    Parameters
    ----------
    model : callable
        A function that states a NumPyro model.
    data : mapping or path, optional
        The model's arguments by name, as in ``model(**data)``, or a JSON file that holds them. They reach the model as
        they are; lists become arrays. What a site observes is kept with a posterior as observed data, the other
        numbers and arrays as constant data.
    symmetry : tuple of blocks, str or sequence of str, optional
        Which axes of which variables move together. Blocks, or words of them such as ``"mu,sigma,1-theta"``.
    name : str, optional
        The target's name; the function's if not given.
    dims : mapping, optional
        Axis names of variables; if not given, those of the plates that a site stands in.
    coords : mapping, optional
        Labels of axes: name of an axis to an entry for each place.

    Returns
    -------
    Target
        With a NumPyro definition only.

    Raises
    ------
    TypeError
        If `model` is no function, or `data` are neither a mapping nor a path.
    ModelDataError
        If the data are not to be read, or are not the model's arguments.

    Examples
    --------
    >>> def normal(y):
    ...     mu = numpyro.sample("mu", dist.Normal(0, 10))
    ...     numpyro.sample("y", dist.Normal(mu, 1), obs=y)
    >>> ob.numpyro_model(normal, {"y": [0.1, -0.4, 1.2]}).name
    'normal'
    """
    if not callable(model):
        raise ArgumentTypeError(
            f"`model` must be a function that states a NumPyro model; got {model!r}."
        )
    if isinstance(data, str | Path):
        given = read_json_file(check_path("data", data), error=ModelDataError)
    elif data is None or isinstance(data, Mapping):
        given = dict(data or {})
    else:
        raise ArgumentTypeError(
            f"`data` must map names of the model's arguments to values, or name a JSON file; got {type(data).__name__}."
        )
    arguments = {key: as_array(value) for key, value in given.items()}
    own_name = getattr(model, "__name__", type(model).__name__)
    _check_arguments(model, own_name, arguments)
    return NumpyroTarget(
        name=name or own_name,
        numpyro_model=partial(model, **arguments),
        symmetry=as_symmetry(symmetry),
        dims=dims or {},
        coords=coords or {},
        data=arguments,
    )


def as_array(value: Any) -> Any:
    """Lists of numbers as arrays, arrays copied, so that nobody changes them; anything else as it is."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if not isinstance(value, list):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths, for which the model may have a use
        return value
    return array if array.dtype.kind in "biuf" else value


def _check_arguments(model: Callable[..., Any], name: str, data: Mapping[str, Any]) -> None:
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):  # some built-in callables do not tell
        return
    taken = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in parameters if p.name in taken and p.default is p.empty]
    if lacking := [each for each in needed if each not in data]:
        given = ", ".join(data) or "nothing"
        raise ModelDataError(
            f"`data` lacks {', '.join(lacking)}, which the model {name} takes; it holds {given}."
        )
    unknown = [each for each in data if each not in taken]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        takes = f"it takes {', '.join(taken)}" if taken else "it takes none"
        raise ModelDataError(
            f"`data` holds {', '.join(map(str, unknown))}, which is no argument of the model {name}; {takes}."
        )
