"""Posteriors whose verdict was wrong, or had the wrong reason: each mechanism once."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.diagnostics.causes import find_funnel
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.models.symmetry.exchangeable import Exchangeable

from ..conftest import autoregression
from .test_diagnose import SHAPE, mixture, regression


def test_a_parameter_that_no_symmetry_moves_is_judged_like_any_other(make_mcmc, rng):
    draws = mixture(rng, every_draw=True)
    alpha = rng.normal(size=SHAPE)
    alpha[2] += 4.0
    found = diagnose(make_mcmc(draws | {"alpha": alpha}))
    assert found.verdict == "unusable"
    assert "`alpha`" in found.judgement.causes[0].evidence, found.judgement.causes
    row = found.judgement.rows[1]
    assert (row.outcome, "`alpha`" in row.sentence) == ("failed", True), row


def test_single_integers_about_which_chains_disagree_forbid_use(make_mcmc, rng):
    """Two changepoints in whole years, in one order in two chains and in the other in the rest."""
    first, second = (rng.integers(at, at + 5, size=SHAPE) for at in (28, 68))
    swapped = (np.arange(4) % 2 == 1)[:, None]
    draws = regression(rng)
    assert diagnose(make_mcmc(draws | {"tau1": first, "tau2": second})).verdict == "usable"
    apart = {"tau1": np.where(swapped, second, first), "tau2": np.where(swapped, first, second)}
    found = diagnose(make_mcmc(draws | apart))
    assert (found.verdict, found.causes) == ("unusable", ("modes",))
    assert "`tau1` and `tau2`" in found.judgement.sentence
    assert not any("tau1" in sentence for sentence in found.judgement.left_out)
    assert found.judgement.rows[0].outcome == "not judged"


def test_allocations_are_judged_by_the_numbers_of_the_new_places(make_mcmc, rng):
    """As floats too, as tables hold them: they follow the labels, and alignment does not leave them behind."""
    draws = mixture(rng)
    place = np.argsort(draws["mu"], axis=2)[..., ::-1]
    z = np.where(rng.random((*SHAPE, 4)) < 0.9, place[..., [0, 1, 2, 0]], place[..., [1, 2, 0, 2]])
    found = diagnose(make_mcmc(draws | {"z": z + 1.0}), symmetry="mu,sigma")
    rows = [f"z[{k}]" for k in range(4)]
    assert found.verdict == "aligned"
    assert found.parameters.loc[rows, "rhat"].min() > 1.2
    assert found.shown.loc[rows, "rhat"].max() < 1.02
    said = " ".join((*found.judgement.left_out, *found.aligned.warnings))
    assert "R-hat is above" not in said and "still differ" not in said


def test_label_free_quantities_that_are_slow_are_named_where_labels_overlap(make_mcmc, rng):
    common = autoregression(rng, 0.9, SHAPE)
    mu = rng.normal(size=(*SHAPE, 3))
    both = mu, mu + common[..., None]
    quick, slow = (diagnose(make_mcmc({"mu": each}), symmetry="mu") for each in both)
    assert (quick.verdict, slow.verdict) == ("invariant", "unusable")
    assert slow.causes == ("labels", "short")
    assert "`mean(mu)` has" in slow.judgement.causes[1].evidence


def loadings(rng, angle):
    """Loadings of two factors, turned by an angle draw by draw."""
    base = np.random.default_rng(5).normal(size=(8, 2))
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=-1)
    return base @ turn.reshape(*SHAPE, 2, 2) + 0.3 * rng.normal(size=(*SHAPE, 8, 2))


@pytest.mark.parametrize("declared", [None, "+-L:1"])
def test_a_rotation_is_told_whether_signs_are_declared_or_not(make_mcmc, rng, declared):
    turned = loadings(rng, rng.uniform(0, 2 * np.pi, size=SHAPE))
    found = diagnose(make_mcmc({"L": turned, "alpha": rng.normal(size=SHAPE)}), symmetry=declared)
    assert (found.verdict, found.causes) == ("invariant", ("labels",))
    (cause,) = found.judgement.causes
    assert "`L` turn into one another" in cause.evidence
    assert "L L'" in cause.remedy
    assert ("--exchangeable @L:1" in cause.remedy) == (declared is None)


def test_labels_that_differ_in_height_are_no_equal_modes(make_mcmc, rng):
    """Components whose priors differ a little: a chain in the other order lies two nats lower."""
    draws = mixture(rng)
    lp = -0.5 * rng.chisquare(4, size=SHAPE)
    lp[1] -= 2.0
    found = diagnose(make_mcmc(draws, stats={"lp": lp}))
    assert (found.verdict, found.causes[0], found.exchangeable) == ("unusable", "modes", ())
    remedies = " ".join(cause.remedy for cause in found.judgement.causes)
    assert "Declare" not in remedies
    assert "weight modes" in remedies
    row = found.judgement.rows[0]
    assert row.outcome == "not judged", row


def test_chains_of_one_labelling_in_two_modes_have_no_labels_that_switch(make_mcmc, rng):
    """The symmetry is declared, all chains have one labelling, and one lies elsewhere."""
    mu = 9.0 * np.arange(3) + rng.normal(size=(*SHAPE, 3))
    mu[2] += np.array([0.0, 4.0, 0.0])
    found = diagnose(make_mcmc({"mu": mu}), symmetry="mu")
    assert (found.verdict, found.causes) == ("unusable", ("modes",))
    assert "one labelling" in found.judgement.rows[0].sentence


def test_a_chain_in_a_lower_mode_is_no_part_of_a_symmetry(make_mcmc, rng):
    """Its scalars differ from the other chains' as companions of switched labels would; it lies 50 nats lower."""
    share = rng.dirichlet([30.0, 70.0], size=SHAPE)
    share[0] = share[0][:, ::-1]
    scalar, lp = rng.normal(size=SHAPE), -0.5 * rng.chisquare(4, size=SHAPE)
    scalar[0] += 9.0
    alike = diagnose(make_mcmc({"share": share, "tau": scalar}, stats={"lp": lp}))
    assert alike.causes[0] == "labels"
    lp[0] -= 50.0
    found = diagnose(make_mcmc({"share": share, "tau": scalar}, stats={"lp": lp.copy()}))
    assert (found.verdict, found.causes) == ("unusable", ("modes",))


