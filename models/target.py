"""A target: a model conditioned on data, in one or both engines."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from onebasin.base.card import Card, FactList, Shown, Words, in_sizes
from onebasin.base.checks import check_class
from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.base.text import dotted

from .symmetry.blocks import Symmetry, check_blocks, in_words

_ENGINES = {"numpyro": "NumPyro", "stan": "Stan"}

Named = tuple[tuple[str, ...], np.ndarray]  # Names of an array's axes, and the array.


@dataclass(frozen=True, repr=False)
class Target(Shown):
    """The input of every inference method: a model conditioned on data.

    Use `ob.numpyro_model` for a NumPyro model with arguments, `ob.stan_program` for a Stan program and
    `BayesianNetwork.condition` for a network; the constructor takes a NumPyro model without arguments.

    Parameters
    ----------
    name : str
        Name in file names and tables.
    numpyro_model : callable or None
        A NumPyro model without arguments. Its data should be NumPy arrays, which take the precision of a run's
        settings; a JAX array keeps its own.
    stan_program : StanProgram or None
        Set by `ob.stan_program`.
    symmetry : tuple of blocks
        The blocks under which the posterior (or its likelihood) is invariant.
    dims : mapping of str to tuple of str
        Names of the variables' axes; by default the axes of a NumPyro model's sites have the names of their plates.
    coords : mapping of str to sequence
        Labels of axes: name of an axis to one label per position.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the NumPyro model takes arguments.

    Examples
    --------
    >>> def normal():
    ...     numpyro.sample("z", dist.Normal(0.0, 1.0))
    >>> ob.Target("normal", numpyro_model=normal).name
    'normal'
    """

    is_network: ClassVar[bool] = False  # True for a `NetworkTarget`, whose module loads JAX.

    name: str
    _: KW_ONLY
    numpyro_model: Callable[[], None] | None = None
    stan_program: Any = None
    symmetry: Symmetry = ()
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_class("name", self.name, str, remedy="give text")
        check_class("dims", self.dims, Mapping, remedy="map variables to names of their axes")
        check_class("coords", self.coords, Mapping, remedy="map names of axes to their labels")
        if not self.name.strip():
            raise ArgumentError("`name` is empty. Give the target a name.")
        for axis, labels in self.coords.items():
            distinct = np.ndim(labels) == 1 and len(set(map(str, labels))) == len(labels)
            if not distinct:
                raise ArgumentError(
                    f"`coords` must give the axis {axis} a list of distinct labels, one per position."
                )
        object.__setattr__(self, "symmetry", check_blocks(self.symmetry))
        dims = {n: dotted(axes) for n, axes in self.dims.items()}
        for part, named in (("dims", dims), ("coords", self.coords)):
            object.__setattr__(self, part, dotted(named))
        if self.numpyro_model is not None:
            if not callable(self.numpyro_model):
                raise ArgumentTypeError(
                    f"`numpyro_model` must be a function that defines a NumPyro model; got {self.numpyro_model!r}."
                )
            try:
                inspect.signature(self.numpyro_model).bind()
            except TypeError:
                raise ArgumentTypeError(
                    "The function given as `numpyro_model` must take no arguments. Use "
                    "onebasin.numpyro_model(model, data), or pass a function without arguments, as in `lambda: "
                    "model(**data)`."
                ) from None
            except ValueError:  # Some built-in callables have no signature.
                pass

    def describe(self) -> str:
        """Return JSON from which `schema.network_of` rebuilds the model, or an empty string."""
        return ""

    @property
    def inputs(self) -> dict[str, Named]:
        """Constant data stored with a posterior, by name."""
        return {}

    @property
    def outputs(self) -> dict[str, Named]:
        """Observed data stored with a posterior, by name."""
        return {}

    @property
    def num_obs(self) -> int:
        """Number of observations; 1 if the target does not expose them."""
        return next((len(values) for _, values in self.outputs.values()), 1)

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines for which the target has a definition."""
        both = {"numpyro": self.numpyro_model, "stan": self.stan_program}
        return tuple(name for name, definition in both.items() if definition is not None)

    def __repr__(self) -> str:
        moved = f", modulo {in_words(self.symmetry)}" if self.symmetry else ""
        return f"<{type(self).__name__} {self.name!r}: {self._definition()}{moved}>"

    def _card(self) -> Card:
        words = self._definition()
        lead = f"{words[:1].upper()}{words[1:]}: a model conditioned on data, for every method."
        facts = FactList.of(
            ("engine", " and ".join(_ENGINES[name] for name in self.engines) or "none"),
            ("data", in_sizes(self._data())),
            *self._facts(),
        )
        return Card(self.name, (Words(lead), facts))

    def _facts(self) -> tuple[tuple[str, str], ...]:
        """Return further facts for the card."""
        undeclared = (
            "none is declared; `ob.diagnose` looks for interchangeable components in the draws"
        )
        return (("symmetry", in_words(self.symmetry) or undeclared),)

    def _definition(self) -> str:
        """Return a short description of the model."""
        if self.stan_program is not None:
            return f"Stan program {self.stan_program}"
        return "NumPyro model" if self.numpyro_model is not None else "no model"

    def _data(self) -> Mapping[str, Any]:
        """Return the data by name."""
        if self.stan_program is not None:
            return getattr(self.stan_program, "data", {})
        return {name: array for name, (_, array) in (self.inputs | self.outputs).items()}


def check_target(target: Any) -> None:
    """Check that an argument is a target."""
    check_class(
        "target",
        target,
        Target,
        remedy="give Target('name', numpyro_model=model), numpyro_model(model, data), stan_program(path, data), or a "
        "network's condition(x, y)",
    )
