"""A network's predictions by point: which can be used, in the verdict, in JSON and in tables."""

import numpy as np
import pandas as pd
import pytest

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.invariants import JudgedPoints
from onebasin.analysis.diagnostics.verdict import Limits
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry.blocks import to_json

from ..conftest import mcmc_tree, relu_tree


def two_states(rng, kink=1.9):
    """Three ReLU units, one of which is active right of a kink only, and of another size there in every chain."""
    tree = relu_tree(rng, draws=300, swap=True)
    values = {name: v.values for name, v in tree["posterior"].data_vars.items()}
    size = np.array([4.0, 0.1, 4.0, 0.1])[:, None] + 0.1 * rng.normal(size=(4, 300))
    third = {"W1": np.full((4, 300, 1, 1), 5.0), "b1": np.full((4, 300, 1), -5 * kink)}
    third["W1"] = third["W1"] + 0.01 * rng.normal(size=(4, 300, 1, 1))
    third["b1"] = third["b1"] + 0.01 * rng.normal(size=(4, 300, 1))
    third["W2"] = size[..., None, None]
    axis = {"W1": 3, "b1": 2, "W2": 2}
    for name, own in third.items():
        values[name] = np.concatenate([values[name], own], axis[name])
    values["W1"][::2], values["b1"][::2] = values["W1"][::2, ..., ::-1], values["b1"][::2, :, ::-1]
    values["W2"][::2] = values["W2"][::2, :, ::-1]
    model = BayesianNetwork(Network(1, (3,), 1, "relu"))
    data = {name: tree[name].to_dataset() for name in ("observed_data", "constant_data")}
    attrs = {"model": model.describe(), "symmetry": to_json(model.symmetry)}
    return mcmc_tree(values, attrs=attrs, **data)


def test_predictions_can_be_used_but_at_the_point_where_chains_disagree(rng):
    found = diagnose(two_states(rng))
    assert (found.verdict, found.causes[0]) == ("partly", "points")
    assert "predictions at 29 of 30 training inputs" in found.judgement.sentence
    assert "at input 29" in found.judgement.sentence
    assert found.judgement.rows[1].outcome == "warned"
    predictions = found.to_dict()["predictions"]
    assert (predictions["count"], predictions["usable"]) == (30, 29)
    (bad,) = (point for point in predictions["points"] if not point["usable"])
    assert bad["input"] == 29
    assert bad["rhat"] > 1.5
    shown = found.card(whole=True).text()
    assert "Predictions by point, at 30 training inputs" in shown
    assert "✗" not in shown


@pytest.mark.parametrize(("bad", "few"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_point_is_as_good_as_its_worst_output_and_a_tenth_may_be_bad(bad, few):
    parts = ("output", "noise_sd")
    names = [f"{part}[{i},{j}]" for part in parts for i in range(20) for j in (0, 1)]
    outputs = pd.DataFrame({"rhat": 1.0, "ess_bulk": 900.0}, index=[*names, "lp"])
    outputs.loc["lp"] = 3.0, 1.0
    worst = [("output[4,1]", "rhat", 1.06), ("noise_sd[7,0]", "ess_bulk", 399)]
    worst.append(("output[9,0]", "rhat", np.nan))
    for name, column, value in worst[:bad]:
        outputs.loc[name, column] = value
    found = JudgedPoints.of(outputs, np.arange(0, 40, 2), Limits(), 4)
    assert sorted(found.bad.index) == [8, 14, 18][:bad]
    assert found.few is few
    assert found.as_table("usable").cells[0][0].value == ("8" if bad else "0")
    assert f"at {20 - bad} of 20" in found.reason(used=False).sentence
