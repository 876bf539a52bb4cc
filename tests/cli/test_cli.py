"""What every command shares: start-up, exit codes, errors in one line."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from onebasin.base.errors import ArgumentError
from onebasin.cli import main as cli

HEAVY = "jax numpy numpyro xarray pandas scipy matplotlib arviz_stats cmdstanpy"
STEPS = [
    "import onebasin",
    "from onebasin.cli.main import main",
    "main(['--help'])",
    "main(['diagnose', '--help'])",
    "main(['study', '--list'])",
]


def test_nothing_heavy_is_loaded_before_there_is_something_to_do():
    look = f"print('loaded', *sorted(set({HEAVY!r}.split()) & set(sys.modules)))"
    call = [sys.executable, "-c", "\n".join(["import sys", *(f"{s}\n{look}" for s in STEPS)])]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert told == ["loaded"] * len(STEPS)


def test_process_exits_with_the_code_that_main_returns():
    script = "import sys; from onebasin.cli.main import main; sys.exit(main())"
    call = [sys.executable, "-c", script, "study"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("onebasin: `NAME` is missing. The studies are relu-teacher")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_version_is_that_of_the_package(onebasin):
    answer = onebasin("--version")
    assert (answer.code, answer.out) == (0, f"{version('onebasin')}\n")


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ArgumentError("`a` is 1."), "`a` is 1."),
        (PermissionError(13, "Permission denied", "/folder/x.nc"), "/folder/x.nc"),
        (MemoryError(), "memory"),
    ],
)
def test_error_of_a_user_or_a_machine_is_one_line(onebasin, monkeypatch, error, word):
    answer = failing(onebasin, monkeypatch, error)
    assert (answer.code, answer.err.count("\n"), word in answer.err) == (1, 1, True)


@pytest.mark.parametrize("error", [KeyError("spam"), ValueError("`a` is 1."), OSError("odd")])
def test_any_other_error_is_a_bug_whose_traceback_is_in_a_file(
    onebasin, monkeypatch, tmp_path, error
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = failing(onebasin, monkeypatch, error)
    (file,) = (tmp_path / "onebasin" / "bugs").iterdir()
    assert (answer.code, str(file) in answer.err) == (3, True)
    first, *rest = file.read_text().splitlines()
    assert first == "onebasin study boston"
    assert rest[-1].startswith(type(error).__name__)


def test_bug_is_reported_where_no_cache_can_be_made(onebasin, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    answer = failing(onebasin, monkeypatch, KeyError("spam"))
    assert (answer.code, "KeyError at test_cli.py" in answer.err) == (3, True)


def failing(onebasin, monkeypatch, error):
    """Run a command that raises an error."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("onebasin.studies.registry.find_study", fail)
    return onebasin("study", "boston")


def test_debug_shows_where_an_error_comes_from(onebasin):
    with pytest.raises(ValueError, match="`NAME` is missing"):
        cli.main(["study", "--debug"])
