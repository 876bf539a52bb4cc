"""NUTS as the truth: whether its engines agree."""

import numpy as np
import pytest

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.inference.runs.posterior import build
from onebasin.models import BayesianNetwork, Gaussian, Network
from onebasin.studies.shared.against_nuts import agree


@pytest.fixture
def x(rng):
    return rng.normal(size=(30, 2))


def posterior(rng, x, *, shift=0.0, draws=500):
    """A network whose output is its bias alone: f(x) ~ N(shift, 1) at every point."""
    model = BayesianNetwork(Network(2, (2,)), Gaussian(noise_sd=None))
    target = model.condition(x, np.zeros(len(x)), name="constant")
    shape = (4, draws)
    values = {name: np.zeros((*shape, *size)) for name, size in model.network.shapes.items()}
    values["b2"] = shift + rng.normal(size=(*shape, 1))
    values["sigma"] = np.full(shape, 0.5) + 1e-3 * rng.normal(size=shape)
    return build(target, values, {"lp": rng.normal(size=shape)}, {}), model


def test_equal_posteriors_agree_and_shifted_ones_do_not(rng, x):
    y = np.zeros((len(x), 1))
    a, b = (predict_held_out(*posterior(rng, x), x, y) for _ in range(2))
    same = agree(a, b)
    assert same["largest"] < 5
    assert same["beyond"] == 0
    assert same["num_quantities"] == 31
    assert same["rhat"] < 1.05
    # 0.5 is about sqrt(2000 / 2) * 0.5 = 16 Monte Carlo errors, in every point but not in sigma.
    moved = agree(a, predict_held_out(*posterior(rng, x, shift=0.5), x, y))
    assert 10 < moved["largest"] < 22
    assert moved["beyond"] == 30
    assert moved["where"].startswith("f[")
