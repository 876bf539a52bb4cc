"""Chains that differ as if labels had switched, in posteriors that have no such symmetry, or a wider one."""

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.alignment.align import align
from onebasin.analysis.diagnostics.diagnose import diagnose

from ..conftest import autoregression
from .test_diagnose import SHAPE

SWAPPED = np.array([False, False, True, True])


def density(rule):
    """A log density by numbers of draws: `rule` takes arrays (chain, draw, *event)."""

    def of(values):
        found = rule({name: value.values for name, value in values.items()})
        return xr.DataArray(found, dims=("chain", "draw"))

    return of


def mirrored(rng):
    """Two modes about 0 in three dimensions, one of which is narrower and higher."""
    x = rng.normal(-3.8, 1.0, size=(*SHAPE, 3))
    x[3] = rng.normal(3.8, 0.75, size=(SHAPE[1], 3))

    def rule(values):
        width = np.where(values["x"].mean(axis=-1) > 0, 0.75, 1.0)
        away = (np.abs(values["x"]) - 3.8) ** 2
        return -0.5 * away.sum(axis=-1) / width**2 - 3 * np.log(width)

    return {"x": x, "other": rng.normal(size=SHAPE)}, rule


def exchanged(rng):
    """Two rates that change places if a volume changes with them; the volume's prior knows which is which."""
    low, high = 0.15 + 0.005 * rng.normal(size=SHAPE), 1.3 + 0.1 * rng.normal(size=SHAPE)
    swap = SWAPPED[:, None]
    into, out = np.where(swap, low, high), np.where(swap, high, low)
    volume = np.where(swap, 1.15, 10.2) * np.exp(0.05 * rng.normal(size=SHAPE))

    def rule(values):
        level = np.log(values["volume"] / values["into"])
        return -0.5 * ((level - np.log(10.2 / 1.3)) / 0.05) ** 2

    return {"into": into, "out": out, "volume": volume}, rule


@pytest.mark.parametrize(
    "make, by_draws", [(mirrored, ("modes",)), (exchanged, ("modes", "labels"))]
)
def test_modes_that_no_symmetry_joins_are_modes(make_mcmc, rng, make, by_draws):
    draws, rule = make(rng)
    tree = make_mcmc(draws)
    alone = diagnose(tree)
    assert (alone.verdict, alone.causes, alone.exchangeable) == ("unusable", by_draws, ())
    found = diagnose(tree, log_density=density(rule))
    assert (found.verdict, found.causes, found.exchangeable) == ("unusable", ("modes",), ())
    with pytest.raises(ValueError, match="cannot be aligned"):
        align(tree)


def mixture(rng):
    """Means of two parts that are far apart, and spreads that are alike."""
    mu = np.array([-2.0, 2.0]) + 0.2 * rng.normal(size=(*SHAPE, 2))
    mu[SWAPPED] = mu[SWAPPED][..., ::-1]
    return {"mu": mu, "sigma": np.exp(0.2 * rng.normal(size=(*SHAPE, 2)))}


def test_vectors_whose_parts_are_alike_move_along_where_the_density_wants_it(make_mcmc, rng):
    draws = mixture(rng)
    tree = make_mcmc(draws)

    def pairs(values):
        return (values["mu"] * values["sigma"]).sum(axis=-1)

    found = diagnose(tree, log_density=density(pairs))
    assert (found.verdict, found.exchangeable) == ("aligned", ("mu,sigma",))
    moved = align(tree, log_density=density(pairs)).posterior["posterior"]
    assert (moved["sigma"].values != draws["sigma"]).any(axis=(1, 2)).sum() == 2
    one = diagnose(tree, log_density=density(lambda v: v["sigma"][..., 0] + v["mu"][..., 0]))
    assert (one.verdict, one.causes[0]) == ("unusable", "labels")


def test_a_square_whose_parts_are_alike_moves_along(make_mcmc, rng):
    """States that are regressions stay equally long: their transitions do not show the labels."""
    stay = rng.beta(60, 6, size=(*SHAPE, 2))
    move = np.stack([stay, 1 - stay], axis=-1)
    move[..., 1, :] = move[..., 1, ::-1]
    draws = {"move": move, "slope": mixture(rng)["mu"]}
    tree = make_mcmc(draws)

    def rule(values):
        return (values["move"].diagonal(axis1=-2, axis2=-1) * values["slope"]).sum(axis=-1)

    for given in ({}, {"log_density": density(rule)}):
        found = diagnose(tree, **given)
        assert (found.verdict, found.exchangeable) == ("aligned", ("move:0:1,slope",))
    moved = {name: v.values for name, v in align(tree).posterior["posterior"].items()}
    assert rule(moved) == pytest.approx(rule(draws), abs=1e-12)


