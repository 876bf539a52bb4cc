"""A Stan program as a target: what is refused once its variables are known."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from onebasin.stan import program
from onebasin.stan.errors import StanProgramError
from onebasin.stan.translation import ProgramInfo


@pytest.mark.parametrize(
    ("name", "dims", "words"),
    [
        ("draw", {}, r"`any\.stan` has a variable draw, which is the name of an axis"),
        ("mu", {"theta": ("mu",)}, "`dims` calls an axis of theta 'mu', which is the name of a"),
    ],
)
def test_variables_that_no_posterior_can_store_are_refused_before_a_run(
    tmp_path, monkeypatch, name, dims, words
):
    (tmp_path / "any.stan").write_text("")
    info = ProgramInfo((), ("theta",), (name,), ())
    model = SimpleNamespace(exe_file=Path("any"))
    monkeypatch.setattr(program, "compile_program", lambda path, progress: (model, info))
    target = program.stan_program(tmp_path / "any.stan", dims=dims)
    with pytest.raises(ValueError, match=words):
        program.make_ready(target, tmp_path)


def test_a_tuple_is_refused_before_a_run(tmp_path, monkeypatch):
    (tmp_path / "any.stan").write_text("")
    info = ProgramInfo((), ("theta",), ("pair",), (), tuples=("pair",))
    model = SimpleNamespace(exe_file=Path("any"))
    monkeypatch.setattr(program, "compile_program", lambda path, progress: (model, info))
    with pytest.raises(
        StanProgramError, match=r"any\.stan declares the tuple pair, and a posterior"
    ):
        program.make_ready(program.stan_program(tmp_path / "any.stan"), tmp_path)
