"""PyMC models with groups, components or times, each with the data of its Stan program: `(model, data)`."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

noise = np.random.default_rng(21)
SCHOOLS = {
    "J": 8,
    "y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]),
    "sigma": np.array([15.0, 10, 16, 11, 9, 11, 10, 18]),
}
J, N = 3, 15
GROUP = np.arange(N) % J
X = noise.normal(size=N)
Y = 1 + X * np.array([0.5, 1, 1.5])[GROUP] + 0.5 * noise.normal(size=N)
GROUPED = {"N": N, "J": J, "x": X, "group": GROUP + 1, "y": Y}
T = 14
SERIES = noise.normal(size=T).cumsum() / 2
TIMES = {"T": T, "y": SERIES}


def schools_noncentred():
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        z = pm.Normal("z", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("y", theta, SCHOOLS["sigma"], observed=SCHOOLS["y"])
    return model, SCHOOLS


def hierarchical_slopes():
    """Define one slope per group, and intercepts of groups that sum to zero."""
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        alpha = pm.Normal("alpha", 0, 2)
        apart = pm.ZeroSumNormal("apart", 1, dims="group")
        mu = pm.Normal("mu", 0, 1)
        tau = pm.Gamma("tau", 2, 4)
        slope = pm.Normal("slope", mu, tau, dims="group")
        sigma = pm.LogNormal("sigma", 0, 1)
        pm.Normal("y", alpha + apart[GROUP] + slope[GROUP] * X, sigma, observed=Y)
    return model, GROUPED


def correlated_slopes():
    """Define intercepts and slopes whose covariance PyMC stores as a packed Cholesky factor."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=2)
        chol, _, _ = pm.LKJCholeskyCov("factor", eta=2, n=2, sd_dist=pm.Exponential.dist(1, size=2))
        z = pm.Normal("z", 0, 1, shape=(J, 2))
        sigma = pm.HalfNormal("sigma", 1)
        effect = mu + z @ chol.T
        pm.Normal("y", effect[GROUP, 0] + effect[GROUP, 1] * X, sigma, observed=Y)
    return model, GROUPED


def correlated_outcomes():
    """Define outcomes with a correlation matrix, whose Cholesky factor is the parameter."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(N, 3)) + X[:, None]
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=3)
        scale = pm.HalfNormal("scale", 2, shape=3)
        factor = pm.LKJCorr("factor", n=3, eta=2)
        pm.MvNormal("y", mu, chol=scale[:, None] * factor, observed=y)
    return model, {"N": N, "y": y}


def mixture():
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(-2, 1, 8), rng.normal(2, 0.5, 7)])
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=2, transform=ordered, initval=[-1, 1])
        sigma = pm.HalfNormal("sigma", 1, shape=2)
        share = pm.Dirichlet("share", [2, 3])
        pm.NormalMixture("y", share, mu, sigma=sigma, observed=y)
    return model, {"N": N, "y": y}


def moving_average():
    """Define ARMA(1, 1), in which every error depends on the previous one."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        phi = pm.Uniform("phi", -1, 1)
        theta = pm.Uniform("theta", -1, 1)
        sigma = pm.HalfCauchy("sigma", 2.5)
        error = [SERIES[0] - (mu + phi * mu)]
        for before, now in pairwise(SERIES):
            error.append(now - (mu + phi * before + theta * error[-1]))
        pm.Potential("errors", pm.logp(pm.Normal.dist(0, sigma), pt.stack(error)).sum())
    return model, TIMES


def garch():
    """Define GARCH(1, 1), with variances from a scan, in which one parameter bounds another."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        base = pm.HalfNormal("base", 1)
        shock = pm.Uniform("shock", 0, 1)
        memory = pm.Uniform("memory", 0, 1 - shock)

        def step(before, variance, mu, base, shock, memory):
            return base + shock * (before - mu) ** 2 + memory * variance

        later = pytensor.scan(
            step,
            sequences=pt.as_tensor(SERIES[:-1]),
            outputs_info=pt.as_tensor(np.float64(0.5)),
            non_sequences=[mu, base, shock, memory],
            return_updates=False,
        )
        variance = pt.concatenate([[0.5], later])
        pm.Normal("y", mu, pt.sqrt(variance), observed=SERIES)
    return model, TIMES


def stochastic_volatility():
    with pm.Model() as model:
        phi = pm.Uniform("phi", -1, 1)
        sigma = pm.HalfNormal("sigma", 1)
        first = pm.Normal.dist(0, 2)
        h = pm.AR("h", [phi], sigma, init_dist=first, shape=T)
        pm.Normal("y", 0, pt.exp(h / 2), observed=SERIES)
    return model, TIMES


def covariance():
    """Define a covariance matrix with a Wishart prior."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(N, 2))
    with pm.Model() as model:
        spread = pm.Wishart("spread", nu=4, V=np.array([[1.0, 0.3], [0.3, 1.0]]))
        pm.MvNormal("y", np.zeros(2), cov=spread, observed=y)
    return model, {"N": N, "y": y}
