"""A part of a symmetry is not aligned: quantities that follow the labels and cannot be moved along stop it."""

import json

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.alignment.align import align
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.discovery.resolve import resolve
from onebasin.posteriors import schema

SHAPE = (4, 400)
SWAPPED = np.array([False, True, False, True])


def swapping(rng, swapped):
    """Two components: shares in an array, all else in parameters of their own; the logit and the log of a share.

    The two coefficients of a gate change sign with the labels, and do not change places.
    """
    swap = np.broadcast_to(swapped, SHAPE)
    share = rng.beta(60.0, 140.0, size=SHAPE)
    low, high = (m + 0.1 * rng.normal(size=SHAPE) for m in (-1.0, 2.0))
    narrow, wide = (np.exp(m + 0.1 * rng.normal(size=(*SHAPE, 1))) for m in (0.0, 0.05))
    share, low, high = np.where(swap, (1 - share, high, low), (share, low, high))
    narrow, wide = np.where(swap[..., None], (wide, narrow), (narrow, wide))
    return {
        "theta": np.stack([share, 1 - share], axis=-1),
        "mu1": low,
        "mu2": high,
        "s_a": narrow,
        "s_b": wide,
        "eta": np.log(share / (1 - share)),
        "log_share": np.log(share),
        "tau": rng.normal(size=SHAPE),
        "gate": np.where(swap, -1.0, 1.0)[..., None] * rng.normal([0.3, 2.0], 0.2, (*SHAPE, 2)),
    }


def by_chain(rng):
    return SWAPPED[:, None]


def by_draw(rng):
    return rng.random(SHAPE) < 0.5


@pytest.mark.parametrize(
    "switch, names",
    [
        (by_chain, ("theta", "log_share", "tau")),
        (by_chain, ("mu1", "mu2", "log_share", "tau")),
        (by_draw, ("mu1", "mu2", "log_share", "tau")),
    ],
)
def test_what_moves_together_is_not_aligned_in_part(make_mcmc, rng, switch, names):
    draws = swapping(rng, switch(rng))
    tree = make_mcmc({name: draws[name] for name in names})
    resolved = resolve(tree, look=True)
    assert (resolved.source, resolved.blocks) == ("partial", ())
    assert resolved.reason == "`log_share` differs between labellings in the same way."
    with pytest.raises(ob.OnebasinError, match=r"cannot be aligned.*in the same way"):
        align(tree)
    tree.attrs[schema.SYMMETRY_FOUND] = json.dumps({"blocks": []})
    with pytest.raises(
        ob.OnebasinError, match=r"found nothing to declare\. The modes may be unrelated"
    ):
        align(tree)
    found = diagnose(tree)
    # Scalars that differ between the same chains may as well be those of another mode.
    first = "modes" if switch is by_chain and "mu1" in names else "labels"
    assert (found.verdict, found.causes[0], found.exchangeable) == ("unusable", first, ())
    assert "labels" in found.causes
    assert found.aligned is None


@pytest.mark.parametrize(
    "switch, names, word",
    [
        (by_draw, ("theta", "mu1", "mu2", "tau"), "mu1~mu2,theta"),
        (by_chain, ("mu1", "mu2", "s_a", "s_b", "tau"), "mu1~mu2,s_a~s_b"),
        (by_chain, ("theta", "eta", "tau"), "theta,+-eta:"),
        (by_draw, ("mu1", "mu2", "eta", "tau"), "mu1~mu2,+-eta:"),
        (by_chain, ("theta", "gate", "tau"), "theta,+-gate:"),
    ],
)
def test_components_that_are_parameters_of_their_own_move_together(
    make_mcmc, rng, switch, names, word
):
    swapped = switch(rng)
    draws = swapping(rng, swapped)
    tree = make_mcmc({name: draws[name] for name in names})
    resolved = resolve(tree, look=True)
    assert (resolved.source, resolved.words, resolved.reason) == ("found", (word,), "")
    aligned = align(tree).posterior["posterior"]
    swapped = np.broadcast_to(swapped, SHAPE)
    whole = swapped if swapped[0, 0] else ~swapped
    for name in names:
        moved = aligned[name].values != tree["posterior"][name].values
        moved = moved.reshape(*SHAPE, -1).any(axis=-1)
        assert (moved == (name != "tau") * ~whole).all(), name


