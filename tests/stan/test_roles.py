"""Which quantities of a program are log likelihoods, predictions and log priors."""

import numpy as np
import pytest

from onebasin.stan import stan_program
from onebasin.stan.home.errors import StanDataError, StanProgramError
from onebasin.stan.program import Roles, check_roles, find_roles

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


def test_names_that_are_not_there_are_refused(tmp_path):
    path = tmp_path / "any.stan"
    path.write_text("")
    with pytest.raises(
        StanDataError, match="`observed` names the data z, which `data` lacks; it holds y"
    ):
        stan_program(path, {"y": 1}, observed="z")
    with pytest.raises(
        StanDataError, match="`posterior_predictive` names the data z, which `data`"
    ):
        stan_program(path, {"y": 1}, posterior_predictive={"z": "z_rep"})
    roles = stan_program(path, {"y": 1}, log_likelihood="ll").stan_program.roles
    with pytest.raises(
        StanProgramError,
        match=r"`log_likelihood` names ll, which is no generated quantity of a\.stan; it computes b",
    ):
        check_roles(roles, ["b"], "a.stan")
