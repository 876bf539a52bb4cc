"""What is said of microcanonical draws: unadjusted ones are biased by their steps, and modes are no convergence."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from onebasin import diagnose
from onebasin.models import BayesianNetwork, Gaussian, Network
from onebasin.networks import summarise_predictions

from ..conftest import mcmc_tree


def posterior(variance: float | None = 0.01, shift: float = 0.0) -> xr.DataTree:
    """Four chains of independent draws, the last one shifted, as mclmc would hand them back."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 500, 3))
    x[-1] += shift
    stats = {"lp": -0.5 * (x**2).sum(-1), "tree_depth": None, "energy": None}
    if variance is not None:
        stats |= {"acceptance_rate": None, "energy_variance": np.full((4, 500), variance)}
    return mcmc_tree({"x": x}, stats=stats, attrs={"method": "mclmc"})


def test_bias_is_said_of_unadjusted_draws_that_agree() -> None:
    found = diagnose(posterior())
    assert found.verdict == "usable"
    assert "bias from the step size" in found.judgement.sentence
    assert found.outcome_of("step-size bias") == "not judged"
    assert any("`adjusted=True`, or `nuts`" in said for said in found.judgement.unjudged)
    (sampler,) = (row for row in found.judgement.rows if row.name == "sampler")
    assert sampler.outcome == "not judged"
    assert "0.01 per parameter" in sampler.sentence


def test_adjusted_draws_have_no_bias_and_no_energy_to_judge() -> None:
    found = diagnose(posterior(None))
    assert found.verdict == "usable"
    assert "bias" not in found.judgement.sentence
    assert {c.outcome for c in found.checks} == {"passed"}
    assert found.outcome_of("E-BFMI") is None
    assert found.outcome_of("tree depth") is None


def with_identities(shift=(0.0, 0.05), spread=(0.0, 0.1)):
    """Draws whose gradients were looked at; what is certain and what is possible of both identities."""
    tree = posterior()
    found = {"shift": ("x[0]", *shift), "spread": ("x[2]", *spread)}
    names = ("coordinate", "least", "most")
    tree.attrs["stein_identities"] = json.dumps(
        {name: dict(zip(names, values, strict=True)) for name, values in found.items()}
    )
    return tree


def test_gradients_that_fit_are_evidence_and_pass() -> None:
    found = diagnose(with_identities())
    assert (found.verdict, found.outcome_of("step-size bias")) == ("usable", "passed")
    assert "bias from the step size" not in found.judgement.sentence
    (sampler,) = (row for row in found.judgement.rows if row.name == "sampler")
    assert "no mean is off by more than 0.05 standard deviations" in sampler.sentence
    assert "no variance by more than 10%" in sampler.sentence


@pytest.mark.parametrize("wide", [{"shift": (0.02, 0.15)}, {"spread": (0.1, 0.3)}])
def test_what_is_not_excluded_is_not_judged(wide: dict) -> None:
    found = diagnose(with_identities(**wide))
    assert (found.verdict, found.outcome_of("step-size bias")) == ("usable", "not judged")
    assert "may have a bias from the step size" in found.judgement.sentence
    assert any("Take more draws" in said for said in found.judgement.unjudged)


def test_a_bias_that_is_certain_is_said_beside_the_answer() -> None:
    found = diagnose(with_identities((0.12, 0.2), (0.25, 0.4)))
    assert (found.verdict, found.outcome_of("step-size bias")) == ("usable", "warned")
    assert "mean of `x[0]` is off by at least 0.12 standard deviations" in found.judgement.sentence
    assert "variance of `x[2]` is off by at least 25%" in found.judgement.sentence


@pytest.mark.parametrize("gross", [{"shift": (0.3, 0.4)}, {"spread": (0.6, 1.3)}])
def test_a_gross_bias_forbids_use(gross: dict) -> None:
    found = diagnose(with_identities(**gross))
    assert (found.verdict, found.causes) == ("unusable", ("step-size",))
    assert "`adjusted=True`" in found.judgement.causes[0].remedy


def test_steps_that_lose_the_density_fail() -> None:
    found = diagnose(posterior(6.0))
    assert (found.verdict, found.causes) == ("unusable", ("step-size",))
    assert found.outcome_of("step-size bias") == "failed"
    assert any(
        "Lower `energy_variance`" in said for check in found.checks for said in check.sentences
    )


def test_predictions_are_judged_whatever_the_labels(make_network, rng) -> None:
    model = BayesianNetwork(Network(1, (2,)), Gaussian(noise_sd=0.1))
    tree, x = make_network(rng, draws=200, swap=True, model=model.describe()), np.eye(5)[:, :1]
    table = summarise_predictions(tree, x)
    assert list(table.index) == [f"f[{i},0]" for i in range(5)]
    assert table["rhat"].max() < 1.02
    assert table["ess_bulk"].min() > 400
    tree["posterior"]["b2"].values[-1] += 2.0
    assert summarise_predictions(tree, x)["rhat"].min() > 1.3
