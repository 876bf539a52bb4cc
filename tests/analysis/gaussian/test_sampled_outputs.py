"""Layer-by-layer draws of outputs: their distribution at each input, limits, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

from onebasin.analysis.gaussian.distillation import sample_outputs
from onebasin.models import Network

pytestmark = pytest.mark.full

NETWORKS = {
    "tanh": Network(3, (4,), 2, "tanh"),
    "deep": Network(3, (4, 3), 2, "relu"),
    "skips": Network(3, (4,), 2, "relu", skip="orthogonal"),
    "sum": Network(3, (4,), 1, "relu", readout="sum"),
    "no biases": Network(3, (4,), 2, "tanh", biases=False),
}


def gaussian(network: Network, seed: int, sd: float | None = None):
    rng = np.random.default_rng(seed)
    mean = {name: jnp.asarray(rng.normal(size=s)) for name, s in network.shapes.items()}
    sds = {
        name: jnp.asarray(rng.uniform(0.2, 0.9, size=s) if sd is None else np.full(s, sd))
        for name, s in network.shapes.items()
    }
    return mean, sds


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_at_an_input_are_distributed_as_those_of_drawn_networks(name):
    network = NETWORKS[name]
    mean, sd = gaussian(network, 1)
    x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 3)))
    ours = np.asarray(sample_outputs(jax.random.key(3), network, mean, sd, x, 4000))
    keys = dict(zip(mean, jax.random.split(jax.random.key(4), len(mean)), strict=True))
    draws = {
        n: mean[n][None] + sd[n][None] * jax.random.normal(keys[n], (4000, *mean[n].shape))
        for n in mean
    }
    theirs = np.asarray(jax.vmap(lambda w: network.apply(w, x))(draws))
    assert ours.shape == theirs.shape
    for obs, out in np.ndindex(ours.shape[1:]):
        assert ks_2samp(ours[:, obs, out], theirs[:, obs, out]).pvalue > 1e-5


def test_gradients_are_finite_where_a_unit_sees_nothing():
    network = NETWORKS["no biases"]
    mean, sd = gaussian(network, 1)

    def total(sd: dict[str, jax.Array]) -> jax.Array:
        return sample_outputs(jax.random.key(0), network, mean, sd, jnp.zeros((2, 3)), 3).sum()

    slope = jax.grad(total)(sd)
    assert all(np.isfinite(value).all() for value in slope.values())


def test_each_input_has_draws_of_its_own():
    network = NETWORKS["tanh"]
    mean, sd = gaussian(network, 1)
    x = jnp.ones((2, 3))
    ours = np.asarray(sample_outputs(jax.random.key(0), network, mean, sd, x, 2000))
    assert abs(np.corrcoef(ours[:, 0, 0], ours[:, 1, 0])[0, 1]) < 5 / np.sqrt(2000)
