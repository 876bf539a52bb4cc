"""What alignments and barriers show of themselves: what was done first, then numbers."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.barriers import Transpositions

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


def test_transpositions_are_counted_by_block_where_there_are_several():
    counts = np.array([[0, 1], [2, 1]])
    assert "block 1" in repr(Transpositions((counts, counts + 1)))
    assert "block" not in repr(Transpositions((counts,)))
    check_page(Transpositions((counts,))._repr_html_())
