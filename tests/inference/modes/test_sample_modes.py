"""Modes that chains miss: found, told apart modulo symmetry, weighed; against weights that are known."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import onebasin as ob
from onebasin.models import Exchangeable, Target


@pytest.fixture(autouse=True, scope="module")
def _numpyros_own() -> Iterator[None]:
    """NumPyro's chart of rows of simplexes promotes ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


SHORT = {"starts": 12, "warmup": 300, "draws": 300}


def two_gaussians(size: int, shares: tuple[float, float], *, parts: bool = False) -> Target:
    """Gaussians of unlike spread, 19 sds of the wider one apart; `parts` puts an exchange of three parts beside."""
    means, sds = (jnp.zeros(size), jnp.full(size, 6.0)), (1.0, 0.4)

    def model() -> None:
        x = numpyro.sample("x", dist.Uniform(-50, 50).expand([size]).to_event(1))
        terms = [
            jnp.log(w) + dist.Normal(m, s).log_prob(x).sum()
            for w, m, s in zip(shares, means, sds, strict=True)
        ]
        numpyro.factor("density", jnp.logaddexp(*terms))
        if parts:
            mu = numpyro.sample("mu", dist.Normal(0, 20).expand([3]).to_event(1))
            spread = dist.MixtureSameFamily(dist.Categorical(jnp.ones(3) / 3), dist.Normal(mu, 1.0))
            numpyro.sample("y", spread, obs=jnp.repeat(jnp.array([-9.0, 0.0, 9.0]), 5))

    symmetry = (Exchangeable({"mu": 0}),) if parts else ()
    return Target("two", numpyro_model=model, symmetry=symmetry)


def topics(counts: np.ndarray) -> Target:
    """Documents over two topics, summed over the topic of each word: each document in turn may have one to itself."""
    documents, words = counts.shape

    def model() -> None:
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.ones((documents, 2))).to_event(1))
        phi = numpyro.sample("phi", dist.Dirichlet(jnp.ones((2, words))).to_event(1))
        numpyro.factor("words", jnp.sum(counts * jnp.log(theta @ phi)))

    return Target("topics", numpyro_model=model, symmetry=(Exchangeable({"theta": 1, "phi": 0}),))


TOPICS = topics(np.array([[100.0, 10, 10], [10, 101, 9], [9, 10, 103]]))


@pytest.mark.slow
def test_weights_are_those_of_the_density_and_copies_count_once():
    """Two unlike modes of 0.8 and 0.2, each with six copies; draws are of them as often as weights say."""
    target = two_gaussians(4, (0.8, 0.2), parts=True)
    found = ob.sample_modes(target, **{**SHORT, "starts": 20, "init_radius": 1.0}, seed=1)
    modes = found["modes"].to_dataset()
    assert (modes.attrs["known"], modes.sizes["mode"]) == (1, 2)
    assert modes.attrs["log_group_order"] == pytest.approx(np.log(6))
    assert modes["weight_low"][0] <= 0.8 <= modes["weight_high"][0]
    assert modes["weight_high"][0] - modes["weight_low"][0] < 0.1
    near = found["posterior"]["x"].mean(axis=-1) < 3
    assert float(near.mean()) == pytest.approx(float(modes["weight"][0]), abs=0.01)
    np.testing.assert_array_equal(found["sample_stats"]["mode"] == 0, near)
    judged = ob.diagnose(found)
    assert judged.verdict in ("usable", "aligned")
    assert "Chains settled in 2 different modes; their weights are 0." in judged.judgement.sentence
    assert "the draws are weighted by them" in judged.judgement.sentence


def mixture(y: np.ndarray, parts: int) -> Target:
    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 3).expand([parts]).to_event(1))
        theta = numpyro.sample("theta", dist.Dirichlet(jnp.full(parts, 2.0)))
        numpyro.sample(
            "y", dist.MixtureSameFamily(dist.Categorical(theta), dist.Normal(mu, 1.0)), obs=y
        )

    return Target("mixture", numpyro_model=model, symmetry=(Exchangeable({"mu": 0, "theta": 0}),))


@pytest.mark.slow
def test_parts_that_overlap_are_one_mode():
    y = np.random.default_rng(3).normal([-2.0, 0.0, 2.0], 1.0, size=(30, 3)).ravel()
    found = ob.sample_modes(mixture(y, 5), **SHORT, seed=2)
    assert found["modes"].sizes["mode"] == 1
    assert found["modes"]["weight"].item() == 1
    assert found["modes"].attrs["unseen"] == 0
    assert "All of 12 starts led to one mode." in ob.diagnose(found).judgement.sentence


@pytest.mark.slow
def test_evidence_of_one_dimension_is_that_of_quadrature():
    """A skewed variable with two modes: of each, and of both together, whether they are told apart or not."""

    def model() -> None:
        x = numpyro.sample("x", dist.Uniform(0, 100))
        parts = dist.Gamma(3, 1).log_prob(x), dist.Gamma(400, 10).log_prob(x)
        numpyro.factor("density", jnp.logaddexp(jnp.log(0.3) + parts[0], jnp.log(0.7) + parts[1]))

    how = {**SHORT, "init_radius": 4.0}
    found = ob.sample_modes(Target("line", numpyro_model=model), **how, seed=1)["modes"]
    grid = np.linspace(1e-6, 100, 400_001)
    heights = 0.3 * stats.gamma.pdf(grid, 3) + 0.7 * stats.gamma.pdf(grid, 400, scale=0.1)
    sides = [np.where(side, heights, 0) for side in (grid >= 25, grid < 25)]
    truth = np.log([np.trapezoid(side, grid) / 100 for side in sides])
    evidence, error = found["log_evidence"].values, found["log_evidence_error"].values
    assert (np.abs(evidence - truth) < 4 * error).all()
    assert (error < 0.1).all()
    gap = np.logaddexp.reduce(evidence) - np.logaddexp.reduce(truth)
    assert abs(gap) < 4 * error.max() < 0.4


@pytest.mark.slow
def test_modes_beyond_the_most_are_told_of_and_forbid_the_weights():
    found = ob.sample_modes(TOPICS, **SHORT, most=1, seed=1)
    assert found["modes"].attrs["not_sampled"] == 2
    judged = ob.diagnose(found)
    assert judged.verdict == "unusable"
    assert judged.causes == ("weights",)
    assert "2 more were met than sampled" in judged.judgement.sentence


def test_find_modes_counts_copies_as_one_optimum():
    y = np.repeat([-9.0, 0.0, 9.0], 5)
    found = ob.find_modes(mixture(y, 3), starts=15, seed=1)
    assert found.starts == 15
    assert sum(o.starts for o in found.optima) + found.failed == 15
    np.testing.assert_allclose(np.sort(found.optima[0].values["mu"]), [-9, 0, 9], atol=0.2)
    heights = [o.height for o in found.optima]
    assert heights == sorted(heights, reverse=True)
    assert "starts led to" in repr(found)
