"""A small posterior with a quadrature solution, and the quantities to compare with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onebasin.models import Target

from .quadrature import Axis, Exact, Place, Values, entries, integrate

Quantities = Callable[[Values], dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Case:
    """A model with its data, and the grid of its posterior.

    Attributes
    ----------
    name : str
        Parametrisation and likelihood of a network, or the inferred quantity of another model.
    target : callable
        The posterior to sample, in one of the charts.
    charts : tuple of str
        Names of the charts in which it can be sampled; the posterior of the values is the same in all of them.
    size : int
        Number of parameters; a unit vector in the plane counts as one angle.
    log_density : callable
        Log prior plus log likelihood of values (point,), in NumPy.
    place : callable
        Function from coordinates to values and the log volume element.
    axes : tuple of Axis
        Axes of the coordinates.
    labels : tuple of str
        Names of the first two coordinates, for figures.
    shown : callable
        Function from values to these two coordinates.
    predicted : callable
        Function from values to the compared quantities other than parameters: name to numbers (point,).
    compared : tuple of str
        Variables whose entries are compared.
    """

    name: str
    target: Callable[[str], Target]
    charts: tuple[str, ...]
    size: int
    log_density: Callable[[Values], np.ndarray]
    place: Place
    axes: tuple[Axis, ...]
    labels: tuple[str, str]
    shown: Callable[[Values], tuple[np.ndarray, np.ndarray]]
    predicted: Quantities
    compared: tuple[str, ...]

    @cached_property
    def exact(self) -> Exact:
        """The posterior."""
        return integrate(self.log_density, self.place, self.axes)

    def quantities(self, values: Values) -> dict[str, np.ndarray]:
        """Return the compared quantities at points or draws (point,): all parameters and predictions."""
        return entries({name: values[name] for name in self.compared}) | self.predicted(values)