@pytest.mark.parametrize(
    "switch", [by_chain, lambda rng: np.repeat(rng.random((4, 20)) < 0.5, 20, axis=1)]
)
def test_places_of_a_longer_simplex_are_no_block_of_their_own(make_mcmc, rng, switch):
    """Zeros and two kinds of counts: the shares of the counts move with their rates, and overlap that of zeros."""
    swap = np.broadcast_to(switch(rng), SHAPE)[..., None]
    rate = [3.0, 11.0] + 0.2 * rng.normal(size=(*SHAPE, 2))
    share = rng.dirichlet([90.0, 120.0, 90.0], size=SHAPE)
    draws = {
        "share": np.where(swap, share[..., [0, 2, 1]], share),
        "rate": np.where(swap, rate[..., ::-1], rate),
    }
    resolved = resolve(make_mcmc(draws), look=True)
    assert resolved.source == "partial"
    assert resolved.reason == "`share` differs between labellings in the same way."


@pytest.mark.parametrize("switch, place", [(by_chain, 0.28), (by_draw, 0.41)])
def test_a_sign_that_some_draws_hide_moves_with_the_labels(make_mcmc, rng, switch, place):
    """A share near one half on the logit scale: one draw in eight or twenty has the sign of the other labelling."""
    swapped = np.broadcast_to(switch(rng), SHAPE)
    a = np.array([-1.0, 2.0]) + 0.1 * rng.normal(size=(*SHAPE, 2))
    eta = place + 0.25 * rng.normal(size=SHAPE)
    draws = {
        "a": np.where(swapped[..., None], a[..., ::-1], a),
        "eta": np.where(swapped, -eta, eta),
    }
    record = {"blocks": [{"moves": "a:0 and +-eta", "status": "incomplete"}]}
    tree = make_mcmc(draws, attrs={schema.SYMMETRY_FOUND: json.dumps(record)})
    assert resolve(tree, look=True).words == ("a,+-eta:",)  # all that the record names


@pytest.mark.parametrize("switch", [by_chain, by_draw])
def test_what_differs_by_its_correlations_alone_is_not_left_behind(make_mcmc, rng, switch):
    swap, b = switch(rng)[..., None], rng.normal([2.0, 12.0], 1.0, (*SHAPE, 2))
    a = b - [2.0, 12.0] + 0.3 * rng.normal(size=b.shape)  # each by its own, and all alike
    b, a = (np.where(swap, v[..., ::-1], v) for v in (b, a))
    draws = {"b": b[..., 0], "d": b[..., 1], "a": a[..., 0], "c": a[..., 1]}
    with pytest.raises(ValueError, match=r"change with the labels, .*: `a`, `c`"):
        align(make_mcmc(draws), "b~d")
    assert resolve(make_mcmc(draws), look=True).words == ("b~d,a~c",)


def test_separate_parameters_that_are_alike_move_along_by_their_numbers(make_mcmc, rng):
    mu = np.array([-1.0, 2.0]) + 0.1 * rng.normal(size=(*SHAPE, 2))
    mu[SWAPPED] = mu[SWAPPED][..., ::-1]
    alike = {name: rng.normal(size=SHAPE) for name in ("s1", "s2", "tau2", "rest", "other")}
    tree = make_mcmc({"mu1": mu[..., 0], "mu2": mu[..., 1]} | alike)
    assert resolve(tree, look=True).words == ("mu1~mu2,s1~s2",)


def test_three_components_that_are_parameters_of_their_own_are_found(make_mcmc, rng):
    order = np.argsort(rng.random((*SHAPE, 3)), axis=-1)
    three = np.array([-2.0, 0.0, 3.0]) + 0.2 * rng.normal(size=(*SHAPE, 3))
    scale = np.exp(np.array([-0.3, 0.0, 0.3]) + 0.1 * rng.normal(size=(*SHAPE, 3)))
    draws = {}
    for name, values in (("mu", three), ("s", scale)):
        moved = np.take_along_axis(values, order, axis=-1)
        draws |= {f"{name}{k + 1}": moved[..., k] for k in range(3)}
    assert resolve(make_mcmc(draws), look=True).words == ("mu1~mu2~mu3,s1~s2~s3",)


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
    with pytest.raises(ob.OnebasinError, match="change with the labels"):
        align(tree, "theta")
    tree.attrs[schema.SYMMETRY_FOUND] = "no JSON"
    assert resolve(tree, look=True).source == "found"


