"""Variants of Stan programs: with all constants, without a block, and what is rejected of them."""

from math import log, pi
from pathlib import Path

import pytest

from onebasin.stan.interpreter import runtime
from onebasin.stan.interpreter.driver import Model
from onebasin.stan.interpreter.runtime import (
    ProgramRefused,
    adds_to_target_early,
    declared_data,
    emptied,
    until_data,
    with_constants,
)

from .compiling import compiled

HERE = Path(__file__).parent
TEXT = """
functions { real model_of(real x) { return x; } } // model { not this }
data { int<lower=0> N; vector[N] y; real s; } /* model { nor this } */
transformed data { if (N > 0) { print("} model {"); } }
parameters { real model_x; vector<lower=0>[2] z; }
model { { real a = model_of(model_x); model_x ~ normal(a, 2); } z ~ gamma(2, 3); /* } */ print("}"); }
generated quantities { real modelled = 1; }
"""
DATA = '{"N": 1, "y": [2], "s": 1}'
POINTS = ([0.1, 0.2, 0.3], [-1.0, 0.5, 2.0])


def levels(text: str, change=lambda form: form) -> list[float]:
    model = Model(change(compiled(text, HERE)), DATA, seed=1)
    return [model.gradient(point) for point in POINTS]


def test_constants_change_the_density_by_a_constant_alone():
    one, other = (a - b for a, b in zip(levels(TEXT, with_constants), levels(TEXT), strict=True))
    assert one == pytest.approx(other, abs=1e-12) and abs(one) > 1


@pytest.mark.parametrize(
    ("statement", "constant"),
    [
        ("x ~ std_normal();", -0.5 * log(2 * pi)),
        ("3 ~ poisson(l);", -log(6)),
        ("[1 / (1 + l), l / (1 + l)]' ~ dirichlet([2, 3]');", log(12)),
        ("x ~ normal(0, 3);", -0.5 * log(18 * pi)),
        ("x ~ student_t(4, 0, 2);", log(3 / 16)),
        ("l ~ own(x, 1, 2, 4);", log(4)),
        ("target += normal_lpdf(x | 0, 3);", 0),
    ],
)
def test_constants_of_densities_of_any_number_of_arguments(statement, constant):
    """The sixth is that of a function of the program's own, which has `exponential(4)` in it."""
    own = (
        "real own_lpdf(real l, real a, real b, real c, real d) { return exponential_lupdf(l | d); }"
    )
    names = "parameters { vector<lower=0>[1] p; real x; }"
    text = f"functions {{ {own} }} {names} model {{ real l = p[1]; {statement} }}"
    for point in ([0.1, 0.2], [-1.0, 0.5]):
        kept, dropped = (
            Model(change(compiled(text, HERE)), "{}", seed=1).gradient(point)
            for change in (with_constants, str)
        )
        assert kept - dropped == pytest.approx(constant, abs=1e-12)


def test_the_density_without_a_model_block_is_the_log_jacobian():
    assert levels(emptied(TEXT, "model")) == pytest.approx([sum(p[1:]) for p in POINTS])


def test_a_block_is_emptied_among_comments_strings_braces_and_names():
    head, _, tail = TEXT.partition("model { { real a")
    rest = tail[tail.index("generated") :]
    assert emptied(TEXT, "model") == f"{head}model {{}}\n{rest}"
    assert "transformed data { if" in emptied(TEXT, "data") and "vector[N] y" in TEXT
    assert "N;" not in emptied(TEXT, "data")
    assert emptied("parameters { real x; }", "model") == "parameters { real x; }"
    assert until_data(TEXT) == TEXT[: TEXT.index(" /* model")]
    assert until_data("transformed data { int N = 1; }") == ""


def test_declared_data_tell_single_numbers():
    assert declared_data(compiled(until_data(TEXT), HERE)) == {"N": True, "y": False, "s": True}


@pytest.mark.parametrize(
    ("place", "early"), [("model", False), ("transformed parameters", True), ("", False)]
)
def test_a_function_that_adds_to_the_density_is_found_outside_the_model(place, early):
    use = f"{place} {{ real a = add_lp(1); }}" if place else "// add_lp(1)"
    text = f"functions {{ real add_lp(real x) {{ target += x; return x; }} }}\n{use}"
    assert adds_to_target_early(text) is early


@pytest.mark.parametrize(
    ("text", "words"), [("parameters { real x }", "Syntax error"), ("\0", "zero byte")]
)
def test_a_text_that_is_no_program_is_refused(text, words):
    with pytest.raises(ProgramRefused, match=words):
        compiled(text, HERE)


def test_the_compiler_never_runs_in_a_process_that_computes_with_jax():
    """On processors with AMX it would end the process."""
    with pytest.raises(AssertionError, match="JAX"):
        runtime.compiled(TEXT, HERE)
