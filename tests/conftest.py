"""Settings of all tests: double precision, no silent broadcasting, no forbidden skip, and a bare machine."""

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

from onebasin.base.processes.libraries import prepare_libraries

from . import type_checks

# Child processes inherit ignored signals (`nohup` and `&` ignore some), but not signals with a handler. With a handler,
# the tests still ignore these signals, and the programs that they start respond to them.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)

# As on the command line, use double precision and keep compiled kernels for the next run. Tests must not depend on the
# width and the colours of the terminal from which they are started.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
    os.environ.pop(name, None)

prepare_libraries()
jax.config.update("jax_numpy_rank_promotion", "raise")

# Check annotations at run time in these packages, wherever they have array shapes. mypy checks the other files.
ROOT = Path(__file__).parents[1]
type_checks.Hook(
    ".".join(("onebasin", *path.relative_to(ROOT).with_suffix("").parts))
    for room in ("models", "posteriors", "inference", "analysis")
    for path in (ROOT / room).rglob("*.py")
    if "from jaxtyping import" in path.read_text(encoding="utf-8")
).install()

# Continuous integration sets this variable: a skip there means that a tool is missing, which is an error.
REQUIRE_ALL = os.environ.get("ONEBASIN_REQUIRE_ALL") == "1"

# Import these after the hook, so that it also checks the modules that they import.
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

# The slowest files, slowest first. They start early, so that no worker is still busy with one at the end.
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
    """Plugin that prints how long the tests of each package took, longest first."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test's set-up, call or teardown."""
        folder = report.nodeid.removeprefix("tests/").split("::")[0].partition("/")
        self.seconds[folder[0] if folder[1] else "(other)"] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write one line with the times."""
        times = ", ".join(f"{name} {took:.0f} s" for name, took in self.seconds.most_common())
        terminalreporter.write_line(f"Time of tests by package, both workers together: {times}")


def pytest_configure(config: pytest.Config) -> None:
    """Measure times in the process that collects results."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PackageTimes())


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str) -> None:
    """End the run as soon as a worker dies, since xdist would run all assigned files and may wait forever."""
    pytest.exit(f"the process of {crashitem} died", returncode=1)


def pytest_runtest_setup() -> None:
    """Check annotations at the first calls in every test."""
    type_checks.begin_test()


KEPT = "jax_compilation_cache_dir"


@pytest.fixture(autouse=True)
def same_cache() -> Iterator[None]:
    """Restore JAX's compilation cache after a test that moved it, so that later tests find compiled code."""
    before = getattr(jax.config, KEPT)
    yield
    if getattr(jax.config, KEPT) != before:
        compilation_cache.reset_cache()
        jax.config.update(KEPT, before)


@pytest.fixture(autouse=True)
def declared_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the search for symmetries in tests of other features: it compiles every Stan program again."""
    if request.node.get_closest_marker("finds_symmetry") is None:
        from onebasin.inference.runs import run as run_module

        monkeypatch.setattr(
            run_module, "found_in", lambda target, **how: run_module.SymmetryTrial(target)
        )


# Fixtures that assemble or use CmdStan; a test that uses one of them gets the marker `cmdstan`.
CMDSTAN_FIXTURES = frozenset(
    ["cmdstan_home", "cmdstan_is_there", "compiled", "few_headers", "whole_wheel", "wheel"]
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need CmdStan, and start with the slowest files. `--no-loadscope-reorder` keeps this order."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        engines = {e for v in parameters if isinstance(e := getattr(v, "engine", v), str)}
        asks = CMDSTAN_FIXTURES & set(getattr(item, "fixturenames", ()))
        if asks or {"cmdstan", "stan"} & engines:
            item.add_marker(pytest.mark.cmdstan)
    place = {Path(__file__).parent / name: i for i, name in enumerate(HEAVY)}
    items.sort(key=lambda item: place.get(item.path, len(HEAVY)))


def pytest_collection_finish() -> None:
    """Collect garbage rarely: tracing by JAX would make Python search all imported objects a thousand times."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a new random generator with a fixed seed."""
    return np.random.default_rng(20170411)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the check of annotations, for tests of the messages about bad input.

    The checker would otherwise reject an array of the wrong shape, or an unknown `Literal`, before the library can
    report which values are allowed.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a bare machine: an empty home folder and cache, and no CmdStan in the environment."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CMDSTAN", "CONDA_PREFIX", "CXX", "MAKE", "CXXFLAGS", "CPPFLAGS"):
        monkeypatch.delenv(name, raising=False)
    return user


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Install a stand-in for the compiler, and return the log of its calls."""

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
    """With ONEBASIN_REQUIRE_ALL=1, fail instead of skipping, except for GPU tests, browser tests and xfail."""
    report = yield
    marked = any(item.get_closest_marker(name) for name in ("gpu", "browser"))
    exempt = hasattr(report, "wasxfail") or marked
    if REQUIRE_ALL and report.skipped and not exempt:
        report.outcome = "failed"
        report.longrepr = f"skipped although ONEBASIN_REQUIRE_ALL=1: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Apply the same rule to a module that is skipped as a whole, for example by `importorskip`."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped although ONEBASIN_REQUIRE_ALL=1: {report.longrepr}"
    return report
