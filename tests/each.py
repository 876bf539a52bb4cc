"""Cases of a test in one loop: each is run, and all that fail are told at once."""

from __future__ import annotations

import copy
import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr
from _pytest.mark.structures import ParameterSet

type Cases = list[dict[str, Any]]

COPIED = (np.random.Generator, xr.Dataset, xr.DataTree, dict)


def each(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[..., Any]:
    """Run a test for each of these values, as `pytest.mark.parametrize` does, in one test.

    For cases that take no time: a test that is collected costs more than most of them. Several decorators run the product
    of their values. Every case begins with the same random numbers, and has its own copy of fixtures that are posteriors
    or dictionaries, its own `monkeypatch` and its own folder in `tmp_path`. All other fixtures are shared.
    """
    split = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    one = isinstance(names, str) and "," not in names
    values = list(values)
    assert values, f"no values of {names}"
    assert not any(isinstance(v, ParameterSet) for v in values), "marks hold for whole tests"
    added: Cases = [dict(zip(split, (v,) if one else v, strict=True)) for v in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        inner = getattr(test, "_each", None)
        body, earlier = inner or (test, [{}])
        cases = [first | second for first, second in product(earlier, added)]
        asked = inspect.signature(body).parameters
        unknown = cases[0].keys() - asked.keys()
        assert not unknown, f"{body.__name__} does not take {unknown}"

        @functools.wraps(body)
        def loop(**fixtures: Any) -> None:
            _run(body, cases, fixtures)

        rest = [p.replace(kind=p.KEYWORD_ONLY) for n, p in asked.items() if n not in cases[0]]
        loop.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]
        loop._each = body, cases  # type: ignore[attr-defined]
        loop.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        return loop

    return decorate


def _run(body: Callable[..., None], cases: Cases, fixtures: dict[str, Any]) -> None:
    failed = []
    for number, case in enumerate(cases):
        own = {n: copy.deepcopy(v) if isinstance(v, COPIED) else v for n, v in fixtures.items()}
        if "tmp_path" in own:
            own["tmp_path"] = own["tmp_path"] / f"case{number}"
            own["tmp_path"].mkdir()
        with pytest.MonkeyPatch.context() as patch:
            if "monkeypatch" in own:
                own["monkeypatch"] = patch
            try:
                body(**own, **case)
            except (Exception, pytest.fail.Exception) as error:
                told = "".join(traceback.format_exception(error, limit=-3))
                failed.append(f"{case}:\n{told}")
    if failed:
        pytest.fail(f"{len(failed)} of {len(cases)} cases:\n\n" + "\n".join(failed), pytrace=False)