def test_heights_are_those_of_the_parameters_and_not_of_their_bounds(make_mcmc, rng):
    """Modes of one density, at other places between bounds: what is sampled has the Jacobian of these in it."""
    places = np.array([0.3, 3.0, 0.3, 3.0])[:, None]
    x = places + 0.01 * rng.normal(size=SHAPE)
    lp = -0.5 * ((x - places) / 0.01) ** 2
    jacobian = np.log(x * (6 - x) / 6)
    tree = make_mcmc({"x": x}, stats={"lp": lp + jacobian})
    by_lp = diagnose(tree).judgement.causes[0]
    assert "nats lower" in by_lp.evidence
    draws = {"x": ((*tree.posterior["x"].dims,), lp)}

    def density(values):
        every = values.sizes["draw"]
        return xr.Dataset(draws)["x"][:, :: SHAPE[1] // every][:, :every]

    found = diagnose(tree, log_density=density)
    assert found.causes[0] == "modes"
    assert "equal" in found.judgement.causes[0].evidence


def test_chains_that_disagree_leave_labels_open(make_mcmc, rng):
    """No labels are seen to switch, which says nothing as long as chains lie apart."""
    a, b = rng.normal(size=(2, *SHAPE))
    a[0] += 6.0
    b[1] += 3.0
    found = diagnose(make_mcmc({"a": a, "b": b}))
    assert found.verdict == "unusable"
    assert found.judgement.rows[0].outcome != "passed", found.judgement.rows


def test_a_log_density_that_mixes_slowly_is_not_said_to_disagree(make_mcmc, rng):
    lp = 1.9 * autoregression(rng, 0.85, SHAPE)
    found = diagnose(make_mcmc(regression(rng), stats={"lp": lp}))
    row = found.judgement.rows[1]
    assert row.outcome == "failed"
    if found.sampler.lp_rhat < 1.05:
        assert "effective draws" in row.sentence and "agree" not in row.sentence, row


def test_draws_that_are_lacking_are_counted_on_what_is_identified(make_mcmc, rng):
    """Loadings that rotate at every draw need no draws; `alpha`, which mixes slowly, does."""
    turned = loadings(rng, rng.uniform(0, 2 * np.pi, size=SHAPE))
    found = diagnose(make_mcmc({"L": turned, "alpha": autoregression(rng, 0.9, SHAPE)}))
    assert found.verdict == "unusable"
    assert "`alpha`" in found.judgement.causes[0].evidence, found.judgement.causes


@pytest.mark.parametrize("name", ["lp", "energy"])
def test_a_log_density_that_is_no_number_is_a_finding(make_mcmc, rng, name):
    broken = rng.normal(size=SHAPE)
    broken[1, 250:] = np.nan
    found = diagnose(make_mcmc(regression(rng), stats={name: broken}))
    assert (found.verdict, found.causes) == ("unusable", ("not-finite",))


@pytest.mark.parametrize("shape", [(4, 4), (128, 9)])
def test_short_chains_are_too_short_and_not_stuck(make_mcmc, rng, shape):
    found = diagnose(make_mcmc({"mu": rng.normal(size=(*shape, 2))}))
    assert (found.verdict, found.causes) == ("unusable", ("short",))
    still = rng.normal(size=(*shape, 2))
    still[1] = still[1, :1]
    assert "stuck" in diagnose(make_mcmc({"mu": still})).causes


def test_a_precision_has_its_neck_where_it_is_large(rng):
    log_precision = rng.normal(size=SHAPE)
    theta = rng.normal(size=(*SHAPE, 9)) * np.exp(-log_precision / 2)[..., None]
    diverging = log_precision > np.quantile(log_precision, 0.97)
    found = find_funnel({"precision": np.exp(log_precision), "theta": theta}, diverging)
    assert (found.scale, found.vector, found.large) == ("precision", "theta", True)
    assert found.rank < 0.05
    assert found.there == found.divergences == diverging.sum()


def test_chains_in_different_modes_are_no_funnel(rng):
    scale = np.exp(0.1 * rng.normal(size=SHAPE)) * np.array([1.0, 2.0, 4.0, 8.0])[:, None]
    apart = rng.normal(size=(*SHAPE, 5)) * np.array([1.0, 2.0, 4.0, 8.0])[:, None, None]
    assert find_funnel({"tau": scale, "theta": apart}, None) is None
    wide = np.exp(rng.normal(size=SHAPE))
    theta = rng.normal(size=(*SHAPE, 5)) * wide[..., None]
    found = find_funnel({"tau": wide, "theta": theta}, None)
    assert (found.scale, found.vector) == ("tau", "theta")


def test_the_sum_of_a_simplex_in_single_precision_is_no_variation(make_mcmc, rng):
    weight = rng.dirichlet([8.0, 2.0], size=SHAPE)
    weight[::2] = weight[::2, :, ::-1]
    single = weight.astype(np.float32)
    assert len(np.unique(single.sum(axis=-1, dtype=np.float64))) > 1
    found = diagnose(make_mcmc({"w": single}), symmetry=(Exchangeable({"w": 0}),))
    quantities = found.aligned.invariants["rhat"]
    assert np.isnan(quantities["mean(w)"])
    assert quantities.max() < 1.01


def test_means_that_need_not_exist_are_named(rng):
    """R-hat and ESS are of ranks: those of a Cauchy are good."""
    shape = 4, 500
    draws = {
        "cauchy": rng.standard_cauchy(shape),
        "inverse": 1 / rng.gamma(2, size=shape),
        "lognormal": np.exp(rng.normal(size=shape)),
        "t": rng.standard_t(4, shape),
    }
    diagnosis = diagnose(draws)
    assert diagnosis.verdict == "usable"
    assert list(diagnosis.heavy_tails) == ["cauchy", "inverse"]
    said = str(diagnosis)
    assert "Tails of `cauchy` are too heavy for a mean or an sd" in " ".join(said.split())
    assert "Tails of `inverse` are too heavy for an sd" in " ".join(said.split())
