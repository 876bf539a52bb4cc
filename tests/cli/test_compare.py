"""`onebasin compare`: posterior files in, a table beside the truth out."""

from pathlib import Path

import numpy as np
import pytest

from onebasin.inference import Advi, Nuts
from onebasin.inference.runs.posterior import build, save
from onebasin.models import BayesianNetwork, Network, Target
from onebasin.models.data import load_data

from ..command_fixtures import fake_posterior

NUTS = Nuts(chains=4, draws=100)


@pytest.fixture
def runs(here: Path) -> Path:
    """Three posteriors around one teacher: two of the same distribution, one fit."""
    data = load_data("relu-teacher")
    target = BayesianNetwork(Network(2, (2,))).condition(data.x, data.y, name="teacher")
    save(fake_posterior(target, "nuts", "stan", NUTS, 0), "a.nc")
    save(fake_posterior(target, "nuts", "numpyro", NUTS, 1), "b.nc")
    save(fake_posterior(target, "advi-meanfield", "stan", Advi(draws=200), 2), "fit.nc")
    np.savez("test.npz", x=data.x[:20], y=data.y[:20])
    return here


def rows(answer):
    return {row["posterior"]: row for row in answer.json["posteriors"]}


def test_compare_shows_distances_scores_and_the_floor(onebasin, runs):
    words = ("compare", "a.nc", "b.nc", "fit.nc")
    answer = onebasin(*words, "--no-weights")
    assert (answer.code, answer.err) == (0, "")
    answer = onebasin(*words, "--json")
    found = rows(answer)
    assert answer.json["files"] == ["a.nc", "b.nc", "fit.nc"]
    assert answer.json["truth"] == "a"
    assert answer.json["kind"] == "regression"
    assert set(found) == {"a", "b", "fit", "floor"}
    assert found["b"]["mean_distance"] < 0.5
    assert found["b"]["energy_p"] > 1e-5
    given = onebasin(
        "compare",
        "a.nc",
        "b.nc",
        "--no-weights",
        "--truth",
        "b.nc",
        "--points",
        "test.npz",
        "--json",
    )
    assert given.json["truth"] == "b"
    other = rows(given)
    assert other["a"]["mean_distance"] > 0
    assert other["a"].get("energy") is None
    assert 0 < other["a"]["rmse"] != found["a"]["rmse"]


def test_seed_and_permutations_reach_the_p_values(onebasin, runs):
    words = ("compare", "a.nc", "fit.nc", "--json", "--permutations", "9", "--seed")
    one, two = (rows(onebasin(*words, seed))["fit"] for seed in "12")
    assert round(10 * one["energy_p"], 9) == round(10 * one["energy_p"])
    assert one["crps"] != two["crps"]


@pytest.fixture
def mixtures(here: Path) -> Path:
    """The same mixture twice, every chain under labels of its own, and once moved; nothing is declared."""
    rng = np.random.default_rng(8)
    for name, shift in (("one", 0.0), ("two", 0.0), ("moved", 0.6)):
        mu = np.array([-3.0, 0.0, 3.0]) + shift + 0.3 * rng.normal(size=(4, 200, 3))
        sigma = np.array([0.5, 1.0, 2.0]) * np.exp(0.1 * rng.normal(size=(4, 200, 3)))
        for chain in range(4):
            order = rng.permutation(3)
            mu[chain], sigma[chain] = mu[chain][:, order], sigma[chain][:, order]
        values, stats = {"mu": mu, "sigma": sigma}, {"lp": rng.normal(size=(4, 200))}
        how = {"engine": "stan", "method": "nuts"}
        save(build(Target("mixture"), values, stats, how), f"{name}.nc")
    return here


def test_exchangeable_divides_labels_out(onebasin, mixtures):
    words = ("compare", "one.nc", "two.nc", "moved.nc", "--json", "--exchangeable", "mu,sigma")
    found = rows(onebasin(*words))
    assert found["two"]["energy_p"] > 1e-3
    assert found["moved"]["energy_p"] < 0.01
    assert found["two"]["energy"] < 0.05 * found["moved"]["energy"]
    raw = onebasin("compare", "one.nc", "two.nc", "--json")
    assert rows(raw)["two"]["energy_p"] > 1e-3  # by the symmetry that the draws show
    assert any("--exchangeable mu,sigma" in sentence for sentence in raw.json["warnings"])
