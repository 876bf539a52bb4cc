"""Compiling: what names may be, what make is told, what the cache gives back; most with a CmdStan that is pretended."""

import os
import re
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onebasin.base.errors import CmdStanNotFound, StanProgramError
from onebasin.base.files.cache import CacheError
from onebasin.base.files.writing import unfinished
from onebasin.stan.compile import compile_library, compile_program

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = "parameters {\n  real x;\n}\nmodel {\n  x ~ std_normal();\n}\n"

NAMES = (
    *("a;touch pwned", "$(touch pwned)", "$(shell touch pwned)", "`touch pwned`", "a,b", "a'b"),
    *('a"; touch pwned; "b', "a\tb", "a\nb", "a b", "a#b%c=d:e", "-o -I --help"),
    *("übung ∫ \u202e", "a\\b|c&d>e*?[f]{g}~!", "x" * 240),
)

# As CmdStan's own makefile: the rule for C++ would call stanc again where it finds a newer program.
MAKEFILE = """CMDSTAN_VERSION := 2.39.0
-include make/local
%.hpp: %.stan
\t@echo stanc is called again; exit 1
%: %.hpp
\tcp '$<' '$@'
\techo '$@' >> calls
\tenv > environment
\techo '$(STANCFLAGS)|$(MAKEFILES)|$(MAKEFLAGS)|$(CXXFLAGS)' > flags
"""


