"""`onebasin calibrate`: refusals, families that it knows by name, and models of the user's own."""

import json
from pathlib import Path

import numpy as np
import pytest

import onebasin as ob


@pytest.mark.parametrize(
    ("words", "said"), [(["model.py:line"], "--observed"), (["no-such-family"], "MODEL")]
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
