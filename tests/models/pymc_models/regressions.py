"""PyMC models with one level, each with the data of its Stan program: `(model, data)`."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

noise = np.random.default_rng(20)
N, K = 12, 2
X = noise.normal(size=(N, K))
SCORE = X @ [0.8, -0.5] + 0.3
BASE = {"N": N, "K": K, "X": X}


def linear_with_missing():
    """Define a linear regression whose missing outcomes are parameters."""
    rng = np.random.default_rng(1)
    y = SCORE + rng.normal(size=N)
    known = np.arange(N) % 4 != 1
    with pm.Model(coords={"covariate": ["age", "income"]}) as model:
        x = pm.Data("x", X)
        alpha = pm.StudentT("alpha", 3, mu=0, sigma=2)
        beta = pm.Normal("beta", 0, 2, dims="covariate")
        sigma = pm.HalfCauchy("sigma", 1.5)
        pm.Normal("y", alpha + x @ beta, sigma, observed=np.ma.masked_array(y, ~known))
    order = np.argsort(~known, kind="stable")
    return model, {**BASE, "X": X[order], "O": int(known.sum()), "y": y[known]}


def logistic():
    rng = np.random.default_rng(1)
    y = (rng.logistic(size=N) < SCORE).astype(int)
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 5)
        beta = pm.Laplace("beta", 0, 1, shape=K)
        pm.Bernoulli("y", logit_p=alpha + X @ beta, observed=y)
    return model, {**BASE, "y": y}


def poisson_with_offset():
    rng = np.random.default_rng(1)
    exposure = rng.uniform(1, 9, size=N)
    y = rng.poisson(exposure * np.exp(SCORE))
    with pm.Model() as model:
        alpha = pm.Flat("alpha")
        beta = pm.Normal("beta", 0, 1, shape=K)
        pm.Poisson("y", exposure * pt.exp(alpha + X @ beta), observed=y)
    return model, {**BASE, "exposure": exposure, "y": y}


def beta_binomial():
    rng = np.random.default_rng(1)
    trials = rng.integers(5, 20, size=N)
    y = rng.binomial(trials, rng.beta(2, 3, size=N))
    with pm.Model() as model:
        mean = pm.Beta("mean", 2, 2)
        size = pm.Pareto("size", 1.5, 0.5)  # Above 0.5: a bound on one side.
        pm.BetaBinomial("y", mean * size, (1 - mean) * size, n=trials, observed=y)
    return model, {"N": N, "trials": trials, "y": y}


def multinomial_logit():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=N)
    with pm.Model() as model:
        apart = pm.ZeroSumNormal("apart", 1.5, shape=3)
        beta = pm.Normal("beta", 0, 1, shape=(K, 3))
        pm.Categorical("y", logit_p=apart + X @ beta, observed=y)
    return model, {**BASE, "y": y + 1}


def horseshoe():
    rng = np.random.default_rng(1)
    y = SCORE + rng.normal(size=N)
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=K)
        local = pm.HalfStudentT("local", 1, shape=K)
        overall = pm.HalfStudentT("overall", 1, sigma=0.2)
        slab = pm.InverseGamma("slab", 2, 8)
        sigma = pm.Exponential("sigma", 1)
        shrunk = local * pt.sqrt(slab / (slab + overall**2 * local**2))
        beta = pm.Deterministic("beta", overall * shrunk * z)
        pm.Normal("y", X @ beta, sigma, observed=y)
    return model, {**BASE, "y": y}


def weibull_survival():
    """Define survival times that are censored at 2."""
    rng = np.random.default_rng(1)
    y = np.minimum(rng.weibull(1.4, size=N) * np.exp(SCORE), 2)
    with pm.Model() as model:
        shape = pm.TruncatedNormal("shape", 1, 2, lower=0.2, upper=8)
        beta = pm.Normal("beta", 0, 1, shape=K)
        times = pm.Weibull.dist(shape, pt.exp(X @ beta))
        pm.Censored("y", times, lower=None, upper=2, observed=y)
    return model, {**BASE, "y": y}


def gaussian_process():
    rng = np.random.default_rng(1)
    x = np.linspace(-2, 2, N)
    y = np.sin(2 * x) + 0.2 * rng.normal(size=N)
    with pm.Model() as model:
        length = pm.InverseGamma("length", 5, 5)
        scale = pm.HalfNormal("scale", 1)
        noise = pm.HalfNormal("noise", 0.5)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.ExpQuad(1, length))
        process.marginal_likelihood("y", x[:, None], y, sigma=noise, jitter=0)
    return model, {"N": N, "x": x, "y": y}
