"""Networks with two to four parameters (one has seven), each with the grid on which its posterior is known.

| weights, biases   | known noise          | inferred noise | predicted noise | classes     |
| ----------------- | -------------------- | -------------- | --------------- | ----------- |
| free              | 1-1-1: 2; 1-2-sum: 2; 2-1-1: 3 | 1-1-1: 3 | 1-1-1: 3  | 1-1-2: 3    |
| unit norm         | 2-1-1: 2             | 2-1-1: 3       | 2-1-1: 3        | 2-1-2: 3    |
| orthogonal skips  | 1-1-1: 2             | 1-1-1: 3       | 1-1-1: 3        | 1-1-2: 3    |
| ordered           | 1-2-sum: 4           | 5              | 10              | 10          |
| unit norm, ordered | 2-2-1: 7, of which 3 in closed form | 8 | 10 | 10 |

The table has sizes with numbers of parameters. Unit norms are sampled in three charts, `givens`, `givens_seamless` and
`unit_vector`, which have the same posterior of the weights. Ordered biases need two units, each with a weight and a
bias. If the output is the plain sum of units, there are four parameters. Output weights add more; likelihoods with
several outputs, and unit-norm weights, need them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onebasin.models import NetworkTarget
from onebasin.networks import BayesianNetwork, Categorical, Gaussian, Network, Parametrisation

from . import plain
from .case import Case
from .quadrature import Axis, Values, axis

UNIT_CHARTS = ("givens", "givens_seamless", "unit_vector")
WEIGHT = axis(-6, 6, 12, order=10)
SIGMA = Axis((0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6))
LIKELIHOODS = {
    "known": (Gaussian(noise_sd=0.5), 1),
    "inferred": (Gaussian(), 1),
    "predicted": (Gaussian(noise_sd="predicted"), 1),
    "classes": (Categorical(), 2),
}
"""Likelihood and number of outputs, by the word in the name of a case."""
ERRORS = np.array([0.31, -0.52, 0.13, 0.44, -0.29, -0.61, 0.57, -0.08])
LINE = np.array([-1.6, -0.8, -0.3, 0.4, 0.7, 0.9, 1.2, 1.7])[:, None]
ANGLES = np.array([0.1, 0.6, 1.1, 1.7, -0.4, 2.9, -2.0, -1.1])
PLANE = np.array([1.2, 0.9, 1.5, 0.7, 1.1, 0.8, 1.3, 1.0])[:, None] * np.stack(
    [np.cos(ANGLES), np.sin(ANGLES)], axis=1
)
DIRECTION = np.array([1.0, 1.0]) / math.sqrt(2)
NEW = np.array([[0.8, 0.4]])


def _case(
    name: str, model: BayesianNetwork, x: np.ndarray, y: np.ndarray, new: np.ndarray, **grid: Any
) -> Case:
    """Return the case of a network; predictions are compared at the input `new` (1, in)."""
    net, norms = model.network, model.parametrisation.unit_norm

    def target(chart: str) -> NetworkTarget:
        ways = replace(model.parametrisation, weights=chart)
        conditioned = replace(model, parametrisation=ways).condition(x, y, name=f"exact-{name}")
        return conditioned

    def predicted(values: Values) -> dict[str, np.ndarray]:
        found = plain.predictions(model, values, new)
        return {f"{word} at new x": value[:, 0] for word, value in found.items()}

    weights = sum(math.prod(shape) for shape in net.shapes.values())
    usual: dict[str, Any] = {
        "log_density": lambda values: plain.log_joint(model, values, x, y),
        "predicted": predicted,
        "compared": (*net.shapes, *(("sigma",) if model.infers_noise else ())),
    }
    return Case(
        name=name,
        target=target,
        charts=UNIT_CHARTS if norms else ("free",),
        size=weights + model.infers_noise - net.hidden[0] * norms,
        **(usual | grid),
    )


def _network(
    likelihood: str, in_dim: int, ways: tuple[str, str] = ("free", "free"), **more: Any
) -> BayesianNetwork:
    noise, out_dim = LIKELIHOODS[likelihood]
    hidden = more.pop("hidden", (1,))
    net = Network(in_dim, hidden, out_dim, **{"biases": False, **more})
    return BayesianNetwork(net, noise, parametrisation=Parametrisation(*ways))


def _data(likelihood: str, mean: np.ndarray) -> np.ndarray:
    """Draw targets around a mean, or classes from it."""
    if likelihood == "classes":
        return (mean + ERRORS > 0.8).astype(int)
    return (mean + 0.5 * ERRORS / ERRORS.std())[:, None]


def _last_layer(model: BayesianNetwork, numbers: tuple[np.ndarray, ...]) -> Values:
    """Return the weights of the last layer, and the noise if it is inferred, from coordinates."""
    noise = {"sigma": numbers[-1]} if model.infers_noise else {}
    weights = np.stack(numbers[: len(numbers) - model.infers_noise], axis=1)
    return {"W2": weights[:, None, :], **noise}


def _last_axes(model: BayesianNetwork) -> tuple[Axis, ...]:
    outputs = model.network.widths[-1]
    return (WEIGHT,) * outputs + ((SIGMA,) if model.infers_noise else ())


def _one_input(likelihood: str, skip: str | None = None) -> Case:
    model = _network(likelihood, 1, skip=skip)

    def place(weight: np.ndarray, *numbers: np.ndarray) -> tuple[Values, np.ndarray]:
        values = {"W1": weight[:, None, None], **_last_layer(model, numbers)}
        return values, np.zeros(len(weight))

    teacher = 1.2 * np.maximum(LINE[:, 0], 0)
    axes = (WEIGHT, *_last_axes(model))
    if skip:  # The activation has the argument x (O + W1), so 0 is an edge too.
        kink = -float(model.network.skip_matrices()[0][0, 0])
        axes = (axis(-6, 6, 12, kinks=[kink], order=10), *axes[1:])
        teacher = teacher / 2 + 0.8 * LINE[:, 0]
    return _case(
        name=f"{'skip' if skip else 'free'}-{likelihood}",
        model=model,
        x=LINE,
        y=_data(likelihood, teacher),
        new=np.array([[1.0]]),
        place=place,
        axes=axes,
        labels=("W1", "W2[0]" if len(axes) > 2 and likelihood != "inferred" else "W2"),
        shown=lambda v: (v["W1"][:, 0, 0], v["W2"][:, 0, 0]),
    )


def plane_data(likelihood: str) -> np.ndarray:
    """Return the targets of the teacher 1.5 relu(x . d), where d is the diagonal unit vector of the first quadrant."""
    return _data(likelihood, 1.5 * np.maximum(PLANE @ DIRECTION, 0))


def _kink_angles() -> np.ndarray:
    """Return the angles of unit vectors in the plane that are orthogonal to an input."""
    at = np.concatenate([ANGLES + math.pi / 2, ANGLES - math.pi / 2])
    return (at + math.pi) % (2 * math.pi) - math.pi


ANGLE = axis(-math.pi, math.pi, 12, kinks=_kink_angles(), order=6)


def on_circle(*angles: np.ndarray) -> np.ndarray:
    """Return the unit columns (point, 2, hidden) with these angles."""
    return np.stack([np.stack([np.cos(t), np.sin(t)], axis=1) for t in angles], axis=2)


def angle(values: Values, unit: int = 0) -> np.ndarray:
    """Return the longitude of a unit's incoming weights."""
    return np.arctan2(values["W1"][:, 1, unit], values["W1"][:, 0, unit])


