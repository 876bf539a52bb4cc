"""Programs that the interpreter takes, programs that it leaves to CmdStan, and those that are wrong for both."""

import pytest

from onebasin.base.errors import StanDataError, StanProgramError
from onebasin.stan import choice
from onebasin.stan.choice import Accepted, Refused, examine

NORMAL = "data {int n; vector[n] y; real s;} parameters {real x;} model {y ~ normal(x, s);}"
WHOLE = {"n": 2, "y": [1, 2], "s": 1}
X = "parameters {real x;} model {x ~ std_normal();}"


def look(tmp_path, text, data=None):
    path = tmp_path / "m.stan"
    path.write_text(text)
    return examine(path, data or {})


def test_an_accepted_program_lists_what_it_declares(tmp_path):
    (tmp_path / "part.stan").write_text("real half(real x) {return x / 2;}")
    tail = "transformed parameters {vector[2] t = [half(x), 1]';} generated quantities {int g = 1;}"
    found = look(tmp_path, f"functions {{\n#include part.stan\n}} parameters {{real x;}} {tail}")
    assert isinstance(found, Accepted)
    info = found.info
    assert (info.inputs, info.parameters) == ((), ("x",))
    assert (info.transformed, info.generated) == (("t",), ("g",))
    assert info.includes == (tmp_path / "part.stan",)
    assert look(tmp_path, NORMAL, WHOLE | {"more": 1, "x": [1]}).info.inputs == ("n", "y", "s")


@pytest.mark.cmdstan
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{X} generated quantities {{tuple(real, int) p = (x, 1);}}", "does not support tuples$"),
        (
            "functions {real f(real x) {return f(x + 1);}} parameters {real x;} model {target += f(x);}",
            "does not run this program .*recursion",
        ),
        (f"{X} generated quantities {{vector[2] v = [1, 2]'; real y = v[3];}}", "out of bounds"),
        (
            "functions {real f_lp(real x) {target += x; return x;}} parameters {real x;} "
            "transformed parameters {real y = f_lp(x);}",
            "a function whose name ends in _lp",
        ),
    ],
)
def test_a_program_that_the_interpreter_does_not_run_is_left_to_cmdstan(tmp_path, text, reason):
    found = look(tmp_path, text)
    assert isinstance(found, Refused)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(found.reason)
    chosen = choice.choose(tmp_path / "m.stan", {})
    assert (chosen.engine, chosen.reason) == ("cmdstan", f"{found.reason}; compiled with CmdStan.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameters {real x}", r"m\.stan does not parse:\nSyntax error in 'm\.stan', line 1"),
        ("#include m.stan\nparameters {real x;}", r"m\.stan does not parse:(?s:.*)included itself"),
        ("#include no.stan\nparameters {real x;}", r"m\.stan does not parse:(?s:.*)no\.stan"),
        ("\0parameters {real x;}", r"m\.stan does not parse:\nLexing error: the file has a zero"),
        ("model {}", "declares no variables"),
    ],
)
def test_a_program_that_is_none_is_refused(tmp_path, text, words):
    with pytest.raises(StanProgramError, match=words):
        look(tmp_path, text)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {},
            r"^`data` is missing or empty, but m\.stan declares n, y, s: give a JSON file with an entry for each\.$",
        ),
        ({"n": 2, "s": 1}, r"^`data` lacks y, which m\.stan declares; `data` has only n, s\."),
        (WHOLE | {"y": [1, 2, 3]}, r"m\.stan rejects its data:\n.*variable name=y"),
        (WHOLE | {"y": 1}, r"m\.stan rejects its data:\n.*y"),
        (
            WHOLE | {"n": [2]},
            r"m\.stan rejects its data:\nn is an array, but the program declares a sin",
        ),
        (WHOLE | {"n": 2.5}, r"m\.stan rejects its data:\n.*n"),
    ],
)
def test_data_that_do_not_fit_are_refused(tmp_path, data, words):
    with pytest.raises(StanDataError, match=words):
        look(tmp_path, NORMAL, data)


@pytest.mark.cmdstan
def test_the_rule_looks_at_the_program_and_its_data_alone(tmp_path, monkeypatch, empty_machine):
    """Without a compiler, a cache or a CmdStan; and a file that changes is examined again."""
    path = tmp_path / "m.stan"
    for text, engine in (
        (X, "stanli"),
        (f"{X} generated quantities {{tuple(int, int) p = (1, 2);}}", "cmdstan"),
    ):
        path.write_text(text)
        assert choice.choose(path, {}).engine == engine
        assert choice.choose(path, {}, "cmdstan") == choice.Choice("cmdstan")


def test_without_the_interpreter_cmdstan_takes_all(tmp_path, monkeypatch):
    def missing() -> None:
        raise choice.InterpreterMissing("stanli is not installed.")

    monkeypatch.setattr(choice, "load", missing)
    assert look(tmp_path, X) == Refused("stanli is not installed", installed=False)
