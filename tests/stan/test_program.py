"""A Stan program as a target: what is refused once its variables are known."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from onebasin.stan import run
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.home.errors import StanDataError, StanProgramError
from onebasin.stan.library import open_library
from onebasin.stan.program import stan_program


@pytest.mark.parametrize(
    ("name", "dims", "tuples", "words"),
    [
        ("draw", {}, (), r"`any\.stan` has a variable draw, which is the name of an axis"),
        ("mu", {"theta": ("mu",)}, (), "`dims` calls an axis of theta 'mu', which is the name of"),
        ("pair", {}, ("pair",), r"any\.stan declares the tuple pair, and a posterior"),
    ],
)
def test_variables_that_no_posterior_can_store_are_refused_before_a_run(
    tmp_path, monkeypatch, name, dims, tuples, words
):
    (tmp_path / "any.stan").write_text("")
    info = ProgramInfo((), ("theta",), (), (name,), (), tuples=tuples)
    model = SimpleNamespace(exe_file=Path("any"))
    monkeypatch.setattr(run, "compile_program", lambda path, progress, **how: (model, info))
    target = stan_program(tmp_path / "any.stan", dims=dims)
    with pytest.raises((ValueError, StanProgramError), match=words):
        run.make_ready(target, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[1], [2, 3]]", "rows of different lengths in b"),
        ("[" * 100 + "1" + "]" * 100, "lists within lists too deep"),
        ("[" * 100_000 + "1" + "]" * 100_000, "nested too deeply"),
        ("9" * 5000, "a number with too many digits"),
    ],
    ids=["ragged", "deep", "deeper", "long"],
)
def test_data_that_no_array_can_hold_are_refused(tmp_path, text, message):
    (tmp_path / "coin.stan").write_text("data { real b; }")
    (tmp_path / "data.json").write_text(f'{{"b": {text}}}')
    with pytest.raises(StanDataError, match=message):
        stan_program(tmp_path / "coin.stan", tmp_path / "data.json")


def test_the_text_of_a_program_is_a_program():
    text = "parameters { real mu; }\nmodel { mu ~ normal(3, 2); }\n"
    target = stan_program(text)
    assert target.name == "program"
    assert stan_program(text).stan_program.path == target.stan_program.path
    assert stan_program(text, name="mine").name == "mine"
    library = open_library(target)
    assert library.dim == 1
    assert library.log_density(np.array([1.0])) == open_library(text).log_density(np.array([1.0]))
    assert float(library.log_density(np.array([1.0]))) == pytest.approx(-0.5)


def test_a_program_of_ones_own_needs_no_jax():
    script = "import sys; from onebasin.stan import stan_program; print('jax._src' in sys.modules)"
    words = [sys.executable, "-c", script]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "False\n"