def _unit_norm(likelihood: str) -> Case:
    model = _network(likelihood, 2, ("givens", "free"))

    def place(longitude: np.ndarray, *numbers: np.ndarray) -> tuple[Values, np.ndarray]:
        values = {"W1": on_circle(longitude), **_last_layer(model, numbers)}
        return values, np.zeros(len(longitude))

    axes = (ANGLE, *_last_axes(model))
    return _case(
        name=f"unit-{likelihood}",
        model=model,
        x=PLANE,
        y=plane_data(likelihood),
        new=NEW,
        place=place,
        axes=axes,
        labels=("longitude", "W2[0]" if len(axes) > 2 and likelihood != "inferred" else "W2"),
        shown=lambda v: (angle(v), v["W2"][:, 0, 0]),
    )


def _hyperbola() -> Case:
    """Return 2-1-1 with free weights and the data of `unit-known`, in radius and longitude of incoming weights."""

    def place(
        longitude: np.ndarray, last: np.ndarray, radius: np.ndarray
    ) -> tuple[Values, np.ndarray]:
        incoming = on_circle(longitude) * radius[:, None, None]
        return {"W1": incoming, "W2": last[:, None, None]}, np.log(radius)

    return _case(
        name="free-plane",
        model=_network("known", 2),
        x=PLANE,
        y=plane_data("known"),
        new=NEW,
        place=place,
        axes=(ANGLE, WEIGHT, axis(0, 7, 7)),
        labels=("longitude", "W2"),
        shown=lambda v: (angle(v), v["W2"][:, 0, 0]),
    )


