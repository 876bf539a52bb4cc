"""The study of calibrations, from planted ones; and the command."""

import json

import numpy as np
import pytest

from onebasin.analysis.gaussian.distillation import DistillationSettings
from onebasin.inference.calibration.drawn import simulated
from onebasin.inference.calibration.result import Calibration
from onebasin.inference.runs.posterior import build
from onebasin.studies.calibration import STUDY, design
from onebasin.studies.calibration.measures import _quantities, _row
from onebasin.studies.lab import Frame, Options
from onebasin.studies.lab.study import conclude

from ..each import each


def planted(ratio: float, *, simulations: int = 200, failed: int = 0) -> Calibration:
    """Ranks of three quantities, of which the first has truths `ratio` posterior sds around its means."""
    from scipy.special import ndtr

    z = np.random.default_rng(4).normal(size=(simulations, 3)) * [ratio, 1, 1]
    share = ndtr(z)
    share[:failed] = np.nan
    like = np.ones_like(z)
    return Calibration(
        "toy",
        "nuts",
        "numpyro",
        {"draws": 100},
        3,
        ("tau", "lp", "log likelihood"),
        share=share,
        z=z,
        ess=400 * like,
        rhat=like,
        kept=100 * like,
        divergences=np.zeros(simulations, int),
        failures=("no",) * failed + ("",) * (simulations - failed),
    )


def test_a_calibration_is_read_back_as_it_was_written():
    found = planted(1.5, failed=3)
    again = design.from_tree(design.to_tree(found))
    assert again.to_dict() == found.to_dict()
    assert np.array_equal(again.share, found.share, equal_nan=True)


def test_the_study_says_what_is_right_and_by_how_much_the_rest_is_wrong():
    config = design.configure(Options(problems=("net-free",), engine="numpyro"))
    cells = {cell.method: cell for cell in STUDY.cells(config)}
    found = {"nuts": planted(1.0), "meanfield": planted(1.8), "fullrank": planted(1.6)}
    frames = {
        "cells": Frame.of(_row(cells[name], each) for name, each in found.items()),
        "quantities": Frame.of(
            row for name, each in found.items() for row in _quantities(cells[name], each)
        ),
        "failures": Frame.of(()),
    }
    findings = conclude(STUDY, frames)
    assert [statement.verdict for statement in findings.statements] == ["reproduces"] * 2
    assert findings.headline[0].startswith("NUTS is calibrated in 1 of 1")
    assert "meanfield: tau, intervals too narrow by" in findings.headline[1]
    assert [len(table.rows) for table in findings.tables[:2]] == [3, 2]


def test_every_family_of_the_study_is_conditioned_on_what_it_simulates():
    config = design.configure(Options())
    assert {c.problem for c in STUDY.cells(config)} == {*design.NETWORKS, *design.PROGRAMS}
    assert {c.engine for c in STUDY.cells(config)} == {"numpyro", "stan"}
    for cell in STUDY.cells(design.configure(Options(engine="numpyro"))):
        if cell.method == "nuts" and cell.problem in ("net-givens", "mixture-2"):
            target = STUDY.target(config, cell)
            assert set(target.engines) == {"numpyro", "stan"}
    assert "aligned" in design.family_of("mixture-2").quantities
    assert "aligned" not in design.family_of("net-ordered").quantities


def test_chains_of_networks_have_settings_of_their_own():
    config = design.configure(Options(draws=77))
    cells = {cell.key: cell.settings.method for cell in STUDY.cells(config)}
    assert cells["net-givens.nuts.stan"] == config.networks
    assert cells["net-free.gaussian.numpyro"] == config.networks
    assert cells["mixture-2.nuts.stan"] == config.nuts
    assert config.networks.draws == config.nuts.draws == 77
    assert config.networks.warmup > config.nuts.warmup


