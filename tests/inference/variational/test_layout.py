"""The group acts on the unconstrained vector as the symmetry is declared, and leaves the log density alone."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy.integrate import dblquad

from onebasin.inference.variational.gaussians import layout_of
from onebasin.models import Target
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.models.symmetry.group import Group

from .problems import TARGETS, layout, two_modes


@pytest.mark.parametrize(
    "name", sorted(set(TARGETS) - {"one layer", "two layers", "sign flips", "two modes"})
)
def test_act_keeps_the_log_density(name):
    space = layout(name).density

    @jax.jit
    def both(vector: jax.Array, element: list) -> jax.Array:
        moved = layout(name).act(element, vector)
        parts = [space.log_prior, lambda v: jnp.sum(space.log_likelihood(v))]
        return jnp.stack([f(v) for f in parts for v in (vector, moved)])

    for seed in range(3):
        key = jax.random.key(seed)
        vector = jax.random.normal(key, (space.size,))
        found = np.asarray(both(vector, layout(name).random(key)))
        np.testing.assert_allclose(found[[1, 3]], found[[0, 2]], rtol=1e-10, atol=1e-10)


def test_elements_are_the_group_once_each():
    for name in TARGETS:
        group = layout(name)
        vector = jnp.arange(1.0, group.density.size + 1)
        moved = np.asarray(
            jax.jit(jax.vmap(group.act, in_axes=(0, None)))(group.elements(), vector)
        )
        order = round(np.exp(group.log_order))
        assert len(np.unique(moved, axis=0)) == len(moved) == order, name
        np.testing.assert_array_equal(moved[0], vector, err_msg=name)


def test_layout_has_the_order_of_the_symmetry():
    for name in ("one layer", "two layers", "sign flips", "classifier"):
        target = TARGETS[name]()
        blocks = tuple(b for b in target.symmetry if isinstance(b, Exchangeable))
        order = Group(blocks, target.model.network.shapes).log_order
        assert layout(name).log_order == pytest.approx(order), name


def test_softmax_chart_keeps_the_evidence():
    """The prior over both coordinates of a simplex of two weights has mass one."""

    def model() -> None:
        numpyro.sample("theta", dist.Dirichlet(jnp.array([2.0, 2.0])))

    target = Target("weights", numpyro_model=model, symmetry=(Exchangeable({"theta": 0}),))
    space = layout_of(target).density
    density = jax.jit(lambda a, b: jnp.exp(space.log_prior(jnp.stack([a, b]))))
    mass, error = dblquad(lambda a, b: float(density(a, b)), -12, 12, -12, 12, epsabs=1e-6)
    assert error < 1e-4
    assert mass == pytest.approx(1.0, abs=1e-4)


def test_layout_of_needs_a_symmetry_and_a_chart_that_keeps_parts_apart():
    """An ordered vector's coordinates are differences, which belong to two entries each."""

    def model() -> None:
        normal = dist.Normal(0.0, 1.0).expand([3]).to_event(1)
        ordered = dist.TransformedDistribution(normal, dist.transforms.OrderedTransform())
        numpyro.sample("mu", ordered)

    plain = Target("plain", numpyro_model=two_modes().numpyro_model)
    with pytest.raises(ValueError, match="declares no exchangeable components"):
        layout_of(plain)
    target = Target("ordered", numpyro_model=model, symmetry=(Exchangeable({"mu": 0}),))
    with pytest.raises(ValueError, match=r"does not exchange coordinates .*of mu"):
        layout_of(target)