def _two_units() -> Case:
    """Return the case of f(x) = relu(w1 x) + relu(w2 x), whose two units are interchangeable."""
    streams = [np.random.default_rng(one) for one in np.random.SeedSequence(0).spawn(4)[2:]]
    x, error = (stream.standard_normal((20, 1)) for stream in streams)
    model = BayesianNetwork(
        Network(1, (2,), 1, biases=False, readout="sum"), Gaussian(noise_sd=1.0)
    )
    return _case(
        name="free-two-units",
        model=model,
        x=x,
        y=0.5 * np.abs(x) + error,
        new=np.array([[1.0]]),
        place=lambda a, b: ({"W1": np.stack([a, b], 1)[:, None, :]}, np.zeros(len(a))),
        axes=(WEIGHT, WEIGHT),
        labels=("W1[0, 0]", "W1[0, 1]"),
        shown=lambda v: (v["W1"][:, 0, 0], v["W1"][:, 0, 1]),
    )


def _ordered() -> Case:
    """Return the case of f(x) = tanh(w1 x + b1) + tanh(w2 x + b2), b1 < b2, with the coordinates b1 and b2 - b1."""
    model = _network(
        "known", 1, ("free", "ordered"), hidden=(2,), activation="tanh", biases=True, readout="sum"
    )

    def place(
        low: np.ndarray, gap: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[Values, np.ndarray]:
        weights = np.stack([first, second], 1)[:, None, :]
        return {"W1": weights, "b1": np.stack([low, low + gap], 1)}, np.zeros(len(low))

    weight = axis(-5.5, 5.5, 6)
    return _case(
        name="ordered-known",
        model=model,
        x=LINE,
        y=_data("known", np.tanh(1.5 * LINE[:, 0] - 0.6) + np.tanh(LINE[:, 0] + 0.6)),
        new=np.array([[1.0]]),
        place=place,
        axes=(axis(-4, 3, 3, order=10), axis(0, 5, 2, order=10), weight, weight),
        labels=("b1[0]", "b1[1] - b1[0]"),
        shown=lambda v: (v["b1"][:, 0], v["b1"][:, 1] - v["b1"][:, 0]),
    )


def _unit_norm_ordered() -> Case:
    """Return 2-2-1 with unit norms and ordered biases; the last layer is integrated in closed form."""
    model = _network("known", 2, ("givens", "ordered"), hidden=(2,), biases=True)
    y = plane_data("known")

    def place(
        low: np.ndarray, gap: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[Values, np.ndarray]:
        biases = np.stack([low, low + gap], 1)
        return {"W1": on_circle(first, second), "b1": biases}, np.zeros(len(low))

    def closed(values: Values) -> np.ndarray:
        hidden = np.einsum("oi,pih->poh", PLANE, values["W1"]) + values["b1"][:, None, :]
        ones = np.ones((*hidden.shape[:2], 1))
        features = np.concatenate([np.maximum(hidden, 0), ones], axis=2)
        evidence = plain.log_evidence_of_last_layer(features, y[:, 0], 0.5)
        return plain.log_prior(model, values) + evidence

    around = axis(-math.pi, math.pi, 12, order=4)
    return _case(
        name="unit-ordered-known",
        model=model,
        x=PLANE,
        y=y,
        new=NEW,
        place=place,
        axes=(axis(-5, 4, 8, order=4), axis(0, 6, 6, order=4), around, around),
        labels=("b1[0]", "b1[1] - b1[0]"),
        shown=lambda v: (v["b1"][:, 0], v["b1"][:, 1] - v["b1"][:, 0]),
        log_density=closed,
        predicted=lambda values: {},
        compared=("W1", "b1"),
    )


MAKERS: dict[str, Callable[[], Case]] = {
    "free-two-units": _two_units,
    "free-plane": _hyperbola,
    **{f"free-{word}": lambda word=word: _one_input(word) for word in LIKELIHOODS},
    **{f"unit-{word}": lambda word=word: _unit_norm(word) for word in LIKELIHOODS},
    **{f"skip-{word}": lambda word=word: _one_input(word, "orthogonal") for word in LIKELIHOODS},
    "ordered-known": _ordered,
    "unit-ordered-known": _unit_norm_ordered,
}
