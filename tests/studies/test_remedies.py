"""The remedies side by side: design, measures on planted posteriors, the page that states them."""

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
from onebasin.studies.lab import Cell, Frame, Options, Row
from onebasin.studies.lab.record import BEGIN
from onebasin.studies.remedies import STUDY
from onebasin.studies.remedies.design import (
    PROBLEMS,
    REMEDIES,
    configure,
    parts,
    side_by_side,
    target,
)
from onebasin.studies.remedies.guide import RECORD, stamped
from onebasin.studies.remedies.measures import measure
from onebasin.truth.problems.images import Images

from ..command_fixtures import InMemory

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
        assert [(c.number, c.case) for c in there] == [(k, p) for k in (1, 2) for p in PROBLEMS]
    assert {cell.seed for cell in cells if cell.number == 1} == {0}
    assert {cell.seed for cell in cells if cell.number == 2} == {100}
    for problem in PROBLEMS:
        first, second = (parts(problem, config.images, seed) for seed in (0, 100))
        assert first.train.x.shape == second.train.x.shape
        assert not np.array_equal(first.train.x, second.train.x)


def test_models_differ_in_what_their_remedy_says_and_nothing_else():
    config = configure(Options(quick=True))
    targets = {
        (cell.case, cell.problem): target(config, cell)
        for cell in STUDY.cells(config)
        if cell.number == 1
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
    # Units of norm one are as steep as free ones.
    model = targets["digits", "unit-norm"].model
    size, scale = model.network.in_dim, model.prior.weight_scales(2)[1]
    free = np.linalg.norm(np.random.default_rng(0).standard_normal((size, 4000)), axis=0)
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
    chosen: dict[Cell, xr.DataTree] = {}
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


def test_the_guide_says_what_the_record_says_and_nothing_without_one():
    page = GUIDE.read_text()
    if not RECORD.exists():
        assert f"{BEGIN}\n\nNot recorded yet.\n" in page
        return
    record = json.loads(RECORD.read_text())
    assert set(Frame.from_json(record["frames"]["cells"]).levels("run")) == {1, 2}
    assert stamped(page, record) == page, "run `python -m onebasin.studies.remedies.guide`"
