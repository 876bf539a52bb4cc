"""Label switching: the design, measures on planted posteriors, and a quick run."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.base.errors import StudyError
from onebasin.inference import Nuts
from onebasin.inference.density.symmetry import SymmetryError
from onebasin.inference.runs.posterior import build
from onebasin.models import Exchangeable
from onebasin.models.symmetry.group import Group
from onebasin.models.target import Target
from onebasin.studies.lab import Context, Frames, Options, Outcomes
from onebasin.studies.lab.study import measure
from onebasin.studies.label_switching import STUDY, design, measures
from onebasin.studies.label_switching.design import LabelSwitchingConfig, configure
from onebasin.studies.label_switching.measures import compare
from onebasin.studies.label_switching.page import trace_figure
from onebasin.truth.alignment_failures import PlantedComponents
from onebasin.truth.alignment_recovery import recover
from onebasin.truth.figures import plot_recovery
from onebasin.truth.problems.label_switching import condition, simulate

from ..command_fixtures import InMemory, chain_stats
from ..each import each


def few_planted(patch: pytest.MonkeyPatch) -> None:
    """Failure rates have tests of their own."""
    patch.setattr(measures, "PLANTED", PlantedComponents(draws=40, repeats=1))
    patch.setattr(measures, "SEPARATIONS", (0.0, 6.0))


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    few_planted(monkeypatch)


NUTS = Nuts(chains=4, warmup=10, draws=400)


def planted(target: Target, truth: Mapping[str, np.ndarray], how: dict[str, Any]) -> xr.DataTree:
    """Independent draws around the truth, each chain in a labelling of its own unless told otherwise."""
    settings, seed = how["settings"], how["seed"]
    shape = (settings.chains, settings.draws)
    rng = np.random.default_rng([seed, *target.name.encode(), *how["engine"].encode()])
    draws = {
        name: value + how.get("spread", 0.02) * rng.normal(size=(*shape, *value.shape))
        for name, value in truth.items()
    }
    names = {name for block in target.symmetry for name in block.variables}
    group = Group(target.symmetry, {name: truth[name].shape for name in names})
    first = how.get("first", 0)
    orders = list(itertools.islice(group.elements(), first, first + settings.chains))
    for chain, element in enumerate(orders[:1] * len(orders) if how.get("alike") else orders):
        every = tuple(
            type(part)(*(a if a is None else np.tile(a, (shape[1], *[1] * a.ndim)) for a in part))
            for part in element
        )
        moved = group.act(every, {name: draws[name][chain] for name in names})
        for name, value in moved.items():
            draws[name][chain] = value
    sampled = {
        "lp": rng.normal(size=shape),
        **chain_stats(shape, rng, tree_depth=np.full(shape, 3)),
    }
    attributes = {"engine": how["engine"], "method": "nuts", "seed": seed, "wall_time": 1.5}
    attributes |= {"gradient_evaluations": 7, "max_tree_depth": 10, "sampling_seconds": [1.0]}
    return build(target, draws, sampled, {**attributes, "settings": "{}"})


def outcomes_of(config: LabelSwitchingConfig, **how: Any) -> InMemory:
    trees = {}
    for cell in STUDY.cells(config):
        told = {"engine": cell.engine, "settings": cell.settings, "seed": cell.seed, **how}
        truth = simulate(cell.problem, config.seed).truth
        trees[cell] = planted(STUDY.target(config, cell), truth, told)
        trees[cell].attrs["symmetry_check"] = json.dumps([1e-15])
    return InMemory(trees, {})


CONFIG = LabelSwitchingConfig(0, ("numpyro", "stan"), ("mixture", "factors", "network"), NUTS)


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return outcomes_of(CONFIG)


@pytest.fixture(scope="module")
def frames(outcomes) -> Frames:
    with pytest.MonkeyPatch.context() as patch:
        few_planted(patch)
        return measure(STUDY, CONFIG, outcomes)


def test_design_has_every_problem_in_every_engine_that_has_it():
    config = configure(Options())
    cells = STUDY.cells(config)
    assert [cell.key for cell in cells] == [
        "mixture.nuts.stan",
        "mixture-overlap.nuts.stan",
        "mixture-misfit.nuts.stan",
        "topics.nuts.stan",
        "factors.nuts.stan",
        "hidden-markov.nuts.stan",
        "network.nuts.numpyro",
        "network.nuts.stan",
    ]
    assert {cell.settings for cell in cells} == {Nuts(draws=2000)}
    assert configure(Options(quick=True)).nuts == Nuts(warmup=500, draws=500)
    assert configure(Options(seed=3, draws=7)).nuts.draws == 7
    some = configure(Options(problems=("network", "topics"), engine="numpyro"))
    assert [cell.key for cell in STUDY.cells(some)] == ["network.nuts.numpyro"]


@each(
    ("options", "message"),
    [
        ({"chains": 1}, r"`--chains` is 1, and the study label-switching compares chains: give 2"),
        (
            {"engine": "numpyro", "problems": ("mixture",)},
            "`--engine` is numpyro, and mixture is a Stan program: give --engine stan",
        ),
    ],
)
def test_settings_without_a_study_are_refused(options, message):
    with pytest.raises(StudyError, match=message):
        configure(Options(**options))


def test_truth_is_matched_by_the_group(rng):
    symmetry = (Exchangeable({"L": 1, "scale": 0}, flips=("L",)),)
    truth = {"L": rng.normal(size=(4, 3)), "scale": np.array([1.0, 2.0, 3.0]), "psi": np.array(0.7)}
    moved = {
        "L": truth["L"][:, [2, 0, 1]] * [1.0, -1.0, -1.0],
        "scale": truth["scale"][[2, 0, 1]],
        "psi": truth["psi"],
    }
    noise = {name: rng.normal(size=(2, 5000, *value.shape)) for name, value in truth.items()}
    off = {"L": 0.0, "scale": 0.3, "psi": 0.0}
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {
                    name: (
                        ("chain", "draw", *(f"{name}{k}" for k in range(value.ndim))),
                        moved[name] + off[name] + 0.1 * noise[name],
                    )
                    for name, value in truth.items()
                }
            )
        }
    )
    found = recover(tree, truth, symmetry)
    assert found.names[:2] == ("L[0,0]", "L[0,1]")
    assert found.names[-1] == "psi"
    np.testing.assert_allclose(found.truth, np.concatenate([np.ravel(v) for v in moved.values()]))
    np.testing.assert_allclose(found.sd, 0.1, rtol=0.05)
    # Means off by three standard deviations in 3 of 16 entries, and by Monte Carlo error elsewhere.
    columns = found.summary()
    assert columns["largest_sds"] == pytest.approx(3.0, rel=0.05)
    assert columns["largest_entry"].startswith("scale[")
    assert columns["rms_sds"] == pytest.approx(np.sqrt(3 * 9 / 16), rel=0.05)
    assert columns["inside_95"] == pytest.approx(13 / 16)
    assert columns["entries"] == 16
    half = np.quantile(0.1 * noise["psi"], [0.025, 0.975])
    assert found.low[-1] == pytest.approx(0.7 + half[0])
    assert found.high[-1] == pytest.approx(0.7 + half[1])
    # Nothing may move: the labels are wrong.
    assert recover(tree, truth, ()).summary()["largest_sds"] > 10
    assert measures._recovery("", None) == dict.fromkeys(columns)


@each(("problem", "engine"), [("mixture", "stan"), ("factors", "stan"), ("network", "numpyro")])
def test_planted_labels_are_mended(outcomes, frames, problem, engine):
    row = frames["cells"].find(problem=problem, engine=engine)
    assert row["raw_rhat"] > 1.5
    assert row["aligned_rhat"] < 1.01
    assert row["basins"] == [[0, 1, 2, 3]]
    assert row["labellings"] == row["labellings_by_mean"] == [1, 1, 1, 1]
    assert row["symmetry_check"] == 1e-15
    # Draws are the truth plus noise of sd 0.02 with no other error.
    assert row["largest_sds"] < 5 / np.sqrt(1600)
    (tree,) = (outcomes.tree(cell) for cell in outcomes if cell.key == row["key"])
    alignment = align(tree)
    recovered = recover(alignment.posterior, simulate(problem, 0).truth, alignment.symmetry)
    shown = [axes for axes in plot_recovery({problem: recovered}).axes if axes.get_visible()]
    assert len(shown) == 1
    assert recovered.summary()["largest_sds"] == row["largest_sds"]
    np.testing.assert_allclose(recovered.sd, 0.02, rtol=0.1)
    assert row["inflation"] == pytest.approx(1)  # both rules find the same elements
    item = trace_figure(row, tree, alignment.posterior)
    raw, _, mended, _ = item.figure.axes
    assert raw.get_ylabel().endswith(", raw") and mended.get_ylabel().endswith(", aligned")
    parameter = raw.get_ylabel().removesuffix(", raw")
    assert f"largest, `{parameter}`, as it came" in item.caption
    first, second = (np.std([line.get_ydata() for line in axes.lines]) for axes in (raw, mended))
    assert first > 5 * second


def test_runs_are_compared_in_one_labelling():
    config = replace(CONFIG, problems=("network",))
    (one, _), (_, two) = (outcomes_of(config, first=k).paths.values() for k in (0, 7))
    found = compare(one, two)
    assert found["raw"] > 50
    assert found["aligned"] < 5
    assert found["aligned_sds"] < 0.5
    shifted = two.copy()
    posterior = two["posterior"].to_dataset()
    shifted["posterior"] = xr.DataTree(posterior.assign(b1=posterior["b1"] * 1.05))
    assert compare(one, shifted)["aligned"] > 5
    assert max(found["rhat"], compare(one, shifted)["rhat"]) < 1.01


def test_symmetry_that_does_not_hold_stops_the_study(monkeypatch, tmp_path):
    config = LabelSwitchingConfig(0, ("numpyro",), ("network",), NUTS)
    (cell,) = STUDY.cells(config)
    wrong = replace(condition("network", 0), symmetry=(Exchangeable({"W1": 1}),))
    monkeypatch.setattr(design, "condition", lambda label, seed: wrong)
    with pytest.raises(SymmetryError, match="does not hold: moving W1"):
        design.make(config, cell, Context(wrong, tmp_path, False, print))


@pytest.mark.slow
@pytest.mark.stan
def test_quick_run_mends_every_posterior_and_finds_the_truth(onebasin, here):
    answer = onebasin("study", "label-switching", "--quick", "--out", "run", "--json")
    assert answer.code == 0, answer.err
    cells = {row["key"]: row for row in answer.json["frames"]["cells"]}
    assert len(cells) == 8
    misfit = cells.pop("mixture-misfit.nuts.stan")
    assert misfit["entries"] is None
    assert misfit["aligned_rhat"] > 1.5
    assert len(misfit["basins"]) > 1
    for key, found in cells.items():
        assert found["aligned_rhat"] < 1.02, key  # 2000 draws; measured at most 1.012
        assert found["rms_sds"] < 1.5, key
        assert len(found["basins"]) == 1, key
        assert found["symmetry_check"] < 1e-8, key
    assert cells["mixture-overlap.nuts.stan"]["labellings"] == [6, 6, 6, 6]
