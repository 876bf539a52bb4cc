"""`onebasin doctor`: what is found, what is missing, and what to do."""

import os
import sys
from pathlib import Path

import pytest

from onebasin import stan
from onebasin.cli import doctor
from onebasin.stan.home import integrity
from onebasin.stan.home.directory import Home
from onebasin.stan.home.errors import CmdStanNotFound, HomeBuildError

from ..each import each

FOUND = Home(Path("/somewhere/cmdstan-2.39.0"), (2, 39, 0), "CMDSTAN")


@pytest.fixture(autouse=True)
def whole(monkeypatch):
    """The stand-in for a CmdStan has no files; what is said of real ones is tested below."""
    real = integrity.fault
    monkeypatch.setattr(integrity, "fault", lambda home: "" if home is FOUND else real(home))


@pytest.fixture(autouse=True)
def tools(fake_compiler, monkeypatch, tmp_path):
    """Stand-ins for the compiler and make, so that no machine needs them."""
    fake_compiler()
    make = tmp_path / "stand-in-make"
    make.write_text("#!/bin/sh\nexit 0\n")
    make.chmod(0o755)
    monkeypatch.setenv("MAKE", str(make))


@pytest.fixture
def cmdstan(monkeypatch):
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND)


def checks_of(answer):
    return {check["name"]: check for check in answer.json["checks"]}


def test_json_tells_of_engines_versions_and_data_sets(onebasin, cmdstan):
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": True}
    checks = checks_of(answer)
    assert {"Python", "JAX", "NumPyro", "C++ compiler", "make", "httpstan"} <= set(checks)
    assert "float64" in checks["JAX"]["detail"]
    assert checks["CmdStan"]["detail"] == "2.39.0 at /somewhere/cmdstan-2.39.0 (CMDSTAN)"
    assert checks["data: relu-teacher"]["ok"]


def test_table_ends_with_the_engines(onebasin, cmdstan, monkeypatch):
    # Other tests kill commands at the same time, whose files doctor would name.
    monkeypatch.setattr("onebasin.cli.doctor.leftovers", lambda folder: [])
    answer = onebasin("doctor")
    assert answer.code == 0
    assert answer.out.endswith("the engines numpyro, stanli and cmdstan work\n")
    assert answer.err == ""
    assert len(answer.out.splitlines()) <= 12
    assert "data: relu-teacher" not in answer.out
    assert "data: relu-teacher" in onebasin("doctor", "--details").out


def test_missing_data_set_is_said_but_breaks_no_engine(onebasin, cmdstan, monkeypatch, tmp_path):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    check = checks_of(answer)["data: yacht"]
    assert not check["ok"]
    assert "ONEBASIN_DATA" in check["remedy"]


@pytest.mark.cmdstan
def test_cmdstan_that_can_be_assembled_counts_as_working(onebasin, monkeypatch):
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: None)
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert "assembled on first use" in checks_of(answer)["CmdStan"]["detail"]


def test_build_assembles_cmdstan_and_shows_its_stages(onebasin, monkeypatch):
    def assemble(*, progress):
        progress("compiling")
        return FOUND

    monkeypatch.setattr(stan, "existing_cmdstan", lambda: None)
    monkeypatch.setattr(stan, "find_cmdstan", assemble)
    answer = onebasin("doctor", "--build", "--json")
    assert answer.code == 0
    assert answer.err == "compiling\n"
    assert checks_of(answer)["CmdStan"]["ok"]


def test_missing_compiler_is_one_line_and_code_1(onebasin, cmdstan, monkeypatch):
    def fail():
        raise HomeBuildError("Not found: g++. Install it.")

    monkeypatch.setattr("onebasin.stan.home.toolchain.find_toolchain", fail)
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": False}
    assert answer.err == "onebasin: Not found: g++. Install it.\n"


def test_wrong_cmdstan_variable_is_one_line_and_code_1(onebasin, monkeypatch, tmp_path):
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "nowhere"))
    answer = onebasin("doctor")
    assert answer.code == 1
    assert "nowhere` (CMDSTAN) is not a directory" in answer.err


def test_old_cmdstan_does_not_pass(onebasin, monkeypatch):
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: Home(Path("/old"), (2, 30, 1), "CMDSTAN"))
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.err == (
        "onebasin: CmdStan 2.30.1 is too old for the networks: 2.36 or newer is needed.\n"
    )


def test_missing_wheel_is_a_remark_alone(onebasin, monkeypatch):
    def fail():
        raise HomeBuildError("CmdStan is not installed: run `pip`.")

    monkeypatch.setattr("onebasin.stan.home.toolchain.find_wheel", fail)
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND)
    assert onebasin("doctor", "--json").code == 0
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: None)
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert not checks_of(answer)["CmdStan"]["ok"]


def test_machine_without_compiler_and_httpstan_is_healthy(
    onebasin, empty_machine, monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "httpstan", None)
    answer = onebasin("doctor")
    assert answer.code == 0
    assert answer.err == ""
    (interpreter,) = (line for line in answer.out.splitlines() if "runs Stan programs" in line)
    assert "stanli" in interpreter and "0.24" in interpreter and "no compiler" in interpreter
    assert "optional" in answer.out and "install" in answer.out
    engines = onebasin("doctor", "--json").json["engines"]
    assert engines == {"numpyro": True, "stanli": True, "cmdstan": False}


