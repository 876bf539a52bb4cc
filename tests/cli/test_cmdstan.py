"""`onebasin cmdstan`: build, path and clean, with a stand-in for the compiler."""

from pathlib import Path

import pytest

from onebasin.stan.home.assemble import assembled_path

pytestmark = [pytest.mark.cmdstan, pytest.mark.usefixtures("empty_machine")]


@pytest.fixture
def calls(fake_compiler) -> Path:
    """The log of a stand-in compiler."""
    return fake_compiler()


def test_path_builds_first_and_prints_nothing_else_to_stdout(onebasin, calls, monkeypatch):
    answer = onebasin("cmdstan", "path", "--no-build")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == ("onebasin: CmdStan has not been built; run `onebasin cmdstan build`.\n")
    assert not calls.exists()
    answer = onebasin("cmdstan", "path")
    assert answer.code == 0
    assert answer.out == f"{assembled_path()}\n"
    assert "precompiling Stan's headers" in answer.err
    assert Path(answer.out.strip(), "makefile").is_file()
    monkeypatch.setenv("CMDSTAN", "/nowhere")  # the assembled one, whatever else there is
    again = onebasin("cmdstan", "path")
    assert (again.out, again.err) == (answer.out, "")


def test_build_says_where_it_is_and_builds_once(onebasin, calls):
    answer = onebasin("cmdstan", "build", "--jobs", "1")
    assert answer.code == 0
    # A long path stands on a line of its own.
    assert f"CmdStan 2.39.0 is at {assembled_path()}" in " ".join(answer.out.split())
    count = len(calls.read_text().splitlines())
    onebasin("cmdstan", "build")
    assert len(calls.read_text().splitlines()) == count
    onebasin("cmdstan", "build", "--force")
    assert len(calls.read_text().splitlines()) == 2 * count
