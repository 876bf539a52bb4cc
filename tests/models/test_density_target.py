"""Any density as a target: JAX functions by named parameters."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import constraints
from scipy import stats

import onebasin as ob


def gamma(p):
    return 2 * jnp.log(p["scale"]) - p["scale"] - 0.5 * ((p["x"] - 1) ** 2).sum()


PARAMETERS = {"scale": "positive", "x": ("real", 2)}


def test_the_density_is_over_values_on_the_support():
    scale, x = np.array([0.3, 2.0]), np.array([[0.0, 1.0], [2.0, -1.0]])
    target = ob.target(gamma, PARAMETERS)
    values = [
        float(ob.log_density(target, {"scale": s, "x": at})) for s, at in zip(scale, x, strict=True)
    ]
    known = stats.gamma(3).logpdf(scale) + stats.norm(1).logpdf(x).sum(1)
    assert np.diff(values) == pytest.approx(np.diff(known), rel=1e-9)


def test_it_is_sampled_and_judged_like_any_model():
    target = ob.target(gamma, PARAMETERS, name="known", dims={"x": ("axis",)})
    posterior = ob.nuts(target, chains=2, warmup=200, draws=500, seed=1)
    assert posterior["posterior"]["x"].dims == ("chain", "draw", "axis")
    table = ob.diagnose(posterior).parameters
    assert abs(table.loc["scale", "mean"] - 3) < 5 * table.loc["scale", "mcse_mean"]
    assert abs(table.loc["x[1]", "mean"] - 1) < 5 * table.loc["x[1]", "mcse_mean"]


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        (gamma, None, "needed with a function"),
        (gamma, {"scale": "positiv"}, "supports are real"),
        (gamma, {"scale": 1.0}, "give a support"),
        (gamma, {"scale": ("simplex", ())}, "needs 1 axes"),
        (gamma, {"scale": ("real", 0)}, "at least 1"),
        (lambda p: p["x"], {"x": ("real", 2)}, "one number"),
        (lambda p: float(p["x"]), {"x": "real"}, "jax.numpy"),
        (3, None, "PyMC model"),
    ],
)
def test_refusals(model, parameters, words, unchecked):
    with pytest.raises(ob.OnebasinError, match=words):
        ob.target(model, parameters)


def test_targets_pass_and_numpyros_constraints_are_taken():
    target = ob.target(lambda p: -p["x"].sum(), {"x": (constraints.greater_than(2.0), (2,))})
    assert ob.target(target) is target
    assert target.name == "<lambda>"
