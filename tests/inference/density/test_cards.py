"""What the check of a symmetry shows of itself: whether it holds, by how much, and what was left open."""

import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob
from onebasin.inference.density.symmetry import SymmetryCheck
from onebasin.models.symmetry.evidence import Evidence

from ...cards import check_page

MU = (ob.Exchangeable({"mu": 0}), ob.Complement(("p",)))


def test_a_symmetry_that_holds_says_where_it_was_tried():
    def model():
        numpyro.sample("mu", dist.Normal().expand([3]).to_event(1))

    found = ob.check_symmetry(ob.Target("three", numpyro_model=model, symmetry=MU[:1]))
    text = repr(found)
    assert text.startswith("✓ The symmetry holds\nMoving components as declared ")
    assert "at 5 random points." in text
    assert "✓ permutations of mu" in text
    assert "it was tried at random points, not at draws" in text
    check_page(found._repr_html_())


def test_a_block_that_no_point_tells_of_is_no_pass():
    found = SymmetryCheck((1e-12, np.nan), 5, Evidence(points=5, unresolved=("p",)), MU)
    text = repr(found)
    assert text.startswith("! Not every part of the symmetry could be checked\n")
    assert "changes the log density by 1e-12 nats at most" in text
    assert "! complements of p" in text
    assert "the density was not checked for `p`" in text
    assert repr(SymmetryCheck((), 5)).startswith("No symmetry is declared")
