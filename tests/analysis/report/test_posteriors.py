"""The report of posteriors: what it shows of each kind, and what it says of those that it cannot take.

What pictures show, in words: levels and jumps of chains, ranks, lags, divergences.
"""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.page import Code, Details, FigureItem, render
from onebasin.analysis.report import chains, posterior_report
from onebasin.base.table import Table
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry import Exchangeable
from onebasin.models.symmetry.blocks import to_json

from ..conftest import dataset, mcmc_tree, without_figures
from .conftest import Page, assert_self_contained


@pytest.fixture
def posteriors(network_tree, make_variational, rng):
    x = rng.normal(size=(1, 100, 1, 2))
    density = -0.5 * (x**2).sum((2, 3))
    fit = make_variational({"W1": x, "W2": np.swapaxes(x, 2, 3)}, lp=density, log_q=density)
    return {"nuts": network_tree, "advi": fit}


def section_of(report, title):
    """The one section whose title begins so."""
    (section,) = [s for s in report.sections if s.title.startswith(title)]
    return section


def test_posterior_report_shows_both_kinds_of_posterior(posteriors, blank_figures):
    report = posterior_report(posteriors, title="Two ways")
    html = render(report)
    page = Page(html)
    assert_self_contained(page, html)
    titles = [section.title for section in report.sections]
    assert titles[0] == "Compared with nuts"
    assert titles[-2:] == ["nuts", "advi"]
    assert {"Optimisation", "Checks", "Cost"} <= set(titles)
    assert "Shape of the posterior" not in titles
    assert [run.name for run in report.provenance] == ["nuts", "advi"]
    # traces (one Markov chain), ELBO, and marginals of the variables that both have
    assert len(page.all("svg")) + len(page.all("img")) == 3
    assert page.text.index("advi: no difference of means") < page.text.index(
        "Posterior means and sds"
    )
    for text in ("k-hat", "E-BFMI", "target_accept = 0.8", "jax = 0.10.2", "a processor, 2 cores"):
        assert text in page.text


def test_posterior_report_works_on_any_stan_program(make_mcmc, rng, blank_figures):
    tree = make_mcmc({"theta": rng.normal(size=(2, 50, 2))}, attrs={"engine": "stan"})
    del tree["sample_stats"]
    for name in ("settings", "versions", "wall_time", "sampling_seconds", "warmup_seconds"):
        del tree.attrs[name]
    page = Page(render(posterior_report({"eight schools": tree})))
    assert "theta[1]" in page.text


def test_a_network_of_one_input_is_drawn_along_it_over_its_data(network_tree, blank_figures):
    section = section_of(posterior_report({"run": network_tree}), "Predictions")
    # The fixture's file does not describe its network.
    assert not any(isinstance(part, FigureItem) for part in section.parts)
    network = Network(1, (2,), 1, activation="relu")
    network_tree.attrs["model"] = BayesianNetwork(network).describe()
    section = posterior_report({"run": network_tree}).sections[0]  # before its weights
    assert section.title.startswith("Predictions")
    assert any(isinstance(p, FigureItem) for p in section.parts)


def test_posterior_report_lists_the_attempts_before_a_fit(make_variational, rng, blank_figures):
    one = rng.normal(size=(1, 50))
    attempts = json.dumps([{"eta": 1.0, "outcome": "NaN"}])
    tree = make_variational({"mu": one}, lp=one, log_q=one, attrs={"attempts": attempts})
    facts = dict(posterior_report({"fit": tree}).provenance[0].facts)
    assert facts["Tried before"] == "eta = 1.0, outcome = NaN"
    assert facts["Converged"] == "yes"


def _mixture(make_mcmc, rng, **attrs):
    """Two components; chain 1 has them the other way round, chain 2 from draw 150 on."""
    mu = np.asarray([-2.0, 2.0]) + 0.1 * rng.normal(size=(4, 250, 2))
    sigma = np.asarray([0.5, 1.5]) * np.exp(0.05 * rng.normal(size=(4, 250, 2)))
    for values in (mu, sigma):
        values[1] = values[1][:, ::-1]
        values[2, 150:] = values[2, 150:, ::-1]
    symmetry = to_json((Exchangeable({"mu": 0, "sigma": 0}),))
    return make_mcmc(
        {"mu": mu, "sigma": sigma}, attrs={"symmetry": symmetry, "target": "mixture", **attrs}
    )


