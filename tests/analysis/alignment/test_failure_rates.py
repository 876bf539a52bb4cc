"""How often alignment labels draws wrong, against closed forms, exact optima and counting."""

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal, norm

from onebasin.models.symmetry.elements import Permuted
from onebasin.truth.alignment_failures import (
    RULES,
    FailureRates,
    PlantedComponents,
    best_elements,
    failure_rates,
)
from onebasin.truth.figures import draw_failure_rates

from ...each import each

CHANCE = 1e-5  # of a false alarm
PLANTED = {
    "two": PlantedComponents(components=2, draws=400, repeats=2),
    "three, signs": PlantedComponents(flips=True, draws=400, repeats=2),
    "four, one feature": PlantedComponents(components=4, features=1, draws=400, repeats=2),
}


@pytest.fixture(scope="module")
def measured():
    return {
        name: failure_rates([0.0, 1.0, 3.0, 12.0], planted) for name, planted in PLANTED.items()
    }


def total(rates, planted, place):
    """Draws labelled wrong, in all repeats."""
    return round(float(rates[:, place].sum()) * planted.draws)


def between(count, num, probability):
    low, high = binom.ppf([CHANCE / 2, 1 - CHANCE / 2], num, probability)
    return low <= count <= high


@each("name", PLANTED)
def test_rates_fall_from_chance_to_zero_and_none_beats_the_best(measured, name):
    found, planted = measured[name], PLANTED[name]
    num, order = planted.draws * planted.repeats, np.exp(planted.group.log_order)
    best = found.optimal.mean(axis=0)
    # The same draws: the difference has at most the variance of two independent shares.
    error = np.sqrt(2 * best * (1 - best) / num)
    assert set(found.rates) == set(RULES)
    for rates in (*found.rates.values(), found.optimal):
        assert between(total(rates, planted, 0), num, 1 - 1 / order)
        assert total(rates, planted, 3) == 0
        assert rates.mean(axis=0)[1] > rates.mean(axis=0)[2] > 0
        assert (best - rates.mean(axis=0) <= 4.4 * error + 1e-12).all()
    # Squared distance to the true means is the best rule where sds are equal; at 0 every element is as good.
    np.testing.assert_array_equal(found.rates["posterior"][:, 1:], found.optimal[:, 1:])


@each("features", [1, 4])
@each("separation", [0.5, 1.5, 3.0])
def test_the_best_of_two_components_is_known_in_closed_form(separation, features):
    # The labels are exchanged where x_1 - x_2, which is N(-separation, 2), comes out positive.
    planted = PlantedComponents(components=2, features=features, draws=5000, repeats=1)
    found = failure_rates([separation], planted, rules=())
    assert between(
        total(found.optimal, planted, 0), planted.draws, norm.cdf(-separation / np.sqrt(2))
    )


@each("flips", [False, True])
def test_the_best_elements_have_the_highest_density(rng, flips):
    # Every element tried in the open, densities by SciPy; unequal standard deviations.
    planted = PlantedComponents(components=3, features=2, flips=flips, sds=(0.4, 1.0, 2.0))
    seen = rng.normal(size=(25, 3, 2)) * 2
    found = best_elements(seen, planted, 1.5)
    best, means = np.full(25, -np.inf), planted.means(1.5)
    for element in planted.group.elements():
        lead = tuple(
            Permuted(*(None if a is None else np.tile(a, (25, 1)) for a in p)) for p in element
        )
        best = np.maximum(
            best, density(planted.group.act(lead, {"component": seen})["component"], means)
        )
    moved = planted.group.act(found, {"component": seen})["component"]
    np.testing.assert_allclose(density(moved, means), best, rtol=1e-12)


def density(values, means):
    covariances = [sd**2 * np.eye(2) for sd in (0.4, 1.0, 2.0)]
    parts = [multivariate_normal(m, c) for m, c in zip(means, covariances, strict=True)]
    return sum(part.logpdf(values[:, place]) for place, part in enumerate(parts))


def test_unequal_widths_are_told_apart_by_the_gaussian_alone():
    # Without separation, components differ in their standard deviations only.
    found = failure_rates([0.0, 2.0], PlantedComponents(sds=(0.2, 1.0, 5.0), draws=600, repeats=2))
    best = found.optimal.mean(axis=0)
    assert (best < 0.1).all()
    assert (found.rates["gaussian"].mean(axis=0) < best + 0.05).all()
    assert found.rates["posterior"].mean(axis=0)[0] > 0.7
    assert (found.rates["posterior"].mean(axis=0) > best + 0.2).all()


def test_one_draw_is_a_worse_reference_where_features_are_noise():
    found = failure_rates([2.5], PlantedComponents(features=10, draws=600))
    draw, mean = found.rates["draw"].mean(), found.rates["mean"].mean()
    assert draw > mean + 0.1
    assert mean < found.optimal.mean() + 0.03


def test_the_same_seed_gives_the_same_rates_and_another_does_not():
    first, again, other = (
        failure_rates([1.0], PlantedComponents(draws=100, seed=s), rules=("draw",))
        for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.rates["draw"], again.rates["draw"])
    assert not np.array_equal(first.rates["draw"], other.rates["draw"])
    assert len(set(first.rates["draw"].ravel())) > 1  # repeats differ


def test_settings_change_what_is_planted():
    planted = PlantedComponents(components=3, features=2, flips=True, sds=(1.0, 2.0, 3.0))
    np.testing.assert_array_equal(planted.means(2.0), [[1, 0], [3, 0], [5, 0]])
    np.testing.assert_array_equal(PlantedComponents().means(2.0), [[-2, 0], [0, 0], [2, 0]])
    np.testing.assert_array_equal(planted.widths, [[1], [2], [3]])
    assert np.exp(planted.group.log_order) == pytest.approx(48)


@pytest.fixture
def known():
    rates = {
        "draw": np.array([[0.9, 0.4], [0.7, 0.2]]),
        "posterior": np.array([[0.8, 0.1], [0.8, 0.3]]),
    }
    optimal = np.array([[0.75, 0.05], [0.85, 0.05]])
    return FailureRates(PlantedComponents(repeats=2), np.array([0.0, 2.0]), rates, optimal)


def test_figure_draws_the_means_and_the_best(known):
    figure = draw_failure_rates(known)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_allclose(lines["best possible"].get_xydata(), [[0, 0.8], [2, 0.05]])
    drawn = {c.get_label(): c for c in axes.containers}
    np.testing.assert_allclose(drawn["one draw"].lines[0].get_xydata(), [[0, 0.8], [2, 0.3]])
    whiskers = drawn["one draw"].lines[2][0].get_segments()
    np.testing.assert_allclose(whiskers[0][:, 1], [0.7, 0.9])
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(said) == {"one draw", "another posterior", "best possible"}
    assert "sds" in axes.get_xlabel()
