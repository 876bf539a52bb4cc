"""Settings of every test: double precision, no silent broadcasting, no forbidden skip."""

from __future__ import annotations

import os
from collections.abc import Iterator

import jax
import jaxtyping
import numpy as np
import pytest

# The only place besides the command line that sets JAX flags.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# Check every annotation of these rooms at run time, shapes and types of arrays above all; outside
# the tests they cost nothing. As everywhere in Python, an int serves where a float is asked for.
# (jaxtyping's own pytest option does not parse a type checker with settings after several rooms.)
jaxtyping.install_import_hook(
    ["models", "stan", "inference", "analysis"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

# Set by continuous integration: there a skip means a missing tool, which must not pass unseen.
REQUIRE_ALL = os.environ.get("ONEBASIN_REQUIRE_ALL") == "1"


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for every test."""
    return np.random.default_rng(20170411)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call as a user does, without the check of annotations: for tests of what bad input is told.

    Otherwise the checker refuses an array of the wrong shape, or an unknown word of a `Literal`,
    before the library can say what is allowed.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


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
