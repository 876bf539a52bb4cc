"""A part of a symmetry is not aligned: quantities that follow the labels and cannot be moved along stop it."""

import json

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.align import align
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.discovery.resolve import resolve
from onebasin.posteriors import schema

from ...each import each

SHAPE = (4, 400)
SWAPPED = np.array([False, True, False, True])


def swapping(rng, swapped):
    """Two components: shares in an array, places and spreads in scalars, and the logit of the first share."""
    swap = np.broadcast_to(swapped, SHAPE)
    share = rng.beta(60.0, 140.0, size=SHAPE)
    low, high = (m + 0.1 * rng.normal(size=SHAPE) for m in (-1.0, 2.0))
    share = np.where(swap, 1 - share, share)
    return {
        "theta": np.stack([share, 1 - share], axis=-1),
        "mu1": np.where(swap, high, low),
        "mu2": np.where(swap, low, high),
        "eta": np.log(share / (1 - share)),
        "tau": rng.normal(size=SHAPE),
    }


def by_chain(rng):
    return SWAPPED[:, None]


def by_draw(rng):
    return rng.random(SHAPE) < 0.5


@each("switch", [by_chain, by_draw])
@each("names", [("theta", "mu1", "mu2", "tau"), ("theta", "eta", "tau")])
def test_what_moves_together_is_not_aligned_in_part(make_mcmc, rng, switch, names):
    draws = swapping(rng, switch(rng))
    tree = make_mcmc({name: draws[name] for name in names})
    resolved = resolve(tree, look=True)
    if resolved.source != "found":  # else both are moved, as w and its logit may be
        assert resolved.source == "partial", resolved.source
        listed = ", ".join(f"`{name}`" for name in names if name not in ("theta", "tau"))
        assert resolved.reason == f"{listed} differ between labellings in the same way."
        with pytest.raises(ValueError, match=r"cannot be aligned.*in the same way"):
            align(tree)
        found = diagnose(tree)
        assert (found.verdict, found.causes[0], found.exchangeable) == ("unusable", "labels", ())
        assert found.aligned is None
    else:
        moved = {name for each in resolved.candidates for name in each.values}
        assert {*names} - {"tau"} <= moved, moved


def test_a_parameter_with_a_problem_of_its_own_does_not_stop_alignment(make_mcmc, rng):
    """Chains 0 and 2 have one labelling and disagree on `tau`."""
    draws = swapping(rng, by_chain(rng))
    draws["tau"][0] += 5.0
    resolved = resolve(make_mcmc({name: draws[name] for name in ("theta", "tau")}), look=True)
    assert (resolved.source, resolved.reason) == ("found", "")


def test_a_symmetry_that_the_file_records_as_incomplete_is_believed(make_mcmc, rng):
    draws = swapping(rng, by_chain(rng))
    record = {"blocks": [{"moves": "(a1, a2) and theta:0", "status": "incomplete"}]}
    tree = make_mcmc({"theta": draws["theta"]}, attrs={schema.SYMMETRY_FOUND: json.dumps(record)})
    resolved = resolve(tree, look=True)
    assert (resolved.source, "`(a1, a2) and theta:0`" in resolved.reason) == ("partial", True)
    with pytest.raises(ob.OnebasinError, match="would leave them behind"):
        align(tree, "theta")
    tree.attrs[schema.SYMMETRY_FOUND] = "no JSON"
    assert resolve(tree, look=True).source == "found"
