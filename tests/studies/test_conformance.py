"""Tests of every study in the registry: options, cells, a quick run, resuming, and its records.

They include new studies of the registry; `WITHOUT` lists the options that a study lacks. The measures of a study have
separate tests.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onebasin.base.errors import StudyError
from onebasin.base.files.writing import FIELD
from onebasin.base.table import table_to_markdown
from onebasin.studies.lab import run
from onebasin.studies.lab.run import RESULTS, read_results
from onebasin.studies.lab.study import Frames, Study, tables_of, where
from onebasin.studies.options import Options
from onebasin.studies.registry import STUDIES, find_study
from onebasin.truth.problems.networks import boston_split

RECORDS = sorted(RESULTS.glob("*.json"))
WORDS = {"parametrisations", "problems"}
ALL = WORDS | {"full", "engine", "chains", "warmup", "draws", "dtype", "splits", "datasets"}
WITHOUT = {
    "relu-teacher": "splits problems",
    "boston": "datasets full problems",
    "compact-representation": "datasets engine splits parametrisations problems",
    "permutation-invariant-vi": "datasets engine splits parametrisations problems",
    "orthogonal-skips": "engine splits parametrisations",
}
TAKES = {name: ALL - {*refused.split()} for name, refused in WITHOUT.items()}
GIVEN: Mapping[str, Any] = {
    "full": True, "engine": "stan", "chains": 3, "warmup": 11, "draws": 41, "dtype": "float32",
    "splits": 2, "datasets": 2,
}  # fmt: skip


def test_every_study_has_a_record_and_says_which_options_it_takes():
    assert STUDIES.keys() == TAKES.keys()
    assert {path.stem.removesuffix("-quick").removesuffix("-full") for path in RECORDS} == {
        *STUDIES
    }
    assert {path.stem for path in RECORDS} == {path.stem for path in RESULTS.glob("*.md")}


@pytest.mark.parametrize("name", STUDIES)
def test_options_change_the_settings_or_are_refused(name):
    study = find_study(name)
    assert isinstance(study, Study)
    plain = study.configure(Options())
    for option, value in GIVEN.items():
        given = Options(**{option: value})
        if option in TAKES[name]:
            others = {"dtype": "float64"} if option == "dtype" else {}
            assert study.configure(given) != study.configure(Options(**others)), option
        else:
            with pytest.raises(
                StudyError,
                match=rf"^`--{option}` does not apply to study {name}. Omit `--{option}`",
            ):
                study.configure(given)
    for option in WORDS:
        taken = option in TAKES[name]
        says = f"^`{option}` is 'none-such'; choose" if taken else f"^`--{option}` does not apply"
        with pytest.raises(ValueError, match=says):
            study.configure(Options(**{option: ("none-such",)}))
    assert study.configure(Options(quick=True)) != plain
    assert study.configure(Options(seed=7)).seed == 7


@pytest.mark.parametrize("name", STUDIES)
def test_cells_come_after_their_inputs_and_have_keys_of_their_own(name):
    study = find_study(name)
    for options in (Options(quick=True), Options(), Options(full=True)):
        if options.full and "full" not in TAKES[name]:
            continue
        seen: set[str] = set()
        for cell in study.cells(study.configure(options)):
            assert set(cell.inputs) <= seen
            assert cell.key not in seen
            data = 0 if not cell.data else 1 + cell.data.count(".")
            assert cell.key.count(".") == 2 + data + (cell.split is not None)
            seen.add(cell.key)
            json.dumps(cell.settings, default=vars)
        assert seen


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", STUDIES)
def test_a_quick_run_is_measured_shown_and_taken_up_again(onebasin, here, monkeypatch, name):
    monkeypatch.setattr("onebasin.base.machine.available_cores", lambda: 1)  # Use this process.
    words = ("study", name, "--quick", "--out", "run", "--no-progress", "--json")
    answer = onebasin(*words)
    assert answer.code == 0, answer.err
    found = answer.json
    assert [row["key"] for row in found["frames"]["failures"]] == []
    record = json.loads(Path("run/run.json").read_text())
    assert (record["study"], record["status"]) == (name, "done")
    assert {cell["status"] for cell in record["cells"].values()} == {"done"}
    files = {path.stem for path in Path("run/posteriors").glob("*.nc")}
    assert files == set(record["cells"])
    # The tables depend only on the numbers, which another command reads.
    shown = onebasin("study", name, "--show", "--out", "run", "--json").json
    assert shown == {part: found[part] for part in ("tables", "frames")}
    text = onebasin("study", name, "--show", "--out", "run").out
    assert "printed" in text and "here" in text
    tables = Path("run/tables.md").read_text()
    assert all(table["caption"] in tables for table in found["tables"] if table["rows"])
    assert any(row["here"] is not None for table in found["tables"] for row in table["rows"])
    figures = {path.stem for path in Path("run").glob("*.png")}
    assert (name == "boston") == (figures == set())
    # The same command makes no cell again.
    later = onebasin(*words)
    assert later.err.count("already done") == len(record["cells"])
    assert later.json == found


@cache
def recorded(path: Path) -> tuple[dict[str, Any], Study, Frames]:
    name = path.stem.removesuffix("-quick").removesuffix("-full")
    made, frames = read_results(path, name)
    return made, find_study(name), frames


@pytest.mark.parametrize("path", RECORDS)
def test_a_record_is_whole_and_its_page_has_its_tables(path, tmp_path):
    made, study, frames = recorded(path)
    assert {"config", "config_hash", "versions", "machine", "commit", "command"} <= made.keys()
    assert made["seconds"] > 0
    assert path.stat().st_size < 1000 * 1024
    run.write_results(
        tmp_path / "again.json", {n: v for n, v in made.items() if n != FIELD}, frames
    )
    again = json.loads((tmp_path / "again.json").read_text())
    assert again == json.loads(path.read_text(encoding="utf-8"))  # Compare the checksum too.
    empty = [table.caption for table in study.tables if not table.rows(frames)]
    assert len(tables_of(study.tables, frames)) >= len(study.tables) - len(empty) > len(empty)
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    for table in tables_of(study.tables, frames):
        assert table_to_markdown(table) in page, table.caption
    known = [row for table in study.tables for row in table.rows(frames) if row["numbers"]]
    assert all(row["low"] <= row["here"] <= row["high"] for row in known if row["low"] is not None)


def test_tables_of_records_have_the_numbers_that_pages_state():
    _, study, frames = recorded(RESULTS / "boston.json")
    rows = [row for table in study.tables for row in table.rows(frames)]
    here = {(row["of"], row["measure"]): row["here"] for row in rows}
    for of, mse in (("free", 0.097), ("givens", 0.099)):
        assert here[f"{of}, NumPyro", "test MSE"] == pytest.approx(mse, abs=5e-4)
    assert here["free, Stan", "outside the 95 % interval"] == pytest.approx(0.059, abs=5e-4)
    printed = {(row["of"], row["measure"]): row["printed"] for row in rows}
    assert printed["free, NumPyro", "test MSE"] == pytest.approx(0.379, abs=5e-4)
    assert printed["free-narrow, NumPyro", "test MSE"] is None


def test_records_keep_the_identities_of_their_measures():
    _, _, frames = recorded(RESULTS / "boston.json")
    split = boston_split(0, 1)
    y_sd = float(split.standardiser.y_sd[0])
    cells = where(frames["cells"], split=1).to_dict("records")
    assert cells
    for cell in cells:
        assert cell["mse_data_units"] / cell["mse"] == pytest.approx(y_sd**2)
        if cell["log_score"] is not None:
            shift = cell["log_score"] - cell["log_score_data_units"]
            assert shift == pytest.approx(np.log(y_sd))
    _, _, frames = recorded(RESULTS / "orthogonal-skips.json")
    ends = where(frames["gaps"], end=True).to_dict("records")
    assert {row["layer"] for row in ends} == {"all", *(f"hidden{k}" for k in range(1, 6))}
    for row in ends:
        assert -0.5 <= row["lower"] <= row["upper"] + 0.5
        assert row["upper"] <= row["log_order"] + 0.5
