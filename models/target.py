"""A target: a model conditioned on data, in one or both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .symmetry.blocks import Symmetry

if TYPE_CHECKING:
    import numpy as np

    from .networks.bayesian import BayesianNetwork


@dataclass(frozen=True)
class Target:
    """What every inference method takes.

    Attributes
    ----------
    name : str
        Used in file names and tables.
    numpyro_model : callable or None
        A NumPyro model without arguments.
    stan_program : object or None
        A `stan.StanProgram`; the `models` room does not look inside.
    symmetry : Symmetry
        Blocks under which the posterior (or its likelihood) is invariant.
    dims : mapping
        Axis names of variables, where they have some.
    """

    name: str
    numpyro_model: Callable[[], None] | None = None
    stan_program: Any = None
    symmetry: Symmetry = ()
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkTarget(Target):
    """A Bayesian network conditioned on `x` and `y`; both engines' definitions follow from it.

    Attributes
    ----------
    model : BayesianNetwork
        The network with its likelihood, prior and parametrisation.
    x : array (obs, in)
        Inputs, float64.
    y : array (obs, out) or (obs,)
        Targets: float64 for regression, integer labels for classification.
    """

    model: BayesianNetwork = None  # type: ignore[assignment]
    x: np.ndarray = None  # type: ignore[assignment]
    y: np.ndarray = None  # type: ignore[assignment]
