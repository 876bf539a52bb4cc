"""The problems: models whose parts have no order, with the symmetry that each declares."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Literal

import numpy as np

from onebasin.models import BayesianNetwork, Gaussian, Network, NormalPrior, Target

from . import label_switching_data as data
from . import programs
from .label_switching_data import Simulate, Simulated
from .problem import Stated


@dataclass(frozen=True, eq=False)
class LabelledProblem:
    """A model with its data and its symmetry."""

    label: str  # Its name on the command line and in tables.
    words: str  # What it is, for a reader.
    simulate: Simulate  # From a generator to data and truth.
    stated: Stated | None = None
    """The program, whose symmetry is declared; None for the network, which declares its own."""
    kind: Literal["apart", "overlap", "modes"] = "apart"
    """The components that made the data: apart, so that every labelling is a mode; overlapping; or with modes that no
    relabelling joins."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines that have it."""
        return ("stan",) if self.stated else ("numpyro", "stan")


_THREE_NORMALS = partial(
    data.mixture, num_obs=150, weight=(0.25, 0.45, 0.30), sigma=(0.7, 1.0, 0.8)
)

_ALL = (
    LabelledProblem(
        "mixture",
        "A mixture of three normals, apart from each other: weights, means and standard deviations "
        "move together (6 labellings).",
        partial(_THREE_NORMALS, mu=(-4.0, 0.0, 4.0)),
        programs.MIXTURE,
    ),
    LabelledProblem(
        "mixture-overlap",
        "The same mixture with components that overlap, so that no labelling is a mode of its own.",
        partial(_THREE_NORMALS, mu=(-1.2, 0.0, 1.2)),
        programs.MIXTURE,
        kind="overlap",
    ),
    LabelledProblem(
        "mixture-misfit",
        "Two components for three clusters: one has to cover two of them, and which ones makes modes that no "
        "relabelling joins. Chains that find different ones have really not converged.",
        partial(data.clusters, num_obs=150, num_components=2, centres=(-6.0, 0.0, 6.0)),
        programs.MIXTURE,
        kind="modes",
    ),
    LabelledProblem(
        "topics",
        "Latent Dirichlet allocation with two topics, summed over the words' topics: the documents' "
        "shares move along one axis, the topics' words along the other (2 labellings).",
        data.topics,
        programs.TOPICS,
    ),
    LabelledProblem(
        "factors",
        "Factor analysis with three factors, summed over the factors' scores: the columns of the loadings "
        "change places and signs (48 labellings). A Laplace prior on the loadings keeps other rotations out.",
        data.factors,
        programs.FACTORS,
    ),
    LabelledProblem(
        "hidden-markov",
        "A hidden Markov model with three states: rows and columns of the transition matrix move together with "
        "the emissions (6 labellings).",
        data.hidden_markov,
        programs.HIDDEN_MARKOV,
    ),
    LabelledProblem(
        "network",
        "A network of three tanh units on 80 points of a network like it: units change places, and a unit's "
        "weights change their signs together (48 labellings). The same model in both engines.",
        data.teacher,
    ),
)

PROBLEMS: Mapping[str, LabelledProblem] = MappingProxyType(
    {problem.label: problem for problem in _ALL}
)


@cache
def simulate(label: str, seed: int) -> Simulated:
    """Make a problem's data, from its own generator."""
    return PROBLEMS[label].simulate(np.random.default_rng([seed, *label.encode()]))


def condition(label: str, seed: int) -> Target:
    """Condition a problem's model on its data."""
    from onebasin import stan

    stated, made = PROBLEMS[label].stated, simulate(label, seed)
    name = f"label-switching-{label}"
    if stated is None:
        return BayesianNetwork(
            network=Network(1, (3,), 1, "tanh"),
            likelihood=Gaussian(noise_sd=None, noise_scale=0.5),
            prior=NormalPrior(weight_scale=(2.0, 1.0), bias_scale=(3.0, 1.0)),
        ).condition(made.data["x"], made.data["y"], name=name)
    return stan.stan_program(
        stated.program, made.data, symmetry=stated.symmetry, name=name, dims=stated.dims
    )
