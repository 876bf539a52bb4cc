"""Tables of cases that one test goes through, so that all faults are reported at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from copy import deepcopy
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def each(names: str | tuple[str, ...], cases: Iterable[Any], ids: Any = None) -> Callable:
    """Run a test once for every case, as one collected test that names every case that fails.

    The arguments are those of `pytest.mark.parametrize`. Every case has its own copy of the fixtures `rng` and
    `monkeypatch`, and its own folder in `tmp_path`; it shares all other fixtures.
    """
    arguments = tuple(n.strip() for n in names.split(",")) if isinstance(names, str) else names
    table = list(cases)
    named = [ids(c) for c in table] if callable(ids) else list(ids or map(_name, table))
    if not table or len(named) != len(table):
        raise ValueError(f"`{names}` has {len(table)} cases and {len(named)} names")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            faults = []
            for place, (name, case) in enumerate(zip(named, table, strict=True)):
                values = (case,) if len(arguments) == 1 else tuple(case)
                given = dict(zip(arguments, values, strict=True))
                with ExitStack() as stack:
                    own = {n: _own(n, v, str(place), stack) for n, v in fixtures.items()}
                    try:
                        test(**own, **given)
                    except (Exception, pytest.fail.Exception) as error:
                        faults.append((name, error))
            if len(faults) == 1 and len(table) == 1:
                raise faults[0][1]
            if faults:
                said = "\n\n".join(f"{name}: {type(e).__name__}: {e}" for name, e in faults)
                last = faults[-1][1]
                raise AssertionError(f"{len(faults)} of {len(table)} fail\n\n{said}") from last

        rest = [p for n, p in signature.parameters.items() if n not in arguments]
        assert len(rest) == len(signature.parameters) - len(arguments), arguments
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate


def _own(name: str, value: Any, place: str, stack: ExitStack) -> Any:
    """Return a case's own copy of a fixture."""
    if isinstance(value, np.random.Generator):
        return deepcopy(value)
    if name == "monkeypatch":
        return stack.enter_context(value.context())
    if name == "tmp_path" and isinstance(value, Path):
        (value / place).mkdir()
        return value / place
    if name == "caplog":
        value.clear()
    if name in ("capsys", "capfd"):
        value.readouterr()
    return value


def _name(case: Any) -> str:
    return repr(case)[:200]


def lines(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Read a table of one case a line: what is typed, two blanks and a bar, and the words due in the answer.

    Words are separated by ` ~ `; a line that begins with `# ` is a heading.
    """
    found = []
    for line in text.strip().splitlines():
        if line.strip() and not line.startswith("# "):
            typed, _, says = line.partition("  |")
            found.append((typed.strip(), tuple(w.strip() for w in says.split(" ~ ") if w.strip())))
    return found


def covering(axes: dict[str, Iterable[Any]], strength: int) -> list[dict[str, Any]]:
    """Choose few combinations in which all values of any `strength` axes meet: greedy, and always the same.

    Every row takes, of all combinations, the first that brings most meetings not seen before.
    """
    names = list(axes)
    every = list(product(*(list(values) for values in axes.values())))

    def meetings(row: tuple) -> set[tuple]:
        return {
            (places, tuple(map(repr, (row[p] for p in places))))
            for places in combinations(range(len(names)), strength)
        }

    due: set[tuple] = set().union(*map(meetings, every))
    chosen = []
    while due:
        best = max(every, key=lambda row: len(due & meetings(row)))
        due -= meetings(best)
        chosen.append(dict(zip(names, best, strict=True)))
    return chosen
