"""Stan programs and their data: absent, broken, unfit for each other, failing as they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..each import lines
from . import files as f
from .cases import Case, commands

PROGRAMS = Path(__file__).parents[1] / "stan" / "programs"
GAUSS = (PROGRAMS / "gauss.stan").read_text()
HOPELESS = (PROGRAMS / "hopeless.stan").read_text()
WHOLE = {"D": 2, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}
SHORT = "--out run.nc --chains 1 --warmup 10 --draws 10 --no-progress"
SAMPLE = f"sample gauss.stan data.json {SHORT}"
MADE = ("run.nc", "run.nc.log")


def _data(id: str, content: str | bytes | None, *says: str) -> Case:
    return Case(id, SAMPLE, says, {"gauss.stan": GAUSS, "data.json": content}, own_words=True)


def test_data_that_cannot_be_read(refuse):
    refuse(_data(text, text, "`DATA.json`", *says) for text, says in lines(UNREADABLE))
    unreadable = {
        "a folder": None,
        "empty": "",
        "binary": bytes(range(256)),
        "UTF-16": f.data(**WHOLE).encode("utf-16"),
        "Latin-1": '{"Dé": 2}'.encode("latin-1"),
        "NetCDF": b"\x89HDF\r\n\x1a\n" + bytes(100),
        "deep": "[" * 100000,
    }
    refuse(_data(name, content, "`DATA.json`") for name, content in unreadable.items())
    absent = ("`DATA.json`", "data.json", "does not exist")
    refuse([Case("absent", SAMPLE, absent, {"gauss.stan": GAUSS})])


UNREADABLE = """
D = 2                                           | JSON
D <- 2                                          | JSON
{"D": 2                                         | JSON
{"D": 2,}                                       | JSON
{"D": 2}{"D": 3}                                | JSON
[1, 2]                                          | object
3                                               | object
null                                            | object
{"D": 2, "D": 3, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}   | D ~ twice
{"D": 2, "mu": [NaN, 0], "Sigma": [[1, 0], [0, 1]]}         | mu ~ finite
{"D": 2, "mu": [0, -Infinity], "Sigma": [[1, 0], [0, 1]]}   | mu ~ finite
{"D": 2, "mu": [1e999, 0], "Sigma": [[1, 0], [0, 1]]}       | mu ~ finite
{"D": 2, "mu": [0, 0], "Sigma": [[1, 0], [0]]}  | Sigma ~ rows
{"D": 2, "mu": [0, [1]], "Sigma": [[1, 0], [0, 1]]}         | mu
{"D": 2, "mu": ["a", "b"], "Sigma": [[1, 0], [0, 1]]}       | mu ~ 'a'
{"D": 2, "mu": [null, 0], "Sigma": [[1, 0], [0, 1]]}        | mu
{"D": 2, "mu": null, "Sigma": [[1, 0], [0, 1]]}             | mu
{"D": 2, "mu": "zero", "Sigma": [[1, 0], [0, 1]]}           | mu
"""


@pytest.mark.stan
def test_data_that_the_program_does_not_take(refuse):
    refuse(_data(text, text, *says) for text, says in lines(UNFIT))
    without = SAMPLE.replace(" data.json", "")
    refuse([Case("no data", without, ("`DATA.json`", "Sigma"), {"gauss.stan": GAUSS})])


UNFIT = """
{"D": 2, "mu": {"a": 1}, "Sigma": [[1, 0], [0, 1]]}         | mu
{"D": 2, "mu": [0, 0]}                          | `DATA.json` ~ Sigma ~ gauss.stan
{}                                              | `DATA.json` ~ Sigma ~ nothing
{"d": 2, "MU": [0, 0], "sigma": [[1, 0], [0, 1]]}           | `DATA.json` ~ Sigma
{"D": 2, "mu": [0], "Sigma": [[1, 0], [0, 1]]}  | mu
{"D": 2, "mu": 0, "Sigma": [[1, 0], [0, 1]]}    | mu
{"D": 2, "mu": [0, 0], "Sigma": [1, 2]}         | Sigma
{"D": [2], "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}         | D
{"D": 2.5, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}         | D
{"D": 1000000000000000000000, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}   | D
{"D": 0, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}           | mu ~ declared=(0)
{"D": 2, "mu": [0, 0], "Sigma": [[1, 2], [2, 1]]}           | Sigma ~ positive definite
{"D": 2, "mu": [0, 0], "Sigma": [[1, 0.5], [0, 1]]}         | Sigma ~ symmetric
"""


def _program(id: str, content: str | bytes | None, *says: str, name: str = "bad.stan") -> Case:
    return Case(id, f"sample '{name}' {SHORT}", says, {name: content}, own_words=True)


def test_program_that_is_none(refuse):
    names = ("gauss.txt", "gauss.STAN", "gauss.json", "gauss")
    refuse(_program(name, GAUSS, "`PROGRAM.stan`", name=name) for name in names)
    refuse([_program("a folder", None, "`PROGRAM.stan`", "bad.stan")])
    refuse([Case("absent", f"sample bad.stan {SHORT}", ("`PROGRAM.stan`", "bad.stan"))])


@pytest.mark.stan
def test_program_that_does_not_parse(refuse):
    refuse(
        [
            _program("text", "Dear Stan,\n", "bad.stan", "does not parse"),
            _program("binary", bytes(range(256)), "bad.stan"),
            _program("Latin-1", "parameters { real é; } model { }".encode("latin-1"), "bad.stan"),
            _program("no semicolon", "parameters { real mu } model { }", "bad.stan", "line 1"),
            _program("not closed", "parameters { real mu;", "bad.stan"),
            _program("unknown name", "parameters { real a; } model { a ~ b; }", "bad.stan"),
            _program("integer", "parameters { int n; } model { }", "bad.stan"),
            _program("no include", "#include absent.stan\nmodel { }", "bad.stan", "absent.stan"),
        ]
    )


@pytest.mark.slow
@pytest.mark.stan
def test_program_whose_posterior_is_improper(refuse):
    refuse([_program("improper", "parameters { real x; } model { }", "Posterior is improper")])


@pytest.mark.stan
def test_program_that_fails_as_it_runs(refuse):
    refuse(
        [
            _program("empty", " ", "`PROGRAM.stan`", "no variables"),
            _program("model alone", "model { }", "`PROGRAM.stan`", "no variables"),
        ]
    )
    never = {"files": {"hopeless.stan": HOPELESS}, "own_words": True}
    refuse(commands(NEVER_STARTS, "sample hopeless.stan --out run.nc --no-progress ", **never))
    whole = {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)}
    refuse(commands(UNFIT_OPTIONS, f"{SAMPLE} ", files=whole))
    apart = whole | {"data.json": f.data(**WHOLE | {"mu": [0, 3]})}
    refuse([Case("no symmetry", f"{SAMPLE} --exchangeable x", ("`--exchangeable`", "x"), apart)])
    few = ("`run.nc` is written", "3 draws a chain", "at least 4")
    words = SAMPLE.replace("--draws 10", "--draws 3")
    refuse([Case("few draws", words, few, whole, makes=MADE)])


NEVER_STARTS = """
--chains 1 --warmup 10 --draws 10               | hopeless ~ never ~ 100 attempts
--method meanfield --iterations 10              | hopeless ~ never
"""
UNFIT_OPTIONS = """
--exchangeable x,theta                         | `--exchangeable` ~ theta ~ gauss.stan
--exchangeable x:3                             | `--exchangeable` ~ x
--exchangeable 1-x                             | `--exchangeable` ~ x
"""
