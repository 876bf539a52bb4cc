"""Tables of cheap cases as one test, which goes through all of them and names every case that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest


def looped(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """Run a test once with every case, as `pytest.mark.parametrize` has them.

    Of fixtures, `rng`, `tmp_path`, `monkeypatch` and `caplog` are fresh for every case; others are shared.

    Parameters
    ----------
    names : str or tuple of str
        The arguments that a case gives, in a text divided by commas or one by one.
    cases : iterable
        A value each, or as many as there are names.
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    table = [(case,) if len(words) == 1 else tuple(case) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(**fixtures: Any) -> None:
            faults = []
            for number, case in enumerate(table):
                try:
                    with _fresh(fixtures, number) as given:
                        test(**dict(zip(words, case, strict=True)), **given)
                except Exception as error:
                    faults.append((case, error))
            if faults:
                told = [f"{dict(zip(words, c, strict=True))}: {e!r}" for c, e in faults]
                raise AssertionError("\n\n".join(told)) from faults[0][1]

        taken = inspect.signature(test)
        rest = [p for name, p in taken.parameters.items() if name not in words]
        assert len(rest) == len(taken.parameters) - len(words), f"{test.__name__} lacks a name"
        every.__signature__ = taken.replace(parameters=rest)  # type: ignore[attr-defined]
        return every

    return decorate


@contextmanager
def _fresh(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures as a case has them."""
    given = dict(fixtures)
    if "rng" in given:
        given["rng"] = np.random.default_rng(20170411)
    if "tmp_path" in given:
        given["tmp_path"] = fixtures["tmp_path"] / f"case-{number}"
        given["tmp_path"].mkdir()
    if "caplog" in given:
        given["caplog"].clear()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in given:
            given["monkeypatch"] = patch
        yield given
