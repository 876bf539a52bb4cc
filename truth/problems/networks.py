"""Network problems with their data: the paper's teacher, Boston Housing, digits, and a small network of tanh units.

`classifier` is the network for images in several studies. `relu_network` is the model of Pourzanjani, Jiang and
Petzold 2017: one hidden layer of ReLU units, N(0, 1) priors as in section 4.1, and inferred noise with a half-normal
prior. The paper uses `free` and `givens` weights and `ordered` biases. Two more charts of unit-norm weights, without
the discontinuity of the Givens angle, are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

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
from onebasin.models.data import Dataset, Split, StandardisedSplit, own_split, split, standardise
from onebasin.models.load_data import load_data

from .problem import ADAPTED, RECIPE, Problem, class_probabilities, outputs
from .programs import read_data

NUM_CLASSES = 10


@dataclass(frozen=True)
class Images:
    """Images to classify: the data set `data`, averaged down to `side` x `side` pixels.

    `train` is the number of training images; None uses the training part of the data set.
    """

    data: str
    side: int
    train: int | None


def classifier(images: Images, hidden: int) -> BayesianNetwork:
    """Make the classifier: one hidden layer of ReLU units, N(0, 1) priors."""
    return BayesianNetwork(Network(images.side**2, (hidden,), NUM_CLASSES, "relu"), Categorical())


@lru_cache(maxsize=2)
def image_split(images: Images, seed: int) -> Split:
    """Return training and test images, with pixels from 0 to 1."""
    data = load_data(images.data)
    if images.train is None:
        parts = own_split(data)
    else:
        parts = split(data, test_fraction=1 - images.train / data.num_obs, seed=seed)
    return Split(train=_shrunk(parts.train, images.side), test=_shrunk(parts.test, images.side))


def _shrunk(data: Dataset, side: int) -> Dataset:
    now = round(data.in_dim**0.5)
    blocks = data.x.reshape(-1, side, now // side, side, now // side).mean((2, 4))
    names = tuple(f"pixel_{row}_{column}" for row in range(side) for column in range(side))
    top = 16.0 if data.name == "digits" else 1.0
    return replace(data, x=blocks.reshape(-1, side**2) / top, feature_names=names, held_out=None)


_CONSTRAINED = (("free", "ordered"), ("givens", "ordered"))
_FREE = (("free",), ("givens",))
_CHARTS = (("givens_seamless",), ("unit_vector",))
PARAMETRISATIONS: Mapping[str, Parametrisation] = {
    p.label: p for p in (Parametrisation(*words) for words in (*_FREE, *_CONSTRAINED, *_CHARTS))
}
TEACHER_UNITS = 2  # Number of hidden units of the network fitted to the teacher's data.
PAPERS = ("free", "givens", "ordered", "givens+ordered")
"""Labels of the paper's parametrisations: each constraint separately, and both together."""


@cache
def teacher_data(seed: int, noise_sd: float = 1.0) -> Dataset:
    """Load the teacher's data: 100 training points, 100 held-out points, and the true function."""
    return load_data("relu-teacher", seed=seed, noise_sd=noise_sd)


@lru_cache(maxsize=4)
def boston_split(seed: int, number: int) -> StandardisedSplit:
    """Split Boston Housing 80/20, and standardise with the moments of the training part."""
    return standardise(split(load_data("boston"), test_fraction=0.2, seed=seed + number - 1))


def relu_network(
    data: Dataset, hidden: int, parametrisation: str, prior: NormalPrior | None = None
) -> BayesianNetwork:
    """Make a network for the dimensions of the data; `parametrisation` is a label, and the default prior is N(0, 1)."""
    return BayesianNetwork(
        network=Network(data.in_dim, (hidden,), data.out_dim, "relu"),
        likelihood=Gaussian(noise_sd=None),
        prior=prior or NormalPrior(),
        parametrisation=PARAMETRISATIONS[parametrisation],
    )


SEED = 0  # Seed of the data.
POINTS, IMAGES = 10, 20  # Numbers of held-out inputs whose predictions are invariants.
_DIGITS = Images("digits", side=8, train=200)
_PAPER = "Pourzanjani, Jiang and Petzold 2017, Improving the identifiability of neural networks for Bayesian inference"


