"""Fits as a user makes them: known evidence, and what bad input is told."""

from dataclasses import replace
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from onebasin.base.errors import InferenceError
from onebasin.inference import Symmetrised, infer
from onebasin.inference.variational.engine import TrainingLoop, planned
from onebasin.models import Target
from onebasin.models.symmetry.blocks import Exchangeable

from .problems import SPREAD, TWO_MODES, classification, regression, two_modes

QUICK = Symmetrised(
    steps=300, evaluate_every=100, elbo_samples=20, report_draws=50, draws=40, learning_rate=0.05
)
LONG = replace(QUICK, steps=2050, tolerance=0.0, report_draws=1000, samples=20, init_scale=0.3)


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    """By steps that are compiled once, whatever is left of them at the end."""
    loss = TrainingLoop.loss
    with patch.object(TrainingLoop, "loss", autospec=True, side_effect=loss) as traced:
        tree = infer(two_modes(), LONG, seed=1)
    assert traced.call_count == 1
    return tree


@pytest.fixture(scope="module")
def network() -> xr.DataTree:
    """Fits of a network that end where their traces are level."""
    settings = replace(QUICK, steps=3000, evaluate_every=50, tolerance=0.5, fits=2)
    return infer(regression(), settings, predictive_mb=0)


def test_fit_finds_a_posterior_that_is_a_symmetrised_gaussian(fitted):
    """Its evidence is one: the symmetrised ELBO reaches zero, which the ELBO misses by the information."""
    v = fitted["variational"]
    error = float(v["final_elbo_mcse"][0]) + float(v["information_lower_mcse"][0])
    assert float(v["symmetrised_elbo_lower"][0]) == pytest.approx(0.0, abs=5 * error + 0.01)
    assert float(v["final_elbo"][0]) < -0.6  # log 2 is what one of two modes lacks
    loc, scale = np.asarray(v["loc"][0]), np.asarray(v["scale"][0])
    np.testing.assert_allclose(np.sort(loc), np.sort(TWO_MODES), atol=0.05)
    np.testing.assert_allclose(scale, SPREAD, rtol=0.1)


@pytest.mark.full
def test_symmetrised_elbo_is_never_below_the_elbo_and_says_its_side(network):
    """Corollary 4.2 of the paper."""
    v = network["variational"]
    assert np.all(v["information"] >= 0)
    assert np.all(v["symmetrised_elbo_lower"] >= v["final_elbo"])
    assert np.all(v["information_upper"] <= network.attrs["log_group_order"])
    np.testing.assert_allclose(v["symmetrised_elbo"], v["elbo"] + v["information"])
    assert v["elbo"].dims == ("chain", "evaluation")
    assert network.attrs["mutual_information"] == network.attrs["information_side"] == "exact"
    sides = {n: v.attrs["side"] for n, v in v.data_vars.items() if "side" in v.attrs}
    assert sides["symmetrised_elbo_lower"] == "lower bound of the log evidence"
    assert "no bound of the log evidence" in sides["symmetrised_elbo_upper"]
    assert len(sides) == 8


def test_draws_come_from_the_reported_gaussian(fitted):
    v, draws = fitted["variational"], fitted["posterior"]["w"].values[0]
    residuals = (draws - v["loc"].values[0]) / v["scale"].values[0]
    expected = -0.5 * np.sum(residuals**2, 1) - np.log(2 * np.pi * np.prod(v["scale"].values[0]))
    np.testing.assert_allclose(fitted["sample_stats"]["log_q"].values[0], expected, rtol=1e-9)


def test_training_ends_early_where_the_trace_is_level(network):
    assert int(network["variational"]["iteration"][-1]) < 3000
    assert network.attrs["converged"] == 1
    assert np.all(network["variational"]["settled"] == 1)


@pytest.mark.slow
def test_minibatches_in_single_precision_keep_to_it():
    settings = replace(QUICK, batch_size=6, dtype="float32", anneal=0.3, schedule="constant")
    tree = infer(classification(), settings)
    assert tree["variational"]["loc"].dtype == np.float32
    assert np.isfinite(tree["variational"]["symmetrised_elbo_lower"].values).all()


def test_start_is_where_the_means_begin():
    begun = planned(two_modes(), replace(QUICK, fits=2)).begin(0, {"w": np.array([0.25, 7.0])})
    np.testing.assert_array_equal(begun.state.params["loc"], [[0.25, 7.0]] * 2)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`permutations` is 1"):
        planned(two_modes(), replace(QUICK, permutations=1, mutual_information="infonce"))
    with pytest.raises(ValueError, match=r"`batch_size` is 2, but .* no network"):
        infer(two_modes(), replace(QUICK, batch_size=2))
    with pytest.raises(ValueError, match=r"`anneal` must be a share from 0 to 1; got 2.0"):
        replace(QUICK, anneal=2.0)


def test_an_elbo_that_is_lost_is_an_error():
    def model() -> None:
        import numpyro
        from numpyro import distributions as dist

        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("gone", jnp.where(jnp.abs(w).sum() > 2.0, jnp.nan, 0.0))

    lost = Target("lost", numpyro_model=model, symmetry=(Exchangeable({"w": 0}),))
    with pytest.raises(InferenceError, match=r"'lost'.* not finite"):
        infer(lost, replace(QUICK, steps=100))
