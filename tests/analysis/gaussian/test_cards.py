"""What one Gaussian shows of itself: of what it is, and that labels may have been averaged."""

import numpy as np
import pytest

import onebasin as ob
from onebasin.analysis.gaussian.distilled import Distilled
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from ...cards import check_page

MU = (ob.Exchangeable({"mu": 0}),)


@pytest.fixture
def draws(make_mcmc, rng):
    attrs = {"symmetry": schema.encode_symmetry(MU)}
    values = {
        "mu": np.array([-4.0, 4.0]) + rng.normal(size=(4, 50, 2)),
        "tau": rng.normal(size=(4, 50)),
    }
    return make_mcmc(values, attrs=attrs)


def test_a_fit_to_draws_that_were_not_aligned_says_so(draws):
    fit = ob.approximations.fit_gaussian(draws, "full")
    text = " ".join(repr(fit).split())
    assert "the means and a full covariance of 200 draws of `" in text
    assert "The draws were not aligned, and the posterior declares permutations of mu" in text
    assert "not aligned" not in repr(
        ob.approximations.fit_gaussian(ob.align(draws).posterior, "full")
    )
    assert "mu[1]" in text
    check_page(fit._repr_html_())


def test_many_parameters_are_shown_by_variable(make_mcmc, rng):
    fit = ob.approximations.fit_gaussian(
        make_mcmc({"w": rng.normal(size=(4, 50, 6, 5)), "s": rng.normal(size=(4, 50))})
    )
    lines = repr(fit).splitlines()
    assert lines[-2].startswith("  w (6, 5)  -")
    assert " to " in lines[-2]
    assert lines[-1].split()[0] == "s"
    assert " to " not in lines[-1]


def test_a_distilled_gaussian_says_how_far_its_loss_fell(draws):
    mean = {"W1": np.zeros((1, 2)), "b1": np.array([1.0, 2.0])}
    student = Distilled(
        mean, {n: v + 1 for n, v in mean.items()}, np.array([3.0, 0.5]), as_view(draws)
    )
    text = " ".join(repr(student).split())
    assert "over 4 weights" in text
    assert "fell from 3 to 0.5" in text
    assert "b1[1] 2 3" in text
    check_page(student._repr_html_())
