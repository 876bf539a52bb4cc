"""The network of two weights: sizes, data, target, and how it is fitted.

Convention: f(x) = relu(w1 x) + relu(w2 x), y ~ N(f(x), noise^2), w1 and w2 ~ N(0, 1). The data follow
f(x) = alpha |x| with x ~ N(0, 1), which w = (alpha, -alpha) gives, and (-alpha, alpha) too. One data set has the same
x and the same standardised errors for every alpha and every noise.

Source: Gelberg et al. 2024, section 5, "Tractable posterior neural networks". The text at hand has lost the paper's
numbers (points, noise, alphas, K, steps, batches), so all are settings here, and their values ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from onebasin.base.settings import Count, Positive, Seed, Several, settings
from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget, NormalPrior

if TYPE_CHECKING:
    from onebasin.inference import Symmetrised

METHODS: Mapping[str, str] = MappingProxyType(
    {"mfvi": "none", "sgm-exact": "exact", "sgm-infonce": "infonce"}
)
"""The estimator that trains the mutual information, by the label of a method."""
WORDS: Mapping[str, str] = MappingProxyType(
    {"mfvi": "MFVI", "sgm-exact": "SGM, exact", "sgm-infonce": "SGM, InfoNCE"}
)
"""A method's name for readers; the paper's SGM is the symmetrised mean field."""
REPORT_DRAWS = 2000
"""Draws of a fit behind its own account of ELBO and information."""
_STREAMS = {"train": 0, "test": 1}


@settings
class TwoWeightSettings:
    """The part's settings."""

    alphas: tuple[Positive, ...] = (0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
    """Weights of the true function, ascending."""
    noise: Positive = 1.0  # Standard deviation of the noise where methods are fitted.
    noises: tuple[Positive, ...] = (1.0, 0.3)
    """Noises at which the best approximations are found without chance; `noise` is one of them."""
    num_obs: Count = 20
    num_test: Count = 1000  # `num_obs`, `num_test`: training and test points.
    data_seed: Seed = 0  # Of the data set that methods are fitted to.
    data_sets: Several = 40
    """Data sets, at least 2, over which the best approximations' errors are averaged."""
    curve_points: Several = 25
    """Alphas of the curves, at least 2, from the first of `alphas` to the last."""
    fits: Count = 5  # Independent fits a method.
    steps: Count = 4000
    learning_rate: Positive = 0.01  # `steps`, `learning_rate`: of Adam.
    permutations: Several = 10  # K of InfoNCE.
    draws: Count = 1000  # Draws of each fit, over which predictions are averaged.

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> TwoWeightSettings:
        """Take the settings back from a row of a frame, which has lists for tuples."""
        values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in row.items()}
        return cls(**values)


QUICK = TwoWeightSettings(
    alphas=(0.25, 1.0),
    noises=(1.0,),
    num_test=300,
    data_sets=8,
    curve_points=9,
    fits=2,
    steps=1500,
    draws=500,
)
"""Under a minute on one core."""


@dataclass(frozen=True, eq=False)
class Observations:
    """Inputs and what was observed there."""

    x: Float[np.ndarray, " obs"]
    y: Float[np.ndarray, " obs"]


@dataclass(frozen=True)
class WeightsProblem:
    """A data set: the weight of its true function, its noise's standard deviation, and its number.

    Methods are fitted to that of number 0.
    """

    settings: TwoWeightSettings
    alpha: float
    noise: float
    data_set: int = 0

    def points(self, which: str) -> Observations:
        """Make the points for training (``"train"``) or for testing (``"test"``), none of which is in both."""
        rng = np.random.default_rng([self.settings.data_seed, self.data_set, _STREAMS[which]])
        size = self.settings.num_obs if which == "train" else self.settings.num_test
        x, error = rng.standard_normal((2, size))
        return Observations(x, self.alpha * np.abs(x) + self.noise * error)


def model(settings: TwoWeightSettings) -> BayesianNetwork:
    """The network of two ReLU units without biases, whose outputs are summed."""
    network = Network(1, (2,), 1, "relu", biases=False, readout="sum")
    return BayesianNetwork(network, Gaussian(noise_sd=settings.noise), NormalPrior())


def target(settings: TwoWeightSettings, alpha: float) -> NetworkTarget:
    """Condition the network on the training points of an alpha."""
    data = WeightsProblem(settings, alpha, settings.noise).points("train")
    name = f"two-weights-{alpha:g}"
    return model(settings).condition(data.x[:, None], data.y[:, None], name=name)


def fit_settings(settings: TwoWeightSettings) -> Symmetrised:
    """Settings of every method's fits."""
    from onebasin.inference import Symmetrised

    return Symmetrised(
        fits=settings.fits,
        steps=settings.steps,
        learning_rate=settings.learning_rate,
        permutations=settings.permutations,
        draws=settings.draws,
        report_draws=REPORT_DRAWS,
        tolerance=0.0,
    )