@pytest.fixture(scope="module")
def of_mixture():
    """The report of that mixture, without figures."""
    with without_figures():
        tree = _mixture(mcmc_tree, np.random.default_rng(20170101))
        return posterior_report({"run": tree})


@pytest.fixture
def small_figures(monkeypatch):
    """Fewer panels a picture: drawing is what takes the time."""
    monkeypatch.setattr(chains, "PAIRED", 2)
    monkeypatch.setattr(chains, "WORST", 1)


def _parts(section):
    for part in section.all_parts:
        yield part
        if isinstance(part, Details):
            yield from part.parts


def _pictures(report):
    return [part for s in report.sections for part in _parts(s) if isinstance(part, FigureItem)]


def test_a_mixture_is_shown_before_and_after_alignment(of_mixture):
    section = section_of(of_mixture, "Labels")
    assert len([p for p in _parts(section) if isinstance(p, FigureItem)]) == 1
    tables = [p for p in _parts(section) if isinstance(p, Table)]
    assert [c.name for c in tables[0].headings].count("R-hat") == 2
    assert any(row[0] == "`lp`" for row in tables[1].rows)
    words = Page(render(of_mixture)).text.lower()
    assert "hidden unit" not in words
    assert "shape of the posterior" not in words
    assert "none of which passes" not in words


def test_every_picture_says_in_numbers_what_is_seen(make_mcmc, rng, small_figures):
    pictures = _pictures(posterior_report({"run": _mixture(make_mcmc, rng)}))
    assert len(pictures) >= 8
    for picture in pictures:
        assert any(character.isdigit() for character in picture.alt), picture.caption
        assert picture.caption


def test_generated_quantities_and_what_is_no_number_stand_apart(make_mcmc, rng, blank_figures):
    matrix = np.full((4, 50, 2, 2), np.nan)
    matrix[..., 0, 0] = 1.0
    matrix[..., 1, 0], matrix[..., 1, 1] = rng.normal(size=(2, 4, 50))
    tree = make_mcmc(
        {"mu": rng.normal(size=(4, 50)), "L": matrix, "log_lik": rng.normal(size=(4, 50, 30))}
    )
    report = posterior_report({"run": tree})
    section = section_of(report, "Parameters")
    first = next(p for p in section.parts if isinstance(p, Table))
    assert [row[0] for row in first.rows] == ["`mu`"]
    assert [group.heading[0].value for group in first.groups] == ["`L`"]
    (folded,) = [p for p in section.parts if isinstance(p, Details)]
    assert folded.summary == "Generated quantities"
    told = " ".join(report.answers[0].verdict.left_out)
    assert "`L[0,0]`: the same in every draw" in told
    assert "`L[0,1]`: never finite" in told
    assert "`log_lik` (generated quantities, as their names say)" in told


def test_predictive_checks_leave_one_out_and_sensitivity_stand_where_their_groups_do(
    make_mcmc, rng, blank_figures
):
    mu = rng.normal(size=(2, 60, 1)) * 0.2
    y = rng.normal(size=12)
    of_draws = ("chain", "draw", "obs")
    groups = {
        "posterior_predictive": xr.Dataset({"y": (of_draws, mu + rng.normal(size=(2, 60, 12)))}),
        "observed_data": xr.Dataset({"y": ("obs", y)}),
        "log_likelihood": xr.Dataset({"y": (of_draws, -0.5 * (y - mu) ** 2)}),
        "log_prior": dataset({"mu": -0.5 * mu[..., 0] ** 2}),
    }
    tree = make_mcmc({"mu": mu[..., 0]}, **groups)
    section = section_of(posterior_report({"run": tree}), "Predictions")
    tables = [p.headings[0].name for p in section.parts if isinstance(p, Table)]
    assert tables == ["statistic of a data set", "PSIS-LOO", "parameter"]
    assert not any(isinstance(p, str) and "store" in p for p in section.parts)
    for name in groups:
        del tree[name]
    section = section_of(posterior_report({"run": tree}), "Predictions")
    (line,) = section.parts
    assert "PSIS-LOO (store `log_likelihood`)" in line
    assert "store `posterior_predictive` and `observed_data`" in line


