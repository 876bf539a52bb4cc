"""Tests of the studies' tools: frames, records, settings, and tables with intervals."""

import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from onebasin.base.errors import InUse, StudyError
from onebasin.inference import Nuts
from onebasin.studies import registry
from onebasin.studies.lab import run as running
from onebasin.studies.lab import study as lab
from onebasin.studies.lab.run import RESULTS, read_results
from onebasin.studies.lab.study import Change, Summary, frame_of, mean_with_interval

TOY = Path(__file__).parents[3] / "docs" / "developing"
"""Folder of `toy_study.py`."""


def test_frames_hold_what_json_keeps_and_are_asked_by_values():
    rows = [
        {"a": np.float64(0.1), "b": np.arange(2), "c": float("nan")},
        {"d": (np.int64(3), True)},
    ]
    frame = lab.frame_of(rows)
    kept = lab.rows_of("x", {"x": frame})
    assert kept == [
        {"a": 0.1, "b": [0, 1], "c": None, "d": None},
        {"a": None, "b": None, "c": None, "d": [3, True]},
    ]
    assert type(kept[0]["a"]) is float
    # An integer next to a missing value stays an integer.
    counts = lab.frame_of([{"m": "a", "n": 1}, {"m": "b", "n": None}, {"m": "a", "n": 3}])
    assert json.dumps(counts["n"].tolist()) == "[1, null, 3]"
    assert lab.find(counts, m="b") == {"m": "b", "n": None}
    assert lab.find(counts, m="c") is None
    assert len(lab.where(counts, m=("a", "b"), n=3)) == 1
    frames = {"cells": counts}
    assert lab.rows_of("others", frames) == []
    assert len(lab.select("cells", "n", m="a")(frames)) == 2
    assert len(lab.select("cells", "absent")(frames)) == len(lab.select("others", m=1)(frames)) == 0
    assert lab.rows_of(lambda f: ({"n": n} for n in f["cells"]["n"]), frames)[2] == {"n": 3}


@dataclass(frozen=True)
class Config:
    seed: int = 0
    engines: tuple[str, ...] = ("stan",)
    nuts: Nuts = Nuts()  # noqa: RUF009


def opened(path, config=None, *, force=False):
    config = config or Config()
    return running.opened(path, study="toy", config=config, command=["onebasin"], force=force)


@pytest.mark.parametrize(
    "other", [Config(seed=1), Config(engines=("stan", "numpyro")), Config(nuts=Nuts(draws=999))]
)
def test_settings_are_told_apart_by_every_field(tmp_path, other):
    for _ in range(2):
        with opened(tmp_path, replace(Config())):
            pass
    with pytest.raises(StudyError, match="a run with different settings"), opened(tmp_path, other):
        pass


