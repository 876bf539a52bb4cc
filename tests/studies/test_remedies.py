"""The remedies side by side: design, measures on planted posteriors, claims, the page that states them, toy runs."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from onebasin.inference.runs.posterior import build
from onebasin.models import NetworkTarget
from onebasin.models.networks.prediction import mean_and_sd
from onebasin.studies.lab import Frame, Options, Row
from onebasin.studies.lab.record import BEGIN, END
from onebasin.studies.lab.study import conclude
from onebasin.studies.remedies import STUDY
from onebasin.studies.remedies.claims import CLAIMS
from onebasin.studies.remedies.design import REMEDIES, RunCell, configure, side_by_side, target
from onebasin.studies.remedies.guide import RECORD, stamped
from onebasin.studies.remedies.measures import measure
from onebasin.studies.remedies.problems import PROBLEMS, parts
from onebasin.truth.problems.images import Images

from ..command_fixtures import InMemory
from ..each import each

IMAGES = Images("digits", side=2, train=60)
ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "which-remedy.md"
ASKED = {
    "nothing: ", "ordered biases", "unit-norm weights, mean", "orthogonal skips, mean", "symmetrised", "aligned, one",
    "NUTS distilled", "ensemble", "MCLMC", "NUTS: the truth",
}  # fmt: skip


def test_every_remedy_is_tried_on_every_data_set_twice_with_other_seeds_and_data():
    config = configure(Options())
    cells = STUDY.cells(config)
    assert (config.runs, configure(Options(quick=True)).runs) == (2, 1)
    for name in ASKED:
        one = next(remedy for remedy in REMEDIES if name in remedy.label)
        there = [c for c in cells if (c.problem, c.method) == (one.model, one.method)]
        assert [(c.run, c.dataset) for c in there] == [(k, p) for k in (1, 2) for p in PROBLEMS]
    assert {cell.seed for cell in cells if cell.run == 1} == {0}
    assert {cell.seed for cell in cells if cell.run == 2} == {100}
    for problem in PROBLEMS:
        first, second = (parts(problem, config.images, seed) for seed in (0, 100))
        assert first.train.x.shape == second.train.x.shape
        assert not np.array_equal(first.train.x, second.train.x)


def test_models_differ_in_what_their_remedy_says_and_nothing_else():
    config = configure(Options(quick=True))
    targets = {
        (cell.dataset, cell.problem): target(config, cell)
        for cell in STUDY.cells(config)
        if cell.run == 1
    }
    for problem in PROBLEMS:
        plain, ordered, unit, skips = (
            targets[problem, model].model for model in ("plain", "ordered", "unit-norm", "skips")
        )
        assert replace(ordered, parametrisation=plain.parametrisation) == plain
        assert replace(skips, network=plain.network) == plain
        assert unit.parametrisation.unit_norm
        assert unit.network == plain.network
        assert len(ordered.symmetry) == len(plain.symmetry) - 1  # scalings are left
        assert skips.symmetry == ()


def test_units_of_norm_one_are_as_steep_as_free_ones():
    config = configure(Options())
    rng = np.random.default_rng(0)
    cell = next(
        c for c in STUDY.cells(config) if c.dataset == "digits" and c.problem == "unit-norm"
    )
    model = target(config, cell).model
    free = np.linalg.norm(rng.standard_normal((64, 4000)), axis=0)
    scale = np.array(model.prior.weight_scales(2))[1]
    assert scale == pytest.approx(np.sqrt(np.mean(free**2)), rel=0.02)
    assert model.prior.bias_scales(2) == pytest.approx((1 / scale, 1.0))


def drawn(network: NetworkTarget, method: str, shape: tuple[int, int], **how: Any) -> xr.DataTree:
    """Independent draws around one point; `shift` moves each chain by its number, `spread` is their sd."""
    rng = np.random.default_rng(list(f"{network.name} {method}".encode()))
    point = np.random.default_rng(7)
    chain = how.get("shift", 0.0) * np.arange(shape[0])
    draws = {}
    for name, size in network.model.network.shapes.items():
        centre = point.normal(size=size) + chain.reshape(-1, 1, *[1] * len(size))
        draws[name] = centre + how.get("spread", 0.1) * rng.normal(size=(*shape, *size))
    if network.model.infers_noise:
        draws["sigma"] = 0.5 * np.exp(0.05 * rng.normal(size=shape))
    stats = {"lp": rng.normal(size=shape), "log_q": rng.normal(size=shape) + 40.0}
    facts = {"engine": "numpyro", "method": method, "seed": 0, "wall_time": 8.0, "settings": {}}
    facts |= {"gradient_evaluations": 6000, "converged": 1}
    size = sum(np.prod(s, dtype=int) for s in network.model.network.shapes.values())
    size += network.model.infers_noise
    elbo = np.linspace(-60, -40, 12) + np.zeros((shape[0], 1))
    fit = xr.Dataset(
        {
            "elbo": (("chain", "evaluation"), elbo),
            "iteration": ("evaluation", np.arange(12)),
            "loc": (("chain", "param"), point.normal(size=(shape[0], size))),
            "scale": (("chain", "param"), np.full((shape[0], size), 0.1)),
        }
    )
    return build(
        network, draws, stats, facts, groups={"variational": fit} if how.get("fit") else {}
    )


@cache
def planted(problem: str, shift: float) -> dict[str, Row]:
    """Measure NUTS and fits that are planted: those of plain weights `shift` apart."""
    config = replace(configure(Options(quick=True)), problems=(problem,), images=IMAGES)
    wanted = {"nuts": (2, 60), "meanfield": (2, 40), "ensemble": (1, 10)}
    chosen: dict[RunCell, xr.DataTree] = {}
    for cell in STUDY.cells(config):
        if cell.method in wanted and cell.problem in ("plain", "skips"):
            how = {
                "fit": cell.method == "meanfield",
                "shift": shift if cell.method == "meanfield" else 0.0,
            }
            method = "advi-meanfield" if how["fit"] else cell.method
            chosen[cell] = drawn(target(config, cell), method, wanted[cell.method], **how)
    frames = measure(config, InMemory(chosen, {}))
    return {row["remedy"]: row for row in frames["cells"]}


def test_fits_are_scored_one_by_one_and_their_means_taken():
    rows = planted("sinc", shift=0.5)
    fits, chains = rows["plain.meanfield"], rows["plain.nuts"]
    assert (fits["fits"], chains["fits"], rows["plain.ensemble"]["fits"]) == (2, 1, 1)
    config = replace(configure(Options(quick=True)), problems=("sinc",), runs=1)
    cell = next(c for c in STUDY.cells(config) if (c.problem, c.method) == ("plain", "meanfield"))
    network, data = target(config, cell), parts("sinc", config.images, 0).test
    posterior = drawn(network, "advi-meanfield", (2, 40), fit=True, shift=0.5)[
        "posterior"
    ].to_dataset()
    values = {name: value.values for name, value in posterior.items()}
    outputs, _ = mean_and_sd(network.model, values, data.x)
    errors = np.sqrt(np.mean((outputs.mean(axis=1) - data.y) ** 2, axis=(1, 2)))
    assert fits["rmse"] == pytest.approx(errors.mean())
    assert fits["rmse_sd"] == pytest.approx(errors.std(ddof=1))
    assert fits["bound"] == pytest.approx(-40.0, abs=1.0)  # the mean of lp - log_q
    assert fits["seconds"] == 4.0
    assert fits["gradients"] == 3000
    assert chains["seconds"] == 8.0


def test_distance_is_none_from_the_truth_itself_and_grows_with_the_shift():
    near, far = planted("sinc", shift=0.01), planted("sinc", shift=0.5)
    assert near["plain.nuts"]["distance"] == 0.0
    assert near["plain.nuts"]["spread_ratio"] == 1.0
    assert 0 < near["plain.nuts"]["distance_floor"] < 0.5
    assert near["plain.meanfield"]["distance"] < 0.5 < far["plain.meanfield"]["distance"]
    assert near["plain.meanfield"]["outputs_rhat"] < 1.1 < far["plain.meanfield"]["outputs_rhat"]
    # With skips there is no symmetry to divide out, and an ensemble has no chains to compare.
    assert far["skips.meanfield"]["aligned_rhat"] == far["skips.meanfield"]["weights_rhat"]
    assert far["plain.meanfield"]["aligned_rhat"] > 1.1
    assert far["plain.ensemble"]["weights_rhat"] is None
    assert far["skips.meanfield"]["distance"] is not None


@pytest.mark.slow
def test_classifiers_are_measured_by_probabilities():
    rows = planted("digits", shift=0.01)
    fits = rows["plain.meanfield"]
    assert 0 < fits["distance"] < 0.1
    assert 0 <= fits["accuracy"] <= 1
    assert fits["coverage_95"] >= fits["accuracy"]
    assert "rmse" not in fits or fits["rmse"] is None


def test_fits_side_by_side_are_chains_with_their_costs_added():
    config = replace(configure(Options(quick=True)), problems=("sinc",), runs=1)
    cell = next(iter(STUDY.cells(config)))
    network = target(config, cell)
    trees = [drawn(network, "advi-meanfield", (1, 20), fit=True) for _ in range(3)]
    for tree in trees:
        tree["variational"] = xr.DataTree(tree["variational"].to_dataset().isel(chain=0))
    joined = side_by_side(trees)
    assert joined["posterior"]["W1"].shape == (3, 20, 2, 8)
    np.testing.assert_array_equal(joined["posterior"]["chain"], [0, 1, 2])
    assert joined["variational"]["elbo"].shape == (3, 12)
    assert joined.attrs["wall_time"] == 24.0
    assert joined.attrs["gradient_evaluations"] == 18_000


NUMBERS = {
    "bound": -50.0, "best_bound": -50.0, "bound_sd": 0.1, "rise": 0.0, "active": 5, "log_score": -1.0,
    "log_score_sd": 0.01, "rmse": 0.5, "accuracy": None, "coverage_95": 0.95, "distance": 0.5, "distance_sd": 0.01,
    "distance_floor": 0.05, "spread_ratio": 0.8, "weights_rhat": 3.0, "aligned_rhat": 2.0, "outputs_rhat": 1.01,
    "truth_rhat": 1.01, "gradients": 1e4, "seconds": 5.0, "fits": 2,
}  # fmt: skip
HOLDING = {
    "plain.meanfield": {"gap_lower": 19.0, "gap_upper": 20.0},
    "plain.nuts": {"gradients": 1e6, "distance": 0.0, "spread_ratio": 1.0},
    "plain.mclmc": {"distance": 0.2},
    "ordered.meanfield": {"distance": 0.6},
    "skips.meanfield": {"distance": 0.4},
    "unit-norm.meanfield": {"distance": 0.4},
    "plain.symmetrised": {"best_bound": -30.0, "distance": 0.51},
    "plain.gaussian": {"distance": 2.0},
    "plain.gaussian-full": {"distance": 1.0},
    "plain.distilled": {"distance": 0.1},
    "plain.ensemble": {"spread_ratio": 0.3},
}


def frames_of(change: dict[str, dict[str, Any]], *, run: int | None = None) -> dict[str, Frame]:
    """Numbers in which every claim holds, but for a change in all runs or in one."""
    rows = []
    for k in (1, 2):
        for problem in PROBLEMS:
            for one in REMEDIES:
                changed = change.get(one.name, {}) if run in (None, k) else {}
                factors = {"dataset": problem, "run": k, "remedy": one.name, "label": one.label}
                factors |= {
                    "problem": one.model,
                    "method": one.method,
                    "key": f"{problem}-{k}.{one.name}",
                }
                rows.append(factors | NUMBERS | HOLDING.get(one.name, {}) | changed)
    return {"cells": Frame.of(rows), "failures": Frame()}


def verdicts(frames: dict[str, Frame]) -> dict[str, str]:
    return {claim.label: claim.on(frames).verdict for claim in CLAIMS}


def test_every_claim_holds_where_its_numbers_do_and_is_tried_everywhere():
    found = conclude(STUDY, frames_of({}))
    assert {statement.verdict for statement in found.statements} == {"reproduces"}
    for statement in found.statements:
        assert len(statement.trials) % 6 == 0, statement.label
        assert len({trial.where for trial in statement.trials}) >= 6


@each(
    ("remedy", "changed", "label"),
    [
        ("plain.nuts", {"outputs_rhat": 1.2}, "Chains agree"),
        ("plain.symmetrised", {"best_bound": -50.1}, "Symmetrised VI raises"),
        ("plain.meanfield", {"gap_lower": 17.0}, "Most of what"),
        ("plain.symmetrised", {"distance": 0.44}, "Symmetrised VI does not change"),
        ("plain.symmetrised", {"distance": 0.56}, "Symmetrised VI does not change"),
        ("ordered.meanfield", {"distance": 0.44}, "Ordered biases"),
        ("skips.meanfield", {"distance": 0.51}, "Orthogonal skips"),
        ("unit-norm.meanfield", {"distance": 0.51}, "Unit-norm"),
        ("skips.meanfield", {"spread_ratio": 0.96}, "Mean-field VI is too sure"),
        ("ordered.meanfield", {"aligned_rhat": 1.05}, "Fits from other starts"),
        ("plain.meanfield", {"aligned_rhat": 1.05}, "Fits from other starts"),
        ("plain.gaussian", {"distance": 0.4}, "A Gaussian with the moments"),
        ("plain.distilled", {"distance": 0.505}, "Of all single Gaussians"),
        ("plain.ensemble", {"spread_ratio": 0.96}, "Deep ensembles are surer of their predictions than the"),
        ("plain.ensemble", {"spread_ratio": 0.85}, "Deep ensembles are surer of their predictions than mean"),
        ("plain.mclmc", {"distance": 0.6}, "MCLMC"),
        ("plain.meanfield", {"gradients": 2e6}, "Mean-field VI and ensembles cost"),
    ],
)  # fmt: skip
def test_a_claim_fails_with_its_numbers_and_with_those_of_one_run_alone(remedy, changed, label):
    (full,) = (claim.label for claim in CLAIMS if claim.label.startswith(label))
    assert verdicts(frames_of({remedy: changed}))[full] in ("does not reproduce", "depends")
    assert verdicts(frames_of({remedy: changed}, run=2))[full] == "depends"


def test_nothing_is_said_where_the_truth_is_none():
    found = verdicts(frames_of({one.name: {"truth_rhat": 1.2} for one in REMEDIES}))
    assert found["MCLMC is nearer to the truth than mean-field VI"] == "unclear"
    assert found["Symmetrised VI raises the bound"] == "reproduces"  # which needs no truth
    headline = conclude(STUDY, frames_of({"plain.nuts": {"truth_rhat": 1.2}})).headline
    assert any("are no truth: sinc (NUTS: the truth, run 1)" in sentence for sentence in headline)


def recorded(frames: dict[str, Frame]) -> dict[str, Any]:
    """What a record of these frames says, as far as the guide reads it."""
    rows = {name: [dict(row) for row in frame] for name, frame in frames.items()}
    made = {"command": "onebasin study remedies", "config": {"seed": 0}, "machine": "a machine"}
    return {"frames": rows, **made}


def test_the_guide_takes_what_holds_everywhere_apart_from_what_does_not():
    once = frames_of({"ordered.meanfield": {"distance": 0.1}}, run=2)
    page = stamped(f"before\n{BEGIN}\nstale words\n{END}\nafter\n", recorded(once))
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "stale words" not in page
    holds, others = page.split("These do not hold everywhere")
    assert "- **Symmetrised VI raises the bound.**" in holds
    assert "- **Ordered biases bring mean-field VI no nearer to the truth.**" in others
    assert others.count("- **") == 1
    assert "2 runs" in holds
    assert "Holds in 3 of 6" in " ".join(others.split())
    assert all(f"**{problem}: every remedy" in others for problem in PROBLEMS)
    assert stamped(page, recorded(once)) == page
    assert all(len(line) <= 100 for line in page.splitlines() if not line.startswith("|"))


def test_a_page_without_room_for_the_record_is_refused():
    with pytest.raises(ValueError, match="`page` lacks <!-- from the record: ends -->"):
        stamped(BEGIN, recorded(frames_of({})))


def test_the_guide_says_what_the_record_says_and_nothing_without_one():
    page = GUIDE.read_text()
    if not RECORD.exists():
        assert f"{BEGIN}\n\nNot recorded yet.\n" in page
        return
    record = json.loads(RECORD.read_text())
    assert set(Frame.from_json(record["frames"]["cells"]).levels("run")) == {1, 2}
    assert stamped(page, record) == page, "run `python -m onebasin.studies.remedies.guide`"
