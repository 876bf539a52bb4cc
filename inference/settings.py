"""Settings of the methods: frozen, checked at birth, in words that hold for both engines."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.choices import choose

METRICS = ("diag", "dense", "unit")
DTYPES = ("float64", "float32")
FAMILIES = ("meanfield", "fullrank")
ENGINES = ("numpyro", "stan")


@dataclass(frozen=True)
class McmcSettings:
    """What NUTS and static HMC share.

    Parameters
    ----------
    chains : int
        Independent chains.
    warmup, draws : int
        Iterations of adaptation, and draws kept, of each chain.
    target_acceptance : float
        Mean acceptance probability that step size adaptation aims at, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    init_radius : float
        Chains start uniformly within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always has float64.

    Raises
    ------
    ValueError
        If a count is not positive, a probability not inside (0, 1), or a word unknown.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    target_acceptance: float = 0.8
    metric: str = "diag"
    init_radius: float = 2.0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        _check_counts(self, "chains", "warmup", "draws")
        if not 0 < self.target_acceptance < 1:
            raise ValueError(
                f"`target_acceptance` must lie between 0 and 1; got {self.target_acceptance!r}. The default is 0.8."
            )
        choose("metric", self.metric, METRICS)
        choose("dtype", self.dtype, DTYPES)
        _check_positive_numbers(self, "init_radius")


@dataclass(frozen=True)
class NutsSettings(McmcSettings):
    """Settings of the no-U-turn sampler.

    Parameters
    ----------
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.
    """

    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_counts(self, "max_tree_depth")


@dataclass(frozen=True)
class HmcSettings(McmcSettings):
    """Settings of static HMC.

    Parameters
    ----------
    trajectory_length : float
        Integration time of every trajectory; steps are trajectory_length / step_size.
    """

    trajectory_length: float = 2 * math.pi

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive_numbers(self, "trajectory_length")


@dataclass(frozen=True)
class AdviSettings:
    """Settings of automatic differentiation variational inference (Kucukelbir et al. 2017).

    Parameters
    ----------
    iterations : int
        Most gradient steps of the optimiser.
    gradient_samples, elbo_samples : int
        Monte Carlo draws of a gradient, and of an evaluation of the ELBO.
    evaluate_every : int
        Gradient steps between evaluations of the ELBO.
    tolerance : float
        The optimiser stops when the mean or the median relative change of the ELBO over the last evaluations falls
        below it.
    draws : int
        Draws taken from the fitted approximation.
    learning_rate : float
        Adam's first step size (NumPyro); Stan searches its own.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine.

    Raises
    ------
    ValueError
        If a count or a number is not positive, or a word unknown.
    """

    iterations: int = 10_000
    gradient_samples: int = 10
    elbo_samples: int = 100
    evaluate_every: int = 100
    tolerance: float = 0.001
    draws: int = 1000
    learning_rate: float = 0.02
    dtype: str = "float64"

    def __post_init__(self) -> None:
        _check_counts(
            self, "iterations", "gradient_samples", "elbo_samples", "evaluate_every", "draws"
        )
        _check_positive_numbers(self, "tolerance", "learning_rate")
        choose("dtype", self.dtype, DTYPES)


def check_seed(seed: int) -> None:
    """Refuse a seed that one of the engines cannot take."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be a whole number from 0 to {2**32 - 1}; got {seed!r}.")


def _check_counts(settings: object, *names: str) -> None:
    """Refuse anything but whole numbers of at least 1."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")


def _check_positive_numbers(settings: object, *names: str) -> None:
    """Refuse anything but positive finite numbers."""
    for name in names:
        value = getattr(settings, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a positive finite number; got {value!r}.")
