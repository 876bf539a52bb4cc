"""Positive scalings of incoming weights, undone in the outgoing ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .block import Axes, Block, Values, check_axes
from .elements import Scaled, along, scale


@dataclass(frozen=True)
class Rescalable(Block[Scaled]):
    """Positive scaling: incoming axes times a, outgoing axes divided by a.

    A symmetry of the likelihood alone, as of the weights into and out of a unit with a positively homogeneous
    activation such as ReLU: alignment divides it out, and posteriors are not invariant under it.

    Parameters
    ----------
    incoming, outgoing : mapping of str to int
        Variable name to axis within a draw.

    Raises
    ------
    TypeError
        If one maps no names to axes.

    Examples
    --------
    >>> block = ob.networks.Rescalable({"W1": 1, "b1": 0}, {"W2": 0})
    >>> moved = block.act({"W1": np.ones((1, 2)), "W2": np.ones((2, 1))}, np.array([2.0, 4.0]))
    >>> moved["W1"].tolist(), moved["W2"].tolist()
    ([[2.0, 4.0]], [[0.5], [0.25]])
    """

    kind = "rescalable"
    turn = 1
    keeps_density = False

    incoming: Mapping[str, int]
    outgoing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject what maps no names to axes."""
        check_axes("incoming", self.incoming, several=False)
        check_axes("outgoing", self.outgoing, several=False)
        if not self.axes:
            raise ArgumentError(
                "`incoming` is empty; give the axes that are scaled, such as {'W1': 1}."
            )

    @property
    def axes(self) -> Mapping[str, Axes]:
        """Every variable that is scaled, with its axis."""
        return {**self.incoming, **self.outgoing}

    def act(self, values: Values, factors: Any) -> dict[str, Any]:
        """Scale draws (*lead, *event) by `factors` (*lead, component), all positive, with NumPy or JAX.

        Those of the block's variables that are there are scaled; all values are returned.
        """
        out = dict(values)
        for name, axis in self.incoming.items():
            if name in out:
                out[name] = scale(out[name], factors, axis)
        for name, axis in self.outgoing.items():
            if name in out:  # should a variable be in both, it takes both factors
                out[name] = scale(out[name], 1 / factors, axis)
        return out

    def describe(self) -> str:
        """Say in plain words what it moves."""
        return f"positive scalings of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Rescalable | None:
        """The block as it acts on some variables alone; None where it does not."""
        kept = set(names) & set(self.variables)
        incoming = {name: axis for name, axis in self.incoming.items() if name in kept}
        outgoing = {name: axis for name, axis in self.outgoing.items() if name in kept}
        return Rescalable(incoming, outgoing) if kept else None

    def identity(self, lead: tuple[int, ...], size: int) -> Scaled:
        """The part that moves nothing."""
        return Scaled(np.ones((*lead, size)))

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Scaled:
        """Draw standard log-normal factors."""
        return Scaled(np.exp(rng.normal(size=(*lead, size))))

    def compose(self, first: Scaled, then: Scaled, beside: np.ndarray | None) -> Scaled:
        """The part that acts like `first` followed by `then`."""
        return Scaled(along(first.factors, beside) * then.factors)

    def inverse(self, part: Scaled, beside: np.ndarray | None) -> Scaled:
        """The part that undoes one."""
        return Scaled(1 / along(part.factors, beside))
