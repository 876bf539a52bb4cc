"""The recorded results: every page follows from the JSON beside it, without any sampling."""

import json
from pathlib import Path

import pytest

from onebasin.models.storage.seal import Seal, examine_json
from onebasin.studies import registry
from onebasin.studies.errors import StudyError
from onebasin.studies.lab.frame import Frame
from onebasin.studies.lab.record import RESULTS, rewrite, write_again

RECORDS = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_page_is_made_again_from_its_numbers(path: Path):
    numbers = json.loads(path.read_text(encoding="utf-8"))
    assert examine_json(numbers) is not Seal.DAMAGED
    page, findings = rewrite(registry.find(numbers["study"]), path.stem, numbers)
    assert page == path.with_suffix(".md").read_text(encoding="utf-8")
    said = json.loads(json.dumps(findings.to_dict()))
    frames = {name: Frame.from_json(kept) for name, kept in numbers["frames"].items()}
    assert {name: Frame.from_json(kept) for name, kept in said.pop("frames").items()} == frames
    assert {name: said[name] for name in said} == {name: numbers[name] for name in said}


def test_record_written_again_is_the_same(tmp_path):
    """A frame without rows, a missing number, and a column of lists are kept; so is each number, bit by bit."""
    (stem,) = (path.stem for path in RECORDS if path.stem == "compact-representation")
    for suffix in (".json", ".md"):
        (tmp_path / f"{stem}{suffix}").write_bytes((RESULTS / f"{stem}{suffix}").read_bytes())
    write_again(tmp_path / f"{stem}.json")
    for suffix in (".json", ".md"):
        written = (tmp_path / f"{stem}{suffix}").read_bytes()
        assert written == (RESULTS / f"{stem}{suffix}").read_bytes()


def test_record_that_was_changed_by_hand_is_not_written_again(tmp_path):
    path = tmp_path / "boston.json"
    said = json.loads((RESULTS / "boston.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(said | {"seconds": 0.0}))
    with pytest.raises(StudyError, match=r"`numbers` is .*boston\.json, whose checksum is wrong"):
        write_again(path)


def test_records_name_a_column_once_and_are_not_too_large_for_the_repository():
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert len(text) < 1000 * 1024, path.name
        numbers = json.loads(text)
        assert all({*kept} == {"columns", "rows"} for kept in numbers["frames"].values())


def test_records_are_pairs_of_files():
    assert {path.stem for path in RECORDS} == {path.stem for path in RESULTS.glob("*.md")}
