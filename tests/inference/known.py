"""Targets with known answers, and a check of Monte Carlo means."""

from pathlib import Path

import arviz_stats
import jax.numpy as jnp
import numpy as np
import numpyro
import xarray as xr
from numpyro import distributions as dist

from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget, Target
from onebasin.stan import stan_program

PROGRAMS = Path(__file__).parent / "programs"
MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.5]])
SHAPE, RATE = 3.0, 2.0


def _model() -> None:
    """A correlated Gaussian and a skewed positive variable.

    Its arrays already have the precision of the block. JAX 0.12 may keep NumPy's doubles in a block of single precision
    while another thread works in double precision.
    """
    dtype = jnp.result_type(float)
    numpyro.sample("x", dist.MultivariateNormal(MEAN.astype(dtype), COVARIANCE.astype(dtype)))
    numpyro.sample("tau", dist.Gamma(SHAPE, RATE))


def known_target(engine: str) -> Target:
    """Return the target x ~ N(MEAN, COVARIANCE), tau ~ Gamma(SHAPE, RATE) for one engine."""
    if engine == "numpyro":
        return Target("known", numpyro_model=_model)
    data = {"mu": MEAN, "Sigma": COVARIANCE, "shape": SHAPE, "rate": RATE}
    return stan_program(PROGRAMS / "known.stan", data, name="known")


def linear_target(num_obs: int = 40) -> NetworkTarget:
    """Return linear regression with known noise as a network: the sum of one identity unit, with prior N(0, 1)."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(num_obs, 2))
    y = x @ np.array([1.0, -0.5]) + 0.7 * rng.normal(size=num_obs)
    network = Network(2, (1,), 1, activation="identity", biases=False, readout="sum")
    return BayesianNetwork(network, Gaussian(noise_sd=0.7)).condition(x, y, name="linear")


def assert_known(post: xr.DataTree) -> None:
    """Compare the moments of a posterior of the known target with the truth."""
    x, tau = post["x"].to_numpy(), post["tau"].to_numpy()
    for i in range(2):
        assert_mean(x[..., i], MEAN[i])
        assert_mean((x[..., i] - MEAN[i]) ** 2, COVARIANCE[i, i])
    assert_mean((x[..., 0] - MEAN[0]) * (x[..., 1] - MEAN[1]), COVARIANCE[0, 1])
    assert_mean(tau, SHAPE / RATE)
    # Check the third moment too, since second moments cannot reveal a wrong sign.
    assert_mean((tau - SHAPE / RATE) ** 3, 2 * SHAPE / RATE**3, min_ess=100)


def assert_mean(draws: np.ndarray, truth: float, *, min_ess: float = 200.0) -> None:
    """Check the ESS of draws (chain, draw), and compare their mean with the truth to within 5 MCSE."""
    ess = float(arviz_stats.ess(draws))
    assert ess > min_ess, f"ESS {ess:.0f}"
    mcse = float(arviz_stats.mcse(draws))
    error = abs(float(np.mean(draws)) - truth)
    assert error < 5 * mcse, f"{np.mean(draws):.4f} for {truth:.4f}, MCSE {mcse:.4f}"
