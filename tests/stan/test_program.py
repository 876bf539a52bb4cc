"""A Stan program as a target: what is rejected, and which of its quantities are log likelihoods and predictions."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from onebasin.base.errors import StanDataError, StanProgramError
from onebasin.stan import run
from onebasin.stan.compile import ProgramInfo
from onebasin.stan.library import open_library
from onebasin.stan.program import Roles, check_roles, find_roles, stan_program


@pytest.mark.parametrize(
    ("name", "dims", "tuples", "words"),
    [
        ("draw", {}, (), r"`any\.stan` has a variable named 'draw', which is the name of an axis"),
        (
            "mu",
            {"theta": ("mu",)},
            (),
            "`dims` gives an axis of theta the name 'mu', which is also",
        ),
        ("pair", {}, ("pair",), r"any\.stan declares the tuple pair, but a posterior"),
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
        ("[" * 100 + "1" + "]" * 100, "lists that are nested too deeply"),
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


DATA = {"N": np.array(4), "x": np.zeros(4), "y": np.zeros(4), "w": np.zeros((4, 2))}


@pytest.mark.parametrize(
    ("shapes", "terms", "replicated", "observed"),
    [
        ({"log_lik": (4,), "y_rep": (4,)}, {"y": "log_lik"}, {"y": "y_rep"}, ("y",)),
        ({"loglik": (4,), "yrep": (4,)}, {"y": "loglik"}, {"y": "yrep"}, ("y",)),
        ({"y_pred": (4,), "y_rep": (4,)}, {}, {"y": "y_rep"}, ("y",)),
        ({"w_tilde": (4, 2), "log_lik": (4,)}, {"w": "log_lik"}, {"w": "w_tilde"}, ("w", "y")),
        (
            {"log_lik_w": (4,), "y_log_lik": (4,)},
            {"w": "log_lik_w", "y": "y_log_lik"},
            {},
            ("w", "y"),
        ),
        # at new points, of held out data, fitted values, sums: nothing of the data that there are
        ({"y_pred": (3,), "y_hat": (4,), "log_lik_test": (9,), "log_lik_sum": ()}, {}, {}, ("y",)),
        ({"log_lik": ()}, {}, {}, ("y",)),
        ({"log_lik": (9,)}, {"log_lik": "log_lik"}, {}, ("y",)),
        ({"mu": (4,), "replicate": (4,)}, {}, {}, ("y",)),
    ],
)
def test_the_convention(shapes, terms, replicated, observed):
    found = find_roles(Roles(), DATA, shapes)
    assert found.log_likelihood == terms
    assert found.posterior_predictive == replicated
    assert found.observed == observed
    assert found.moved == {*terms.values(), *replicated.values()}


def test_data_of_another_name_are_found_by_their_shape():
    data = {"J": np.array(3), "effects": np.zeros(3)}
    found = find_roles(Roles(), data, {"log_lik": (3,)})
    assert found.log_likelihood == {"effects": "log_lik"}
    two = data | {"sigma": np.zeros(3)}
    assert find_roles(Roles(), two, {"log_lik": (3,)}).log_likelihood == {"log_lik": "log_lik"}
    said = find_roles(Roles(observed=("effects",)), two, {"log_lik": (3,)})
    assert said.log_likelihood == {"effects": "log_lik"}
    assert said.observed == ("effects",)


def test_what_is_named_counts_alone():
    roles = Roles({"": "ll"}, {"x": "again"})
    shapes = {"ll": (4,), "log_lik": (4,), "again": (4,), "y_rep": (4,)}
    found = find_roles(roles, DATA, shapes)
    assert found.log_likelihood == {"x": "ll"}
    assert found.posterior_predictive == {"x": "again"}
    assert found.moved == {"ll", "again"}


def test_log_priors_are_found_among_what_is_derived():
    found = find_roles(Roles(), DATA, {}, priors=["lprior", "log_prior_of_mu", "mu"])
    assert found.log_prior == ("lprior",)


def test_quantities_that_are_not_computed_are_refused(tmp_path):
    path = tmp_path / "any.stan"
    path.write_text("")
    roles = stan_program(path, {"y": 1}, log_likelihood="ll").stan_program.roles
    with pytest.raises(
        StanProgramError,
        match=r"`log_likelihood` names ll, which a\.stan does not compute; it computes b",
    ):
        check_roles(roles, ["b"], "a.stan")
