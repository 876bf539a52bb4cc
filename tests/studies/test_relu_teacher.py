"""The two-unit teacher: its design, its verdicts, and a toy run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from onebasin.inference import AdviSettings, NutsSettings
from onebasin.inference.errors import AdviFailed
from onebasin.models.data import Dataset, load_data
from onebasin.studies.lab.study import Cell, Options, Outcomes
from onebasin.studies.relu_teacher import STUDY, conclusions, measures
from onebasin.studies.relu_teacher.design import Config, configure, dataset
from onebasin.studies.relu_teacher.measures import Results, measure_all
from onebasin.studies.relu_teacher.statements import statements

from .conftest import fake_posterior

SETTINGS = NutsSettings(chains=4, warmup=10, draws=250)
ADVI = AdviSettings(draws=400)


class InMemory(Outcomes):
    """Outcomes that were never written."""

    def tree(self, cell: Cell) -> xr.DataTree:
        return self.paths[cell]


@pytest.fixture(scope="module")
def results() -> Results:
    config = replace(configure(Options()), nuts=SETTINGS, advi=ADVI)
    trees = {}
    for cell in STUDY.cells(config):
        method = cell.method if cell.method == "nuts" else f"advi-{cell.method}"
        target = STUDY.target(config, cell)
        trees[cell] = fake_posterior(target, method, cell.engine, cell.settings, cell.seed)
    with pytest.MonkeyPatch.context() as patch:  # every point costs the time of its ESS
        patch.setattr(measures, "dataset", lambda seed: few_points())
        return measure_all(config, InMemory(trees, {}))


def few_points() -> Dataset:
    return load_data("relu-teacher", num_test=12)


def test_design_is_that_of_the_paper():
    config = configure(Options())
    cells = STUDY.cells(config)
    assert len(cells) == 4 * 3 * 2 + 2 * 2
    assert config.engines == ("numpyro", "stan")
    target = STUDY.target(config, cells[0])
    data = load_data("relu-teacher")
    np.testing.assert_array_equal(target.x, data.x)
    assert target.x.shape == (100, 2)
    assert target.model.network.hidden == (2,)
    assert target.model.infers_noise
    assert target.model.prior.weight_scale == 1.0
    labels = {STUDY.target(config, c).model.parametrisation.label for c in cells}
    assert labels == set(config.parametrisations)


def test_seed_changes_data_and_samplers():
    first, other = configure(Options()), configure(Options(seed=4))
    assert {cell.seed for cell in STUDY.cells(other)} == {4}
    assert not np.array_equal(dataset(first.seed).x, dataset(other.seed).x)


def test_measures_are_taken_against_the_true_function(results):
    data = few_points()
    cell = results.find("free", "nuts", "stan")
    found = results.measured[cell]
    mean = found.held_out.function.mean(axis=(0, 1))
    miss = mean - data.truth(data.held_out.x)
    assert found.bias == pytest.approx(float(miss.mean()))
    assert found.error == pytest.approx(float(np.sqrt((miss**2).mean())))
    assert found.held_out.scores.mse == pytest.approx(float(((mean - data.held_out.y) ** 2).mean()))
    depth = found.tree["sample_stats"].to_dataset()["tree_depth"]
    assert found.depth[0] == pytest.approx(float(depth.mean()))


def test_variational_cells_are_held_against_their_own_nuts(results):
    assert {cell.method for cell in results.gaps} == {"meanfield", "fullrank"}
    assert len(results.gaps) == 16
    # The stand-ins are draws of one distribution, so nothing is off but by chance.
    for found in results.gaps.values():
        assert found.in_sds < 4 * found.floor_in_sds
        assert found.sd_ratio == pytest.approx(1, abs=0.15)
    # Chains of independent draws agree, with any parametrisation whose stand-in is the same.
    assert {name: found.beyond for name, found in results.agreements.items()} == dict.fromkeys(
        results.agreements, 0
    )
    assert set(results.agreements) == set(configure(Options()).parametrisations)


def test_share_at_seam_is_that_of_unit_weights_alone(results):
    free = results.find("free", "nuts", "stan")
    assert np.isnan(results.measured[free].at_seam)
    givens = results.find("givens", "nuts", "stan")
    assert results.measured[givens].at_seam == 0


def test_draws_at_and_steps_across_the_seam_are_counted(tmp_path):
    from onebasin.inference.posterior import save

    config = Config(0, ("stan",), ("givens",), nuts=NutsSettings(chains=2, draws=40))
    cell = STUDY.cells(config)[0]
    tree = fake_posterior(STUDY.target(config, cell), "nuts", "stan", config.nuts, 0)
    weights = tree["posterior"].to_dataset()["W1"].values
    weights[:, ::4, :, 0] = [-np.cos(0.05), np.sin(0.05)]
    weights[:, 1::4, :, 0] = [-np.cos(0.2), -np.sin(0.2)]
    tree["posterior"] = (
        tree["posterior"].to_dataset().assign(W1=(("chain", "draw", "in", "hidden1"), weights))
    )
    paths = {cell: save(tree, tmp_path / "a.nc")}
    found = measure_all(config, Outcomes(paths, {})).measured[cell]
    assert found.at_seam == 0.25
    # Every fourth step goes across; the others go to and from the other side of the circle.
    assert found.crossings == pytest.approx(1000 * 10 / 39)


def verdicts(results: Results) -> list[str]:
    return [statement.verdict for statement in statements(results)]


def test_nothing_reproduces_where_all_posteriors_are_alike(results):
    found = verdicts(results)
    assert found[2:5] == ["does not reproduce"] * 3
    assert "reproduces" not in found


def test_verdicts_follow_the_numbers(results):
    shallow = {}
    for cell, found in results.measured.items():
        tree, attrs = found.tree.copy(deep=True), dict(found.tree.attrs)
        if cell.method == "nuts" and "givens" in cell.problem:
            stats = tree["sample_stats"].to_dataset()
            tree["sample_stats"] = stats.assign(tree_depth=stats["tree_depth"] - 1)
            attrs["gradient_evaluations"] = int(attrs["gradient_evaluations"]) // 2
        tree.attrs = attrs
        shallow[cell] = replace(found, tree=tree)
    gaps = {
        cell: replace(
            found,
            in_sds=0.5 if "givens" not in cell.problem else 0.1,
            sd_ratio=0.5 if "givens" not in cell.problem else 0.9,
        )
        for cell, found in results.gaps.items()
    }
    found = verdicts(replace(results, measured=shallow, gaps=gaps))
    assert found[2:] == ["reproduces"] * 5
    some = {c: replace(g, in_sds=0.5 if c.engine == "stan" else 0.1) for c, g in gaps.items()}
    some = {c: replace(g, sd_ratio=1.0) for c, g in some.items()}
    assert verdicts(replace(results, gaps=some))[4] == "unclear"


def test_chains_that_disagree_make_a_statement_unclear(results):
    cell = results.find("free", "nuts", "stan")
    held_out = results.measured[cell].held_out
    table = held_out.table.copy()
    table.loc[table.index[0], "rhat"] = 1.3
    bad = replace(results.measured[cell], held_out=replace(held_out, table=table))
    found = statements(replace(results, measured={**results.measured, cell: bad}))
    assert {statement.verdict for statement in found} == {"unclear"}
    for statement in found:
        void = [trial for trial in statement.trials if trial.holds is None]
        assert void
        assert all(trial.where.endswith("Stan") for trial in void)
        assert all("free" in trial.where for trial in void)


def test_statements_say_when_nothing_was_measured():
    empty = statements(Results({}, {}, {}, {}))
    assert {(s.outcome, s.verdict) for s in empty} == {("not measured in this run", "unclear")}


def test_page_counts_training_and_held_out_points_apart(monkeypatch):
    monkeypatch.setattr(conclusions, "dataset", lambda seed: few_points())
    text = conclusions._question(configure(Options())).text
    assert "100 training and 12 held-out points" in text


def test_page_stands_with_one_cell_and_with_failures(tmp_path):
    from onebasin.inference.posterior import save

    config = Config(0, ("stan",), ("free",), nuts=NutsSettings(chains=2, draws=40))
    nuts, meanfield, fullrank = STUDY.cells(config)
    tree = fake_posterior(STUDY.target(config, nuts), "nuts", "stan", config.nuts, 0)
    paths = {nuts: save(tree, tmp_path / "a.nc")}
    findings = STUDY.conclude(config, Outcomes(paths, {meanfield: "no", fullrank: "no"}))
    titles = [section.title for section in findings.report.sections]
    assert "What failed" in titles
    assert "Do the engines agree?" not in titles


@pytest.mark.parametrize(
    ("engine", "parametrisation"),
    [("numpyro", "givens"), pytest.param("stan", "ordered", marks=pytest.mark.stan)],
)
def test_toy_run(onebasin, here, monkeypatch, engine, parametrisation):
    from onebasin import inference

    def fail(*_: object, **__: object) -> None:
        raise AdviFailed("left out of the toy run", [])

    monkeypatch.setattr(inference, "advi", fail)
    answer = onebasin(
        "study", "relu-teacher", "--engine", engine, "--parametrisations", parametrisation,
        "--chains", "2", "--warmup", "50", "--draws", "50", "--out", "run", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    cell = f"{parametrisation}.nuts.{engine}"
    assert list(answer.json["cells"]) == [cell]
    assert answer.json["cells"][cell]["error"] < 0.5
    assert Path("run/report.html").stat().st_size > 50_000


@pytest.mark.stan
@pytest.mark.slow
def test_engines_agree_and_constrained_fits_are_made(onebasin, here):
    answer = onebasin(
        "study", "relu-teacher", "--parametrisations", "givens+ordered", "--json", "--out", "run"
    )
    assert answer.code == 0, answer.err
    agreement = answer.json["engines"]["givens+ordered"]
    assert agreement["rhat"] < 1.05
    assert agreement["beyond"] == 0
    made = set(answer.json["cells"]) | set(answer.json["failures"])
    assert len(made) == 6
