"""Rotations of a NumPyro model are verified and found on its log density.

`known.py` has factors with a Laplace prior, which prefers some rotations, and the orders with signs that are left.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob

LOAD = np.array([[0.9, 0.0], [0.8, 0.2], [0.0, 0.7], [0.1, 0.8]])
RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(12, 2)) @ LOAD.T + 0.3 * RNG.normal(size=(12, 4))


def factors(y):
    scores = numpyro.sample("scores", dist.Normal(0, 1).expand([len(y), 2]).to_event(2))
    load = numpyro.sample("load", dist.Normal(0, 1).expand([4, 2]).to_event(2))
    numpyro.deterministic("covariance", load @ load.T)
    numpyro.sample("y", dist.Normal(scores @ jnp.swapaxes(load, 0, 1), 0.3).to_event(2), obs=y)


def target(symmetry=()):
    return ob.numpyro_model(factors, {"y": DATA}, symmetry=symmetry)


def test_a_declared_rotation_is_verified_on_the_density():
    found = ob.check_symmetry(target(symmetry="@load:1,scores:1"))
    assert max(found.differences) < 1e-9
    assert found.evidence.left_behind == ()  # what no rotation changes
    with pytest.raises(ob.OnebasinError, match="moving load as declared changes the log density"):
        ob.check_symmetry(target(symmetry="@load:1"))


def test_rotations_are_found_with_loadings_first():
    (block,) = ob.find_symmetry(target(), seconds=100).blocks
    assert (block.word, block.status) == ("@load:1,scores:1", "live")
    assert "by random orthogonal matrices leaves the log density unchanged" in block.evidence[-1]
