"""An alignment's reference, weights included, given to other draws."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align
from onebasin.models.symmetry.blocks import Exchangeable

from ...each import each
from .conftest import dataset

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)
SPREAD = np.array([0.3, 1.0, 3.0])


@pytest.fixture
def values(rng):
    """Parts of unlike spread, which the mean takes for one another."""
    noise = rng.normal(size=(2, 2, 500, 3)) * SPREAD
    return {"mu": noise[0] + 2.0 * np.arange(3), "sigma": noise[1]}


def shuffled(rng, values):
    order = rng.permuted(np.tile(np.arange(3), (2, 500, 1)), axis=-1)
    return {name: np.take_along_axis(v, order, axis=-1) for name, v in values.items()}


@each("rule", ["gaussian", "mean", "draw"])
def test_draws_are_moved_to_where_the_earlier_alignment_moved_them(rng, values, rule):
    first = align(dataset(shuffled(rng, values)), MIXTURE, reference=rule, max_sweeps=60)
    again = align(dataset(shuffled(rng, values)), MIXTURE, reference=first)
    assert first.converged
    for name in values:
        np.testing.assert_array_equal(
            again.posterior["posterior"][name], first.posterior["posterior"][name]
        )
    assert again.rule.reference == "alignment"
    assert again.rule.scales == first.rule.scales
    assert again.cost[-1] == pytest.approx(first.cost[-1], rel=1e-9)
    assert "what another posterior's draws were aligned with" in again.text
    thrice = align(dataset(shuffled(rng, values)), MIXTURE, reference=again)
    np.testing.assert_allclose(thrice.reference["mu"], first.reference["mu"], rtol=1e-12)


def test_draws_with_a_spread_of_their_own_cost_what_they_did(rng, values):
    # Units are found anew for other draws; neither they nor what a draw costs may depend on the company it is in.
    first = align(dataset(values), MIXTURE, max_sweeps=60)
    wide = {n: np.concatenate([v, 1e3 * v + 1e4], axis=1) for n, v in values.items()}
    whole = align(dataset(wide), MIXTURE, reference=first)
    np.testing.assert_array_equal(
        whole.posterior["posterior"]["mu"][:, :500], first.posterior["posterior"]["mu"]
    )
    np.testing.assert_allclose(
        whole.distance_after[:, :500], first.distance_after, rtol=1e-6, atol=1e-9
    )


def test_an_alignment_of_other_things_is_refused(rng, values):
    first = align(dataset(values), MIXTURE)
    with pytest.raises(ValueError, match="that matched no tau, and `posterior` holds it"):
        align(dataset(values | {"tau": values["mu"]}), (Exchangeable({"tau": 0}),), reference=first)
    few = {name: v[..., :2] for name, v in values.items()}
    with pytest.raises(ValueError, match=r"mu of shape \(3,\), and `posterior` holds it with"):
        align(dataset(few), MIXTURE, reference=first)
