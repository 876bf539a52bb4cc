"""Settings of every test: double precision, no silent broadcasting, no forbidden skip."""

from __future__ import annotations

import os
from collections.abc import Iterator

import jax
import numpy as np
import pytest

# The only place besides the command line that sets JAX flags.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# Set by continuous integration: there a skip means a missing tool, which must not pass unseen.
REQUIRE_ALL = os.environ.get("ONEBASIN_REQUIRE_ALL") == "1"


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for every test."""
    return np.random.default_rng(20170411)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With ONEBASIN_REQUIRE_ALL=1, fail instead of skipping (GPU tests and xfail aside)."""
    report = yield
    exempt = hasattr(report, "wasxfail") or item.get_closest_marker("gpu") is not None
    if REQUIRE_ALL and report.skipped and not exempt:
        report.outcome = "failed"
        report.longrepr = f"skipped although ONEBASIN_REQUIRE_ALL=1: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same for a module that is skipped as a whole, by `importorskip` for one."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped although ONEBASIN_REQUIRE_ALL=1: {report.longrepr}"
    return report
