"""What every command shares: start-up, exit codes, errors in one line."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from onebasin.cli import main as cli

from ..each import each

FAULT = (
    "the command ended by a fault of its own, not of what it was given; repeat it with `--debug` to see where, "
    "and report that."
)
HEAVY = ["jax", "numpy", "numpyro", "xarray", "matplotlib", "arviz_stats", "cmdstanpy"]


@each(
    "script",
    [
        "import onebasin",
        "import onebasin.cli.main",
        "from onebasin.cli.main import main; main(['--help'])",
        "from onebasin.cli.main import main; main(['diagnose', '--help'])",
        "from onebasin.cli.main import main; main(['study', '--list'])",
    ],
)
def test_nothing_heavy_is_loaded_before_there_is_something_to_do(script):
    script += f"; import sys; print('loaded', *sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded"


def test_process_exits_with_the_code_that_main_returns():
    call = [
        sys.executable,
        "-c",
        "import sys; from onebasin.cli.main import main; sys.exit(main())",
    ]
    done = subprocess.run([*call, "study"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("onebasin: `NAME` is missing; the studies are: relu-teacher")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_version_is_that_of_the_package(onebasin):
    answer = onebasin("--version")
    assert (answer.code, answer.out) == (0, f"{version('onebasin')}\n")


@each(
    ("words", "message"),
    [
        (["smaple"], "No such command 'smaple'. Did you mean 'sample'? See `onebasin --help`."),
        (["sample", "a.stan"], "Missing option '--out'. See `onebasin sample --help`."),
        (["sample"], "Missing argument 'PROGRAM.stan'. See `onebasin sample --help`."),
        (["study", "--chians", "3"], "No such option: --chians"),
        (["study", "boston", "--chains", "two"], "Invalid value for '--chains'"),
    ],
)
def test_mistyped_command_is_one_line_and_code_2(onebasin, words, message):
    answer = onebasin(*words)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith(f"onebasin: {message}")
    assert answer.err.count("\n") == 1


@each(
    ("error", "line"),
    [
        (KeyError("spam"), FAULT),
        (ValueError("`a` is 1."), "`a` is 1."),
        (RuntimeError("stopped"), "stopped"),
        (
            PermissionError(13, "Permission denied", "/folder/x.nc"),
            "`/folder/x.nc` could not be used: Permission denied.",
        ),
        (RuntimeError(), FAULT),
    ],
)
def test_error_of_any_kind_is_one_line_without_a_traceback(onebasin, monkeypatch, error, line):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("onebasin.studies.lab.study.find", fail)
    answer = onebasin("study", "boston")
    assert (answer.code, answer.err) == (1, f"onebasin: {line}\n")


def test_debug_shows_where_an_error_comes_from(onebasin):
    with pytest.raises(ValueError, match="`NAME` is missing"):
        cli.main(["study", "--debug"])
