"""The lab: frames, claims on them, views of them, pairs; and a whole study, run and recorded."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from onebasin.analysis.page.page import Note
from onebasin.base.table import Table, TableCell
from onebasin.studies import lab, registry
from onebasin.studies.lab.frame import averages
from onebasin.studies.lab.study import Study, conclude, report

TOY = Path(__file__).parents[3] / "docs" / "developing" / "toy_study.py"

CELLS = lab.Frame.of(
    {"problem": problem, "engine": engine, "seed": seed, "ess": ess}
    for problem, engine, seed, ess in (
        ("free", "stan", 1, 100.0),
        ("free", "stan", 2, 120.0),
        ("free", "numpyro", 1, 80.0),
        ("tied", "stan", 1, 50.0),
        ("tied", "stan", 2, 40.0),
        ("tied", "numpyro", 1, 90.0),
    )
)


def test_frame_holds_what_json_keeps():
    rows = [
        {"a": np.float64(0.1), "b": np.arange(2), "c": float("nan")},
        {"d": (np.int64(3), True)},
    ]
    frame = lab.Frame.of(rows)
    assert frame.rows == (
        {"a": 0.1, "b": [0, 1], "c": None, "d": None},
        {"a": None, "b": None, "c": None, "d": [3, True]},
    )
    assert type(frame.rows[0]["a"]) is float
    assert lab.Frame.from_json(json.loads(json.dumps(frame.rows))) == frame
    assert lab.Frame.from_json(json.loads(json.dumps(frame.table))) == frame
    assert lab.Frame.from_json(lab.Frame().table) == lab.Frame()


def test_frame_is_asked_by_values():
    assert [row["ess"] for row in CELLS.where(problem="free", engine=("stan", "numpyro"))] == [
        100.0, 120.0, 80.0,
    ]  # fmt: skip
    assert CELLS.find(problem="tied", seed=2)["ess"] == 40.0
    assert CELLS.find(problem="loose") is None
    assert CELLS.row(problem="tied") is CELLS.rows[3]
    with pytest.raises(
        KeyError, match=r"`wanted` is \{'problem': 'loose'\}, which none of 6 rows has"
    ):
        CELLS.row(problem="loose")
    assert CELLS.levels("engine") == ("stan", "numpyro")
    some = lab.Frame.of([{"x": 1, "y": None}, {"x": 2, "y": 0.0}])
    assert some.known("y").column("x") == [2]
    assert not some.known("z")
    assert some.column("y") == [0.0]
    # Rows are taken by name, by values or by function.
    frames = {"cells": CELLS}
    assert lab.read("cells", frames) is CELLS
    assert len(lab.read("others", frames)) == 0
    assert len(lab.read(lab.select("cells", problem="tied"), frames)) == 3
    few = lab.read(lambda f: (row for row in f["cells"] if row["ess"] > 90), frames)
    assert few.column("ess") == [100.0, 120.0]


def test_contrast_compares_rows_that_differ_in_one_factor():
    test = lab.contrast(
        "cells",
        "problem",
        [("free", "tied"), ("free", "loose")],
        lambda a, b: (f"{a['ess']:g} to {b['ess']:g}", b["ess"] < 0.8 * a["ess"]),
        same=("engine", "seed"),
        where=lambda a, b: f"{a['problem']} to {b['problem']}, {a['engine']} {b['seed']}",
        void=lambda frames, row: row["ess"] == 40.0,
    )
    trials = list(test({"cells": CELLS}))
    assert [trial.where for trial in trials] == [
        "free to tied, stan 1",
        "free to tied, stan 2",
        "free to tied, numpyro 1",
    ]
    assert [trial.holds for trial in trials] == [True, None, False]
    assert trials[0].measured == "100 to 50"


def test_each_asks_every_row_and_join_adds_tests():
    ask = lab.each(
        lab.select("cells", engine="numpyro"),
        lambda row: (f"{row['ess']:.0f}", row["ess"] > 85),
        where="problem",
        void=lambda frames, row: len(frames["cells"]) < 6,
    )
    assert [(t.where, t.measured, t.holds) for t in ask({"cells": CELLS})] == [
        ("free", "80", False),
        ("tied", "90", True),
    ]
    claim = lab.Claim("", "", "", lab.join(ask, ask))
    assert claim.on({"cells": CELLS}).outcome == "holds in 2 of 4"
    assert claim.on({"cells": CELLS}).verdict == "unclear"
    assert {t.holds for t in ask({"cells": CELLS.where(engine="numpyro")})} == {None}


def test_pairs_are_of_what_has_a_partner():
    found = lab.pair(CELLS.where(engine="stan"), "ess", "problem", "free", "tied", by="seed")
    assert (found.first, found.second) == ((100.0, 120.0), (50.0, 40.0))
    found = lab.pair(CELLS.where(engine="stan"), "ess", "problem", "tied", "loose", by="seed")
    assert found.num == 0
    rows = lab.Frame.of(
        {"width": w, "method": m, "x": x} for w, m, x in ((1, "a", 1), (1, "b", 2), (2, "b", 3))
    )
    found = list(lab.beside(rows.where(method="b"), rows.where(method="a"), same="width"))
    assert [(row["x"], row["other"]["x"]) for row in found] == [(2, 1)]  # none stands at width 2


def test_captions_may_follow_from_the_numbers_and_lists_give_means():
    frames = {"cells": lab.Frame.of([{"x": [1.0, 3.0]}, {"x": None}])}
    fields = (lab.Field("mean", lab.mean_of("x")),)
    table = lab.RowTable(lambda frames: f"of {len(frames['cells'])} rows", fields)(frames)
    assert table.caption == "of 2 rows"
    assert [row[0].value for row in table.cells] == [2.0, None]
    assert (lab.mean_and_sd([1.0, 3.0], 2), lab.mean_and_sd([1.0], 1)) == ("2.00 ± 1.41", "1.0")


def test_view_tabulates_rows_with_flags_and_notes():
    view = lab.RowTable(
        "ESS",
        (
            lab.Field("posterior", lambda row: f"{row['problem']} {row['seed']}"),
            lab.Field(
                "ESS",
                "ess",
                decimals=0,
                unit="bulk",
                flag=lab.at_least(90),
                note=lambda r: r["engine"],
            ),
            lab.Field("few", "ess", flag=lab.at_most(90, otherwise="warn")),
            lab.Field("own", lambda row: TableCell(1, "good") if row["seed"] == 1 else None),
            lab.Field("void", lambda row: None, flag=lab.at_most(0)),
        ),
        over=lab.select("cells", problem="free"),
    )
    table = view({"cells": CELLS})
    assert table.headings[1].unit == "bulk"
    assert table.cells[0] == (
        TableCell("free 1"),
        TableCell(100.0, "good", "stan"),
        TableCell(100.0, "warn"),
        TableCell(1, "good"),
        TableCell(None),
    )
    assert table.cells[1][3].is_empty
    assert table.cells[2][1].flag == "bad"
    short = lab.RowTable(view.caption, view.fields, view.over, drop_empty=True)
    assert len(short({"cells": CELLS}).columns) == 4


def test_chapter_without_rows_is_left_out_and_extras_go_to_their_places():
    nothing = lab.RowTable("", (lab.Field("x", "x"),), over="nothing")
    extras = (Note("remark"), None, Table(("x",), ((1,),), ""))
    chapters = (
        lab.Chapter("a", "words", extras=extras),
        lab.Chapter("b", "words", (nothing,)),
        None,
    )
    how = {"headline": lambda frames: ("Said.", ""), "chapters": lambda *run: chapters}
    study = Study(*(None,) * 4, claims=(), views=(), shown=(), title="t", **how)
    made = report(study, None, lab.Outcomes({}, {}), conclude(study, {}))
    (section,) = made.sections
    assert (section.title, section.notes, section.tables) == ("a", extras[:1], extras[2:])
    assert made.lede == "Said."


AVERAGED = lab.Frame.of(
    [
        {"model": "a", "by": "vi", "error": 1.0, "seconds": 3},
        {"model": "a", "by": "vi", "error": 2.0, "seconds": 5},
        {"model": "b", "by": "vi", "error": None, "seconds": 1},
        {"model": "b", "by": "nuts", "error": 7.0, "seconds": 9},
    ]
)


def test_rows_alike_become_one_with_means_and_extremes():
    names = ("error", "unknown", "max_seconds", "median_error", "sum_seconds")
    over = averages(lab.select("cells", by="vi"), ("model",), names)
    assert [tuple(row.values()) for row in over({"cells": AVERAGED})] == [
        ("a", 2, 1.5, None, 5, 1.5, 8),
        ("b", 1, None, None, 1, None, 1),
    ]
    assert list(averages("cells", ("model",), ("error",))({})) == []


@pytest.fixture
def toy(monkeypatch) -> ModuleType:
    """The study of the guide, in the table of studies."""
    spec = importlib.util.spec_from_file_location("toy_study", TOY)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "toy_study", module)
    spec.loader.exec_module(module)
    entry = registry.StudyEntry("toy_study", "Nobody", "two posteriors")
    with_toy = {**registry.STUDIES, "toy": entry}
    monkeypatch.setattr(registry, "STUDIES", with_toy)
    monkeypatch.setattr("onebasin.studies.registry.STUDIES", with_toy)
    return module


def test_study_of_the_guide_runs_and_is_recorded(toy, onebasin, here, monkeypatch):
    monkeypatch.setattr(lab.record, "RESULTS", here / "results")
    answer = onebasin("study", "toy", "--out", "run", "--record", "--json")
    assert answer.code == 0, answer.err
    assert [s["verdict"] for s in answer.json["statements"]] == ["reproduces"] * 2
    assert [row["num_obs"] for row in answer.json["frames"]["cells"]] == [25, 100]
    text = Path("run/report.html").read_text()
    assert "half as wide" in text
    numbers = json.loads(Path("results/toy.json").read_text())
    again, _ = lab.record.rewrite(toy.STUDY, "toy", numbers)
    assert again == Path("results/toy.md").read_text()
    assert len(TOY.read_text().splitlines()) < 120
