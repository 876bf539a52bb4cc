"""Stan programs and their data: absent, broken, unfit for each other, failing as they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from . import files as f
from .cases import Case, table

PROGRAMS = Path(__file__).parents[1] / "stan" / "programs"
GAUSS = (PROGRAMS / "gauss.stan").read_text()
HOPELESS = (PROGRAMS / "hopeless.stan").read_text()
WHOLE = {"D": 2, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}
SAMPLE = "sample gauss.stan data.json --out run.nc --chains 1 --warmup 10 --draws 10 --no-progress"
MADE = ("run.nc", "run.nc.log")


def _data(id: str, content: str | bytes | None, *says: str) -> Case:
    return Case(id, SAMPLE, says, {"gauss.stan": GAUSS, "data.json": content}, own_words=True)


NOT_READ = [
    Case(
        "data-absent", SAMPLE, ("`DATA.json`", "data.json", "does not exist"), {"gauss.stan": GAUSS}
    ),
    _data("data-a-folder", None, "`DATA.json`", "folder"),
    _data("data-empty", "", "`DATA.json`", "data.json"),
    _data("data-blank", " \n", "`DATA.json`"),
    _data("data-text", "D = 2", "`DATA.json`", "JSON"),
    _data("data-r-dump", "D <- 2\n", "`DATA.json`", "JSON"),
    _data("data-not-closed", '{"D": 2', "`DATA.json`", "JSON"),
    _data("data-comma-at-the-end", '{"D": 2,}', "`DATA.json`", "JSON"),
    _data("data-two-objects", '{"D": 2}{"D": 3}', "`DATA.json`", "JSON"),
    _data("data-binary", bytes(range(256)), "`DATA.json`"),
    _data("data-utf16", f.data(**WHOLE).encode("utf-16"), "`DATA.json`"),
    _data("data-latin1", '{"Dé": 2}'.encode("latin-1"), "`DATA.json`"),
    _data("data-netcdf", b"\x89HDF\r\n\x1a\n" + bytes(100), "`DATA.json`"),
    _data("data-a-list", "[1, 2]", "`DATA.json`", "object"),
    _data("data-a-number", "3", "`DATA.json`", "object"),
    _data("data-a-text", '"D"', "`DATA.json`", "object"),
    _data("data-null", "null", "`DATA.json`", "object"),
    _data(
        "data-key-twice",
        '{"D": 2, "D": 3, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}',
        "`DATA.json`",
        "D",
        "twice",
    ),
    _data("data-deep", "[" * 100000, "`DATA.json`"),
    _data(
        "data-nan",
        '{"D": 2, "mu": [NaN, 0], "Sigma": [[1, 0], [0, 1]]}',
        "`DATA.json`",
        "mu",
        "finite",
    ),
    _data(
        "data-infinity", '{"D": 2, "mu": [Infinity, 0], "Sigma": [[1, 0], [0, 1]]}', "mu", "finite"
    ),
    _data(
        "data-minus-infinity",
        '{"D": 2, "mu": [0, -Infinity], "Sigma": [[1, 0], [0, 1]]}',
        "mu",
        "finite",
    ),
    _data(
        "data-too-large-a-float",
        '{"D": 2, "mu": [1e999, 0], "Sigma": [[1, 0], [0, 1]]}',
        "mu",
        "finite",
    ),
    _data(
        "data-unequal-rows",
        f.data(**WHOLE | {"Sigma": [[1, 0], [0]]}),
        "`DATA.json`",
        "Sigma",
        "rows",
    ),
    _data("data-unequal-depth", f.data(**WHOLE | {"mu": [0, [1]]}), "`DATA.json`", "mu"),
    _data("data-text-in-it", f.data(**WHOLE | {"mu": ["a", "b"]}), "`DATA.json`", "mu", "'a'"),
    _data("data-null-in-it", f.data(**WHOLE | {"mu": [None, 0]}), "`DATA.json`", "mu"),
    _data("data-null-value", f.data(**WHOLE | {"mu": None}), "`DATA.json`", "mu"),
    _data("data-true-for-a-size", f.data(**WHOLE | {"mu": "zero"}), "`DATA.json`", "mu"),
    _data("data-object-value", f.data(**WHOLE | {"mu": {"a": 1}}), "mu"),
]


@table(NOT_READ)
def test_data_that_cannot_be_read(refuse, case):
    refuse(case)


@pytest.mark.stan
@table(
    [
        _data(
            "data-lacks-a-variable", f.data(D=2, mu=[0, 0]), "`DATA.json`", "Sigma", "gauss.stan"
        ),
        _data("data-lacks-everything", "{}", "`DATA.json`", "Sigma", "nothing"),
        _data(
            "data-other-case",
            f.data(d=2, MU=[0, 0], sigma=[[1, 0], [0, 1]]),
            "`DATA.json`",
            "Sigma",
        ),
        Case(
            "data-not-given",
            SAMPLE.replace(" data.json", ""),
            ("`DATA.json`", "Sigma"),
            {"gauss.stan": GAUSS},
        ),
        _data("data-too-few", f.data(**WHOLE | {"mu": [0]}), "mu"),
        _data("data-too-many", f.data(**WHOLE | {"mu": [0, 0, 0]}), "mu"),
        _data("data-scalar-for-vector", f.data(**WHOLE | {"mu": 0}), "mu"),
        _data("data-vector-for-matrix", f.data(**WHOLE | {"Sigma": [1, 2]}), "Sigma"),
        _data("data-vector-for-scalar", f.data(**WHOLE | {"D": [2]}), "D"),
        _data("data-real-for-integer", f.data(**WHOLE | {"D": 2.5}), "D"),
        _data("data-integer-too-large", f.data(**WHOLE | {"D": 10**30}), "D"),
        _data("data-below-its-bound", f.data(**WHOLE | {"D": 0}), "D"),
        _data("data-negative-size", f.data(**WHOLE | {"D": -1}), "D"),
        _data(
            "data-not-positive-definite",
            f.data(**WHOLE | {"Sigma": [[1, 2], [2, 1]]}),
            "Sigma",
            "positive definite",
        ),
        _data(
            "data-not-symmetric",
            f.data(**WHOLE | {"Sigma": [[1, 0.5], [0, 1]]}),
            "Sigma",
            "symmetric",
        ),
    ]
)
def test_data_that_the_program_does_not_take(refuse, case):
    refuse(case)


def _program(id: str, content: str | bytes | None, *says: str, name: str = "bad.stan") -> Case:
    words = f"sample '{name}' --out run.nc --chains 1 --warmup 10 --draws 10 --no-progress"
    return Case(
        id,
        words,
        says,
        {} if content == "" and id.endswith("absent") else {name: content},
        own_words=True,
    )


@table(
    [
        _program("program-absent", "", "`PROGRAM.stan`", "bad.stan"),
        _program("program-a-folder", None, "`PROGRAM.stan`", "bad.stan"),
        _program("program-other-ending", GAUSS, "`PROGRAM.stan`", "gauss.txt", name="gauss.txt"),
        _program("program-capital-ending", GAUSS, "`PROGRAM.stan`", name="gauss.STAN"),
        _program("program-json", "{}", "`PROGRAM.stan`", name="gauss.json"),
        _program("program-no-ending", GAUSS, "`PROGRAM.stan`", name="gauss"),
    ]
)
def test_program_that_is_none(refuse, case):
    refuse(case)


@pytest.mark.stan
@table(
    [
        _program("program-text", "Dear Stan,\n", "bad.stan", "does not parse"),
        _program("program-binary", bytes(range(256)), "bad.stan"),
        _program(
            "program-latin1", "// é\nparameters { real é; } model { }".encode("latin-1"), "bad.stan"
        ),
        _program("program-no-semicolon", "parameters { real mu } model { }", "bad.stan", "line 1"),
        _program("program-not-closed", "parameters { real mu;", "bad.stan"),
        _program("program-unknown-type", "parameters { float mu; } model { }", "bad.stan"),
        _program(
            "program-unknown-name",
            "parameters { real mu; } model { mu ~ normal(m, 1); }",
            "bad.stan",
            "m",
        ),
        _program(
            "program-unknown-distribution",
            "parameters { real mu; } model { mu ~ gauss(0, 1); }",
            "bad.stan",
            "gauss",
        ),
        _program("program-integer-parameter", "parameters { int n; } model { }", "bad.stan"),
        _program(
            "program-reserved-name", "parameters { real class; real for; } model { }", "bad.stan"
        ),
        _program(
            "program-name-twice", "parameters { real mu; real mu; } model { }", "bad.stan", "mu"
        ),
        _program("program-blocks-in-wrong-order", "model { } parameters { real mu; }", "bad.stan"),
        _program("program-block-twice", "model { } model { }", "bad.stan"),
        _program(
            "program-include-absent",
            "#include absent.stan\nparameters { real x; } model { }",
            "bad.stan",
            "absent.stan",
        ),
        _program("program-old-syntax", "parameters { real x; } model { x <- 2; }", "bad.stan"),
        _program("program-old-arrays", "parameters { real x[3]; } model { }", "bad.stan"),
    ]
)
def test_program_that_does_not_parse(refuse, case):
    refuse(case)


@pytest.mark.stan
@table(
    [
        _program("program-empty", " ", "`PROGRAM.stan`", "no variables"),
        _program("program-model-alone", "model { }", "`PROGRAM.stan`", "no variables"),
        replace(
            _program(
                "program-improper", "parameters { real x; } model { }", "Posterior is improper"
            ),
            slow=True,
        ),
        Case(
            "program-never-starts",
            "sample hopeless.stan --out run.nc --chains 1 --warmup 10 --draws 10 --no-progress",
            ("hopeless", "never", "Rejecting initial value"),
            {"hopeless.stan": HOPELESS},
            own_words=True,
        ),
        Case(
            "fit-never-starts",
            "sample hopeless.stan --out run.nc --method meanfield --iterations 10 --no-progress",
            ("hopeless", "never"),
            {"hopeless.stan": HOPELESS},
            own_words=True,
        ),
        Case(
            "draws-too-few-to-judge",
            SAMPLE.replace("--draws 10", "--draws 3"),
            ("`run.nc` is written", "3 draws a chain", "at least 4"),
            {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)},
            makes=MADE,
        ),
        Case(
            "exchangeable-not-declared",
            SAMPLE + " --exchangeable x,theta",
            ("`--exchangeable`", "theta", "gauss.stan"),
            {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)},
        ),
        Case(
            "exchangeable-axis-too-large",
            SAMPLE + " --exchangeable x:3",
            ("`--exchangeable`", "x"),
            {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)},
        ),
        Case(
            "exchangeable-does-not-hold",
            SAMPLE + " --exchangeable x",
            ("`--exchangeable`", "x"),
            {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE | {"mu": [0, 3]})},
        ),
        Case(
            "complement-of-what-is-no-share",
            SAMPLE + " --exchangeable 1-x",
            ("`--exchangeable`", "x"),
            {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)},
        ),
    ]
)
def test_program_that_fails_as_it_runs(refuse, case):
    refuse(case)
