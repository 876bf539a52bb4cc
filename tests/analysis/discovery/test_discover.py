"""The search for interchangeable components: what it finds, what it leaves, and what must not matter to it."""

import numpy as np
import pytest

from onebasin.analysis.discovery import discover, proposals
from onebasin.analysis.discovery.proposals import split_rhat
from onebasin.analysis.discovery.sorting import best_sorting, gain_of
from onebasin.analysis.summaries.deciding import rhat_of_entries
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.words import read
from onebasin.truth.checker import estimators

from ...each import each
from .families import (
    DRAWS,
    HONEST,
    LEAD,
    SYMMETRIC,
    factors,
    mixture,
    network,
    orders,
    placed,
    turning_factors,
)

HEAVY = [(name, "draw") for name in ("odd network", "item response", "mixture of six")]
CASES = [(family, switch) for family in SYMMETRIC for switch in ("chain", "draw")]
QUICK = [(family, switch) for family, switch in CASES if (family, switch) not in HEAVY]


def search(values):
    """The words of what is certain, and the draws aligned by it."""
    certain = [candidate for candidate in discover(values) if candidate.certain]
    aligned = dict(values)
    for candidate in certain:
        aligned |= candidate.values
    return [candidate.word for candidate in certain], aligned


def worst_rhat(values, names):
    return max(np.nanmax(rhat_of_entries(values[n].reshape(*LEAD, -1))) for n in names)


def check_found(family, switch, seed):
    make, word = SYMMETRIC[family]
    values = make(np.random.default_rng(seed), switch)
    (candidate,) = discover(values)
    assert candidate.certain
    assert (candidate.word, candidate.block) == (word, read(word))  # what is written is read
    assert candidate.gain.beside_noise < 0.5
    assert candidate.gain.sorting.certainty > 0.98
    assert candidate.distance > 3
    assert worst_rhat(candidate.values, candidate.values) < 1.05
    assert (worst_rhat(values, candidate.values) > 1.2) == (switch == "chain")
    # Aligned draws are the draws, moved; and the spread of each part is that of one mode.
    before = Group((candidate.block,), {n: v.shape[2:] for n, v in values.items()})
    assert before.log_order > 0
    for name in before.symmetry[0].variables:
        assert candidate.values[name].std(axis=(0, 1)).mean() < values[name].std(axis=(0, 1)).mean()


@each(("family", "switch"), QUICK)
def test_a_symmetry_is_found_with_its_words(family, switch):
    check_found(family, switch, seed=0)


@pytest.mark.slow
@each("seed", range(3))
@each(("family", "switch"), CASES)
def test_a_symmetry_is_found_whatever_the_seed(family, switch, seed):
    check_found(family, switch, seed)


@each("family", HONEST)
def test_nothing_is_found_where_nothing_is(family, rng):
    assert discover(HONEST[family](rng, "never")) == ()


def test_parts_in_another_order_are_the_same_posterior():
    values = mixture(np.random.default_rng(3), "chain")
    order = np.broadcast_to([2, 0, 1], (*LEAD, 3))
    moved = values | {n: placed(values[n], order) for n in ("mu", "sigma", "theta")}
    one, other = (discover(each)[0] for each in (values, moved))
    assert one.word == other.word
    for name in ("gain", "switching"):
        assert getattr(one.gain, name) == pytest.approx(getattr(other.gain, name), rel=1e-6)
    for name in one.values:  # the first draw keeps its labels
        np.testing.assert_array_equal(one.values[name][0, 0], values[name][0, 0])
        np.testing.assert_allclose(placed(one.values[name], order), other.values[name], rtol=1e-12)


def test_units_and_the_order_of_draws_do_not_matter():
    values = factors(np.random.default_rng(4), "draw")
    rows = np.random.default_rng(0).permutation(DRAWS)
    other = {n: 1e6 * v[:, rows] for n, v in values.items()}
    assert search(other)[0] == search(values)[0] == ["+-L:1"]


def test_moves_are_the_elements_of_the_block():
    values = network(np.random.default_rng(5), "draw", odd=False, hidden=4)
    first = {n: v[:, :1] for n, v in values.items()}
    for name, value in search(values)[1].items():
        # Draw by draw the same numbers, up to sign and place.
        aligned, raw = np.abs(value).reshape(*LEAD, -1), np.abs(values[name]).reshape(*LEAD, -1)
        np.testing.assert_array_equal(np.sort(aligned), np.sort(raw))
        np.testing.assert_array_equal(value[0, :1], first[name][0])


def test_two_blocks_are_found_one_after_the_other():
    rng = np.random.default_rng(6)
    values = mixture(rng, "chain")
    order = orders(rng, 4, "draw")
    values["nu"] = placed(rng.normal(size=(*LEAD, 4)) * 0.3 + 3 * np.arange(4), order)
    assert sorted(search(values)[0]) == ["mu,sigma,theta", "nu"]


def test_overlapping_parts_are_ambiguous():
    rng = np.random.default_rng(7)
    order = orders(rng, 3, "draw")
    values = {"mu": placed(rng.normal(size=(*LEAD, 3)) + 2 * np.arange(3), order)}
    (found,) = discover(values)
    assert (found.word, found.certain) == ("mu", False)
    assert 1.5 < found.distance < 3.5  # sorting makes two look like three


@each("switch", ["chain", "draw"])
def test_factors_that_turn_are_sorted_by_no_order(switch):
    values = turning_factors(np.random.default_rng(0), switch)
    (turning,) = discover(values)
    assert (turning.word, turning.turns, turning.certain) == ("@L:1,F:1", True, False)
    assert worst_rhat(turning.values, turning.values) < 1.05
    for name in ("L", "F"):  # turned, L L' is what it was
        moved, raw = turning.values[name], values[name]
        np.testing.assert_allclose(moved @ moved.swapaxes(2, 3), raw @ raw.swapaxes(2, 3))


def test_known_r_hat_is_not_computed_again(monkeypatch):
    monkeypatch.setattr(proposals, "rhat_of_entries", lambda _: pytest.fail("it is known"))
    values = HONEST["regression"](np.random.default_rng(8), "never")
    known = {n: rhat_of_entries(v.reshape(*LEAD, -1)) for n, v in values.items()}
    discover(values, known=known)


def test_split_rhat_sees_chains_that_drift_alike(rng):
    values = rng.normal(size=(4, 400, 1)) + np.linspace(-2, 2, 400)[:, None]
    (found,) = split_rhat(values)
    assert found == pytest.approx(estimators.plain_rhat(estimators.halves(values[..., 0])))
    assert found > 1.2


def test_nothing_is_gained_where_nothing_switches(rng):
    features = 10 * np.arange(3)[:, None] + rng.normal(size=(500, 3, 2))
    features = features - features.mean(axis=(0, 1))
    signed = np.zeros(2, bool)
    found = gain_of(features, signed, rng, best_sorting(features, signed, rng))
    assert found.gain == pytest.approx(1.0, abs=1e-9)
    assert found.switching < 0.1