@pytest.fixture
def pretended(own_home, tmp_path, monkeypatch) -> Path:
    """A CmdStan whose compiler copies; and a cache of its own."""
    home = tmp_path / "cmdstan"
    (home / "bin").mkdir(parents=True)
    (home / "make").mkdir()
    (home / "bin" / "stanc").symlink_to(own_home.path / "bin" / "stanc")
    (home / "makefile").write_text(MAKEFILE)
    monkeypatch.setenv("CMDSTAN", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


def compiled(path: Path, said: list[str] | None = None) -> Path:
    model, _ = compile_program(path, progress=None if said is None else said.append)
    return Path(str(model.exe_file))


def calls(home: Path) -> list[str]:
    return (home / "calls").read_text().splitlines() if (home / "calls").exists() else []


def write(path: Path, text: str = SOURCE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def plain(own_home) -> Path:
    """A program of a plain name, compiled."""
    return compiled(PROGRAMS / "bernoulli.stan")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_never_more_than_a_name(name, plain, own_home, tmp_path):
    whole = (PROGRAMS / "bernoulli.stan").read_text()
    first, rest = whole.split("\n", 1)
    folder = tmp_path / name
    write(folder / f"{name} part.stan", rest)
    program = write(folder / f"{name}.stan", f"{first}\n{rest}")
    # Once per content, whatever it is called and wherever it lies.
    assert compiled(program) == plain
    assert not (own_home.path / "pwned").exists()
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    "name", [n for n in NAMES if "\n" not in n and '"' not in n and n == n.strip()]
)
def test_includes_are_found_in_folders_of_any_name(name, pretended, tmp_path):
    """From the program's own folder, below it and above it, one from the other."""
    folder = tmp_path / name
    write(folder / "inner" / "one.stan", "real one(real x) {\n  return x;\n}\n#include two.stan\n")
    write(folder / "two.stan", "real two(real x) {\n  return x;\n}\n")
    write(tmp_path / "above.stan", "real three(real x) {\n  return x;\n}\n")
    lines = f"functions {{\n#include inner/one.stan\n#include ../above.stan\n}}\n{SOURCE}"
    program = write(folder / f"{name}.stan", lines)
    first = compiled(program)
    info = compile_program(program)[1]
    assert {p.resolve() for p in info.includes} == {
        (folder / "inner" / "one.stan").resolve(),
        (folder / "two.stan").resolve(),
        (tmp_path / "above.stan").resolve(),
    }
    write(folder / "two.stan", "real two(real x) {\n  return 2 * x;\n}\n")
    assert compiled(program) != first
    assert not list(tmp_path.rglob("pwned"))


def test_an_error_names_the_users_own_file_and_line(pretended, tmp_path):
    program = write(tmp_path / "my, 'odd' model.stan", SOURCE.replace("std_normal", "nonsense"))
    with pytest.raises(StanProgramError, match=r"in 'my, 'odd' model\.stan', line 5"):
        compile_program(program)
    write(tmp_path / "part.stan", "real f(real x) {\n  return y;\n}\n")
    program = write(tmp_path / "whole.stan", f"functions {{\n#include part.stan\n}}\n{SOURCE}")
    with pytest.raises(
        StanProgramError,
        match=r"in 'part.stan', line 2, column 9, included from\n'whole.stan', line 2",
    ):
        compile_program(program)
    program = write(tmp_path / "lost.stan", "#include absent.stan\n")
    with pytest.raises(StanProgramError, match=re.escape(f"Current include paths: {tmp_path}")):
        compile_program(program)
    program = write(tmp_path / "a\n\x1b[31mb.stan", "nonsense")
    with pytest.raises(StanProgramError, match=r"^a\\n\\x1b\[31mb\.stan does not parse:"):
        compile_program(program)


@pytest.mark.parametrize(
    "name", ["with blanks", "a;touch pwned", "$(touch pwned)", "a,b", "a'b", "a:b"]
)
def test_a_home_whose_path_make_cannot_take_is_refused(name, pretended, tmp_path, monkeypatch):
    odd, link = tmp_path / name, tmp_path / "link"
    shutil.copytree(pretended, odd, symlinks=True)
    link.symlink_to(odd)
    for home in (odd, link):
        monkeypatch.setenv("CMDSTAN", str(home))
        with pytest.raises(CmdStanNotFound, match="make cannot compile programs in"):
            compile_program(write(tmp_path / "coin.stan"))
    monkeypatch.setenv("CMDSTAN", str(odd.rename(tmp_path / "Füße-数据_1.2+3@4")))
    assert compiled(write(tmp_path / "coin.stan")).is_file()


def test_only_flags_of_the_compiler_are_inherited(pretended, tmp_path, monkeypatch):
    program = write(tmp_path / "coin.stan")
    plain = compiled(program)
    (tmp_path / "extra.mk").write_text("$(shell touch pwned)\n")
    outer = {"MAKEFLAGS": "n", "MFLAGS": "-n", "GNUMAKEFLAGS": "-n", "STANCFLAGS": "--O1"}
    outer |= {"MAKEFILES": str(tmp_path / "extra.mk"), "USER_HEADER": "/nowhere.hpp"}
    for name, value in outer.items():
        monkeypatch.setenv(name, value)
    shutil.rmtree(plain.parent)
    assert compiled(program) == plain
    assert (pretended / "flags").read_text() == "|||\n"
    inherited = (pretended / "environment").read_text()
    assert "STANCFLAGS" not in inherited
    assert "USER_HEADER" not in inherited


def test_what_decides_the_compilation_is_part_of_the_key(pretended, tmp_path, monkeypatch):
    program = write(tmp_path / "coin.stan")
    found = {compiled(program)}
    monkeypatch.setenv("CXXFLAGS", "-O0")
    found.add(compiled(program))
    assert (pretended / "flags").read_text() == "|||-O0\n"
    (pretended / "make" / "local").write_text("STAN_NO_RANGE_CHECKS = true\n")
    found.add(compiled(program))
    assert len(found) == len(calls(pretended)) == 3


def test_a_program_is_compiled_once_and_a_damaged_one_anew(pretended, tmp_path):
    program = write(tmp_path / "coin.stan")
    executable = compiled(program)
    good = executable.read_bytes()
    said: list[str] = []
    assert compiled(program, said) == executable
    assert not said
    seal = executable.with_name("program.sha256")
    damage = (
        lambda: executable.write_bytes(good[:-100]),
        lambda: executable.write_bytes(b""),
        lambda: executable.write_bytes(good[:-1] + b"?"),
        lambda: executable.unlink(),
        lambda: seal.write_bytes(b""),
        lambda: seal.write_bytes(b"\xff"),
        lambda: seal.unlink(),
    )
    for spoil in damage:
        spoil()
        said.clear()
        assert compiled(program, said) == executable
        assert (
            said[0] == "the compiled coin.stan in the cache is damaged and will be compiled again"
        )
        assert executable.read_bytes() == good


def test_a_library_is_linked_from_what_was_compiled_for_the_executable(own_home):
    compile_program(PROGRAMS / "nothing.stan")
    library, _ = compile_library(PROGRAMS / "nothing.stan")
    shutil.rmtree(library.parent)
    said: list[str] = []
    assert compile_library(PROGRAMS / "nothing.stan", progress=said.append)[0] == library
    assert library.is_file()
    assert not any("compiling" in line for line in said)  # another worker may be building it too


def test_what_a_killed_compilation_left_neither_blocks_nor_stays(pretended, tmp_path):
    program = write(tmp_path / "coin.stan")
    executable = compiled(program)
    entry = executable.parent
    left = unfinished(entry).name.replace(f"-{os.getpid()}-", f"-{2**40}-")
    entry.rename(entry.with_name(left))
    Path(f"{entry}.lock").touch()  # its holder is no more
    assert compiled(program) == executable
    assert not list(entry.parent.glob(".*"))


def test_a_failure_of_make_is_told_in_its_own_words(pretended, tmp_path, monkeypatch):
    program = write(tmp_path / "coin.stan")
    (pretended / "make" / "local").write_text("$(error no such luck)\n")
    with pytest.raises(StanProgramError, match=r"coin.stan does not compile:\n.*no such luck"):
        compile_program(program)
    monkeypatch.setenv("MAKE", "no-such-make")
    with pytest.raises(StanProgramError, match="no-such-make was not found"):
        compile_program(program)
    (pretended / "bin" / "stanc").unlink()
    with pytest.raises(CmdStanNotFound, match="stanc does not run: No such file"):
        compile_program(program)


def test_nothing_is_run_from_a_cache_that_others_may_write_to(pretended, tmp_path):
    cache, program = tmp_path / "cache" / "onebasin", write(tmp_path / "coin.stan")
    (cache / "programs").mkdir(parents=True)
    cache.chmod(0o755)
    compile_program(program)
    for folder in (cache, cache / "programs"):  # made private
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    cache.chmod(0o777)
    with pytest.raises(CacheError, match="Any user can write to the cache"):
        compile_program(program)
    if os.geteuid() == 0:  # who alone can give a folder away
        cache.chmod(0o700)
        os.chown(cache, 12345, -1)
        with pytest.raises(CacheError, match=r"belongs to another user \(ID 12345\)"):
            compile_program(program)


def test_two_at_once_compile_once(pretended, tmp_path):
    program = write(tmp_path / "coin.stan")
    makefile = pretended / "makefile"
    makefile.write_text(makefile.read_text().replace("\tcp ", "\tsleep 1; cp "))
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: compiled(program, said), range(2))
    assert first == second
    assert len(calls(pretended)) == 1
    assert sorted(said) == [
        "compiling coin.stan (once; kept in the cache)",
        "waiting for another process that is building it",
    ]
