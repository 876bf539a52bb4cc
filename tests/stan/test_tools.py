"""bin/stansummary and bin/diagnose as parts of a home: where they lie, and how they are made again."""

import os
import shutil
import subprocess
from pathlib import Path

import cmdstanpy
import numpy as np
import pytest

from onebasin.stan.home.directory import Home

from .csv_chains import call, write_chains
from .driver_runs import DATA

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("quiet")]

TOOLS = ("bin/stansummary", "bin/diagnose")


def copy_of(home: Home, folder: Path, *names: str) -> Home:
    """Those parts of a home elsewhere, as links."""
    for name in names:
        source, target = home.path / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=os.link)
        else:
            shutil.copy2(source, target)
    return Home(folder, home.version, home.origin)


def make(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [os.environ.get("MAKE", "make"), *arguments]
    return subprocess.run(command, cwd=home.path, capture_output=True, text=True, check=False)


def assert_tools_work(home: Home, folder: Path) -> None:
    files = write_chains(folder, {"x": np.random.default_rng(3).normal(size=(2, 100))})
    for tool in ("stansummary", "diagnose"):
        done = call(home, tool, *files)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_the_tools_run_wherever_the_home_is(own_home, tmp_path):
    moved = copy_of(own_home, tmp_path / "with blank", *TOOLS, "lib")
    assert_tools_work(moved, tmp_path)


def test_a_driver_for_threads_leaves_the_tools_alone(own_home):
    done = make(own_home, "--dry-run", "STAN_THREADS=1", *TOOLS)
    assert done.returncode == 0
    assert " -o " not in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
def test_a_home_is_rebuilt_by_cmdstanpy(own_home, tmp_path, monkeypatch):
    parts = ("makefile", "driver", "tools", "examples", "include", "lib", "bin/stanc")
    copy = copy_of(own_home, tmp_path / "home", *parts, *TOOLS)
    for tool in TOOLS:
        (copy.path / tool).write_text("to be removed\n")
    monkeypatch.setenv("CMDSTAN", str(copy.path))
    cmdstanpy.rebuild_cmdstan(progress=False, cores=1)
    assert_tools_work(copy, tmp_path)
    example = copy.path / "examples" / "bernoulli" / "bernoulli"
    fit = cmdstanpy.CmdStanModel(exe_file=example).sample(DATA, seed=1, show_progress=False)
    assert list(fit.summary().index) == ["lp__", "theta"]
    assert fit.diagnose().endswith("Processing complete, no problems detected.\n")


def test_a_tool_that_does_not_compile_says_why(own_home, tmp_path):
    copy = copy_of(own_home, tmp_path / "home", "makefile", "driver", "tools", "bin/stanc")
    source = copy.path / "tools" / "draws.cpp"
    source.unlink()  # it is a link to the home's
    source.write_text("#error broken on purpose\n")
    done = make(copy, "bin/diagnose")
    assert done.returncode != 0
    assert "broken on purpose" in done.stderr
    assert not (copy.path / "bin" / "diagnose").exists()
