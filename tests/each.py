"""Cases of a test in one loop: every case runs, and one failure names all cases that fail."""

from __future__ import annotations

import copy
import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr
from _pytest.mark.structures import ParameterSet

type Case = tuple[str, dict[str, Any]]

COPIED = (np.random.Generator, xr.Dataset, xr.DataTree, dict)


def each(
    names: str | tuple[str, ...], values: Iterable[Any], ids: Any = None
) -> Callable[..., Any]:
    """Run a test for each of these values, as `pytest.mark.parametrize` does, in one test.

    For cases that take no time: to collect and report a test costs more than most of them. Several decorators run the
    product of their values. Every case starts from the same random numbers and has its own copy of fixtures that are
    posteriors or dictionaries, its own `monkeypatch`, and its own folder in `tmp_path`. All other fixtures are shared.

    Parameters
    ----------
    names : str or tuple of str
        Arguments of the test, in one text with commas or one by one.
    values : iterable
        A value for each case, or a tuple of values where there are several names.
    ids : callable or sequence of str, optional
        Names of the cases in a failure; by default the values themselves.
    """
    split = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    one = len(split) == 1 and isinstance(names, str)
    table = list(values)
    assert table, f"no values of {names}"
    assert not any(isinstance(v, ParameterSet) for v in table), "marks hold for whole tests"
    added = [dict(zip(split, (v,) if one else v, strict=True)) for v in table]
    named = [str(ids(v)) for v in table] if callable(ids) else list(ids or [""] * len(table))
    assert len(named) == len(table), f"{len(named)} names for {len(table)} cases"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        body, earlier = getattr(test, "_each", (test, [("", {})]))
        cases = [
            (f"{name} {more}".strip(), first | second)
            for (name, first), (more, second) in product(
                earlier, list(zip(named, added, strict=True))
            )
        ]
        taken = inspect.signature(body).parameters
        unknown = cases[0][1].keys() - taken.keys()
        assert not unknown, f"{body.__name__} does not take {unknown}"

        @functools.wraps(body)
        def loop(**fixtures: Any) -> None:
            _run(body, cases, fixtures)

        rest = [p.replace(kind=p.KEYWORD_ONLY) for n, p in taken.items() if n not in cases[0][1]]
        loop.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]
        loop._each = body, cases  # type: ignore[attr-defined]
        loop.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        return loop

    return decorate


def _run(body: Callable[..., None], cases: list[Case], fixtures: dict[str, Any]) -> None:
    failed = []
    for number, (name, case) in enumerate(cases):
        with ExitStack() as stack:
            own = {n: _own(n, v, number, stack) for n, v in fixtures.items()}
            try:
                body(**own, **case)
            except (Exception, pytest.fail.Exception) as error:
                told = "".join(traceback.format_exception(error, limit=-3))
                failed.append(f"{name or repr(case)[:200]}:\n{told}")
    if failed:
        pytest.fail(f"{len(failed)} of {len(cases)} cases:\n\n" + "\n".join(failed), pytrace=False)


def _own(name: str, value: Any, number: int, stack: ExitStack) -> Any:
    """Return a case's own copy of a fixture."""
    if name == "monkeypatch":
        return stack.enter_context(pytest.MonkeyPatch.context())
    if name == "tmp_path":
        folder = value / f"case{number}"
        folder.mkdir()
        return folder
    if name == "caplog":
        value.clear()
    if name in ("capsys", "capfd"):
        value.readouterr()
    return copy.deepcopy(value) if isinstance(value, COPIED) else value


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
