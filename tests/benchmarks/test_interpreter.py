"""The record of stanli's parity with CmdStan, which `python -m benchmarks.interpreter` writes."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks" / "interpreter"
DIFFER_BY_A_CONSTANT = {"covariances", "missing_normal", "onebasin/factors"}
"""Programs with a Wishart or inverse Wishart, whose constants stanli keeps where CmdStan drops them."""

OTHER_TAILS = {"truncated"}
"""`normal_lccdf`: CmdStan loses digits in the upper tail; stanli's gradient is an approximation to five digits."""


@cache
def programs() -> dict[str, dict[str, Any]]:
    path = FOLDER / "record" / f"stanli-{version('stanli')}.json"
    return json.loads(path.read_text(encoding="utf-8"))["programs"]


def accepted() -> dict[str, dict[str, Any]]:
    return {name: row for name, row in programs().items() if row["state"] in ("whole", "slow")}


def of_group(*groups: str) -> set[str]:
    return {name for name, row in programs().items() if row["group"] in groups}


def test_the_record_covers_every_program():
    assert of_group("public", "wrong") == {p.stem for p in FOLDER.glob("programs/*.stan")}
    assert len(of_group("public")) >= 40
    assert len(accepted()) >= 40


def test_log_densities_of_accepted_programs_agree():
    both = ("log_density", "log_density_alone")
    far = {n for n, row in accepted().items() if max(row[each] for each in both) > 1e-8}
    assert far == DIFFER_BY_A_CONSTANT & accepted().keys()
    assert {name for name in far if programs()[name]["beyond_constant"] > 1e-8} == set()


def test_gradients_of_accepted_programs_agree():
    assert {name for name, row in accepted().items() if row["gradient"] > 1e-7} == OTHER_TAILS
    assert {name for name, row in accepted().items() if row["rejected_by_one"]} == set()


def test_quantities_without_random_numbers_agree():
    found = {name: row["quantities"] for name, row in accepted().items()}
    assert {name for name, row in found.items() if row["names"] != "equal"} == set()
    assert {name: row["fixed_differ"] for name, row in found.items() if row["fixed_differ"]} == {}


def test_wrong_programs_are_rejected_with_a_message():
    # stanli would rename a variable called `class`
    for name in (*of_group("wrong"), "keyword_names"):
        assert programs()[name]["state"] == "rejected"
        assert programs()[name]["stanli"]["message"]
