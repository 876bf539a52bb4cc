"""The search for interchangeable components: what it finds, what it leaves, and what must not matter to it.

Slots that are tried together: the ratio of each is the one that it has alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.verdicts import broken, labels, plain
from benchmarks.verdicts.simulation import relabelled
from onebasin.analysis.discovery import discover
from onebasin.analysis.discovery.sorting import identity, sort
from onebasin.analysis.summaries.summary import rhat_of_entries
from onebasin.models.symmetry.blocks import Group, read

FOUND = {
    "mixture": (lambda rng, how: labels.mixture(rng, labels=how), "mu,sigma,theta"),
    "mixture of six": (lambda rng, how: labels.mixture(rng, labels=how, parts=6), "mu,sigma,theta"),
    "one weight": (lambda rng, how: labels.two_weights(rng, labels=how), "mu,sigma,1-theta"),
    "hidden Markov": (lambda rng, how: labels.hidden_markov(rng, labels=how), "mu,sigma,pi,A:0:1"),
    "network": (lambda rng, how: labels.network(rng, labels=how), "W1:1,b1,W2"),
    "odd network": (
        lambda rng, how: labels.network(rng, labels=how, flips=how),
        "+-W1:1,+-b1,+-W2",
    ),
    "factors": (lambda rng, how: labels.factors(rng, flips=how), "+-L:1,+-F:1"),
    "item responses": (lambda rng, how: labels.item_responses(rng, flips=how), "+-theta:,+-a:"),
}
HONEST = {
    "mixture in one labelling": lambda rng: labels.mixture(rng, labels="one"),
    "regression": plain.regression,
    "effects": plain.effects,
    "simplex": plain.simplexes,
    "one chain elsewhere": broken.modes,
    "unlike modes": broken.every_chain_its_own,
}
HEAVY = [(name, "draws") for name in ("odd network", "item responses", "mixture of six")]
CASES = [(family, how) for family in FOUND for how in ("chains", "draws")]
QUICK = [case for case in CASES if case not in HEAVY]
LEAD = (4, 1000)


def drawn(make, seed=0, **how):
    return make(np.random.default_rng(seed), **how).values


def search(values):
    """The words of what is certain, and the draws aligned by it."""
    certain = [candidate for candidate in discover(values) if candidate.certain]
    aligned = dict(values)
    for candidate in certain:
        aligned |= candidate.values
    return [candidate.word for candidate in certain], aligned


def worst_rhat(values, names):
    return max(np.nanmax(rhat_of_entries(values[n].reshape(*LEAD, -1))) for n in names)


def check_found(family, how, seed):
    make, word = FOUND[family]
    values = drawn(make, seed, how=how)
    (candidate,) = discover(values)
    assert candidate.certain
    assert (candidate.word, candidate.block) == (word, read(word))  # what is written is read
    assert candidate.gain.beside_noise < 0.5
    assert candidate.gain.sorting.certainty > 0.98
    assert candidate.distance > 3
    assert worst_rhat(candidate.values, candidate.values) < 1.05
    assert (worst_rhat(values, candidate.values) > 1.2) == (how == "chains")
    # Aligned draws are the draws, moved; and the spread of each part is that of one mode.
    before = Group((candidate.block,), {n: v.shape[2:] for n, v in values.items()})
    assert before.log_order > 0
    for name in before.symmetry[0].variables:
        assert candidate.values[name].std(axis=(0, 1)).mean() < values[name].std(axis=(0, 1)).mean()


@pytest.mark.parametrize(("family", "how"), QUICK)
def test_a_symmetry_is_found_with_its_words(family, how):
    check_found(family, how, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("family", "how"), CASES)
def test_a_symmetry_is_found_whatever_the_seed(family, how, seed):
    check_found(family, how, seed)


@pytest.mark.parametrize("family", HONEST)
def test_nothing_is_found_where_nothing_is(family):
    assert discover(drawn(HONEST[family])) == ()


def test_parts_in_another_order_are_the_same_posterior():
    values = drawn(labels.mixture, 3)
    order = np.broadcast_to([2, 0, 1], (*LEAD, 3))
    axes = dict.fromkeys(("mu", "sigma", "theta"), (0,))
    one, other = (discover(each)[0] for each in (values, relabelled(values, axes, order)))
    assert one.word == other.word
    for name in ("gain", "switching"):
        assert getattr(one.gain, name) == pytest.approx(getattr(other.gain, name), rel=1e-6)
    moved = relabelled(one.values, axes, order)
    for name in one.values:  # the first draw keeps its labels
        np.testing.assert_array_equal(one.values[name][0, 0], values[name][0, 0])
        np.testing.assert_allclose(moved[name], other.values[name], rtol=1e-12)


def test_units_and_the_order_of_draws_do_not_matter():
    values = drawn(labels.factors, 4, flips="draws")
    rows = np.random.default_rng(0).permutation(LEAD[1])
    other = {n: 1e6 * v[:, rows] for n, v in values.items()}
    assert search(other)[0] == search(values)[0] == ["+-L:1,+-F:1"]


def test_two_blocks_are_found_one_after_the_other():
    assert sorted(search(drawn(labels.two_mixtures))[0]) == ["mu,sigma,theta", "nu,omega,phi"]


def test_three_parameters_of_any_name_that_trade_places_are_found(rng):
    places = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]])
    drawn = np.array([-2.0, 1.0, 4.0])[places][:, None] + 0.1 * rng.normal(size=(*LEAD, 3))
    values = dict(zip(("low", "b", "other"), np.moveaxis(drawn, 2, 0), strict=True))
    assert search(values | {"tau": rng.normal(size=LEAD)})[0] == ["low~b~other"]


def test_a_probability_that_takes_the_place_of_anothers_complement_is_found(rng):
    found, cleared, ill = (rng.beta(a, 100 - a, LEAD) for a in (90, 80, 20))
    swapped = np.array([False, True, False, True])[:, None]
    values = {
        "found": np.where(swapped, 1 - cleared, found),
        "ill": np.where(swapped, 1 - ill, ill),
    }
    values["cleared"] = np.where(swapped, 1 - found, cleared)
    words, aligned = search(values)
    assert words == ["found~1-cleared,1-ill"]
    assert any(np.allclose(aligned["found"], each) for each in (found, 1 - cleared))


def test_a_parameter_that_is_nearly_alike_moves_along_though_parts_are_mistaken_at_times(rng):
    # The first and the third part change places in one chain of four; the second one overlaps both.
    mean, sd = np.array([[-0.57, 0.1, 0.48], [1.39, 1.97, 1.29]]), [[0.19, 0.21, 0.14], [0.11] * 3]
    drawn = rng.normal(mean, sd, (4, 500, 2, 3))
    drawn[3] = drawn[3][..., ::-1]
    theta = rng.normal([0.41, 0.29, 0.3], 0.03, (4, 500, 3))
    theta[3] = theta[3][..., ::-1]
    values = {"mu": drawn[..., 0, :], "sigma": drawn[..., 1, :], "theta": theta}
    assert search(values)[0] == ["mu,sigma,theta"]


def test_overlapping_parts_are_ambiguous(rng):
    mu = rng.permuted(rng.normal(size=(*LEAD, 3)) + 2 * np.arange(3), axis=-1)
    (found,) = discover({"mu": mu})
    assert (found.word, found.certain) == ("mu", False)
    assert 1.5 < found.distance < 3.5  # sorting makes two look like three


@pytest.mark.parametrize("rotate", ["chains", "draws"])
def test_factors_that_turn_are_sorted_by_no_order(rotate):
    values = drawn(labels.factors, flips="one", rotate=rotate)
    (turning,) = discover(values)
    assert (turning.word, turning.turns, turning.certain) == ("@L:1,F:1", True, False)
    assert worst_rhat(turning.values, turning.values) < 1.05
    for name in ("L", "F"):  # turned, L L' is what it was
        moved, raw = turning.values[name], values[name]
        np.testing.assert_allclose(moved @ moved.swapaxes(2, 3), raw @ raw.swapaxes(2, 3))


def test_certainty_of_a_sign_is_its_probability(rng):
    features = rng.normal(0.5, 1.0, size=(500, 1, 1))
    found = sort(features, np.ones(1, bool), identity(features))
    aligned, sd = found.signs[..., None] * features, np.sqrt(found.variance)
    chosen, other = (norm.pdf(aligned, sign * found.mean, sd) for sign in (1, -1))
    assert found.certainty == pytest.approx((chosen / (chosen + other)).mean(), rel=1e-12)
    assert found.certainty < 0.95
