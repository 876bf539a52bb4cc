"""What alignments and barriers show of themselves: what was done first, then numbers."""

from dataclasses import replace

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.networks import Transpositions

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
    assert text.startswith("Aligned draws\n50 % of 200 draws were moved: their squared distance")
    assert "`.posterior` holds the aligned draws" in text
    assert "modulo  permutations of mu" in text
    assert " ".join(aligned.caveat.split()) in " ".join(text.split())
    assert "array(" not in text
    check_page(aligned._repr_html_())


def test_an_alignment_of_aligned_draws_moved_none(switched):
    symmetry = (ob.Exchangeable({"mu": 0}),)
    again = ob.align(ob.align(switched, symmetry).posterior, symmetry)
    assert "No draw had to be moved." in repr(again)


def test_an_alignment_that_had_not_ended_says_so(switched):
    open_one = replace(ob.align(switched, (ob.Exchangeable({"mu": 0}),)), converged=False)
    assert repr(open_one).startswith("! Aligned draws")
    assert "give more with `max_sweeps`" in repr(open_one)


def test_flips_and_complements_count_as_moved(make_mcmc, rng):
    loading = 3 + rng.normal(size=(2, 50))
    loading[0] *= -1
    assert "50 % of 100 draws" in repr(ob.align(make_mcmc({"a": loading}), (ob.Flip(("a",)),)))


def test_transpositions_are_counted_by_block_where_there_are_several():
    counts = np.array([[0, 1], [2, 1]])
    text = repr(Transpositions((counts, counts + 1)))
    assert "3 transpositions (median) from the common labelling, and up to 5" in text
    assert "  block 1       2     3" in text
    assert "block" not in repr(Transpositions((counts,)))
    check_page(Transpositions((counts,))._repr_html_())
