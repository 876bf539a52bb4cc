"""Settings of the methods: frozen, checked at birth, in words that hold for both engines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from onebasin.models.choices import choose

METRICS = ("diag", "dense", "unit")
DTYPES = ("float64", "float32")
FAMILIES = ("meanfield", "fullrank")
ENGINES = ("numpyro", "stan")
STARTS = ("random", "optimum")
OBJECTIVES = ("posterior", "likelihood")
SCHEDULES = ("constant", "cosine")
FIRST_WEIGHTS = ("he", "prior")


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
        Starting points are uniform within +-init_radius in the unconstrained space.
    init : {"random", "optimum"}
        Whether a chain starts at such a point, or at the best optimum of the log density (in the unconstrained space,
        with the Jacobian) that L-BFGS finds from several of them. Optima keep chains out of modes that hold next to
        no probability; but chains that all start at the same optimum tell R-hat little about other modes.
    init_starts : int
        Starting points of a chain from which an optimum is sought.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine, and of its draws; Stan always has float64.

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
    init: str = "random"
    init_starts: int = 10
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_counts(self, "chains", "warmup", "draws", "init_starts")
        if not 0 < self.target_acceptance < 1:
            raise ValueError(
                f"`target_acceptance` must lie between 0 and 1; got {self.target_acceptance!r}. The default is 0.8."
            )
        choose("metric", self.metric, METRICS)
        choose("init", self.init, STARTS)
        choose("dtype", self.dtype, DTYPES)
        check_positive_numbers(self, "init_radius")


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
        check_counts(self, "max_tree_depth")


@dataclass(frozen=True)
class HmcSettings(McmcSettings):
    """Settings of static HMC.

    Parameters
    ----------
    trajectory_length : float
        Integration time of every trajectory; steps are trajectory_length / step_size.
    max_steps : int
        Most leapfrog steps of a trajectory, which ends early rather than take more (NumPyro); without a bound, one
        unlucky step size of the warmup can take hours. Stan has no bound.
    """

    trajectory_length: float = 2 * math.pi
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "max_steps")
        check_positive_numbers(self, "trajectory_length")


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
    batch_size : int or None
        Observations in each gradient, drawn anew without replacement for every pass over the data and weighted up to
        all of them; `None` for all. Networks on the NumPyro engine only. The ELBO is always that of all data.
    init_scale : float
        Standard deviation at the start, in every direction (NumPyro); Stan starts at 1.
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
    batch_size: int | None = None
    init_scale: float = 0.1
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_counts(
            self, "iterations", "gradient_samples", "elbo_samples", "evaluate_every", "draws"
        )
        check_batch_size(self)
        check_positive_numbers(self, "tolerance", "learning_rate", "init_scale")
        choose("dtype", self.dtype, DTYPES)


@dataclass(frozen=True)
class TrainSettings:
    """How a network is trained: minibatch Adam on the log density.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    batch_size : int or None
        Observations in each gradient; `None` for all. Every epoch takes the observations in a new order and leaves out
        the rest that fills no batch.
    learning_rate : float
        Adam's first step size.
    schedule : {"cosine", "constant"}
        Whether the step size falls to zero along half a cosine over all steps, or stays.
    objective : {"posterior", "likelihood"}
        What is maximised: the posterior density in the unconstrained space (the prior acts as weight decay, and a
        constrained parameter's Jacobian counts), or the likelihood alone.
    dtype : {"float64", "float32"}
        Precision.

    Raises
    ------
    ValueError
        If a count or a number is not positive, or a word unknown.
    """

    epochs: int = 1000
    batch_size: int | None = None
    learning_rate: float = 0.01
    schedule: str = "cosine"
    objective: str = "posterior"
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_counts(self, "epochs")
        check_batch_size(self)
        check_positive_numbers(self, "learning_rate")
        choose("schedule", self.schedule, SCHEDULES)
        choose("objective", self.objective, OBJECTIVES)
        choose("dtype", self.dtype, DTYPES)


@dataclass(frozen=True)
class EnsembleSettings(TrainSettings):
    """Settings of a deep ensemble.

    Parameters
    ----------
    members : int
        Networks, each trained from a start of its own.
    init : {"he", "prior"}
        Where training starts: free weights ~ N(0, 2 / inputs of the unit) (He et al. 2015), free biases zero, the
        noise at the scale of its prior and what is constrained drawn from its prior; or everything drawn from the
        prior. N(0, 1) weights on many inputs saturate a wide network, so that "prior" then trains slowly.
    """

    members: int = 10
    init: str = "he"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "members")
        choose("init", self.init, FIRST_WEIGHTS)


def check_batch_fits(batch_size: int | None, num_obs: int) -> None:
    """Refuse a batch larger than the data."""
    if batch_size is not None and batch_size > num_obs:
        raise ValueError(
            f"`batch_size` is {batch_size}, but the target has {num_obs} observations; give at most {num_obs}, "
            "or None for all of them."
        )


def check_seed(seed: int) -> None:
    """Refuse a seed that one of the engines cannot take."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be a whole number from 0 to {2**32 - 1}; got {seed!r}.")


@runtime_checkable
class Batched(Protocol):
    """Settings that have batches."""

    @property
    def batch_size(self) -> int | None:
        """Observations in a gradient."""


def check_batch_size(settings: Batched) -> None:
    """Refuse batches of no observation."""
    if settings.batch_size is not None:
        check_counts(settings, "batch_size")


def check_counts(settings: object, *names: str) -> None:
    """Refuse anything but whole numbers of at least 1."""
    for name in names:
        value = getattr(settings, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a whole number of at least 1; got {value!r}.")


def check_positive_numbers(settings: object, *names: str) -> None:
    """Refuse anything but positive finite numbers."""
    for name in names:
        value = getattr(settings, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a positive finite number; got {value!r}.")