def problems() -> tuple[Problem, ...]:
    """Return all network problems."""
    # Ordered biases keep one of two equal copies; otherwise the prior is the same.
    free = _relu_teacher("free", "as they are")
    givens = _relu_teacher("givens", "with incoming weights of norm 1, as an angle")
    ordered = _relu_teacher("ordered", "with hidden biases in increasing order", free)
    both = _relu_teacher(
        "givens+ordered",
        "with incoming weights of norm 1 and hidden biases in increasing order",
        givens,
    )
    return (free, givens, ordered, both, _TANH, _BOSTON, _IMAGES)


def _relu_teacher(label: str, words: str, quotient_of: Problem | None = None) -> Problem:
    name = f"relu-teacher-{label}"

    def target() -> NetworkTarget:
        data = teacher_data(SEED)
        return relu_network(data, TEACHER_UNITS, label).condition(data.x, data.y, name=name)

    return Problem(
        name,
        f"Two ReLU units on 100 points of a teacher like them; weights and biases {words}",
        target,
        invariants={"f": outputs(_teacher_points, "relu")},
        settings=replace(RECIPE if label == "free" else ADAPTED, target_acceptance=0.95),
        references=(f"{_PAPER}, section 4.1",),
        keywords=("neural network", "constraint" if quotient_of else "permutation symmetry"),
        quotient_of=quotient_of,
    )


def _teacher_points() -> np.ndarray:
    held_out = teacher_data(SEED).held_out
    assert held_out is not None, "the teacher's data have held-out points"
    return held_out.x[:POINTS]


def _tanh() -> NetworkTarget:
    data = read_data("tanh-teacher")
    model = BayesianNetwork(
        network=Network(1, (3,), 1, "tanh"),
        likelihood=Gaussian(noise_sd=None, noise_scale=0.5),
        prior=NormalPrior(weight_scale=(2.0, 1.0), bias_scale=(3.0, 1.0)),
    )
    return model.condition(np.array(data["x"]), np.array(data["y"]), name="tanh-teacher")


_TANH = Problem(
    "tanh-teacher",
    "Three tanh units on 80 points of a network like them: 48 labellings, of places and signs",
    _tanh,
    invariants={"f": outputs(lambda: np.linspace(-3.0, 3.0, POINTS)[:, None], "tanh")},
    settings=replace(RECIPE, target_acceptance=0.9),
    keywords=("neural network", "permutation symmetry", "sign symmetry"),
)


def _boston() -> NetworkTarget:
    train = boston_split(SEED, 1).train
    network = Network(train.in_dim, (10,), activation="tanh")
    by_fan_in = NormalPrior(weight_scale=(train.in_dim**-0.5, 10**-0.5))
    model = BayesianNetwork(network, Gaussian(), by_fan_in)
    return model.condition(train.x, train.y, name="boston-13-10-1")


_BOSTON = Problem(
    "boston-13-10-1",
    "Ten tanh units on Boston Housing, the training part of split 1; priors by fan-in",
    _boston,
    invariants={"f": outputs(lambda: boston_split(SEED, 1).test.x[:POINTS], "tanh")},
    settings=replace(ADAPTED, init_radius=1.0),
    references=(f"{_PAPER}, section 4.2 (there: 50 ReLU units)",),
    keywords=("neural network", "permutation symmetry", "sign symmetry"),
)


@cache
def _digits() -> Split:
    return image_split(_DIGITS, SEED)


def _classifier() -> NetworkTarget:
    train = _digits().train
    network = Network(train.in_dim, (8,), 10, "tanh")
    model = BayesianNetwork(network, Categorical(), NormalPrior(weight_scale=(0.25, 1.0)))
    return model.condition(train.x, train.y, name="digits-64-8-10")


_IMAGES = Problem(
    "digits-64-8-10",
    f"Eight tanh units that tell {_DIGITS.train} handwritten digits of 8 x 8 pixels apart",
    _classifier,
    invariants={
        "p": class_probabilities(
            lambda: _digits().test.x[:IMAGES], lambda: _digits().test.y[:IMAGES], "tanh"
        )
    },
    settings=replace(ADAPTED, init_radius=1.0),
    keywords=("neural network", "permutation symmetry", "sign symmetry", "classification"),
)
