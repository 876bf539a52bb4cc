"""Alignment keeps the log density at every draw that it moves, or is rejected with the reason."""

import jax
import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.align import align
from onebasin.analysis.diagnostics.diagnose import diagnose

from ...shared_posteriors import TARGETS

SHAPE = (4, 300)
DATA = np.array([-1.2, -0.9, -1.1, 1.8, 2.2, 2.1, 1.9])


def density(draws):
    """Two components of a Gaussian mixture: shares `theta`, places `mu`, a scale `tau` on its own."""
    theta, mu, tau = (np.asarray(draws[name]) for name in ("theta", "mu", "tau"))
    parts = theta[..., None] * np.exp(-0.5 * (DATA - mu[..., None]) ** 2)
    return np.log(parts.sum(axis=-2)).sum(axis=-1) - 0.5 * (mu**2).sum(axis=-1) - 0.5 * tau**2


@pytest.fixture
def mixture(make_mcmc, rng):
    """Chains 1 and 3 have the other labelling."""
    theta = rng.beta(30.0, 40.0, SHAPE)
    values = {
        "theta": np.stack([theta, 1 - theta], axis=-1),
        "mu": np.array([-1.0, 2.0]) + 0.2 * rng.normal(size=(*SHAPE, 2)),
        "tau": rng.normal(size=SHAPE),
    }
    for name in ("theta", "mu"):
        values[name][1::2] = values[name][1::2, :, ::-1]
    return make_mcmc(values)


@pytest.mark.parametrize("name", ["mixture", "network"])
def test_the_log_density_of_aligned_draws_is_that_of_the_draws(shared, name):
    tree, target = shared.load(name), TARGETS[name]()
    aligned = align(tree, gauge="keep")
    assert aligned.relabelled.any()
    with jax.numpy_rank_promotion("allow"):  # NumPyro's mixtures broadcast
        before, after = (ob.log_density(target, each) for each in (tree, aligned.posterior))
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-8)


def test_all_moved_draws_are_compared(mixture):
    aligned = align(mixture, "theta,mu", log_density=density)
    assert aligned.relabelled.sum() == 600
    assert (aligned.density.moved, aligned.density.compared) == (600, 600)
    assert "unchanged at all 600 moved draws" in aligned.density.sentence
    assert aligned.caveat == ""
    found = diagnose(mixture, log_density=density)
    assert (found.verdict, found.exchangeable) == ("aligned", ("theta,mu",))
    assert any("log density unchanged" in sentence for sentence in found.aligned.sentences)


@pytest.mark.parametrize("word", ["theta", "mu"])
def test_a_part_of_a_symmetry_is_refused_with_draws_and_nats(mixture, word):
    said = rf"cannot be aligned by `{word}`. It changes the log density of \d+ of 60\d moved draws, in chains"
    with pytest.raises(ob.OnebasinError, match=said) as refused:
        align(mixture, word, log_density=density)
    assert "nats (chain" in str(refused.value)
    assert "Declare all parameters that move together" in str(refused.value)


def test_one_draw_off_the_posterior_is_enough(mixture):
    """All but one draw lie where both labellings have one density: a few points would not tell."""
    mixture["posterior"]["theta"][:] = 0.5
    with pytest.raises(ob.OnebasinError, match="1 of 600 moved draws, in chain `3`"):
        off = mixture["posterior"]["theta"].values.copy()
        off[3, 17] = [0.9, 0.1]
        mixture["posterior"]["theta"][:] = off
        align(mixture, "mu", log_density=density)


def test_a_density_that_cannot_be_evaluated_is_said_and_stops_nothing(mixture):
    def broken(draws):
        raise RuntimeError("no such model")

    aligned = align(mixture, "theta,mu", log_density=broken)
    assert "was not checked on the log density: it could not be evaluated (no such model)" in (
        aligned.density.sentence
    )


@pytest.mark.parametrize("word, left", [("theta", "`mu`"), ("mu", "`theta`")])
def test_without_a_density_what_changes_with_the_labels_stops_alignment(mixture, word, left):
    with pytest.raises(ob.OnebasinError, match=f"change with the labels, .*: {left}"):
        align(mixture, word)
    with pytest.raises(ob.OnebasinError, match=f"change with the labels, .*: {left}"):
        diagnose(mixture, symmetry=word)


def test_without_a_density_a_slow_parameter_stops_nothing(mixture, rng):
    """Labels change seven times in a chain, and `tau` drifts as slowly."""
    slow = np.cumsum(rng.normal(size=SHAPE), axis=1) / 10
    swapped = (np.arange(SHAPE[1]) // 40 % 2).astype(bool)
    mixture["posterior"]["tau"][:] = slow - slow.mean(axis=1, keepdims=True)
    for name in ("theta", "mu"):
        values = mixture["posterior"][name].values
        values[:, swapped] = values[:, swapped][..., ::-1]
    assert align(mixture, "theta,mu").relabelled.any()
