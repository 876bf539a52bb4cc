"""The report of posteriors: what it shows of each kind, and what it says of those that it cannot take."""

import json

import numpy as np
import pytest

from onebasin.analysis.report import Note, posterior_report, render

from .conftest import Page, assert_self_contained


@pytest.fixture
def posteriors(network_tree, make_variational, rng):
    x = rng.normal(size=(1, 100, 1, 2))
    density = -0.5 * (x**2).sum((2, 3))
    fit = make_variational({"W1": x, "W2": np.swapaxes(x, 2, 3)}, lp=density, log_q=density)
    return {"nuts": network_tree, "advi": fit}


def test_posterior_report_shows_both_kinds_of_posterior(posteriors):
    report = posterior_report(posteriors, title="Two ways")
    html = render(report)
    page = Page(html)
    assert_self_contained(page, html)
    titles = [section.title for section in report.sections]
    assert titles[0] == "Beside nuts"
    assert titles[-2:] == ["nuts", "advi"]
    assert {"Optimisation", "Checks", "Cost"} <= set(titles)
    assert "Shape of the posterior" not in titles
    assert [run.name for run in report.provenance] == ["nuts", "advi"]
    # traces (one Markov chain), ELBO; variables differ, so that nothing is drawn over each other
    assert len(page.all("svg")) + len(page.all("img")) == 2
    assert "They are not compared: posteriors['advi'] lacks b1, b2, sigma" in page.text
    for text in ("k-hat", "E-BFMI", "target_accept = 0.8", "jax = 0.10.2", "a processor, 2 cores"):
        assert text in page.text


def test_posterior_report_flags_what_diagnose_warns_of(posteriors):
    diverging = np.zeros((4, 100), bool)
    diverging[1, :5] = True
    posteriors["nuts"]["sample_stats"]["diverging"].values[:] = diverging
    report = posterior_report(posteriors)
    (section,) = [s for s in report.sections if s.title == "nuts"]
    assert any(
        "5 of 400 draws diverged" in note.text for note in section.parts if isinstance(note, Note)
    )
    page = Page(render(report))
    assert any(row[0].startswith("nuts") and "5✗" in row for row in page.cells)


def test_posterior_report_works_on_any_stan_program(make_mcmc, rng):
    tree = make_mcmc({"theta": rng.normal(size=(2, 50, 2))}, attrs={"engine": "stan"})
    del tree["sample_stats"]
    for name in ("settings", "versions", "wall_time", "sampling_seconds", "warmup_seconds"):
        del tree.attrs[name]
    page = Page(render(posterior_report({"eight schools": tree})))
    assert "theta[1]" in page.text


def test_posterior_report_lists_the_attempts_before_a_fit(make_variational, rng):
    one = rng.normal(size=(1, 50))
    attempts = json.dumps([{"eta": 1.0, "outcome": "NaN"}])
    tree = make_variational({"mu": one}, lp=one, log_q=one, attrs={"attempts": attempts})
    facts = dict(posterior_report({"fit": tree}).provenance[0].facts)
    assert facts["Tried before"] == "eta = 1.0, outcome = NaN"
    assert facts["Converged"] == "yes"


def test_posterior_report_names_the_posterior_that_cannot_be_diagnosed(make_mcmc, rng):
    good, bad = rng.normal(size=(2, 50)), np.full((2, 50), np.nan)
    trees = {"good": make_mcmc({"mu": good}), "bad.nc": make_mcmc({"mu": bad})}
    with pytest.raises(
        ValueError, match=r"`posteriors\['bad\.nc'\]` holds 100 draws that are not finite"
    ):
        posterior_report(trees)


def test_posterior_report_refuses_nothing():
    with pytest.raises(ValueError, match="`posteriors` is empty"):
        posterior_report({})
