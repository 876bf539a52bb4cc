"""Settings of every test: double precision, no silent broadcasting, no forbidden skip; and a bare machine."""

from __future__ import annotations

import gc
import os
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from onebasin.base.processes.libraries import prepare_jax

from . import type_checks

# Programs inherit signals that are ignored, as `nohup` and a shell's `&` have it, but not signals that are handled. So
# the tests themselves go on passing over these, and the programs that they start heed them.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)

# As the command line: double precision, and compiled kernels kept for the next run.
# The width and the colours of a terminal that the tests were started from are not what they are about.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(name, None)

prepare_jax()
jax.config.update("jax_numpy_rank_promotion", "raise")

# Check annotations at run time where shapes of arrays are annotated, in these rooms; mypy checks the other files.
ROOT = Path(__file__).parents[1]
type_checks.Hook(
    ".".join(("onebasin", *path.relative_to(ROOT).with_suffix("").parts))
    for room in ("models", "posteriors", "inference", "analysis")
    for path in (ROOT / room).rglob("*.py")
    if "from jaxtyping import" in path.read_text(encoding="utf-8")
).install()

# Set by continuous integration: there a skip means a missing tool, which must not pass unseen.
REQUIRE_ALL = os.environ.get("ONEBASIN_REQUIRE_ALL") == "1"

# After the hook, so that what it imports of these rooms is checked too.
from .command_fixtures import (  # noqa: E402, F401
    asked,
    cmdstan_is_there,
    here,
    kills,
    onebasin,
    program,
    sample,
    sampler,
)
from .shared_posteriors import shared as shared  # noqa: E402

# The files that take longest, longest first: begun early, so that no worker ends alone with one of them.
HEAVY = (
    *("notebooks/test_notebooks.py", "docs/test_blocks.py", "stan/test_parity.py"),
    *("inference/test_conformance.py", "truth/problems/test_problems.py"),
    "studies/test_conformance.py",
)

FAKE_COMPILER = """#!/bin/sh
case "$1" in
  --version) echo "g++ (stand-in) {version}"; exit 0 ;;
  -dumpfullversion) echo "{version}"; exit 0 ;;
esac
{failure}
echo "$@" >> "{calls}"
while [ $# -gt 0 ]; do
  if [ "$1" = "-o" ]; then echo compiled > "$2"; fi
  shift
done
"""


class PackageTimes:
    """Prints how long the tests of each package took, longest first."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test's set-up, call or end."""
        folder = report.nodeid.removeprefix("tests/").split("::")[0].partition("/")
        self.seconds[folder[0] if folder[1] else "(other)"] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write one line."""
        times = ", ".join(f"{name} {took:.0f} s" for name, took in self.seconds.most_common())
        terminalreporter.write_line(f"Time of tests by package, both workers together: {times}")


def pytest_configure(config: pytest.Config) -> None:
    """Measure times where results are collected."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PackageTimes())


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str) -> None:
    """End the run as soon as a worker dies: xdist would go through the files that were dealt, and can wait for ever."""
    pytest.exit(f"the process of {crashitem} died", returncode=1)


def pytest_runtest_setup() -> None:
    """Check annotations at the first calls of every test."""
    type_checks.begin_test()


KEPT = "jax_compilation_cache_dir"


@pytest.fixture(autouse=True)
def same_cache() -> Iterator[None]:
    """Let later tests find what JAX has compiled, wherever a test has it kept."""
    before = getattr(jax.config, KEPT)
    yield
    if getattr(jax.config, KEPT) != before:
        compilation_cache.reset_cache()
        jax.config.update(KEPT, before)


@pytest.fixture(autouse=True)
def declared_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the search for symmetries out of tests of other things: it compiles every Stan program once more."""
    if request.node.get_closest_marker("finds_symmetry") is None:
        from onebasin.inference.runs import run as run_module

        monkeypatch.setattr(
            run_module, "found_in", lambda target, **how: run_module.SearchedSymmetry(target)
        )


# Fixtures that assemble or use CmdStan; a test that asks for one of them gets the marker `cmdstan`.
CMDSTAN_FIXTURES = frozenset(
    ["cmdstan_home", "cmdstan_is_there", "compiled", "few_headers", "whole_wheel", "wheel"]
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs CmdStan; begin with the heavy files.

    `--no-loadscope-reorder` lets the workers take them in this order.
    """
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        engines = {e for v in parameters if isinstance(e := getattr(v, "engine", v), str)}
        asks = CMDSTAN_FIXTURES & set(getattr(item, "fixturenames", ()))
        if asks or {"cmdstan", "stan"} & engines:
            item.add_marker(pytest.mark.cmdstan)
    place = {Path(__file__).parent / name: i for i, name in enumerate(HEAVY)}
    items.sort(key=lambda item: place.get(item.path, len(HEAVY)))


def pytest_collection_finish() -> None:
    """Look for garbage rarely: while it traces, JAX has Python search all that was imported a thousand times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, fresh for every test."""
    return np.random.default_rng(20170411)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call as a user does, without the check of annotations: for tests of what bad input is told.

    Otherwise the checker rejects an array of the wrong shape, or an unknown word of a `Literal`,
    before the library can say what is allowed.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing to find: an empty home folder and cache, no CmdStan in the environment."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CMDSTAN", "CONDA_PREFIX", "CXX", "MAKE", "CXXFLAGS", "CPPFLAGS"):
        monkeypatch.delenv(name, raising=False)
    return user


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Install a stand-in compiler; returns its log of calls."""

    def install(version: str = "1.0.0", failure: str = "") -> Path:
        calls = tmp_path / "calls.txt"
        script = tmp_path / f"g++-{version}"
        script.write_text(FAKE_COMPILER.format(version=version, failure=failure, calls=calls))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("CXX", str(script))
        return calls

    return install


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With ONEBASIN_REQUIRE_ALL=1, fail instead of skipping (tests with a GPU or a browser, and xfail, aside)."""
    report = yield
    marked = any(item.get_closest_marker(name) for name in ("gpu", "browser"))
    exempt = hasattr(report, "wasxfail") or marked
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