def test_what_is_there_is_refused_or_replaced_by_force(tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(StudyError, match="contains other files"), opened(tmp_path):
        pass
    with opened(tmp_path, force=True):
        assert (tmp_path / "notes.txt").read_text() == "precious"
    path = tmp_path / "notes.txt"
    with pytest.raises(StudyError, match=r"is a file\. Name a folder"), opened(path, force=True):
        pass
    with opened(tmp_path / "run") as run:
        (run.posteriors / "a.nuts.stan.nc").touch()
    with opened(tmp_path / "run"):
        assert (run.posteriors / "a.nuts.stan.nc").exists()
    with opened(tmp_path / "run", force=True):
        assert not (run.posteriors / "a.nuts.stan.nc").exists()


def test_two_runs_on_one_folder_do_not_meet(tmp_path):
    path = tmp_path / "run"
    with opened(path) as run:
        (run.posteriors / "kept").touch()
        says = rf"`--out` is .*run, which process {os.getpid()} "
        with pytest.raises(InUse, match=says), opened(path, Config(seed=1), force=True):
            pass
        assert (run.posteriors / "kept").exists()
        assert json.loads((path / "run.json").read_text())["status"] == "running"
    assert sorted(os.listdir(path)) == ["posteriors", "run.json"]


def test_a_record_that_was_changed_by_hand_is_refused(tmp_path):
    record = json.loads((RESULTS / "boston.json").read_text(encoding="utf-8"))
    path = tmp_path / "boston.json"
    path.write_text(json.dumps(record | {"seconds": 0.0}))
    with pytest.raises(StudyError, match=r"checksum of .* is wrong"):
        read_results(path, "boston")


def test_study_of_the_guide_runs_and_is_recorded(onebasin, here, monkeypatch):
    monkeypatch.syspath_prepend(TOY)
    entry = registry.StudyEntry("toy_study", "Nobody", "two posteriors")
    monkeypatch.setattr(registry, "STUDIES", {**registry.STUDIES, "toy": entry})
    monkeypatch.setattr("onebasin.studies.lab.run.RESULTS", here / "results")
    answer = onebasin("study", "toy", "--out", "run", "--record", "--json")
    assert answer.code == 0, answer.err
    rows = [row for table in answer.json["tables"] for row in table["rows"]]
    found = {(row["of"], row["measure"]): row for row in rows}
    narrower = found["few to many", "posterior sd"]
    assert (narrower["printed"], narrower["here"]) == (0.5, pytest.approx(0.5, rel=0.15))
    assert [row["num_obs"] for row in answer.json["frames"]["cells"]] == [25, 100]
    assert "| few to many | posterior sd | 0.5" in Path("run/tables.md").read_text()
    shown = onebasin("study", "toy", "--show")
    assert shown.code == 0, shown.err
    assert "few to many" in shown.out
    assert onebasin("study", "toy", "--show", "--out", "nowhere").code == 1


FREE = (1.0, 1.2, 0.9, 1.1, 1.3, 0.8, 1.05)
LOWER = (0.7, 0.9, 0.5, 0.9, 0.8, 0.55, 0.6)
BAD = [math.nan, math.inf, -math.inf, None]


def frames(first=FREE, second=LOWER):
    return {
        "cells": frame_of(
            {"level": level, "seed": seed, "engine": "stan", "score": score}
            for level, scores in (("before", first), ("after", second))
            for seed, score in enumerate(scores)
        )
    }


def changes(scale="difference", **more):
    change = Change("level", (("before", "after"),), "seed", scale)
    return Summary("Changes", {"score": "score"}, by=("engine",), change=change, **more)


def test_intervals_are_those_of_scipy():
    (row,) = changes().rows(frames())
    wanted = ttest_1samp(np.subtract(LOWER, FREE), 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx(tuple(wanted))
    assert row["here"] == pytest.approx(np.mean(LOWER) - np.mean(FREE))
    assert (row["of"], row["numbers"], row["left out"]) == ("before to after, Stan", 7, 0)
    # Splits that share rows widen the interval.
    (shared,) = changes(overlap=0.25).rows(frames())
    factor = np.sqrt((1 / 7 + 0.25) / (1 / 7))
    assert shared["high"] - shared["low"] == pytest.approx(factor * (row["high"] - row["low"]))
    # A ratio comes from the means of logarithms.
    (row,) = changes("ratio").rows(frames())
    logs = np.log(np.divide(LOWER, FREE))
    wanted = ttest_1samp(logs, 0).confidence_interval(0.95)
    assert row["here"] == pytest.approx(np.exp(logs.mean()))
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.exp(wanted)))
    # A share lies between 0 and 1, and so does its interval.
    share = mean_with_interval([True, True, False])
    assert share == pytest.approx((2 / 3, *binomtest(2, 3).proportion_ci(method="wilson")))
    assert mean_with_interval([2.5]) == (2.5, None, None)
    assert mean_with_interval([]) == (None, None, None)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("scale", ["difference", "ratio"])
def test_pairs_without_a_number_are_left_out_and_counted(value, side, scale):
    rows = [
        {**row, "score": value} if (row["level"], row["seed"]) == (side, 1) else row
        for row in frames()["cells"].to_dict("records")
    ]
    (found,) = changes(scale).rows({"cells": frame_of(rows)})
    assert (found["numbers"], found["left out"]) == (6, 1)
    kept = {"cells": frame_of(row for row in rows if row["seed"] != 1)}
    assert changes(scale).rows(kept)[0]["here"] == found["here"]


@pytest.mark.parametrize("value", BAD)
def test_means_leave_out_what_is_missing_in_lists_too(value):
    rows = {"cells": frame_of([{"of": "a", "x": value, "y": [1.0, value, 3.0], "z": None}])}
    measures = {"x": "x", "y": "y", "sum": lambda row: row["x"] + 1, "z": "z"}
    found = {row["measure"]: row for row in Summary("All", measures, by=("of",)).rows(rows)}
    assert (found["y"]["here"], found["y"]["numbers"], found["y"]["left out"]) == (2.0, 2, 1)
    assert found.keys() == {"y"}  # The other measures have no values.


def test_rows_that_are_not_trusted_are_left_out_and_counted():
    table = changes(trusted=lambda frames, row: row["seed"] != 3)
    (row,) = table.rows(frames())
    assert (row["numbers"], row["left out"]) == (6, 1)
    (row,) = changes(trusted=lambda frames, row: False).rows(frames())
    assert (row["here"], row["numbers"], row["left out"]) == (None, 0, 7)


def test_lists_are_paired_entry_by_entry_and_printed_numbers_stand_beside():
    rows = {"fits": frame_of([{"m": "a", "x": [1.0, 2.0, 3.0]}, {"m": "b", "x": [1.5, 2.5, 4.0]}])}
    table = Summary(
        "Fits", {"x": "x"}, by=(), over="fits", change=Change("m", (("a", "b"),)),
        printed=lambda row: {"x": "higher" if row["m"] == "b" else "lower"},
    )  # fmt: skip
    (row,) = table.rows(rows)
    assert (row["of"], row["printed"], row["here"]) == ("a to b", "higher", pytest.approx(2 / 3))
    shown = table(rows)
    assert shown.texts[0][:4] == ["a to b", "x", "higher", "0.6667"]
