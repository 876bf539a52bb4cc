"""ADVI of networks, annealed, from He's start, with its parameters recorded."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from onebasin import Target, open_posterior, save
from onebasin.base.seeds import Purpose, keys_for
from onebasin.inference import Advi, infer
from onebasin.inference.variational.engine import annealed, divergence_weight, planned, step_sizes

from ..known import linear_target
from .problems import broken, classification

pytestmark = pytest.mark.full

SHORT = Advi(
    iterations=200,
    gradient_samples=8,
    elbo_samples=64,
    evaluate_every=50,
    tolerance=0.0,
    draws=20,
    learning_rate=0.01,
    schedule="cosine",
    anneal=0.5,
    init="he",
    init_scale=0.05,
    trace_parameters=True,
    dtype="float32",
)
"""Short."""


def fit(target: Target, settings: Advi = SHORT, **how: Any) -> xr.DataTree:
    """A fit without what is computed beside its draws."""
    return infer(target, settings, predictive_mb=0, **how)


@pytest.fixture(scope="module")
def both() -> xr.DataTree:
    """Ordered biases and skips."""
    return fit(broken(skip="orthogonal", biases="ordered"), seed=2)


def test_networks_of_the_paper_are_fitted(both):
    variational = both["variational"]
    assert variational["loc"].dtype == np.float32
    assert float(variational["elbo"][-1]) > float(variational["elbo"][0])
    assert np.all(np.diff(both["posterior"]["b2"].values, axis=-1) > 0)


def test_training_takes_batches_of_a_classifier():
    elbo = fit(classification(), replace(SHORT, batch_size=6, iterations=400))["variational"][
        "elbo"
    ].values
    assert elbo[-1] > elbo[0] + 5


def test_he_is_where_the_means_start():
    plan = planned(broken(biases="ordered"), SHORT)
    expected = plan.density.he_starts(keys_for(Purpose.MEMBER_START, 5, 1))
    np.testing.assert_array_equal(plan.begin(5).state.params["loc"], expected)


def test_parameters_are_traced_to_the_end(both, tmp_path):
    for tree in (both, open_posterior(save(both, tmp_path / "fit.nc"))):
        found = tree["variational"]
        assert found["loc_trace"].dims == found["scale_trace"].dims == ("evaluation", "param")
        assert found["loc_trace"].sizes["evaluation"] == found["elbo"].size == 4
        np.testing.assert_array_equal(found["loc_trace"][-1], found["loc"])
        np.testing.assert_array_equal(found["scale_trace"][-1], found["scale"])
        assert not np.array_equal(found["loc_trace"][0], found["loc_trace"][-1])


def test_annealing_starts_from_the_likelihood_alone():
    """With the divergence held back throughout, q is narrower than with all of it."""

    def sd(anneal: float) -> float:
        settings = replace(SHORT, anneal=anneal)
        return float(fit(linear_target(), settings)["variational"]["scale"].mean())

    assert sd(1.0) < sd(0.0)


def test_stopping_rule_waits_for_the_whole_divergence():
    """Without annealing it would be met after 11 evaluations."""
    settings = replace(SHORT, tolerance=1e9, evaluate_every=10, iterations=300, anneal=0.6)
    found = fit(linear_target(), settings)
    assert found.attrs["converged"] == 1
    assert int(found["variational"]["iteration"][-1]) == 180


def test_step_sizes_and_the_divergences_weight_are_those_named():
    steps = np.array([0, 50, 100])
    cosine, exponential = (step_sizes(word, 0.2, 100) for word in ("cosine", "exponential"))
    np.testing.assert_allclose([cosine(s) for s in steps], [0.2, 0.1, 0.0], atol=1e-9)
    np.testing.assert_allclose([exponential(s) for s in steps], [0.2, 0.02, 0.002], rtol=1e-6)
    assert step_sizes("constant", 0.2, 100) == 0.2
    weights = [float(divergence_weight(jnp.asarray(s), 0.5, 100)) for s in (0, 24, 49, 99)]
    np.testing.assert_allclose(weights, [0.02, 0.5, 1.0, 1.0])
    assert annealed(0.5, 101) == 51
