"""A NumPyro model with its arguments as a target.

A NumPyro model in a Python file, by the words `FILE.py:NAME`.

The file is code of whoever runs the command and is run as `python FILE.py` would run it, but for `__name__`: modules
next to it can be imported. What it raises, as it is imported or later as the model runs, is said with the place in the
file where it came from.
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
        A function that defines a NumPyro model.
    data : mapping or path, optional
        The model's arguments by name, as in ``model(**data)``, or a JSON file that holds them. They are passed on
        unchanged, except that lists become arrays. Values that a site observes are stored with a posterior as observed
        data, other numbers and arrays as constant data.
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


_LONGEST = 300
_NUMPYROS_OWN = (OnebasinError, AssertionError)
"""Errors of a model for which its caller has its own message."""
_OF_ARGUMENTS = (ArgumentError, ArgumentTypeError)
"""Errors of functions that the file calls: the message needs the place in the file."""


class ModelFailed(OnebasinError, RuntimeError):
    """A user's file or model that raised an error; the message says where and what."""


@dataclass(frozen=True)
class ModelFile:
    """The location of a model."""

    path: Path  # The Python file.
    name: str  # Of the function.

    @property
    def spelt(self) -> str:
        """The location as written on the command line."""
        return f"{self.path}:{self.name}" if self.name else str(self.path)


def model_file_in(word: str | Path) -> ModelFile | None:
    """Read the words of a model; None if they are of none, such as a Stan program's."""
    text = str(word)
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        return ModelFile(Path(path), name)
    return ModelFile(Path(text), "") if text.endswith(".py") else None


@contextmanager
def loaded(file: ModelFile) -> Iterator[Callable[..., Any]]:
    """Run a file and hand out the function in it; modules next to the file can be imported meanwhile.

    It is a `StudyError` if there is no such file or function in it, and `ModelFailed` if the file or the model raises
    an error.
    """
    if not file.path.is_file():
        raise StudyError(f"`{file.spelt}` names no Python file: {file.path} does not exist.")
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
    sys.modules[module.__name__] = module  # dataclasses and pickles in it look there
    try:
        # Not `exec_module`: the bytecode that it keeps is taken for a file edited within a second to the same size.
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))
    except SystemExit as error:
        raise ModelFailed(
            f"`{file.spelt}` ends the process as it is imported (exit code {error.code}); put what is no model under "
            "`if __name__ == '__main__':`."
        ) from error
    except Exception as error:
        raise ModelFailed(
            f"`{file.spelt}` fails as it is imported: {_where(error, path)}"
        ) from error
    return module


def _function(module: ModuleType, file: ModelFile) -> Callable[..., Any]:
    models = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
    ]
    there = f"it has {', '.join(models)}" if models else "it has none"
    if not file.name:
        raise StudyError(
            f"`{file.spelt}` is a file of functions: name the one that defines the model, as in "
            f"{file.path.name}:{models[0] if models else 'model'}; {there}."
        )
    model = getattr(module, file.name, None)
    if not callable(model):
        raise StudyError(
            f"`{file.spelt}` names {file.name}, which is no function of {file.path.name}; {there}."
        )
    return model


def _saying_where(model: Callable[..., Any], file: ModelFile) -> Callable[..., Any]:
    """The model, whose errors say where in the user's file they came from."""
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
    """The last place in the user's file, or one next to it, that an error passed, and the error's first line."""
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
    """State a log density over values as a NumPyro model; `computed` gives what follows from the parameters.

    `likelihood` gives the log likelihood of all `data`, and its terms, an array for each of them: only the sum has a
    gradient. The density is without it.
    """
    import jax
    import numpyro
    from numpyro.distributions import ImproperUniform

    # As precise as the methods are: JAX may keep an array of the function as it is first traced.
    given = {n: jax.ShapeDtypeStruct(shape, "float64") for n, (_, shape) in sites.items()}
    try:
        with precision("float64"):
            out = jax.eval_shape(density, given)
    except Exception as error:  # whatever the function throws
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ArgumentError(
            f"`model` cannot be traced by JAX at parameters of these shapes: {reason} Let it compute with jax.numpy."
        ) from error
    if getattr(out, "shape", None) != ():
        raise ArgumentError(
            f"`model` must return the log density, one number; it returns {out}: sum over its terms."
        )

    class Given(numpyro.distributions.Distribution):
        """Data of which the log likelihood is known and nothing else."""

        pytree_data_fields = ("terms",)

        def __init__(self, terms: Any, like: np.ndarray) -> None:
            self.terms = terms
            super().__init__(terms.shape, like.shape[terms.ndim :], validate_args=False)

        def log_prob(self, value: Any, intermediates: Any = None) -> Any:
            del value, intermediates
            return self.terms

        def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
            raise NotImplementedError("`ob.predict` draws the data of this model")

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
            slope = 0.0  # that of all of them is in the first
            numpyro.sample(name, Given(each, known), obs=known)
        for name, value in computed(values).items():
            numpyro.deterministic(name, value)

    return model
