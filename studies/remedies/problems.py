"""The data sets, and the four networks that are conditioned on each.

Convention: a run k of the study has the seed `seed` + 100 (k - 1), for draws and splits of the data as for samplers.
Inputs and targets of regressions are standardised on the training part.

All networks have one hidden layer of ReLU units and N(0, 1) priors. One layer, so that chains of NUTS agree and are a
truth to compare approximations with; ReLU, since unit norms need an activation that is positively homogeneous.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from onebasin.models import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NetworkTarget,
    NormalPrior,
    Parametrisation,
)
from onebasin.models.data import Dataset, Split, load_data, own_split, split, standardise
from onebasin.truth.problems.images import Images, image_split

RUN_SEEDS = 100
"""By how much the seeds of two runs differ: more than there are fits."""


PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "sinc": "128 noisy points of a scaled sinc function and 128 to test, as in the paper. A constant stands next "
        "to the input, since a unit vector of one number has no angle",
        "digits": "Handwritten digits of 8 x 8 pixels (UCI)",
        "auto-mpg": "Fuel consumption of 392 cars (UCI), split 80 to 20: the one regression table of UCI's that comes "
        "with an installed package and may be used without second thoughts, so that everyone can run this",
    }
)
"""The data sets, in words."""


def run_seed(seed: int, run: int) -> int:
    """Seed of a run, counted from 1."""
    return seed + RUN_SEEDS * (run - 1)


@lru_cache(maxsize=8)
def parts(problem: str, images: Images, seed: int) -> Split:
    """Training and test part of a problem."""
    if problem == "digits":
        return image_split(images, seed)
    if problem == "sinc":
        data = standardise(own_split(load_data("sinc", seed=seed)))
        return Split(train=_with_constant(data.train), test=_with_constant(data.test))
    data = standardise(split(load_data(problem), test_fraction=0.2, seed=seed))
    return Split(train=data.train, test=data.test)


def _with_constant(data: Dataset) -> Dataset:
    x = np.column_stack([data.x, np.ones(data.num_obs)])
    return replace(data, x=x, feature_names=(*data.feature_names, "constant"))


def condition(problem: str, model: str, hidden: int, data: Dataset) -> NetworkTarget:
    """Condition a model with so many hidden units on a problem's training part."""
    network = Network(
        data.in_dim,
        (hidden,),
        data.out_dim,
        "relu",
        skip="orthogonal" if model == "skips" else None,
    )
    prior = NormalPrior()
    if model == "unit-norm":
        # A unit is as steep, and its kink as near, as a free one's, whose incoming weights have a norm of about the
        # root of their number: so the constraint takes a freedom away, and does not change what functions are likely.
        norm = math.sqrt(data.in_dim)
        prior = NormalPrior((1.0, norm), (1 / norm, 1.0))
    stated = BayesianNetwork(
        network,
        Categorical() if data.task == "classification" else Gaussian(noise_sd=None),
        prior,
        Parametrisation(  # `unit_vector` has no seam: samplers and Gaussians both take it well
            weights="unit_vector" if model == "unit-norm" else "free",
            biases="ordered" if model == "ordered" else "free",
        ),
    )
    return stated.condition(data.x, data.y, name=f"remedies-{problem}-{model}")
