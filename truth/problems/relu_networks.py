"""What the experiments of Pourzanjani, Jiang and Petzold 2017 share: the model and its constraints.

One hidden layer of ReLU units, N(0, 1) priors as in the paper's section 4.1, and an inferred noise
under a half-normal prior. Beyond the paper's `free` and `givens` weights and `ordered` biases there
are two charts of unit-norm weights without the seam of the Givens angle.
"""

from collections.abc import Mapping
from types import MappingProxyType

from onebasin.models import BayesianNetwork, Gaussian, Network, NormalPrior, Parametrisation
from onebasin.models.data import Dataset

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
PAPERS = ("free", "givens", "ordered", "givens+ordered")
"""The paper's constraints, alone and together."""
DEFINITION = (
    "Parametrisation",
    "`free`: weights and biases as they are. `givens`: every hidden unit's incoming weights have norm 1, as an "
    "angle. `ordered`: the hidden biases increase. `givens_seamless` and `unit_vector`: norm 1 in charts without "
    "the seam of the angle at ±π.",
)


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
