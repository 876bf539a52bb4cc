"""The networks: the papers' teacher, Boston Housing, digits, and a small one of tanh units."""

from dataclasses import replace
from functools import cache

import numpy as np

from onebasin.models import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NetworkTarget,
    NormalPrior,
)
from onebasin.models.data import Split

from .images import Images, image_split
from .problem import ADAPTED, RECIPE, Problem, class_probabilities, outputs
from .programs import read_data
from .relu_networks import TEACHER_UNITS, boston_split, relu_network, teacher_data

SEED = 0  # The seed of the data.
POINTS, IMAGES = 10, 20  # Held-out inputs at which predictions are invariants.
_DIGITS = Images("digits", side=8, train=200)
_PAPER = "Pourzanjani, Jiang and Petzold 2017, Improving the identifiability of neural networks for Bayesian inference"


def problems() -> tuple[Problem, ...]:
    """All of them."""
    # Biases in order leave one of two equal copies; the prior is otherwise the same.
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
    assert held_out is not None, "the teacher's data have such points"
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
