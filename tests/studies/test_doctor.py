"""`onebasin doctor`: what is found, what is missing, and what to do."""

from pathlib import Path

import pytest

from onebasin import stan
from onebasin.stan.errors import CmdStanNotFound, HomeBuildError
from onebasin.stan.home.directory import Home
from onebasin.studies.commands import machine

FOUND = Home(Path("/somewhere/cmdstan-2.39.0"), (2, 39, 0), "CMDSTAN")


@pytest.fixture
def cmdstan(monkeypatch):
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND)


def checks_of(answer):
    return {check["name"]: check for check in answer.json["checks"]}


def test_json_tells_of_engines_versions_and_data_sets(onebasin, cmdstan):
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert answer.json["engines"] == {"numpyro": True, "stan": True}
    checks = checks_of(answer)
    assert {"Python", "JAX", "NumPyro", "C++ compiler", "make", "httpstan"} <= set(checks)
    assert "float64" in checks["JAX"]["detail"]
    assert checks["CmdStan"]["detail"] == "2.39.0 at /somewhere/cmdstan-2.39.0 (CMDSTAN)"
    assert checks["data: relu-teacher"]["ok"]


def test_table_ends_with_the_engines(onebasin, cmdstan):
    answer = onebasin("doctor")
    assert answer.code == 0
    assert "the numpyro engine works" in answer.out
    assert "the stan engine works" in answer.out
    assert answer.err == ""


def test_missing_data_set_is_said_but_breaks_no_engine(onebasin, cmdstan, monkeypatch, tmp_path):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    check = checks_of(answer)["data: yacht"]
    assert not check["ok"]
    assert "ONEBASIN_DATA" in check["remedy"]


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
    assert answer.json["engines"] == {"numpyro": True, "stan": False}
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


def test_missing_wheel_matters_only_where_no_cmdstan_is_found(onebasin, monkeypatch):
    def fail():
        raise HomeBuildError("The package httpstan is not installed.")

    monkeypatch.setattr("onebasin.stan.home.toolchain.find_wheel", fail)
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND)
    assert onebasin("doctor", "--json").code == 0
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: None)
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.err == "onebasin: The package httpstan is not installed.\n"


def test_error_while_looking_for_cmdstan_is_a_failed_check(monkeypatch):
    def fail():
        raise CmdStanNotFound("gone")

    monkeypatch.setattr(stan, "existing_cmdstan", fail)
    checks = machine.examine(build=False, progress=lambda text: None)
    assert machine.working_engines(checks)["stan"] is False
    assert machine.first_remedy(checks) == "gone"
