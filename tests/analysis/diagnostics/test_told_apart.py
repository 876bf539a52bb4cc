"""Components that alignment sorts and does not tell apart, pieces of a stick, and derived quantities."""

import json

import numpy as np
import pytest

import onebasin as ob
from onebasin.models.symmetry.blocks import Exchangeable, Rotation, to_json
from onebasin.models.symmetry.evidence import Evidence

SHAPE = (4, 400)
CHECKED = Evidence(points=5, draws=8).to_json()


@pytest.fixture
def declaring(make_mcmc):
    def build(values, block):
        attrs = {"symmetry": to_json((block,)), "symmetry_evidence": CHECKED}
        return make_mcmc(values, attrs=attrs)

    return build


def rotations(rng, size):
    return np.linalg.qr(rng.normal(size=(*SHAPE, size, size)))[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_factor_that_the_data_do_not_need_is_not_usable_after_alignment(seed, declaring):
    rng = np.random.default_rng(seed)
    load = np.zeros((8, 3))
    load[:4, 0] = load[4:, 1] = 0.8
    noise = 0.07 * rng.normal(size=(*SHAPE, 8, 3))
    noise[..., 2] = 0.2 * rng.normal(size=(*SHAPE, 8))
    for factors, verdict in ((2, "aligned"), (3, "invariant")):
        turned = ((load + noise)[..., :factors]) @ rotations(rng, factors)
        judged = ob.diagnose(declaring({"load": turned}, Rotation({"load": 1})))
        assert judged.verdict == verdict
    assert "component 2 of `load`" in judged.judgement.sentence.lower()


@pytest.mark.parametrize("seed", range(3))
def test_a_component_like_noise_is_not_usable_after_alignment(seed, declaring):
    rng = np.random.default_rng(seed)
    mu = np.array([-3.0, 3.0, 0.0]) + np.array([0.2, 0.2, 5.0]) * rng.normal(size=(*SHAPE, 3))
    for size, verdict in ((2, "aligned"), (3, "invariant")):
        order = rng.permuted(np.broadcast_to(np.arange(size), (*SHAPE, size)), axis=-1)
        drawn = np.take_along_axis(mu[..., :size], order, axis=-1)
        assert ob.diagnose(declaring({"mu": drawn}, Exchangeable({"mu": 0}))).verdict == verdict


def broken_off(rng, first):
    """Draws of a mixture by sticks, whose two heavy components lie in one order or the other in each chain."""
    small = 0.02 * rng.dirichlet((1, 1, 1), size=SHAPE)
    heavy = 0.4 + 0.03 * rng.normal(size=SHAPE)
    w = np.concatenate([heavy[..., None], (1 - heavy - small.sum(-1))[..., None], small], axis=-1)
    parts = [[-3.0, 3.0] + 0.1 * rng.normal(size=(*SHAPE, 2)), 5 * rng.normal(size=(*SHAPE, 3))]
    mu = np.concatenate(parts, axis=-1)
    for chain in np.flatnonzero(first):
        for each in (w, mu):
            each[chain, :, :2] = each[chain, :, 1::-1].copy()
    left = 1 - np.concatenate([np.zeros((*SHAPE, 1)), np.cumsum(w, axis=-1)[..., :-2]], axis=-1)
    return {"mu": mu, "v": w[..., :-1] / left, "alpha": np.exp(rng.normal(size=SHAPE)), "w": w}


KINDS = json.dumps({"mu": "parameter", "v": "parameter", "alpha": "parameter", "w": "transformed"})
NEAR = json.dumps({"blocks": [{"moves": "mu:0 and v", "status": "near", "parts": 5}]})


@pytest.mark.parametrize("attrs", [{"symmetry_found": NEAR, "kinds": KINDS}, {}])
def test_labels_that_a_prior_tells_apart_are_judged_without_labels_and_not_aligned(
    make_mcmc, rng, attrs
):
    """As a search recorded it, or as the numbers of a file from elsewhere show: w is broken off at v."""
    values = broken_off(rng, [True, False, False, False])
    tree = make_mcmc(values, attrs=attrs)
    judged = ob.diagnose(tree)
    assert judged.verdict == "invariant"
    assert "nearly exchangeable" in judged.judgement.sentence
    for words in (None, "mu", "mu,w") if attrs else (None,):  # a user may know more than a file
        with pytest.raises(ValueError, match="cannot be aligned"):
            ob.align(tree, words)
    # Chains that disagree about what has no labels are not excused by them.
    values["alpha"][0] += 20
    assert ob.diagnose(make_mcmc(values, attrs=attrs)).verdict == "unusable"
    # Chains in one order are as usable as any.
    same = ob.diagnose(make_mcmc(broken_off(rng, [False] * 4), attrs=attrs))
    assert same.verdict == "usable"


def test_quantities_of_components_that_are_alike_follow_their_labels(make_mcmc, rng):
    swapped = rng.permuted(np.arange(4) % 2).astype(bool)
    mu = np.array([-3.0, 3.0]) + 0.1 * rng.normal(size=(*SHAPE, 2))
    sigma = np.exp(0.1 * rng.normal(size=(*SHAPE, 2)))
    beside = np.exp(0.1 * rng.normal(size=(*SHAPE, 2)))  # of groups that are no components
    for chain in np.flatnonzero(swapped):
        mu[chain], sigma[chain] = mu[chain, :, ::-1].copy(), sigma[chain, :, ::-1].copy()
    values = {"mu": mu, "sigma": sigma, "precision": sigma**-2, "beside": beside}

    def keeps(draws):
        """A density of which mu and sigma change places together."""
        order = draws["mu"].argsort(-1)
        return -np.take_along_axis(draws["sigma"].values, order.values, -1)[..., 0]

    kinds = dict.fromkeys(values, "generated") | {"mu": "parameter", "sigma": "parameter"}
    tree = make_mcmc(values, attrs={"kinds": json.dumps(kinds)})
    aligned = ob.align(tree, log_density=keeps)
    assert set(aligned.symmetry[0].variables) == {"mu", "sigma", "precision"}
    own = aligned.posterior["posterior"]
    np.testing.assert_allclose(own["precision"], own["sigma"] ** -2.0)
