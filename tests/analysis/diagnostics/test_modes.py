"""What is said of modes, and of labels by the block that moves them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.posteriors import schema

from ..conftest import mcmc_tree, modes_table


def posterior(centres: np.ndarray, modes: xr.Dataset | None = None) -> xr.DataTree:
    """Four chains of 400 independent draws, each draw around its own centre (chain, draw)."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((4, 400, 2))
    lp = -0.5 * (noise**2).sum(axis=-1) - centres
    stats = {"lp": lp, "energy": -lp + rng.standard_normal(lp.shape)}
    groups = {} if modes is None else {schema.MODES: modes}
    return mcmc_tree({"a": noise + 10 * centres[..., None]}, stats=stats, **groups)


MIXED = np.random.default_rng(1).uniform(size=(4, 400)) < 0.1
APART = np.broadcast_to(np.arange(4)[:, None] % 3, (4, 400)).astype(float)


def test_chains_in_unlike_modes_are_sent_to_sampling_mode_by_mode():
    found = diagnose(posterior(APART * 20))
    assert found.verdict == "unusable"
    assert found.causes == ("modes",)
    assert found.judgement.causes[0].remedy == (
        "Do not average over these chains: they weight modes by where they started. Sample mode by mode: "
        "`ob.sample_modes(target)`, or `onebasin sample --method modes`, finds modes from many starts and weights "
        "them by bridge sampling."
    )


def test_weights_that_are_not_known_forbid_use():
    modes = modes_table([0.6, 0.4], [0.6, 0.8], known=0)
    found = diagnose(posterior(MIXED.astype(float), modes))
    assert (found.verdict, found.causes) == ("unusable", ("weights",))


@pytest.mark.parametrize(("weight", "verdict"), [(0.1, "unusable"), (1e-6, "usable")])
def test_chains_that_disagree_within_a_mode_matter_as_the_mode_does(weight, verdict):
    modes = modes_table([1 - weight, weight], [0.02, 0.02], rhat=[1.0, 1.3])
    found = diagnose(posterior((MIXED & (weight > 0.01)).astype(float), modes))
    assert found.verdict == verdict
    assert ("Chains of mode 1 disagree" in found.judgement.sentence) == (verdict == "unusable")