@each(
    "made",
    [
        design.gaussian,
        design.distilled(DistillationSettings(iterations=50, batch_size=8, points=50)),
    ],
)
def test_what_is_made_of_draws_has_all_parameters_that_are_simulated(made, rng):
    """Draws are the truth plus noise, all in one labelling; the Gaussian's means stay near the truth."""
    family = design.family_of(design.APPROXIMATED)
    first = simulated(family, 0, 0)
    target = family.condition(first.data)
    draws = {
        n: np.abs(v) if n == "sigma" else v
        for n, v in (
            (n, t + 0.1 * rng.normal(size=(2, 200, *t.shape))) for n, t in first.parameters.items()
        )
    }
    found = made(target, build(target, draws, {}, {"seed": 0}, predictive_mb=0), 1)["posterior"]
    assert dict(found.sizes)["draw"] == 500
    for name, truth in first.parameters.items():
        assert found[name].shape == (1, 500, *truth.shape)
    assert abs(float(found["sigma"].mean()) - float(draws["sigma"].mean())) < 0.03


@each(
    ("words", "said"),
    [
        (["model.py:line"], "--observed is missing"),
        (["any.stan"], "--simulator is missing"),
        (["no-such-family"], "MODEL is 'no-such-family'"),
        (["mixture-2", "--method", "nut"], "--method is 'nut'"),
        (["mixture-2", "--method", "meanfield", "--chains", "3"], "--chains does not apply"),
    ],
)
def test_the_command_refuses_in_words(onebasin, words, said):
    answer = onebasin("calibrate", *words)
    assert answer.code in (1, 2)
    assert said in answer.err.replace("`", "").replace("\n", " ")


@pytest.mark.slow
def test_the_command_calibrates_a_model_of_ones_own(onebasin, tmp_path):
    (tmp_path / "model.py").write_text(
        "import numpyro, numpyro.distributions as dist\n"
        "def line(x, y=None):\n"
        "    a = numpyro.sample('a', dist.Normal(0, 1))\n"
        "    numpyro.sample('y', dist.Normal(a * x, 1), obs=y)\n"
    )
    (tmp_path / "line.json").write_text('{"x": [1.0, 2.0, 3.0]}')
    words = [f"{tmp_path}/model.py:line", tmp_path / "line.json", "--observed", "y"]
    words += ["--simulations", "75", "--chains", "1", "--warmup", "150", "--draws", "200"]
    words += ["--out", tmp_path / "ranks", "--figure", tmp_path / "ranks.png", "--json"]
    answer = onebasin("calibrate", *words)
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    assert found["verdict"] == "calibrated" and found["simulations"] == 75
    assert (tmp_path / "ranks.png").stat().st_size > 10_000
    assert len(list((tmp_path / "ranks").glob("ranks-*.npz"))) == 3
    assert json.loads(onebasin("calibrate", *words).out) == found


@pytest.mark.slow
def test_a_stan_program_is_held_to_a_simulator(tmp_path):
    """The regression of the notebooks; then against a simulator whose prior of sigma is half as wide."""
    from pathlib import Path

    import onebasin as ob

    program = Path(__file__).parents[2] / "notebooks" / "programs" / "regression.stan"
    X = np.random.default_rng(0).normal(size=(12, 2))

    def simulator(rate):
        def simulate(rng):
            values = {"alpha": rng.normal(0, 5), "beta": rng.normal(0, 2, 2)}
            values["sigma"] = rng.exponential(1 / rate)
            y = rng.normal(values["alpha"] + X @ values["beta"], values["sigma"])
            return values, {"N": 12, "P": 2, "X": X, "y": y}

        return simulate

    settings = ob.Nuts(chains=2, warmup=500, draws=500)
    verdicts = []
    for rate in (1.0, 4.0):
        family = ob.truth.Family.of_stan(program, simulator(rate))
        found = ob.calibrate(family, settings, simulations=200, seed=1)
        verdicts.append(found.verdict)
        assert "log likelihood" in found.names and "beta[1]" in found.names
    assert verdicts == ["calibrated", "not calibrated"]
