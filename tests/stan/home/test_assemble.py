"""Assembling a CmdStan home, without compiling anything: the compiler is a stand-in."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import threading
from types import SimpleNamespace

import pytest
from filelock import FileLock

from onebasin.base.errors import HomeBuildError, StanError
from onebasin.stan.home.assemble import (
    MARKER,
    Home,
    assemble,
    assembled_path,
    existing_cmdstan,
    find_wheel,
)

pytestmark = pytest.mark.usefixtures("empty_machine")


def entries(folder):
    """Folders in a cache."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_assemble_makes_a_whole_home_that_outlives_the_wheel(whole_wheel, fake_compiler):
    calls = fake_compiler()
    stages: list[str] = []
    built = assemble(progress=stages.append)
    for name in ("makefile", "bin/stanc", "lib", "include/stan/version.hpp", MARKER):
        assert (built.path / name).exists(), name
    makefile = (built.path / "makefile").read_text()
    assert not re.search("@(VERSION|CXX|COMPILER_KIND|JOBS)@", makefile)
    assert str(find_wheel().folder) not in makefile
    assert not any(path.is_symlink() for path in built.path.rglob("*"))
    assert built.version >= (2, 39, 0)
    assert stages[0] == "linking Stan's headers"
    assert "precompiling Stan's headers" in stages
    assert len(calls.read_text().splitlines()) == 7  # headers, five bundles, build info


def test_assemble_builds_once_and_again_only_by_force(fake_compiler):
    calls = fake_compiler()
    found: list[Home] = []
    threads = [threading.Thread(target=lambda: found.append(assemble(jobs=1))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == assemble()
    assert calls.read_text().count("c++-header") == 1
    count = len(calls.read_text().splitlines())
    assert assemble(force=True) == found[0]
    assert len(calls.read_text().splitlines()) == 2 * count


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("echo 'model.hpp:1: fatal error: no such thing'; exit 1", "fatal error: no such thing"),
        (
            "echo 'error writing to /tmp/a.s: No space left on device'; exit 1",
            r"is full, .*XDG_CACHE_HOME",
        ),
    ],
)
def test_assemble_passes_on_the_words_of_the_compiler(fake_compiler, failure, words):
    fake_compiler(failure=failure)
    with pytest.raises(HomeBuildError, match=words) as caught:
        assemble()
    assert isinstance(caught.value, StanError)
    if words.startswith("fatal"):
        assert words in caught.value.console
        assert words in caught.value.log.read_text()
    assert entries(assembled_path().parent) == []


def test_assemble_leaves_nothing_when_interrupted(fake_compiler):
    fake_compiler()

    def interrupt(stage: str) -> None:
        if stage.startswith("precompiling"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assemble(progress=interrupt)
    assert entries(assembled_path().parent) == []
    assert existing_cmdstan() is None


def test_assemble_clears_away_what_killed_builds_left(fake_compiler):
    fake_compiler()
    target = assembled_path()
    target.with_name(f".{target.name}.1").mkdir(parents=True)
    folder = assemble().path / "build" / "threads"
    assert entries(target.parent) == [target.name]
    with subprocess.Popen(["true"]) as ended:
        pass
    folder.mkdir()
    left, at_work, other = (
        folder / f"engines.o.part-{word}" for word in (ended.pid, os.getpid(), "notes")
    )
    for path in (left, at_work, other):
        path.write_text("")
    assemble()
    assert sorted(folder.iterdir()) == sorted([at_work, other])


def test_a_home_stays_usable_until_another_has_taken_its_place(monkeypatch, fake_compiler):
    fake_compiler()
    first = assemble()
    fake_compiler(failure="exit 1")
    monkeypatch.setattr("onebasin.stan.home.assemble.folder_name", lambda *_: first.path.name)
    with pytest.raises(HomeBuildError):
        assemble(force=True)
    assert (first.path / MARKER).exists()
    assert entries(first.path.parent) == [first.path.name]


def test_assemble_says_that_it_waits_for_another_process(fake_compiler):
    fake_compiler()
    target = assembled_path()
    target.parent.mkdir(parents=True)
    other = FileLock(target.with_name(f"{target.name}.lock"), thread_local=False)
    other.acquire()
    stages: list[str] = []

    def release(stage: str) -> None:
        stages.append(stage)
        other.release()

    assemble(progress=release)
    waits = "waiting for another process that is building it"
    assert stages[:2] == [waits, "linking Stan's headers"]


# The cache


def test_every_compiler_has_a_home(fake_compiler):
    fake_compiler("1.0.0")
    old = assemble()
    fake_compiler("2.0.0")
    new = assemble()
    assert "gcc-2.0.0" in new.path.name
    assert old.path.exists() and existing_cmdstan() == new


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
    assert existing_cmdstan() is None


FULL = SimpleNamespace(total=10, used=9, free=1)
CANNOT = [
    (lambda m, f: m.setattr(platform, "system", lambda: "Windows"), "on Windows"),
    (lambda m, f: m.setattr(importlib.util, "find_spec", lambda n: None), "is not installed"),
    (lambda m, f: m.setattr(shutil, "disk_usage", lambda path: FULL), "is full"),
    (lambda m, f: m.setenv("XDG_CACHE_HOME", f"{f}/a b"), "a b.* contains the character ' '"),
    (lambda m, f: m.setenv("XDG_CACHE_HOME", f"{f}/file"), "cannot be written to .*XDG_CACHE_HO"),
]


@pytest.mark.parametrize(("spoil", "words"), CANNOT)
def test_where_nothing_can_be_built_it_is_said(tmp_path, monkeypatch, fake_compiler, spoil, words):
    calls = fake_compiler()
    (tmp_path / "file").write_text("")
    spoil(monkeypatch, tmp_path)
    with pytest.raises(StanError, match=words):
        assemble()
    assert existing_cmdstan() is None
    assert not calls.exists()


def test_assemble_refuses_no_jobs(fake_compiler):
    fake_compiler()
    with pytest.raises(ValueError, match="`jobs` must be at least 1; got 0"):
        assemble(jobs=0)


def test_assemble_does_not_inherit_an_outer_make(monkeypatch, fake_compiler):
    fake_compiler()
    monkeypatch.setenv("MAKEFLAGS", "n")  # an outer `make --dry-run`
    assert (assemble().path / "build").is_dir()
    assert os.environ["MAKEFLAGS"] == "n"
