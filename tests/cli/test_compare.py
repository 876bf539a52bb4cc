"""`onebasin compare`: posterior files in, a table beside the truth out."""

from pathlib import Path

import numpy as np
import pytest

from onebasin.inference import Advi, Nuts
from onebasin.models import BayesianNetwork, Network
from onebasin.models.load_data import load_data
from onebasin.posteriors.writing import save

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
    assert set(found) == {"a", "b", "fit", "baseline"}
    assert found["b"]["mean_distance"] < 0.5
    assert found["b"]["energy_p"] > 1e-5
    other = "compare a.nc b.nc --no-weights --truth b.nc --points test.npz --json"
    given = onebasin(*other.split())
    assert given.json["truth"] == "b"
    other = rows(given)
    assert other["a"]["mean_distance"] > 0
    assert other["a"].get("energy") is None
    assert 0 < other["a"]["rmse"] != found["a"]["rmse"]