def test_error_while_looking_for_cmdstan_is_a_failed_check(monkeypatch):
    def fail():
        raise CmdStanNotFound("gone")

    monkeypatch.setattr(stan, "existing_cmdstan", fail)
    checks = doctor.examine(build=False, progress=lambda text: None)
    assert doctor.working_engines(checks)["cmdstan"] is False
    assert doctor.first_remedy(checks) == "gone"


def half_built(folder, *, stanc=None):
    """A folder with a makefile that names a version, and nothing or little else."""
    (folder / "bin").mkdir(parents=True)
    (folder / "makefile").write_text("CMDSTAN_VERSION := 2.37.0\n")
    for name in ("make/program", "stan/src/stan/model/model_header.hpp"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    if stanc is not None:
        (folder / "bin" / "stanc").write_text(stanc)
        (folder / "bin" / "stanc").chmod(0o755)
    return folder


@each(
    ("stanc", "why"),
    [
        (None, "lacks bin/stanc: run `make build` in it"),
        ("#!/bin/sh\nexit 3\n", "`stanc` of the CmdStan in "),
        ("", "`stanc` of the CmdStan in "),
    ],
)
def test_half_built_cmdstan_does_not_work(onebasin, monkeypatch, tmp_path, stanc, why):
    monkeypatch.setenv("CMDSTAN", str(half_built(tmp_path / "cmdstan", stanc=stanc)))
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": False}
    assert not checks_of(answer)["CmdStan"]["ok"]
    assert why in answer.err
    assert answer.err.count("\n") == 1


def test_cmdstan_that_runs_works(onebasin, monkeypatch, tmp_path):
    folder = half_built(tmp_path / "cmdstan", stanc="#!/bin/sh\necho stanc3\n")
    monkeypatch.setenv("CMDSTAN", str(folder))
    assert onebasin("doctor", "--json").code == 0


def test_empty_variable_counts_as_not_set_and_is_said(onebasin, monkeypatch, tmp_path):
    from onebasin.stan.home import search

    found = Home(tmp_path, (2, 37, 0), "conda")
    monkeypatch.setenv("CMDSTAN", "")
    monkeypatch.setattr(search, "existing_cmdstan", lambda: found)
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: found)
    detail = checks_of(onebasin("doctor", "--json"))["CmdStan"]["detail"]
    assert "CMDSTAN is empty and counts as not set" in detail


def test_compiler_that_cannot_compile_does_not_pass(onebasin, cmdstan, monkeypatch, tmp_path):
    (tmp_path / "g++").write_text(
        '#!/bin/sh\ncase "$*" in *version) echo 12.0;; *) echo "no headers" >&2; exit 1;; esac\n'
    )
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("CXX", str(tmp_path / "g++"))
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert "ends with code 1 (no headers): reinstall it." in answer.err


@each("error", [RuntimeError("no such device\nmore"), AssertionError()])
def test_device_that_is_not_there_is_said(onebasin, cmdstan, monkeypatch, error):
    import jax

    def fail():
        raise error

    monkeypatch.setattr(jax, "devices", fail)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": False, "stanli": True, "cmdstan": True}
    assert checks_of(answer)["JAX"]["detail"] in ("no such device", "AssertionError")
    assert answer.err == "onebasin: Unset JAX_PLATFORMS (cuda).\n"


def test_single_precision_does_not_pass(monkeypatch):
    import jax

    with jax.enable_x64(False):
        found = doctor._jax()
    assert not found.ok
    assert "float32 where float64 is asked for" in found.detail


@each("kind", ["missing", "file"])
def test_data_folder_that_was_named_has_to_be_there(onebasin, cmdstan, monkeypatch, tmp_path, kind):
    place = tmp_path / "data"
    if kind == "file":
        place.touch()
    monkeypatch.setenv("ONEBASIN_DATA", str(place))
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": True}
    assert answer.err.startswith("onebasin: Set ONEBASIN_DATA to a folder that can be read")


@pytest.mark.cmdstan
def test_a_cache_in_which_make_cannot_work_is_no_working_cmdstan(onebasin, monkeypatch, tmp_path):
    monkeypatch.delenv("CMDSTAN", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "with blanks"))
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": False}
    assert "has the character ' ' in its path" in answer.err


@each("there", [True, False])
def test_a_cache_that_cannot_be_written_is_in_the_way_of_cmdstan_alone(
    onebasin, monkeypatch, tmp_path, there
):
    """The others compile each time."""
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND if there else None)
    if not there:
        monkeypatch.setitem(sys.modules, "httpstan", None)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))
    answer = onebasin("doctor", "--json")
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": False}
    assert (answer.code, "or set XDG_CACHE_HOME" in answer.err) == (int(there), there)
    assert not checks_of(answer)["cache"]["ok"]


def test_a_cache_that_others_may_write_to_is_told(onebasin, cmdstan, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "onebasin").mkdir()
    (tmp_path / "onebasin").chmod(0o777)
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert "Any user may write to the cache" in answer.err
