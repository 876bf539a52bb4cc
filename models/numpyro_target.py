"""NumPyro models as targets: a function with its arguments, or `FILE.py:NAME` on the command line.

A file runs as with `python FILE.py`, except for `__name__`, so it can import modules next to it. Messages of its
errors, on import or when the model runs, begin with the place in the file.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from onebasin.base.checks import check_path, checks_arguments
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    ModelDataError,
    OnebasinError,
    StudyError,
)
from onebasin.base.precision import precision
from onebasin.base.text import read_json_file

from .symmetry.blocks import Symmetry, as_symmetry
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
    """Make a target from a NumPyro model and its arguments.

    Parameters
    ----------
    model : callable
        A function that defines a NumPyro model.
    data : mapping or path, optional
        The model's arguments by name, as in ``model(**data)``, or a JSON file of them. Lists of numbers become arrays,
        other values are unchanged. A posterior stores values that a site observes as observed data, and other numbers
        and arrays as constant data.
    symmetry : tuple of blocks, str or sequence of str, optional
        Which axes of which variables move together, as blocks or strings such as ``"mu,sigma,1-theta"``.
    name : str, optional
        The target's name; by default the name of the function.
    dims : mapping, optional
        Axis names of variables; by default those of the plates that contain the site.
    coords : mapping, optional
        Labels of axes: name of an axis to one label per position.

    Returns
    -------
    Target
        A target with only a NumPyro definition.

    Raises
    ------
    TypeError
        If `model` is not a function, or `data` is neither a mapping nor a path.
    ModelDataError
        If the data cannot be read, or do not match the model's arguments.

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
            f"`model` must be a function that defines a NumPyro model; got {model!r}."
        )
    if isinstance(data, str | Path):
        given = read_json_file(check_path("data", data), error=ModelDataError)
    elif data is None or isinstance(data, Mapping):
        given = dict(data or {})
    else:
        raise ArgumentTypeError(
            f"`data` must be a JSON file or a mapping from argument names to values; got {type(data).__name__}."
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
    """Make an array of a list of numbers, copy an array, and return anything else unchanged."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if not isinstance(value, list):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # Rows of different lengths.
        return value
    return array if array.dtype.kind in "biuf" else value


def _check_arguments(model: Callable[..., Any], name: str, data: Mapping[str, Any]) -> None:
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):  # Some built-in callables have no signature.
        return
    taken = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in parameters if p.name in taken and p.default is p.empty]
    if lacking := [each for each in needed if each not in data]:
        given = ", ".join(data) or "no data"
        raise ModelDataError(
            f"The model {name!r} needs {', '.join(lacking)} as data; got {given}. Add the missing names to `data`."
        )
    unknown = [each for each in data if each not in taken]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        takes = f"only {', '.join(taken)}" if taken else "no arguments"
        raise ModelDataError(
            f"`data` contains {', '.join(map(str, unknown))}, but the model {name!r} takes {takes}. Correct or "
            "remove these names."
        )


_LONGEST = 300
_NUMPYROS_OWN = (OnebasinError, AssertionError)  # Errors for which callers have their own message.
_OF_ARGUMENTS = (ArgumentError, ArgumentTypeError)  # Raised by functions that the file calls.


class ModelFailed(OnebasinError, RuntimeError):
    """An error raised by a user's file or model; the message says where."""


@dataclass(frozen=True)
class ModelFile:
    """The location of a model: a Python file and the name of a function."""

    path: Path
    name: str

    @property
    def spelt(self) -> str:
        """The location as written on the command line."""
        return f"{self.path}:{self.name}" if self.name else str(self.path)


def model_file_in(word: str | Path) -> ModelFile | None:
    """Parse the location of a model; None for other texts, such as the path of a Stan program."""
    text = str(word)
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        return ModelFile(Path(path), name)
    return ModelFile(Path(text), "") if text.endswith(".py") else None


@contextmanager
def loaded(file: ModelFile) -> Iterator[Callable[..., Any]]:
    """Run a file and yield the function in it; meanwhile modules next to the file can be imported.

    Raises `StudyError` if the file or the function does not exist, and `ModelFailed` if the file or the model fails.
    """
    if not file.path.is_file():
        raise StudyError(
            f"The model file {file.path} does not exist. Correct the path in `{file.spelt}`."
        )
    folder = str(file.path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield _saying_where(_function(_run(file), file), file)
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _run(file: ModelFile) -> ModuleType:
    path = file.path.resolve()
    spec = importlib.util.spec_from_file_location(f"onebasin_user_{path.stem}", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # Dataclasses and pickles need it.
    try:
        # Not `exec_module`, whose stored bytecode may be out of date within a second of an edit.
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))
    except SystemExit as error:
        raise ModelFailed(
            f"Importing `{file.spelt}` ends the process (exit code {error.code}). Move everything but the model "
            "under `if __name__ == '__main__':`."
        ) from error
    except Exception as error:
        raise ModelFailed(f"Importing `{file.spelt}` fails: {_where(error, path)}") from error
    return module


def _function(module: ModuleType, file: ModelFile) -> Callable[..., Any]:
    models = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    there = f"The file defines {', '.join(models)}" if models else "The file defines no functions"
    if not file.name:
        raise StudyError(
            f"`{file.spelt}` does not say which function defines the model. Add the name of this function, as in "
            f"{file.path}:{models[0] if models else 'model'}. {there}."
        )
    model = getattr(module, file.name, None)
    if not callable(model):
        raise StudyError(
            f"`{file.spelt}` names {file.name}, but {file.path.name} has no function of this name. {there}."
        )
    return model


def _saying_where(model: Callable[..., Any], file: ModelFile) -> Callable[..., Any]:
    """Return the model with errors that say where in the user's file they were raised."""
    path = file.path.resolve()

    @wraps(model)
    def saying_where(*args: Any, **kwargs: Any) -> Any:
        try:
            return model(*args, **kwargs)
        except Exception as error:
            if isinstance(error, _NUMPYROS_OWN) and not isinstance(error, _OF_ARGUMENTS):
                raise
            raise ModelFailed(f"`{file.spelt}` fails: {_where(error, path)}") from error

    return saying_where


def _where(error: Exception, path: Path) -> str:
    """Return the last place in the user's files that an error passed, and the first line of the error."""
    if isinstance(error, SyntaxError):
        place = f"{Path(error.filename or path).name}:{error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if Path(f.filename).parent == path.parent]
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else path.name
    said = str(error).strip().partition("\n")[0]
    words = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if len(words) > _LONGEST:
        words = f"{words[:_LONGEST]}..."
    return f"{place}: {words.removesuffix('.')}."


Site = tuple[Any, tuple[int, ...]]  # A constraint of NumPyro, and the shape of the value.


def stated_by(
    density: Callable[[dict[str, Any]], Any],
    sites: Mapping[str, Site],
    computed: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda values: {},
    data: Mapping[str, np.ndarray] | None = None,
    likelihood: Callable[[dict[str, Any]], tuple[Any, Sequence[Any]]] = lambda values: (0.0, ()),
) -> Callable[[], None]:
    """Make a NumPyro model of a log density over values, with quantities `computed` from the parameters.

    `likelihood`, not part of the density, returns the log likelihood of all `data` and an array of terms for each; only
    the sum is differentiated.
    """
    import jax
    import numpyro
    from numpyro.distributions import ImproperUniform

    # Use float64, because JAX may keep arrays of the first trace.
    given = {n: jax.ShapeDtypeStruct(shape, "float64") for n, (_, shape) in sites.items()}
    try:
        with precision("float64"):
            out = jax.eval_shape(density, given)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ArgumentError(
            f"JAX cannot trace `model` ({reason.rstrip('.')}). Use jax.numpy in `model`, and check the shapes in "
            "`parameters`."
        ) from error
    if getattr(out, "shape", None) != ():
        raise ArgumentError(
            f"`model` must return the log density as a single number; got {out}. Sum the terms of the log density."
        )

    class Given(numpyro.distributions.Distribution):
        """Data with known log likelihoods."""

        pytree_data_fields = ("terms",)

        def __init__(self, terms: Any, like: np.ndarray) -> None:
            self.terms = terms
            super().__init__(terms.shape, like.shape[terms.ndim :], validate_args=False)

        def log_prob(self, value: Any, intermediates: Any = None) -> Any:
            del value, intermediates
            return self.terms

        def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
            raise NotImplementedError("Use `ob.predict` to draw data from this model.")

    def model() -> None:
        values = {
            name: numpyro.sample(name, ImproperUniform(constraint, (), event_shape=shape))
            for name, (constraint, shape) in sites.items()
        }
        numpyro.factor("log_density", density(values))
        total, terms = likelihood(values)
        slope = total - jax.lax.stop_gradient(total)
        for (name, known), term in zip((data or {}).items(), terms, strict=True):
            each = jax.lax.stop_gradient(term) + slope / max(term.size, 1)
            slope = 0.0  # The first term has the gradient of the sum.
            numpyro.sample(name, Given(each, known), obs=known)
        for name, value in computed(values).items():
            numpyro.deterministic(name, value)

    return model
