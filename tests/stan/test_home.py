"""Finding and assembling a CmdStan home, without compiling anything: the compiler is a stand-in."""

import importlib.util
import os
import platform
import re
import shutil
import stat
import threading
from collections import namedtuple
from pathlib import Path

import cmdstanpy
import pytest

from stan.assemble import assemble, assembled_path, remove
from stan.errors import CmdStanNotFound, HomeBuildError, StanError
from stan.home import MARKER, Home, activate, find, home, read_home
from stan.toolchain import find_wheel

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


@pytest.fixture(autouse=True)
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
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a stand-in compiler; returns its log of calls."""

    def install(version: str = "1.0.0", failure: str = "") -> Path:
        calls = tmp_path / "calls.txt"
        script = tmp_path / f"g++-{version}"
        script.write_text(FAKE_COMPILER.format(version=version, failure=failure, calls=calls))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("CXX", str(script))
        return calls

    return install


def make_cmdstan(path: Path, version: str = "2.36.0") -> Path:
    path.mkdir(parents=True)
    (path / "makefile").write_text(f"# a makefile\nCMDSTAN_VERSION := {version}\n")
    return path


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


# Finding


def test_find_finds_nothing_on_an_empty_machine(fake_compiler):
    fake_compiler()
    assert find() is None


def test_find_goes_through_the_places_in_order(tmp_path, empty_machine, monkeypatch, fake_compiler):
    fake_compiler()
    assembled = assemble()
    assert find() == assembled
    assert assembled.origin == "assembled"

    conda = make_cmdstan(tmp_path / "env" / "bin" / "cmdstan", "2.37.0")
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "env"))
    assert find() == Home(conda, (2, 37, 0), "conda")

    default = make_cmdstan(empty_machine / ".cmdstan" / "cmdstan-2.36.0")
    assert find() == Home(default, (2, 36, 0), "cmdstanpy default")

    named = make_cmdstan(tmp_path / "named", "2.35.1")
    monkeypatch.setenv("CMDSTAN", str(named))
    assert find() == Home(named, (2, 35, 1), "CMDSTAN")


@pytest.mark.parametrize(
    ("present", "newest"),
    [
        (["2.9.0", "2.10.0"], "2.10.0"),
        (["2.36.0-rc1", "2.35.0"], "2.36.0-rc1"),
        (["2.36.0-rc1", "2.36.0-rc2", "2.36.0"], "2.36.0"),
        (["2.36.0", "nightly"], "2.36.0"),
    ],
)
def test_find_takes_the_newest_release(empty_machine, present, newest):
    for version in present:
        make_cmdstan(empty_machine / ".cmdstan" / f"cmdstan-{version}", version)
    found = find()
    assert found is not None
    assert found.path.name == f"cmdstan-{newest}"


def test_find_passes_over_a_broken_release(empty_machine):
    (empty_machine / ".cmdstan" / "cmdstan-2.37.0").mkdir(parents=True)
    older = make_cmdstan(empty_machine / ".cmdstan" / "cmdstan-2.36.0")
    found = find()
    assert found is not None
    assert found.path == older


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "is not a directory"),
        ({}, "has no readable makefile"),
        ({"makefile": "all:\n"}, "names no version"),
    ],
)
def test_find_does_not_skip_a_wrong_cmdstan(
    tmp_path, empty_machine, monkeypatch, content, complaint
):
    make_cmdstan(empty_machine / ".cmdstan" / "cmdstan-2.36.0")
    wrong = tmp_path / "wrong"
    if content is not None:
        wrong.mkdir()
        for name, text in content.items():
            (wrong / name).write_text(text)
    monkeypatch.setenv("CMDSTAN", str(wrong))
    with pytest.raises(CmdStanNotFound, match=rf"wrong` \(CMDSTAN\) {complaint}"):
        find()


def test_home_without_building_says_where_it_looked(fake_compiler):
    fake_compiler()
    with pytest.raises(CmdStanNotFound, match=r"CMDSTAN, ~/\.cmdstan, the conda"):
        home(build=False)


@pytest.mark.parametrize(("version", "supported"), [("2.35.0", False), ("2.36.0", True)])
def test_supports_jacobian_statement_from_2_36_on(tmp_path, version, supported):
    found = read_home(make_cmdstan(tmp_path / "any", version), "CMDSTAN")
    assert found.supports_jacobian_statement is supported


def test_activate_points_cmdstanpy_to_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("CMDSTAN", "")  # so that the variable is restored
    found = read_home(make_cmdstan(tmp_path / "any"), "CMDSTAN")
    activate(found)
    assert cmdstanpy.cmdstan_path() == str(found.path)
    assert cmdstanpy.cmdstan_version() == (2, 36)


# Assembling


def test_assemble_makes_a_whole_home(fake_compiler):
    calls = fake_compiler()
    stages: list[str] = []
    built = assemble(progress=stages.append)
    for name in ("makefile", "bin/stanc", "lib", "include/stan/version.hpp", MARKER):
        assert (built.path / name).exists(), name
    assert "@" not in re.sub(r"\$@|^\s*@.*$", "", _settings(built.path), flags=re.MULTILINE)
    assert built.version >= (2, 39, 0)
    assert stages[0] == "waiting for the cache"
    assert "precompiling Stan's headers" in stages
    assert len(calls.read_text().splitlines()) == 7  # headers, five bundles, build info


def _settings(path: Path) -> str:
    return "\n".join(
        line
        for line in (path / "makefile").read_text().splitlines()
        if re.match(r"\w+ :?=|ifeq", line)
    )


def test_assemble_builds_once_and_again_only_by_force(fake_compiler):
    calls = fake_compiler()
    first = assemble()
    count = len(calls.read_text().splitlines())
    assert assemble() == first
    assert len(calls.read_text().splitlines()) == count
    assert assemble(force=True) == first
    assert len(calls.read_text().splitlines()) == 2 * count


def test_assemble_builds_once_where_two_ask_at_once(fake_compiler):
    calls = fake_compiler()
    found: list[Home] = []
    threads = [threading.Thread(target=lambda: found.append(assemble(jobs=1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert calls.read_text().count("c++-header") == 1


def test_assemble_gives_another_folder_to_another_compiler(fake_compiler):
    fake_compiler("1.0.0")
    first = assembled_path()
    fake_compiler("1.0.1")
    second = assembled_path()
    assert first != second
    assert second is not None
    assert "gcc-1.0.1" in second.name


def test_assemble_passes_on_the_words_of_the_compiler(tmp_path, fake_compiler):
    fake_compiler(failure="echo 'model.hpp:1: fatal error: no such thing'; exit 1")
    with pytest.raises(HomeBuildError, match="fatal error: no such thing") as caught:
        assemble()
    assert isinstance(caught.value, StanError)
    assert "no such thing" in caught.value.console
    assert caught.value.log is not None
    assert "no such thing" in caught.value.log.read_text()
    assert entries(tmp_path / "cache" / "onebasin" / "cmdstan") == []


def test_assemble_leaves_nothing_when_interrupted(tmp_path, fake_compiler):
    fake_compiler()

    def interrupt(stage: str) -> None:
        if stage.startswith("precompiling"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assemble(progress=interrupt)
    assert entries(tmp_path / "cache" / "onebasin" / "cmdstan") == []
    assert find() is None


def test_assemble_clears_away_what_a_killed_build_left(fake_compiler):
    fake_compiler()
    target = assembled_path()
    assert target is not None
    leftover = target.with_name(f".{target.name}.1")
    leftover.mkdir(parents=True)
    assemble()
    assert entries(target.parent) == [target.name]


def test_an_unfinished_folder_is_no_home(fake_compiler):
    fake_compiler()
    target = assembled_path()
    assert target is not None
    make_cmdstan(target, "2.39.0")
    assert find() is None


def test_the_home_outlives_the_wheel(tmp_path, monkeypatch, fake_compiler):
    fake_compiler()
    built = assemble()
    wheel = str(find_wheel().folder)
    links = [path for path in built.path.rglob("*") if path.is_symlink()]
    assert links == []
    assert wheel not in (built.path / "makefile").read_text()


def test_remove_deletes_homes(fake_compiler):
    fake_compiler()
    built = assemble()
    assert remove() == [built.path]
    assert find() is None


# What can be missing


@pytest.mark.parametrize(
    ("tools", "complaint"),
    [([], r"Not found: g\+\+ or clang\+\+ or c\+\+ and make"), (["g++"], "Not found: make")],
)
def test_assemble_names_the_missing_tool(tmp_path, monkeypatch, tools, complaint):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in tools:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(HomeBuildError, match=complaint):
        assemble()
    assert assembled_path() is None
    assert find() is None


def test_assemble_refuses_windows(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    with pytest.raises(HomeBuildError, match="on Windows"):
        assemble()


def test_assemble_says_that_httpstan_is_missing(monkeypatch, fake_compiler):
    fake_compiler()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HomeBuildError, match="httpstan is not installed"):
        assemble()
    assert find() is None


def test_assemble_says_that_the_cache_cannot_be_written(tmp_path, monkeypatch, fake_compiler):
    fake_compiler()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(HomeBuildError, match=r"cannot be written under .*XDG_CACHE_HOME"):
        assemble()


def test_assemble_says_that_the_disk_is_full(tmp_path, monkeypatch, fake_compiler):
    fake_compiler()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 9, 1))
    with pytest.raises(HomeBuildError, match="is full"):
        assemble()
    assert entries(tmp_path / "cache" / "onebasin" / "cmdstan") == []


def test_assemble_does_not_inherit_an_outer_make(monkeypatch, fake_compiler):
    fake_compiler()
    monkeypatch.setenv("MAKEFLAGS", "n")  # an outer `make --dry-run`
    built = assemble()
    assert (built.path / "build").is_dir()
    assert os.environ["MAKEFLAGS"] == "n"
