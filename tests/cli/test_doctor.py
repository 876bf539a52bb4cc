"""`onebasin doctor`: what is found, what is missing, and what to do."""

import sys
from pathlib import Path

import pytest

from onebasin import stan
from onebasin.stan.home import assemble
from onebasin.stan.home.assemble import Home

FOUND = Home(Path("/somewhere/cmdstan-2.39.0"), (2, 39, 0), "CMDSTAN")


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
    monkeypatch.setattr(assemble, "fault", lambda home: "")
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: FOUND)


def checks_of(answer):
    return {check["name"]: check for check in answer.json["checks"]}


def test_json_tells_of_engines_versions_and_data_sets(onebasin, cmdstan):
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": True}
    checks = checks_of(answer)
    assert {"Python", "JAX", "NumPyro", "stanli"} <= set(checks)
    assert "float64" in checks["JAX"]["detail"]
    assert "2.39.0 at /somewhere/cmdstan-2.39.0 (CMDSTAN)" in checks["CmdStan"]["detail"]
    assert checks["data: relu-teacher"]["ok"]


def test_missing_data_set_is_said_but_breaks_no_engine(onebasin, cmdstan, monkeypatch, tmp_path):
    monkeypatch.setenv("ONEBASIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    check = checks_of(answer)["data: mnist"]
    assert not check["ok"]
    assert "ONEBASIN_DATA" in check["remedy"]


@pytest.mark.cmdstan
def test_cmdstan_that_can_be_assembled_counts_as_working(onebasin, monkeypatch):
    monkeypatch.setattr(stan, "existing_cmdstan", lambda: None)
    answer = onebasin("doctor", "--json")
    assert answer.code == 0
    assert "built on first use" in checks_of(answer)["CmdStan"]["detail"]


def test_missing_compiler_is_one_line_and_code_1(onebasin, cmdstan, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert answer.json["engines"] == {"numpyro": True, "stanli": True, "cmdstan": False}
    assert "Not found: no-such-compiler" in answer.err


def test_wrong_cmdstan_variable_is_one_line_and_code_1(onebasin, monkeypatch, tmp_path):
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "nowhere"))
    answer = onebasin("doctor")
    assert answer.code == 1
    assert "nowhere` (CMDSTAN) is not a directory" in answer.err


def test_machine_without_compiler_and_httpstan_is_healthy(
    onebasin, empty_machine, monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "httpstan", None)
    answer = onebasin("doctor")
    assert answer.code == 0
    assert answer.err == ""
    engines = onebasin("doctor", "--json").json["engines"]
    assert engines == {"numpyro": True, "stanli": True, "cmdstan": False}


def test_a_cache_that_others_may_write_to_is_told(onebasin, cmdstan, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "onebasin").mkdir()
    (tmp_path / "onebasin").chmod(0o777)
    answer = onebasin("doctor", "--json")
    assert answer.code == 1
    assert "cache" in answer.err
