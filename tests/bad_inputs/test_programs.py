"""Stan programs and their data: absent, broken, unfit for each other, failing as they run."""

from __future__ import annotations

import pytest

from . import files as f
from .cases import Case
from .test_kinds import GAUSS, SAMPLE, SHORT_RUN, WHOLE

MADE = ("run.nc", "run.nc.log")


def _data(id: str, content: str | bytes | None, *says: str) -> Case:
    return Case(id, SAMPLE, says, {"gauss.stan": GAUSS, "data.json": content}, own_words=True)


def test_data_that_cannot_be_read(refuse):
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


@pytest.mark.stan
def test_data_that_the_program_does_not_take(refuse):
    without = SAMPLE.replace(" data.json", "")
    refuse([Case("no data", without, ("`DATA.json`", "Sigma"), {"gauss.stan": GAUSS})])


def _program(id: str, content: str | bytes | None, *says: str, name: str = "bad.stan") -> Case:
    return Case(id, f"sample '{name}' {SHORT_RUN}", says, {name: content}, own_words=True)


def test_program_that_is_none(refuse):
    names = ("gauss.txt", "gauss.STAN", "gauss.json", "gauss")
    refuse(_program(name, GAUSS, "`PROGRAM.stan`", name=name) for name in names)
    refuse([_program("a folder", None, "`PROGRAM.stan`", "bad.stan")])
    refuse([Case("absent", f"sample bad.stan {SHORT_RUN}", ("`PROGRAM.stan`", "bad.stan"))])


@pytest.mark.stan
def test_program_that_does_not_parse(refuse):
    refuse(
        [
            _program("binary", bytes(range(256)), "bad.stan"),
            _program("Latin-1", "parameters { real é; } model { }".encode("latin-1"), "bad.stan"),
            _program("unknown name", "parameters { real a; } model { a ~ b; }", "bad.stan"),
            _program("integer", "parameters { int n; } model { }", "bad.stan"),
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
    whole = {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)}
    apart = whole | {"data.json": f.data(**WHOLE | {"mu": [0, 3]})}
    refuse([Case("no symmetry", f"{SAMPLE} --exchangeable x", ("`--exchangeable`", "x"), apart)])
    few = ("`run.nc` is written", "3 draws a chain", "at least 4")
    words = SAMPLE.replace("--draws 10", "--draws 3")
    refuse([Case("few draws", words, few, whole, makes=MADE)])
