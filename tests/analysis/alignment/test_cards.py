"""What alignments, barriers and failure rates show of themselves: what was done first, then numbers."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.networks import Transpositions
from onebasin.truth.alignment_failures import FailureRates

from ...cards import check_page


@pytest.fixture
def switched(make_mcmc, rng):
    """Two components, of which two of four chains have the labels changed."""
    mu = np.array([-4.0, 4.0]) + rng.normal(size=(4, 50, 2))
    mu[::2] = mu[::2, :, ::-1]
    return make_mcmc({"mu": mu})


def test_an_alignment_says_what_it_moved_and_where_the_draws_are(switched):
    aligned = ob.align(switched, (ob.Exchangeable({"mu": 0}),))
    text = repr(aligned)
    assert "`.posterior` holds the aligned draws" in text
    assert " ".join(aligned.caveat.split()) in " ".join(text.split())
    assert "array(" not in text
    check_page(aligned._repr_html_())


def test_failure_rates_stand_beside_the_best_there_is():
    shares = np.array([[0.8, 0.2, 0.001], [0.6, 0.1, 0.0]])
    planted = ob.truth.PlantedComponents(draws=100, repeats=2, flips=True)
    found = FailureRates(planted, np.array([0.0, 2.0, 4.0]), {"gaussian": shares}, shares / 2)
    *_, heads, first, second, last = (line.split() for line in repr(found).splitlines())
    assert heads == ["Gaussian", "best", "possible"]
    assert first == ["0", "70", "%", "35", "%"]
    assert second == ["2", "15", "%", "7.5", "%"]
    assert last == ["4", "0.05", "%", "0.025", "%"]
    check_page(found._repr_html_())


def test_transpositions_are_counted_by_block_where_there_are_several():
    counts = np.array([[0, 1], [2, 1]])
    assert "block 1" in repr(Transpositions((counts, counts + 1)))
    assert "block" not in repr(Transpositions((counts,)))
    check_page(Transpositions((counts,))._repr_html_())