def test_only_the_components_that_change_places_are_exchanged_where_the_density_says_so(
    make_mcmc, rng
):
    """The middle one has a prior of its own."""
    mu = np.array([-3.0, 0.0, 3.0]) + 0.2 * rng.normal(size=(*SHAPE, 3))
    mu[SWAPPED] = mu[SWAPPED][..., ::-1]

    def rule(values):
        return values["mu"].sum(axis=-1) + values["mu"][..., 1]

    given = {"log_density": density(rule)}
    tree = make_mcmc({"mu": mu})
    found = diagnose(tree, **given)
    assert (found.verdict, found.exchangeable) == ("aligned", ("mu[0]~mu[2]",))
    sides = [align(tree, **each).posterior["posterior"]["mu"].values for each in (given, {})]
    assert np.array_equal(*sides)
    assert diagnose(tree).exchangeable == ("mu",)


@pytest.mark.parametrize("what", ["lp", "mu"])
def test_labellings_that_differ_a_little_after_alignment_are_modes(make_mcmc, rng, what):
    """Priors that nearly agree: aligned R-hat passes, and the draws are no one posterior's."""
    draws, lp = mixture(rng), rng.normal(size=SHAPE)
    tree = make_mcmc(draws, stats={"lp": lp})
    assert diagnose(tree).verdict == "aligned"
    if what == "lp":
        lp = lp - 0.6 * SWAPPED[:, None]
    else:
        draws["mu"] = draws["mu"] + 0.08 * SWAPPED[:, None, None]
    tree = make_mcmc(draws, stats={"lp": lp})
    found = diagnose(tree)
    assert (found.verdict, found.causes, found.exchangeable) == ("unusable", ("modes",), ())
    with pytest.raises(
        ob.OnebasinError, match=f"Labellings still differ in `{what}` after alignment"
    ):
        align(tree)


def test_parts_that_keep_one_order_do_not_change_places(make_mcmc, rng):
    draws = mixture(rng)
    tree = make_mcmc({"mu": draws["mu"], "first": np.sort(rng.normal(size=(*SHAPE, 2)), axis=-1)})
    found = diagnose(tree)
    assert (found.verdict, found.causes[0]) == ("unusable", "labels")
    assert "`first` has its components in the same order" in found.judgement.causes[0].evidence
    beside = make_mcmc({"mu": draws["mu"], "first": rng.normal(size=(*SHAPE, 2))})
    assert diagnose(beside).verdict == "aligned"


def test_labels_that_alignment_sorts_leave_only_the_draws_short(make_mcmc, rng):
    """Slow chains, each in one labelling that is declared: aligned R-hat passes, the ESS does not."""
    mu = np.array([-9.0, 9.0]) + autoregression(rng, 0.8, (4, 1500, 2))
    mu[SWAPPED] = mu[SWAPPED][..., ::-1]
    found = diagnose(make_mcmc({"mu": mu}), symmetry="mu", ess_threshold=1000)
    assert found.aligned.aligned.rhat.value < 1.02
    assert (found.verdict, found.causes) == ("unusable", ("short", "labels"))
    assert "does not bring" not in " ".join([found.judgement.sentence, *map(str, found.checks)])


def test_log_densities_whose_heights_are_alike_are_not_said_to_disagree(make_mcmc, rng):
    """Modes between bounds, whose Jacobian moves `lp` by less than a nat."""
    lp = 0.3 * rng.normal(size=SHAPE) + np.array([0.0, 0.3, 0.6, 0.3])[:, None]
    away = np.arange(4.0)[:, None] + 0.02 * rng.normal(size=SHAPE)
    found = diagnose(make_mcmc({"away": away}, stats={"lp": lp}))
    assert found.sampler.lp_rhat > 1.05
    assert (found.verdict, found.causes) == ("unusable", ("modes",))
    row = found.judgement.rows[1]
    assert row.outcome == "failed"
    assert "do not agree" not in row.sentence
