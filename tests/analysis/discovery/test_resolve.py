"""The symmetry of a posterior, and what every command says of one that was not checked, or that draws refute."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.labels import diagnose_aligned
from onebasin.analysis.discovery.resolve import resolve
from onebasin.models.symmetry.blocks import Exchangeable, to_json
from onebasin.models.symmetry.evidence import Evidence
from onebasin.posteriors.view import as_view

BLOCKS = (Exchangeable({"mu": 0}),)
WHOLE = Evidence(points=5, draws=8)
REFUTED = Evidence(points=5, refuted="moving mu as declared changes the log density by 3 nats")


@pytest.fixture
def make(make_mcmc, rng):
    def build(evidence=None, symmetry=BLOCKS):
        attrs = {"symmetry": to_json(symmetry)}
        if evidence is not None:
            attrs["symmetry_evidence"] = evidence.to_json()
        mu = np.array([-3.0, 3.0]) + rng.normal(size=(4, 200, 2))
        return make_mcmc({"mu": mu}, attrs=attrs)

    return build


def test_a_given_symmetry_comes_before_the_files_and_that_before_the_draws(make):
    given = resolve(make(REFUTED), "mu")
    assert (given.source, given.blocks) == ("given", BLOCKS)
    assert given.in_file and not given.known
    declared = resolve(make(WHOLE), look=True)
    assert (declared.source, declared.equal_modes, declared.known) == ("declared", BLOCKS, True)
    assert declared.candidates == ()
    refuted = resolve(make(REFUTED))
    assert (refuted.source, refuted.blocks) == ("refuted", ())
    assert resolve(make(symmetry=())).source == "none"


def test_a_symmetry_is_found_in_draws_only_where_it_is_looked_for(make, rng):
    tree = make(symmetry=())
    tree["posterior"]["mu"][:] = rng.permuted(tree["posterior"]["mu"].values, axis=-1)
    assert resolve(tree).source == "none"
    found = resolve(tree, look=True)
    assert (found.source, found.blocks, found.words) == ("found", BLOCKS, ("mu",))
    assert not (found.in_file or found.known)


def test_symmetry_that_was_checked_needs_no_word(make):
    tree = make(WHOLE)
    assert resolve(tree).caveat == ""
    assert diagnose(tree).judgement.unjudged == ()
    assert diagnose_aligned(tree, noise=False).caveat == ""
    assert align(tree).caveat == ""


def test_allocations_that_are_numbered_anew_are_not_left_behind(make):
    tree = make(Evidence(points=5, draws=8, left_behind=("best", "other")))
    posterior = tree["posterior"].to_dataset()
    mu = posterior["mu"]
    mu[1::2] = mu.values[1::2, :, ::-1]
    best = xr.Variable(("chain", "draw"), mu.values.argmax(axis=2))
    tree["posterior"] = xr.DataTree(posterior.assign(best=best))
    alignment = align(tree)
    assert tuple(alignment.allocations) == ("best",)
    assert "alignment does not move `other`" in alignment.caveat
    assert "best" not in alignment.caveat
    told = diagnose(tree).symmetry_caveat
    assert "alignment does not move `other`" in told
    assert "best" not in told


def test_refuted_symmetry_aligns_nothing_unless_it_is_asked_for(make):
    tree = make(REFUTED)
    found = diagnose(tree)
    assert not as_view(tree).declares_equal_modes and not found.symmetric
    assert "does not hold at this posterior's draws" in found.judgement.unjudged[-1]
    with pytest.raises(ValueError, match=r"cannot be aligned\. The declared symmetry does not"):
        align(tree)
    assert "does not hold" in align(tree, BLOCKS).caveat


def test_a_symmetry_that_the_variables_do_not_have_is_reported_with_the_file(make):
    tree = make(WHOLE, (Exchangeable({"mu": 4}),))
    for ask in (diagnose, align):
        with pytest.raises(
            ValueError,
            match=r"attribute 'symmetry' of `posterior` does not fit the variables: `symmetry` moves",
        ):
            ask(tree)
