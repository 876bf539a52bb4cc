"""The model and the constraints that the experiments of Pourzanjani, Jiang and Petzold 2017 share.

One hidden layer of ReLU units, N(0, 1) priors as in the paper's section 4.1, and an inferred noise
under a half-normal prior. Beyond the paper's `free` and `givens` weights and `ordered` biases there
are two charts of unit-norm weights without the seam of the Givens angle. Their data are here too.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from onebasin.models import BayesianNetwork, Gaussian, Network, NormalPrior, Parametrisation
from onebasin.models.data import Dataset, StandardisedSplit, load_data, split, standardise

PARAMETRISATIONS: Mapping[str, Parametrisation] = MappingProxyType(
    {
        p.label: p
        for p in (
            Parametrisation("free", "free"),
            Parametrisation("givens", "free"),
            Parametrisation("free", "ordered"),
            Parametrisation("givens", "ordered"),
            Parametrisation("givens_seamless", "free"),
            Parametrisation("unit_vector", "free"),
        )
    }
)
TEACHER_UNITS = 2  # Hidden units of the network that is fitted to the teacher's data.
PAPERS = ("free", "givens", "ordered", "givens+ordered")
"""The paper's constraints, alone and together."""


@cache
def teacher_data(seed: int, noise_sd: float = 1.0) -> Dataset:
    """Load the teacher's data: 100 training points, 100 held out, and the true function."""
    return load_data("relu-teacher", seed=seed, noise_sd=noise_sd)


@lru_cache(maxsize=4)
def boston_split(seed: int, number: int) -> StandardisedSplit:
    """Split Boston Housing, 80 to 20, and standardise on the training part."""
    return standardise(split(load_data("boston"), test_fraction=0.2, seed=seed + number - 1))


def relu_network(
    data: Dataset, hidden: int, parametrisation: str, prior: NormalPrior | None = None
) -> BayesianNetwork:
    """State the model for data of these inputs and outputs, by the parametrisation's label; priors are N(0, 1)."""
    return BayesianNetwork(
        network=Network(data.in_dim, (hidden,), data.out_dim, "relu"),
        likelihood=Gaussian(noise_sd=None),
        prior=prior or NormalPrior(),
        parametrisation=PARAMETRISATIONS[parametrisation],
    )