def test_quantities_computed_of_components_move_along(make_mcmc, rng):
    """Their kind is recorded, so that they are not searched for labels; `level` has none."""
    swapped = np.broadcast_to(by_chain(rng), SHAPE)
    draws = swapping(rng, swapped)
    kept = {name: draws[name] for name in ("theta", "mu1", "mu2")}
    share = draws["theta"][..., 0]
    computed = {
        "resp": np.stack([share[..., None] ** [1, 2, 3], (1 - share[..., None]) ** [1, 2, 3]], -1),
        "half1": draws["mu1"] / 2,
        "half2": draws["mu2"] / 2,
        "gap": draws["mu1"] - draws["mu2"],
        "odds": share,
        "level": draws["mu1"] + draws["mu2"],
        "log_share": np.log(share),
    }
    kinds = {name: "generated" if name in computed else "parameter" for name in kept | computed}
    tree = make_mcmc(kept | computed, attrs={"kinds": json.dumps(kinds)})
    (word,) = resolve(tree, look=True).words
    assert {*word.split(",")} == {
        *("mu1~mu2", "theta", "resp:1", "half1~half2", "+-gap:", "1-odds")
    }
    assert diagnose(tree).exchangeable == (word,)


def three_components(rng, size=3):
    """Components far apart, of which the last two change places at random draws; shares sum to one."""
    swap = rng.random(SHAPE)[..., None] < 0.5
    order = np.where(swap, [0, 2, 1], [0, 1, 2])
    share = rng.dirichlet([40.0, 60.0, 100.0], SHAPE)
    centre = [-3.0, 0.0, 3.0] + 0.2 * rng.normal(size=(*SHAPE, 3))
    return order, {
        n: np.take_along_axis(v, order, axis=2) for n, v in (("share", share), ("mu", centre))
    }


def test_components_that_change_places_while_another_stays_are_found(make_mcmc, rng):
    _, draws = three_components(rng)
    tree = make_mcmc(draws | {"tau": rng.normal(size=SHAPE)})
    found = diagnose(tree)
    words = "share[1]~share[2],mu[1]~mu[2]"
    assert (found.verdict, found.exchangeable) == ("aligned", (words,))
    means = align(tree, symmetry=words).posterior["posterior"]["mu"].mean(("chain", "draw"))
    assert sorted(means.values) == pytest.approx([-3, 0, 3], abs=0.1)


def test_some_components_of_a_square_are_not_aligned_without_it(make_mcmc, rng):
    order, draws = three_components(rng)
    stays = np.eye(3) * [0.9, 0.8, 0.5] + 0.02 * rng.normal(size=(*SHAPE, 3, 3))
    rows = np.take_along_axis(stays, order[..., None], axis=2)
    draws["move"] = np.take_along_axis(rows, order[:, :, None], axis=3)
    resolved = resolve(make_mcmc(draws), look=True)
    assert (resolved.source, resolved.blocks) == ("partial", ())
    assert resolved.reason == "`move` differs between labellings in the same way."


def test_two_groups_of_as_many_components_are_two_blocks(make_mcmc, rng):
    centre = [-3.0, 0.0, 3.0] + 0.2 * rng.normal(size=(2, *SHAPE, 3))
    orders = np.array(
        [[[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]], [[2, 1, 0], [0, 1, 2], [0, 1, 2], [1, 0, 2]]]
    )
    mu, nu = (
        np.stack([c[..., o] for c, o in zip(*each, strict=True)])
        for each in zip(centre, orders, strict=True)
    )
    found = diagnose(make_mcmc({"mu": mu, "nu": nu}))
    assert (found.verdict, sorted(found.exchangeable)) == ("aligned", ["mu", "nu"])


@pytest.mark.parametrize("pair", ["apart", "alike"])
def test_two_equal_entries_without_labels_stay_where_they_are(make_mcmc, rng, pair):
    """Each has two modes of its own, or one is about the other's mirror image: no order of the two is one mode."""
    both = np.where(rng.random((*SHAPE, 3)) < 0.5, -3.0, 3.0) + rng.normal(size=(*SHAPE, 3))
    if pair == "alike":
        both[..., 0] = rng.normal(size=SHAPE)
        both[..., 1] = 0.1 * rng.normal(size=SHAPE) - both[..., 0]
    both[..., 2] = 9 + rng.normal(size=SHAPE)
    assert resolve(make_mcmc({"beta": both}), look=True).source == "none"
