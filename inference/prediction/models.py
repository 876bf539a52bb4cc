"""The model of a posterior, given by the user or recorded, combined with the data in the posterior.

A posterior file is not trusted: its record only selects among files on this machine. If the program that the run's
command named still exists and has the recorded text, the interpreter evaluates it on data with the recorded hash. The
text in the posterior file is interpreted only if the user passes `RECORDED`. Nothing is compiled, and no Python model
is run, unless the user names it.
"""

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_path
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    InferenceError,
    ModelDataError,
    OnebasinError,
)
from onebasin.base.text import read_json_file
from onebasin.models.numpyro_target import NumpyroTarget, numpyro_model
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.view import View
from onebasin.stan.choice import Refused, examine
from onebasin.stan.compile import has_library
from onebasin.stan.data import read_data
from onebasin.stan.interpreter.runtime import full_text, included_files
from onebasin.stan.program import stan_program

from ..density.stan import StanDensity
from ..runs.posterior import data_sha256

RECORDED = "recorded"
"""Value of `model` with which a user declares to trust the program text in a posterior."""


def kept_data(view: View) -> dict[str, Any]:
    """Return the data in a posterior's groups as arrays and single numbers."""
    held = (item for group in view.data.values() for item in group.data_vars.items())
    return {str(name): v.values if v.ndim else v.item() for name, v in held}


@dataclass(frozen=True, eq=False)
class RecordedProgram:
    """The Stan program that a posterior records, which is searched when first needed."""

    view: View  # The posterior, with folders in which to search for files of the run's command.
    trusted: bool = False  # Whether to interpret the text in the posterior.

    def __call__(self, draws: xr.Dataset) -> np.ndarray:
        """Evaluate draws (chain, draw, ...), in nats, on the constrained scale, without the Jacobian.

        Raise InferenceError if the program or its data are missing, or if the interpreter does not accept the program.
        """
        names = self._density.names
        arrays = {n: draws[n].transpose(*schema.SAMPLE_DIMS, ...).values for n in names}
        points = {n: np.float64(v).reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
        lead = tuple(draws.sizes[dim] for dim in schema.SAMPLE_DIMS)
        return self._density.log_density(points).reshape(lead)

    @cached_property
    def _density(self) -> StanDensity:
        try:
            return StanDensity(self.target)
        except InferenceError as error:
            raise InferenceError(
                f"{error}. Give `--program` and `--data`, or `--program {RECORDED}` if you trust the recorded text"
            ) from error

    @cached_property
    def target(self) -> Target:
        """The program with its data, accepted by the interpreter; raises InferenceError as a call does."""
        view, name = self.view, schema.stan_program_of(self.view.tree.attrs)
        text = view.attribute(schema.PROGRAM, "")
        if not self.trusted:
            named = self._named(".stan")
            text = next((p for p in named if full_text(p, included_files(p)) == text), None)
        if text is None:
            raise InferenceError(
                f"the run's command does not lead to a file {name} with the recorded text of the program"
            )
        if (data := self._data()) is None:
            raise InferenceError(f"the recorded data of {name} are missing")
        title = str(view.attribute(schema.TARGET, "")) or Path(name).stem
        target = stan_program(text, data, name=title)
        path = target.stan_program.path
        if isinstance(found := examine(path, data), Refused) and not has_library(path):
            raise InferenceError(f"{found.reason}, and {name} is not compiled for this check")
        return target

    def _data(self) -> dict[str, Any] | None:
        """Return data with the recorded hash, from the posterior or from a file that the run's command names."""
        wanted = self.view.attribute(schema.DATA_SHA256, "")
        kept = kept_data(self.view)
        if not wanted or data_sha256(kept) == wanted:
            return kept
        for path in self._named(".json"):
            try:
                data = read_data(path)
            except OnebasinError:
                continue
            if data_sha256(data) == wanted:
                return dict(data)
        return None

    def _named(self, suffix: str) -> Iterator[Path]:
        """Yield existing files with a suffix that the run's command names."""
        try:
            words = shlex.split(str(self.view.attribute(schema.COMMAND, "")))
        except ValueError:
            return
        for folder in self.view.folders:
            for word in words:
                path = (folder / word).absolute()
                if word.endswith(suffix) and path.is_file():
                    yield path


Model = Any
"""A target, a NumPyro function or a Stan program whose data are in the posterior, or 'recorded'."""


def model_of(view: View, model: Model, new: Mapping[str, Any]) -> Target:
    """Return the target of a posterior.

    `model` is given by the user. 'recorded' means the text of the Stan program in the posterior. None means the
    recorded model: a network, or the file of a Stan program that the run's command named. Arguments
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
