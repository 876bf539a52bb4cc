"""Parameters declared one by one: what exchanges them is found and said, and nothing else is called an exchange."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import onebasin as ob
from onebasin.inference.symmetries.separate import families

from ...each import each

Y = np.array([-2.1, -1.8, -2.4, 2.0, 2.3, 1.7, 2.2])


@pytest.fixture(autouse=True)
def broadcasting():
    """Models as people write them, which broadcast."""
    with jax.numpy_rank_promotion("allow"):
        yield


def mixed(means, sds, log_weights):
    parts = dist.Normal(jnp.stack(means), jnp.stack(sds)).log_prob(Y[:, None])
    numpyro.factor("y", jax.nn.logsumexp(log_weights + parts, axis=1).sum())


def two(breaking: float = 0.0):
    def model():
        mu1 = numpyro.sample("mu1", dist.Normal(breaking, 5))
        mu2 = numpyro.sample("mu2", dist.Normal(0, 5))
        s1 = numpyro.sample("s1", dist.HalfNormal(2))
        s2 = numpyro.sample("s2", dist.HalfNormal(2))
        theta = numpyro.sample("theta", dist.Uniform(0, 1))
        mixed([mu1, mu2], [s1, s2], jnp.log(jnp.stack([theta, 1 - theta])))

    return model


def three():
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.ones(3)))
    means = [numpyro.sample(f"mu_{letter}", dist.Normal(0, 5)) for letter in "abc"]
    mixed(means, [jnp.array(1.0)] * 3, jnp.log(weight))


def diagnostic():
    """Two tests of a disease that nobody has seen: whoever is ill for one labelling is healthy for the other."""
    names = ("prevalence", "sens", "spec")
    ill, found, cleared = (numpyro.sample(name, dist.Uniform(0, 1)) for name in names)
    both = ill * jnp.stack([found**2, found * (1 - found), (1 - found) ** 2])
    none = (1 - ill) * jnp.stack([(1 - cleared) ** 2, cleared * (1 - cleared), cleared**2])
    numpyro.factor("y", (jnp.array([40.0, 30.0, 25.0]) * jnp.log(both + none)).sum())


def chain_of_two():
    """A hidden chain whose rows are declared by the probability of the second state."""
    means = numpyro.sample("means", dist.Normal(0, 5).expand([2]))
    rows = [numpyro.sample(name, dist.Uniform(0, 1)) for name in ("to", "stay")]
    move = jnp.array([[1 - row, row] for row in rows])
    heights = dist.Normal(means, 1).log_prob(Y[0])
    for y in Y[1:]:
        steps = jax.nn.logsumexp(heights[:, None] + jnp.log(move), axis=0)
        heights = steps + dist.Normal(means, 1).log_prob(y)
    numpyro.factor("y", jax.nn.logsumexp(heights))


def apart():
    for place in (1, 2):
        numpyro.sample(f"effect{place}", dist.Normal(0, 1))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(slope, 1), obs=Y)


def found_in(model):
    return ob.find_symmetry(ob.numpyro_model(model, {}), seed=1)


@pytest.mark.finds_symmetry
@each(
    ("model", "word", "parts"),
    [
        (two(), "mu1~mu2,s1~s2,1-theta", 2),
        (three, "mu_a~mu_b~mu_c,weight", 3),
        (diagnostic, "sens~1-spec,1-prevalence", 2),
        (chain_of_two, "to~1-stay,means", 2),
    ],
)
def test_exchange_of_separate_parameters_is_found_with_what_moves_along(model, word, parts):
    found = found_in(model)
    assert found.words == (word,)
    assert not found.open
    (block,) = found.blocks
    assert (block.parts, block.status) == (parts, "live")
    assert "leaves the log density unchanged" in block.evidence[0]
    assert "~" not in "".join(block.evidence).split(":0")[0].rsplit(" ", 1)[-1]


@pytest.mark.finds_symmetry
def test_what_a_prior_breaks_is_no_exchange_and_what_nothing_sets_against_is_harmless():
    assert not [b for b in found_in(two(1.0)).blocks if b.status != "near"]
    assert {block.status for block in found_in(apart).blocks} == {"harmless"}


def test_families_are_of_one_shape_and_differ_in_what_counts_them():
    names = ("mu10", "mu2", "b_x_raw", "b_y_raw", "beta", "L1")
    assert families({**dict.fromkeys(names, ()), "mu3": (4,)}) == {
        "(mu2, mu10)": ("mu2", "mu10"),
        "(b_x_raw, b_y_raw)": ("b_x_raw", "b_y_raw"),
    }