@pytest.mark.parametrize(
    ("attrs", "says"),
    [
        ({"top_level": '["mu"]'}, "or of the priors of `mu`. Values"),
        ({}, "which of `mu`, `z` are at the top"),
    ],
)
def test_only_priors_at_the_top_level_are_scaled(
    make_mcmc, rng, blank_figures, caplog, attrs, says
):
    mu, z = rng.normal(size=(2, 2, 60))
    terms = -((mu[..., None] - rng.normal(size=12)) ** 2)
    likelihood = xr.Dataset({"y": (("chain", "draw", "obs"), terms)})
    prior = dataset({"mu": -0.5 * mu**2, "z": -1e3 * z**2}).assign_attrs(attrs)
    tree = make_mcmc({"mu": mu}, log_prior=prior, log_likelihood=likelihood)
    section = section_of(posterior_report({"run": tree}), "Predictions")
    told = [p.caption if isinstance(p, Table) else str(p) for p in section.parts]
    assert any(says in text for text in told)
    assert not caplog.records


@pytest.mark.parametrize(("chains_", "draws"), [(1, 50), (4, 4)])
def test_one_chain_and_few_draws_have_a_page(make_mcmc, rng, chains_, draws, blank_figures):
    tree = make_mcmc(
        {"mu": rng.normal(size=(chains_, draws)), "b": rng.normal(size=(chains_, draws, 2))}
    )
    assert "May I use this posterior?" in Page(render(posterior_report({"run": tree}))).text


def test_several_are_held_against_the_chosen_truth(make_mcmc, rng, blank_figures):
    trees = {name: _mixture(make_mcmc, rng) for name in ("first", "second")}
    report = posterior_report(trees, truth="second")
    assert [card.name for card in report.answers] == ["first", "second"]
    beside = report.sections[0]
    assert beside.title == "Compared with second"
    (densities,) = [p for p in beside.parts if isinstance(p, FigureItem)]
    assert (
        "second −2.0" in densities.alt
        or "second 2.0" in densities.alt
        or "second 1.9" in densities.alt
    )
    (table,) = section_of(report, "Checks").parts
    places = [k for k, column in enumerate(table.headings) if column.name in ("R-hat", "bulk ESS")]
    assert not any(row[k].flag == "bad" for row in table.cells for k in places if row[k].note)


def test_provenance_tells_date_command_and_hashes_and_folds_the_program(
    make_mcmc, rng, blank_figures
):
    program = "parameters { real mu; } model { mu ~ normal(0, 1); } // <b>"
    attrs = {"program": program, "program_name": "normal.stan", "data_sha256": "ab" * 32}
    attrs |= {"restarts": "[[], [12], [], []]"}
    attrs |= {"command": "onebasin sample normal.stan", "created_at": "2026-11-22T05:00:00+00:00"}
    report = posterior_report({"run": make_mcmc({"mu": rng.normal(size=(4, 50))}, attrs=attrs)})
    facts = dict(report.provenance[0].facts)
    assert facts["Command"] == "onebasin sample normal.stan"
    assert facts["Made"] == "2026-11-22T05:00:00+00:00"
    assert facts["SHA-256 of the data"] == "ab" * 32
    (folded,) = section_of(report, "Model").parts
    assert folded.parts == (Code(program),)
    text = Page(render(report)).text
    assert "// <b>" in text


def test_an_ensemble_shows_its_training_and_no_sample_sizes(make_mcmc, rng, blank_figures):
    loss = np.exp(-np.linspace(0, 3, 50)) + 0.01 * rng.random((20, 50))
    training = xr.Dataset({"loss": (("member", "epoch"), loss)})
    tree = make_mcmc(
        {"W1": rng.normal(size=(1, 20, 1, 2))}, attrs={"method": "ensemble"}, training=training
    )
    report = posterior_report({"run": tree})
    section = section_of(report, "Optimisation")
    assert section.notes == ()
    assert not {"Chains", "Sampler"} & {s.title for s in report.sections}
