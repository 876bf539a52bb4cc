"""Priors at the top level of a NumPyro model are told from those of its latent variables."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan

import onebasin as ob
from onebasin.inference.runs.groups_numpyro import Sites

T = np.linspace(0.0, 1.0, 6)
X = np.ones((12, 3))


def _normal(name, *shape, scale=1.0):
    return numpyro.sample(name, dist.Normal(0, scale).expand(shape).to_event(len(shape)))


def _positive(name, *shape):
    return numpyro.sample(name, dist.HalfNormal(1).expand(shape).to_event(len(shape)))


def _observe(mean, scale=1.0):
    numpyro.sample("y", dist.Normal(mean, scale), obs=np.zeros(jnp.shape(mean)))


def centred():
    mu, tau = _normal("mu"), _positive("tau")
    _observe(numpyro.sample("a", dist.Normal(mu, tau).expand([6]).to_event(1)))


def not_centred():
    mu, tau, z = _normal("mu"), _positive("tau"), _normal("z", 6)
    _observe((mu + tau * z)[np.array([0, 0, 1, 5])], _positive("sigma"))


def correlated():
    scales = _positive("scales", 2)
    cholesky = numpyro.sample("cholesky", dist.LKJCholesky(2, 1.0))
    _observe(_normal("z", 9, 2) @ (scales[:, None] * cholesky).T)


def horseshoe():
    tau, local, z = _positive("tau"), _positive("local", 3), _normal("z", 3)
    _observe(X @ (z * local * tau), _positive("sigma"))


def gaussian_process():
    length, sd = _positive("length"), _positive("sd")
    kernel = sd**2 * jnp.exp(-0.5 * ((T[:, None] - T[None]) / length) ** 2) + 1e-6 * np.eye(6)
    _observe(jnp.linalg.cholesky(kernel) @ _normal("z", 6))


def loop():
    step, rho, z = _positive("step"), numpyro.sample("rho", dist.Uniform(-1, 1)), _normal("z", 6)
    _, path = scan(lambda x, e: (rho * x + step * e,) * 2, 0.0, z)
    _observe(path)


def answers():
    slope, place, ability = _positive("slope", 4), _normal("place", 4), _normal("ability", 20)
    logits = slope[None] * (ability[:, None] - place[None])
    numpyro.sample("y", dist.BernoulliLogits(logits), obs=np.ones((20, 4)))


def factors():
    _observe(_normal("scores", 20, 2) @ _normal("loadings", 2, 3))


def regression():
    _observe(_normal("alpha") + X @ _normal("beta", 3, scale=2.5), _positive("sigma"))


def network():
    hidden = jnp.tanh(X @ _normal("w1", 3, 4) + _normal("b1", 4)[None])
    _observe(hidden @ _normal("w2", 4, 4) @ jnp.ones(4), _positive("sigma"))


def growth():
    _observe(_positive("size") * jnp.exp(-_normal("rate") * T) / (1 + _positive("half")))


@pytest.mark.parametrize(
    ("model", "top"),
    [
        (centred, {"mu", "tau"}),
        (not_centred, {"mu", "tau", "sigma"}),
        (correlated, {"scales", "cholesky"}),
        (horseshoe, {"tau", "sigma"}),
        (gaussian_process, {"length", "sd"}),
        (loop, {"step", "rho"}),
        (answers, {"slope", "place"}),
        (factors, {"loadings"}),
        (regression, {"alpha", "beta", "sigma"}),
        (network, {"w1", "b1", "w2", "sigma"}),
        (growth, {"size", "rate", "half"}),
    ],
)
def test_latent_variables_of_a_hierarchy_are_below_the_top(model, top):
    assert set(top_of(model)) == top


def top_of(model):
    sites = Sites.of(ob.numpyro_model(model))

    def values():
        trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace()
        return {name: trace[name]["value"] for name in sites.latent}

    return json.loads(sites.log_prior_attributes(jax.eval_shape(values))["top_level"])
