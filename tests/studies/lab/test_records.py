"""The recorded results: every page follows from the JSON beside it, without any sampling."""

import json
from pathlib import Path

import pytest

from onebasin.base.errors import StudyError
from onebasin.base.files.seal import seal_json
from onebasin.studies.lab.folder import config_hash
from onebasin.studies.lab.joining import join_run
from onebasin.studies.lab.record import RESULTS, read_record, rewrite
from onebasin.studies.lab.study import find


def test_record_that_was_changed_by_hand_is_not_written_again(tmp_path):
    path = tmp_path / "boston.json"
    path.write_text(json.dumps(read(BOSTON) | {"seconds": 0.0}))
    with pytest.raises(StudyError, match=r"`numbers` is .*boston\.json, whose checksum is wrong"):
        read_record(path)


def split_record(folder: Path, stem: str, *, first: int) -> tuple[Path, Path]:
    """Write a record's first cells as a record, and the others as the folder of a run that measured them."""
    whole = read(RESULTS / f"{stem}.json")
    columns, rows = (whole["frames"]["cells"][name] for name in ("columns", "rows"))
    sides = []
    for kept in (rows[:first], rows[first:]):
        frames = {**whole["frames"], "cells": {"columns": columns, "rows": kept}}
        sides.append({**whole, "seconds": float(len(kept)), "frames": frames})
    record, part = folder / f"{stem}.json", folder / "run"
    record.write_text(json.dumps(seal_json(sides[0])))
    part.mkdir()
    said = {
        **sides[1],
        "command": ["study", whole["study"], "--only", "rest"],
        "commit": "b",
        "machine": "another",
    }
    said |= {"status": "done", "cells": {"all": {"seconds": sides[1]["seconds"]}}}
    (part / "run.json").write_text(json.dumps(seal_json(said)))
    findings = {"frames": {name: rows_of(frame) for name, frame in sides[1]["frames"].items()}}
    (part / "findings.json").write_text(json.dumps(seal_json(findings)))
    return record, part


def changed(file: Path, **more) -> dict:
    """Change a sealed file; return what it says now."""
    said = read(file) | more
    file.write_text(json.dumps(seal_json(said)))
    return said


def read(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


BOSTON = RESULTS / "boston.json"


@pytest.fixture
def parts(tmp_path) -> tuple[Path, Path]:
    return split_record(tmp_path, "boston", first=30)


def rows_of(table: dict) -> list[dict]:
    """A frame as a run's findings keep it: a mapping a row."""
    return [dict(zip(table["columns"], values, strict=True)) for values in table["rows"]]


def test_record_in_two_parts_says_what_the_whole_says(parts):
    record, part = parts
    findings = read(part / "findings.json")
    for row in findings["frames"]["lines"]:  # as another machine rounds: not taken twice
        row["mse"] *= 1 + 1e-15
    changed(part / "findings.json", **findings)
    whole = read(BOSTON)
    without = {name: number for name, number in whole["versions"].items() if name != "stan"}
    assert changed(part / "run.json", versions=without)["versions"] != whole["versions"]
    join_run(record, part)
    joined = read(record)
    for name in ("headline", "statements", "versions"):
        assert joined[name] == whole[name]
    assert joined["frames"] == whole["frames"]
    assert joined["command"].endswith(" --only rest")
    assert joined["commit"] == f"{whole['commit']}, b"
    assert joined["machine"] == f"{whole['machine']}; another"
    assert joined["seconds"] == len(whole["frames"]["cells"]["rows"])
    page, _ = rewrite(find(joined["study"]), record.stem, joined)
    assert page == record.with_suffix(".md").read_text(encoding="utf-8")
    findings["frames"]["cells"][0]["rmse"] = -1.0
    changed(part / "findings.json", **findings)
    with pytest.raises(StudyError, match="other numbers for 1 of the record's cells"):
        join_run(record, part)


def test_parts_that_do_not_agree_are_refused_and_the_record_stays(parts):
    record, part = parts
    before, run = record.read_bytes(), read(part / "run.json")
    others = {"study": "another", "config_hash": "another", "versions": {"stan": "another"}}
    for name, other in others.items():
        changed(part / "run.json", **(run | {name: other}))
        with pytest.raises(StudyError, match=f"`part` has another {name} than the record"):
            join_run(record, part)
    changed(part / "run.json", **(run | {"status": "interrupted"}))
    with pytest.raises(StudyError, match="is not finished"):
        join_run(record, part)
    assert record.read_bytes() == before


def test_settings_that_a_record_predates_have_to_be_named(parts):
    record, part = parts
    config = read(part / "run.json")["config"]
    config = {**config, "advi": {**config["advi"], "new": 0, "newer": 1}}
    changed(part / "run.json", config=config, config_hash="another")
    for named in ((), ("advi.new",), ("new", "newer")):
        with pytest.raises(StudyError, match="`part` has another config_hash"):
            join_run(record, part, named)
    join_run(record, part, ("advi.new", "advi.newer"))
    joined = read(record)
    assert (joined["config"], joined["config_hash"]) == (config, "another")


def test_settings_that_list_what_is_run_list_the_entries_of_both(parts):
    record, part = parts
    config = read(part / "run.json")["config"]
    before = config["parametrisations"]
    config = {**config, "parametrisations": [before[0], "another"]}
    changed(part / "run.json", config=config, config_hash="another")
    with pytest.raises(StudyError, match="`part` has another config_hash"):
        join_run(record, part)
    with pytest.raises(StudyError, match="`--more` names nuts, which is no list"):
        join_run(record, part, more=("nuts",))
    join_run(record, part, more=("parametrisations",))
    joined = read(record)
    assert joined["config"] == {**config, "parametrisations": [*before, "another"]}
    assert joined["config_hash"] == config_hash("boston", joined["config"])
    changed(part / "run.json", config={**config, "seed": 7})
    with pytest.raises(StudyError, match="`part` has another config_hash"):
        join_run(record, part, more=("parametrisations",))


def test_cells_that_were_made_anew_replace_the_records_in_their_places(tmp_path):
    """With the settings that changed for them alone."""
    record, part = split_record(tmp_path, "calibration", first=30)
    said, run = read(record), read(part / "run.json")
    key = said["frames"]["cells"]["rows"][2][0]
    config = {**run["config"], "nuts": {**run["config"]["nuts"], "draws": 3}}
    changed(part / "run.json", config=config, config_hash=config_hash("calibration", config))
    anew = {
        name: [
            row | {"verdict": "anew", "outside": False}
            for row in rows_of(frame)
            if row["key"] == key
        ]
        for name, frame in said["frames"].items()
    }
    anew["quantities"] = anew["quantities"][:2]
    changed(part / "findings.json", frames=anew)
    with pytest.raises(StudyError, match="another config_hash"):
        join_run(record, part, replace=True)
    with pytest.raises(StudyError, match="other numbers for 1 of"):
        join_run(record, part, ("nuts.draws",))
    join_run(record, part, ("nuts.draws",), replace=True)
    joined = read(record)
    before, after = (rows_of(each["frames"]["cells"]) for each in (said, joined))
    assert [row["key"] for row in after] == [row["key"] for row in before]
    assert [row["verdict"] == "anew" for row in after] == [row["key"] == key for row in before]
    quantities = rows_of(joined["frames"]["quantities"])
    assert sum(row["key"] == key for row in quantities) == 2
    assert joined["config"] == config
