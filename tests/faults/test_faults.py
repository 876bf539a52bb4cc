"""Every fault can be planted, and, in the slow suite, is caught by the tests that it names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from onebasin.base.machine import available_cores

from .catalogue import KINDS, ROOT, faults, holders, sources
from .running import run


def _tests_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _wrong_tests(tests: tuple[str, ...]) -> list[str]:
    wrong = []
    for test in tests:
        name, _, function = test.partition("::")
        path = ROOT / name
        known = path.is_file() and path.name.startswith("test_")
        if not known or (function and function.partition("[")[0] not in _tests_in(path)):
            wrong.append(test)
    return wrong


def test_every_fault_can_be_planted() -> None:
    texts, found = sources(), faults()
    assert len(found) >= 70
    assert len({fault.name for fault in found}) == len(found)
    assert {fault.kind for fault in found} == set(KINDS)
    wrong = []
    for fault in found:
        places = holders(fault, texts)
        if len(places) != 1 or fault.line == fault.planted:
            wrong.append(f"{fault.name}: its line occurs {len(places)} times")
        elif places[0].suffix == ".py":
            ast.parse(texts[places[0]].replace(fault.line, fault.planted))
        wrong += [f"{fault.name}: no test {test}" for test in _wrong_tests(fault.tests)]
        if not fault.tests:
            wrong.append(f"{fault.name}: names no test")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_every_fault_is_caught() -> None:
    outcomes = run(faults(), workers=max(1, available_cores() // 2), kept=None)
    assert [o for o in outcomes if o.result != "caught"] == []
