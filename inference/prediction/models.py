"""The model of a posterior, given by the user or recorded, combined with the data in the posterior."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.checks import check_path
from onebasin.base.errors import ArgumentError, ArgumentTypeError, InferenceError, ModelDataError
from onebasin.base.text import read_json_file
from onebasin.models.numpyro_target import NumpyroTarget, numpyro_model
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.view import View
from onebasin.stan.program import stan_program

from ..runs.recorded import RECORDED, RecordedProgram, kept_data

Model = Any
"""A target, a NumPyro function or a Stan program whose data are in the posterior, or 'recorded'."""


def model_of(view: View, model: Model, new: Mapping[str, Any]) -> Target:
    """Return the target of a posterior.

    `model` is given by the user. 'recorded' means the text of the Stan program in the posterior. None means the
    recorded model: a network, or the file of a Stan program that the run's command named (`runs.recorded`). Arguments
    of a function are taken first from the new data.
    """
    if isinstance(model, Target):
        return model
    if isinstance(model, str | Path):
        if str(model) == RECORDED and schema.stan_program_of(view.tree.attrs):
            return _recorded(RecordedProgram(view, trusted=True))
        return stan_program(model, kept_data(view))
    if callable(model):
        observed = set(view.data.get(schema.OBSERVED_DATA, {}))
        return _of_function(model, kept_data(view) | dict(new), observed)
    if model is not None:
        raise ArgumentTypeError(
            f"`model` must be a target, a NumPyro function or a Stan program; got {type(model).__name__}."
        )
    if view.network is not None:
        if view.x is None or view.y is None:
            raise ArgumentError(
                f"`{view.argument}` does not contain the data (`x` and `y`) to which the network was fitted. Give "
                "the result of `BayesianNetwork.condition(x, y)` as `model`."
            )
        return view.network.condition(view.x, view.y)
    if schema.stan_program_of(view.tree.attrs):
        return _recorded(RecordedProgram(view))
    name = view.attribute(schema.PROGRAM_NAME, "")
    of = f", the Python function {name}" if name else ""
    raise ArgumentError(
        f"`{view.argument}` does not record its model{of}. Give a NumPyro function, a target or a Stan "
        "program as `model` (`--program` on the command line)."
    )


def _recorded(program: RecordedProgram) -> Target:
    try:
        return program.target
    except InferenceError as error:
        raise ArgumentError(
            f"The model of `{program.view.argument}` cannot be rebuilt: {error}. Give `ob.stan_program(path, data)` "
            f"as `model` (`--program` and `--data` on the command line), or {RECORDED!r} if you trust the program "
            "text in the posterior."
        ) from error


def _of_function(model: Callable[..., Any], kept: Mapping[str, Any], observed: set[Any]) -> Target:
    """Combine a NumPyro function with the arguments in a posterior.

    An argument without a default value that is not in any group is assumed to be observed data.
    """
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"onebasin cannot find out which arguments `model` ({model!r}) takes. Give a NumPyro function or a "
            "target."
        ) from error
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    data = {p.name: kept[p.name] for p in named if p.name in kept}
    lacking = [p.name for p in named if p.name not in data and p.default is p.empty]
    if lacking and len(lacking) > len(observed - set(data)):
        raise ArgumentError(
            f"`model` needs the argument(s) {', '.join(lacking)}, which the posterior does not contain. Give "
            "`ob.numpyro_model(model, data)` as `model`."
        )
    return numpyro_model(model, data | dict.fromkeys(lacking))


def read_new_data(new_data: Any) -> dict[str, Any]:
    """Return new data by name, from a mapping or a JSON file."""
    if isinstance(new_data, str | Path):
        try:
            return read_json_file(check_path("new_data", new_data), error=ModelDataError)
        except ModelDataError as error:
            raise ModelDataError(str(error).replace("`data`", "`new_data`", 1)) from error
    if isinstance(new_data, Mapping):
        return dict(new_data)
    raise ArgumentTypeError(
        f"`new_data` must be a JSON file or a mapping from names to values; got {type(new_data).__name__}. An array "
        "of inputs is accepted only for a posterior that records its network. For other draws of a network, use "
        "`ob.networks.predict(model, draws, x)`."
    )


def with_arguments(target: Target, new: Mapping[str, Any], observed: Mapping[str, Any]) -> Target:
    """Return a NumPyro target with `new` arguments and without the data that its sites observed."""
    model = getattr(target.numpyro_model, "func", None)
    if not isinstance(target, NumpyroTarget) or model is None:
        raise ModelDataError(
            f"`new_data` is given, but the model {target.name!r} takes no arguments. Give `model` as "
            "`ob.numpyro_model(function, data)`."
        )
    seen = observed.values()
    outcomes = [
        name
        for name, value in target.data.items()
        if value is None or any(np.array_equal(value, each) for each in seen)
    ]
    data = dict(target.data) | dict.fromkeys(outcomes) | dict(new)
    try:
        return numpyro_model(model, data, name=target.name, dims=target.dims, coords=target.coords)
    except ModelDataError as error:
        raise ModelDataError(str(error).replace("`data`", "`new_data`", 1)) from error


def is_same(values: np.ndarray, stored: np.ndarray | None, draws: np.ndarray | None = None) -> bool:
    """Return whether recomputed draws equal the stored ones up to rounding, at the chosen `draws` if given."""
    if stored is None or stored.shape != values.shape:
        return False
    if draws is not None and draws.any():
        values, stored = values[draws], stored[draws]
    return bool(np.allclose(values, stored, rtol=1e-5, atol=1e-8, equal_nan=True))
