"""Gaussians on fixed draws: exact on Gaussians, the same by every engine; and weights where they are known."""

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import onebasin as ob
from onebasin.inference.fits.gaussian import NormalFit, t_log_densities

from ..known import COVARIANCE, MEAN, RATE, SHAPE, known_target, linear_target

LOC = np.array([3.0, -200.0, 0.5, 1.0])


def covariance() -> np.ndarray:
    """Of condition 1e8, in coordinates of unlike scales."""
    root = np.diag([1.0, 100.0, 0.01, 1.0]) @ np.tril(np.full((4, 4), 0.7), -1)
    root += np.diag([1.0, 100.0, 0.01, 1.0])
    return root @ root.T


def gaussian() -> ob.Target:
    def model() -> None:
        numpyro.sample("x", dist.MultivariateNormal(jnp.asarray(LOC), jnp.asarray(covariance())))

    return ob.Target("gaussian", numpyro_model=model)


@pytest.mark.parametrize("family", ["fullrank", "meanfield"])
def test_a_gaussian_is_found_exactly_by_either_family(family):
    """Of the mean-field fit it is the linear response."""
    fit = ob.dadvi(gaussian(), family=family, starts=2, draws=10, weights=False, seed=1)
    loc, root = (fit["variational"][name].to_numpy() for name in ("loc", "scale_tril"))
    sds = np.sqrt(np.diag(covariance()))
    np.testing.assert_allclose((loc - LOC) / sds, 0, atol=1e-4)
    np.testing.assert_allclose(
        root @ root.T / np.outer(sds, sds), covariance() / np.outer(sds, sds), atol=1e-4
    )
    np.testing.assert_allclose(
        fit["variational"]["elbo"][-1], 0, atol=1e-4 if family == "fullrank" else 10
    )
    assert fit.attrs["converged"] == 1
    ratio = (fit["sample_stats"]["lp"] - fit["sample_stats"]["log_q"]).to_numpy()
    if family == "fullrank":
        np.testing.assert_allclose(ratio, 0, atol=1e-3)  # complete densities, with all constants


def test_engines_agree_and_an_odd_shape_is_fitted():
    """The unconstrained space of both is the same; a gamma's logarithm has the known optimum."""
    fits = [
        ob.dadvi(known_target(engine), seed=3, draws=4000, fixed_draws=400, weights=False)
        for engine in ("numpyro", "stan")
    ]
    for fit in fits:
        draws = fit["posterior"]
        np.testing.assert_allclose(draws["x"].mean(("chain", "draw")), MEAN, atol=0.06)
        # E_q[log tau] and sd: a normal on log tau has digamma-like moments of its own
        assert float(np.log(draws["tau"]).mean()) == pytest.approx(
            np.log(SHAPE / RATE) - 1 / (2 * SHAPE), abs=0.06
        )
        assert float(np.log(draws["tau"]).std()) == pytest.approx(SHAPE**-0.5, rel=0.06)
    one, other = (np.sort(fit["variational"]["loc"].to_numpy()) for fit in fits)
    np.testing.assert_allclose(one, other, atol=0.02)


def test_a_network_is_fitted_and_weighted():
    """One summed identity unit is linear regression, whose posterior is a Gaussian."""
    target = linear_target()
    fit = ob.dadvi(target, starts=4, draws=500, weights=True, seed=1)
    exact = np.linalg.inv(np.eye(2) + target.x.T @ target.x / 0.7**2)
    centre = exact @ target.x.T @ target.y[:, 0] / 0.7**2
    apart = fit["posterior"]["W1"].mean(("chain", "draw")).to_numpy()[:, 0] - centre
    assert (np.abs(apart) < 0.2 * np.sqrt(np.diag(exact))).all()
    assert fit.attrs["worth"] > 400


def test_a_t_density_integrates_to_one():
    grid = np.linspace(-400, 400, 400_001)[:, None]
    proposals = [
        (NormalFit(np.array([1.0]), np.array([[2.0]])), 8.0),
        (NormalFit(np.zeros(1), np.ones(1)), 20.0),
    ]
    heights = t_log_densities(proposals, grid)
    np.testing.assert_allclose(
        np.exp(heights).sum(axis=1) * (grid[1, 0] - grid[0, 0]), 1, atol=1e-6
    )


def test_linear_response_sees_how_scale_and_mean_go_together():
    """Of log tau with a gamma's shape a it is 1 / (a - 1 / (2 + 1 / a)), the mean-field variance 1 / a."""
    fit = ob.dadvi(known_target("numpyro"), family="meanfield", fixed_draws=2000, draws=10, seed=1)
    root = fit["variational"]["scale_tril"].to_numpy()
    variance = (root @ root.T)[0, 0]  # tau stands before x
    assert variance == pytest.approx(1 / (SHAPE - 1 / (2 + 1 / SHAPE)), rel=0.03)
    np.testing.assert_allclose((root @ root.T)[1:, 1:], COVARIANCE, rtol=1e-3)


def test_a_density_that_is_finite_nowhere_around_its_optimum_is_fitted():
    """A normal that is cut at half of its standard deviation: no direction from the optimum leads anywhere."""

    def density(values):
        return jnp.where(jnp.abs(values["x"]) < 0.5, -0.5 * values["x"] ** 2, -jnp.inf)

    tree = ob.dadvi(ob.target(density, {"x": "real"}), seed=1)
    weights = np.exp(tree["variational"]["log_weight"].values)
    np.testing.assert_allclose(weights @ tree["weighted"]["x"].values ** 2, 0.0806, rtol=0.05)
