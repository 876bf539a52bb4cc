"""The network of two weights: data, what is measured, figures."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

from onebasin.models import Exchangeable
from onebasin.studies.permutation_invariant_vi.two_weights.design import (
    QUICK,
    WeightsProblem,
    fit_settings,
    target,
)
from onebasin.studies.permutation_invariant_vi.two_weights.measures import (
    error_of,
    score_fits,
    separations,
    solve_case,
)
from onebasin.studies.permutation_invariant_vi.two_weights.posterior import (
    Statistics,
    approximation,
    statistics,
)

pytestmark = pytest.mark.full

TOY = replace(QUICK, num_test=40, data_sets=2, curve_points=3, steps=4000, draws=400)


def problem(noise: float, alpha: float) -> WeightsProblem:
    return WeightsProblem(replace(TOY, noise=noise, noises=(noise,)), alpha, noise)


def fake_tree(loc: np.ndarray, scale: np.ndarray, found: Statistics, draws: int) -> xr.DataTree:
    """A posterior as the method gives it: exact about itself, with draws from these Gaussians."""
    rng = np.random.default_rng(3)
    fits = len(loc)
    w = loc[:, None, :] + scale[:, None, :] * rng.standard_normal((fits, draws, 2))
    q = [approximation(m, s, found) for m, s in zip(loc, scale, strict=True)]
    fitted = {
        "loc": (("chain", "param"), loc),
        "scale": (("chain", "param"), scale),
        "final_elbo": ("chain", [one.elbo + 0.02 for one in q]),
        "final_elbo_mcse": ("chain", [0.01] * fits),
        "information_lower": ("chain", [one.information for one in q]),
        "information_lower_mcse": ("chain", [0.01] * fits),
        "symmetrised_elbo_lower": ("chain", [one.symmetrised_elbo for one in q]),
    }
    draws_of = xr.Dataset({"W1": (("chain", "draw", "in", "hidden1"), w[:, :, None, :])})
    return xr.DataTree.from_dict({"posterior": draws_of, "variational": xr.Dataset(fitted)})


def test_data_have_the_same_inputs_and_errors_for_every_alpha_and_noise():
    one, other = problem(1.0, 0.25).points("train"), problem(0.3, 1.0).points("train")
    np.testing.assert_array_equal(one.x, other.x)
    errors = (one.y - 0.25 * np.abs(one.x), (other.y - np.abs(other.x)) / 0.3)
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-12, atol=1e-14)
    test = problem(1.0, 0.25).points("test")
    assert not set(test.x) & set(one.x)
    assert len(test.x) == TOY.num_test
    assert target(TOY, 0.25).symmetry == (Exchangeable({"W1": 1}),)
    settings = fit_settings(replace(QUICK, steps=7, permutations=4, learning_rate=0.02))
    assert (settings.steps, settings.permutations, settings.learning_rate) == (7, 4, 0.02)
    assert (settings.fits, settings.draws, settings.tolerance) == (2, 500, 0.0)


def test_errors_are_expected_over_inputs(rng):
    x = rng.standard_normal(400_000)
    slope = np.where(x > 0, 0.7, 1.6)
    squares = (np.abs(x) * (slope - 1.0)) ** 2
    miss = squares.mean() - error_of(np.array([0.7, 1.6]), 1.0)
    assert abs(miss) < 5 * squares.std() / len(x) ** 0.5


def test_fits_are_scored_by_their_draws_and_by_quadrature():
    problem = WeightsProblem(TOY, 0.25, 1.0)
    case = solve_case(problem)
    found = statistics(problem.points("train"), 1.0)
    loc, scale = np.array([[0.3, -0.2], [0.1, 0.0]]), np.array([[0.2, 0.3], [0.4, 0.4]])
    tree = fake_tree(loc, scale, found, 3000)
    scores = score_fits(TOY, case, "mfvi", tree)
    test = problem.points("test")
    w = tree["posterior"]["W1"].values[:, :, 0]
    f = np.maximum(w[..., None] * test.x, 0).sum(axis=2)
    np.testing.assert_allclose(scores["mse"], ((test.y - f.mean(1)) ** 2).mean(-1), rtol=1e-10)
    density = norm.pdf(test.y, f, 1.0).mean(1)
    np.testing.assert_allclose(scores["log_score"], np.log(density).mean(-1), rtol=1e-10)
    np.testing.assert_allclose(
        scores["elbo"] - np.array(scores["by_quadrature"]["elbo"]), 0.02, rtol=1e-6
    )
    np.testing.assert_allclose(separations(scores), [0.5, 0.1])
    q = approximation(loc[1], scale[1], found)
    assert scores["kl"][1] == pytest.approx(case["log_evidence"] - q.elbo, rel=1e-12)
    apart = scores["kl"][1] - q.information
    assert scores["kl_symmetrised"][1] == pytest.approx(apart, rel=1e-12)
