"""The recorded results: every page follows from the JSON beside it, without any sampling."""

import json
from pathlib import Path

import pytest

from onebasin.models.storage.seal import Seal, examine_json
from onebasin.studies import registry
from onebasin.studies.lab.record import RESULTS, rewrite

RECORDS = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_page_is_made_again_from_its_numbers(path: Path):
    numbers = json.loads(path.read_text(encoding="utf-8"))
    assert examine_json(numbers) is not Seal.DAMAGED
    page, findings = rewrite(registry.find(numbers["study"]), path.stem, numbers)
    assert page == path.with_suffix(".md").read_text(encoding="utf-8")
    said = json.loads(json.dumps(findings.to_dict()))
    assert {name: said[name] for name in said} == {name: numbers[name] for name in said}


def test_records_are_pairs_of_files():
    assert {path.stem for path in RECORDS} == {path.stem for path in RESULTS.glob("*.md")}
