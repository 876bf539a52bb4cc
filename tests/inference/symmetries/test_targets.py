"""`find_symmetry` on targets: NumPyro models of a user's and of the house, rotations among their symmetries."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import logsumexp

import onebasin as ob

Y = np.concatenate([np.linspace(-3, -1, 15), np.linspace(2, 4, 10)])


def mixture(y):
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.ones(3)))
    mu = numpyro.sample("mu", dist.Normal(0, 5).expand([3]).to_event(1))
    parts = dist.Normal(mu[None], 1.0).log_prob(jnp.asarray(y)[:, None])
    numpyro.factor("y", logsumexp(jnp.log(weight)[None] + parts, axis=1).sum())


def equal_columns(y):
    b = numpyro.sample("b", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("L", dist.LKJCholesky(3, 1.0))
    numpyro.sample("y", dist.Normal(b.sum(), 1.0), obs=y)


@pytest.fixture(scope="module")
def target():
    return ob.numpyro_model(mixture, {"y": Y})


def test_a_users_numpyro_model_is_searched(target):
    found = ob.find_symmetry(target, seconds=60)
    assert found.words == ("weight,mu",)
    assert found.symmetry == (ob.Exchangeable({"weight": 0, "mu": 0}),)
    assert found.open == ()


def test_a_ridge_is_no_live_symmetry_since_the_maximum_is_unchanged():
    found = ob.find_symmetry(ob.numpyro_model(equal_columns, {"y": Y + 1}), seconds=60)
    assert found.symmetry == ()
    assert {(b.title, b.status) for b in found.blocks} == {("b", "harmless")}
    assert "leaves the maximum of the density unchanged" in found.blocks[0].evidence[-1]


def test_a_networks_units_are_found_as_it_declares_them():
    rng = np.random.default_rng(1)
    model = ob.networks.BayesianNetwork(ob.networks.Network(2, (3,), 1, "tanh"))
    network = model.condition(rng.normal(size=(12, 2)), rng.normal(size=12))
    found = ob.find_symmetry(network, seconds=60)
    assert [block.moved for block in found.symmetry] == [block.moved for block in network.symmetry]
    assert all(set(block.flipped) == set(block.axes) for block in found.symmetry)


LOAD = np.array([[0.9, 0.0], [0.8, 0.2], [0.0, 0.7], [0.1, 0.8]])
RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(12, 2)) @ LOAD.T + 0.3 * RNG.normal(size=(12, 4))


def factors(y):
    scores = numpyro.sample("scores", dist.Normal(0, 1).expand([len(y), 2]).to_event(2))
    load = numpyro.sample("load", dist.Normal(0, 1).expand([4, 2]).to_event(2))
    numpyro.deterministic("covariance", load @ load.T)
    numpyro.sample("y", dist.Normal(scores @ jnp.swapaxes(load, 0, 1), 0.3).to_event(2), obs=y)


def rotated(symmetry=()):
    """Factors with a normal prior; those of `known.py` have a Laplace prior, which prefers some rotations."""
    return ob.numpyro_model(factors, {"y": DATA}, symmetry=symmetry)


def test_a_declared_rotation_is_verified_on_the_density():
    found = ob.check_symmetry(rotated(symmetry="@load:1,scores:1"))
    assert max(found.differences) < 1e-9
    assert found.evidence.left_behind == ()  # what no rotation changes
    with pytest.raises(ob.OnebasinError, match="moving load as declared changes the log density"):
        ob.check_symmetry(rotated(symmetry="@load:1"))


def test_rotations_are_found_with_loadings_first():
    (block,) = ob.find_symmetry(rotated(), seconds=100).blocks
    assert (block.word, block.status) == ("@load:1,scores:1", "live")
    assert "by random orthogonal matrices leaves the log density unchanged" in block.evidence[-1]
