"""Finding a CmdStan home, without compiling anything: the compiler is a stand-in."""

import cmdstanpy
import pytest

from onebasin.base.errors import CmdStanNotFound
from onebasin.stan.home.assemble import (
    Home,
    activate,
    assemble,
    existing_cmdstan,
    find_cmdstan,
    read_home,
)

pytestmark = pytest.mark.usefixtures("empty_machine")


def make_cmdstan(path, version="2.36.0"):
    """Make a folder that looks like CmdStan."""
    path.mkdir(parents=True)
    (path / "makefile").write_text(f"# a makefile\nCMDSTAN_VERSION := {version}\n")
    return path


def test_find_goes_through_the_places_in_order(tmp_path, empty_machine, monkeypatch, fake_compiler):
    fake_compiler()
    assert existing_cmdstan() is None
    with pytest.raises(CmdStanNotFound, match=r"CMDSTAN, ~/\.cmdstan, the conda"):
        find_cmdstan(build=False)

    assembled = assemble()
    assert existing_cmdstan() == assembled
    assert assembled.origin == "assembled"

    conda = make_cmdstan(tmp_path / "env" / "bin" / "cmdstan", "2.37.0")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "env"))
    assert existing_cmdstan() == Home(conda, (2, 37, 0), "conda")

    default = make_cmdstan(empty_machine / ".cmdstan" / "cmdstan-2.36.0")
    assert existing_cmdstan() == Home(default, (2, 36, 0), "cmdstanpy default")

    named = make_cmdstan(tmp_path / "named", "2.35.1")
    monkeypatch.setenv("CMDSTAN", str(named))
    assert existing_cmdstan() == Home(named, (2, 35, 1), "CMDSTAN")


@pytest.mark.parametrize(
    ("present", "newest"),
    [
        (["2.9.0", "2.10.0"], "2.10.0"),
        (["2.36.0-rc1", "2.35.0"], "2.36.0-rc1"),
        (["2.36.0-rc1", "2.36.0-rc2", "2.36.0"], "2.36.0"),
        (["2.36.0", "nightly"], "2.36.0"),
        (["2.36.0", "broken"], "2.36.0"),
    ],
)
def test_find_takes_the_newest_release(tmp_path, monkeypatch, present, newest):
    monkeypatch.setenv("HOME", str(tmp_path))
    for version in present:
        if version == "broken":
            (tmp_path / ".cmdstan" / "cmdstan-2.37.0").mkdir()
        else:
            make_cmdstan(tmp_path / ".cmdstan" / f"cmdstan-{version}", version)
    assert existing_cmdstan().path.name == f"cmdstan-{newest}"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "is not a directory"),
        ({}, "has no readable makefile"),
        ({"makefile": "all:\n"}, "does not state a version"),
    ],
)
def test_find_does_not_skip_a_wrong_cmdstan(tmp_path, monkeypatch, content, complaint):
    monkeypatch.setenv("HOME", str(tmp_path))
    make_cmdstan(tmp_path / ".cmdstan" / "cmdstan-2.36.0")
    wrong = tmp_path / "wrong"
    if content is not None:
        wrong.mkdir()
        for name, text in content.items():
            (wrong / name).write_text(text)
    monkeypatch.setenv("CMDSTAN", str(wrong))
    with pytest.raises(CmdStanNotFound, match=rf"wrong` \(CMDSTAN\) {complaint}"):
        existing_cmdstan()


def test_a_home_knows_its_version_and_is_that_of_cmdstanpy(tmp_path, monkeypatch):
    monkeypatch.setenv("CMDSTAN", "")  # so that the variable is restored
    old, new = (
        read_home(make_cmdstan(tmp_path / version, version), "CMDSTAN")
        for version in ("2.35.0", "2.36.0")
    )
    assert (old.supports_jacobian_statement, new.supports_jacobian_statement) == (False, True)
    activate(new)
    assert cmdstanpy.cmdstan_path() == str(new.path)
    assert cmdstanpy.cmdstan_version() == (2, 36)
