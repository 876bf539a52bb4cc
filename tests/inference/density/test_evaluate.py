"""Log densities and generated quantities at draws: closed forms, the same on both engines, and what is rejected."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr

import onebasin as ob


def normal() -> None:
    numpyro.sample("mu", dist.Normal(0, 2).expand([3]).to_event(1))
    numpyro.sample("sigma", dist.Exponential(1.5))


TARGET = ob.Target("normal", numpyro_model=normal)


def closed_form(mu, sigma):
    prior = -0.5 * (mu / 2) ** 2 - np.log(2 * np.sqrt(2 * np.pi))
    return prior.sum(axis=-1) + np.log(1.5) - 1.5 * sigma


@pytest.fixture
def draws(rng) -> xr.Dataset:
    mu, sigma = rng.normal(size=(2, 5, 3)), rng.exponential(size=(2, 5))
    return xr.Dataset({"mu": (("chain", "draw", "k"), mu), "sigma": (("chain", "draw"), sigma)})


def test_is_the_closed_form_at_every_draw_and_at_one_point(draws):
    found = ob.log_density(TARGET, draws)
    assert found.dims == ("chain", "draw")
    assert found.dtype == np.float64
    np.testing.assert_allclose(
        found, closed_form(draws["mu"].values, draws["sigma"].values), rtol=1e-10
    )
    one = ob.log_density(TARGET, {"mu": [0.1, -0.2, 3.0], "sigma": 0.5})
    assert one.dims == ()
    tree = xr.DataTree.from_dict({"posterior": draws})
    for same in (tree, tree["posterior"]):
        np.testing.assert_array_equal(ob.log_density(TARGET, same), found)
    assert ob.log_density(TARGET, {"mu": [0.0, 0.0, 0.0], "sigma": -1.0}) == -np.inf
    np.testing.assert_allclose(one, closed_form(np.array([0.1, -0.2, 3.0]), 0.5), rtol=1e-10)


@pytest.mark.stan
def test_engines_differ_by_one_constant(rng):
    network = ob.networks.BayesianNetwork(ob.networks.Network(1, (3,), 1, "tanh"))
    target = network.condition(rng.normal(size=(9, 1)), rng.normal(size=9))
    shapes = {"W1": (1, 3), "b1": (3,), "W2": (3, 1), "b2": (1,)}
    values = {n: rng.normal(size=(2, 4, *shape)) for n, shape in shapes.items()}
    values["sigma"] = rng.exponential(size=(2, 4))
    arrays = {
        n: (("chain", "draw", *(f"{n}_{i}" for i in range(v.ndim - 2))), v)
        for n, v in values.items()
    }
    draws = xr.Dataset(arrays)
    numpyro_, stan = (ob.log_density(target, draws, engine=e) for e in ("numpyro", "stanli"))
    gap = stan - numpyro_
    np.testing.assert_allclose(gap, float(gap[0, 0]), rtol=0, atol=1e-8)


PROGRAM = """
data { int<lower=1> n; vector[n] x; int<lower=1> m; vector[m] x_new; }
parameters { vector[2] beta; real<lower=0> sigma; }
transformed parameters { real slope = beta[2]; }
model { beta ~ normal(0, 1); sigma ~ normal(0, 1); x ~ normal(beta[1], sigma); }
generated quantities {
  vector[m] mean_new = beta[1] + beta[2] * x_new;
  array[m] real y_new = normal_rng(mean_new, sigma);
}
"""
DATA = {"n": 3, "x": [0.1, 0.4, -0.2], "m": 2, "x_new": [1.0, 2.0]}


@pytest.fixture
def line() -> ob.Target:
    return ob.stan_program(PROGRAM, DATA, dims={"mean_new": ("place",)})


@pytest.fixture
def line_draws(rng) -> xr.Dataset:
    beta, sigma = rng.normal(size=(2, 5, 2)), rng.uniform(0.5, 2, size=(2, 5))
    dims = ("chain", "draw")
    return xr.Dataset({"beta": ((*dims, "part"), beta), "sigma": (dims, sigma)})


def test_quantities_follow_from_the_draws(line, line_draws):
    found = ob.generated_quantities(line, line_draws, seed=1)
    beta = line_draws["beta"].values
    np.testing.assert_allclose(found["slope"], beta[..., 1], rtol=1e-12)
    want = beta[..., :1] + beta[..., 1:] * np.array([1.0, 2.0])
    np.testing.assert_allclose(found["mean_new"], want, rtol=1e-12)
    assert found["mean_new"].dims == ("chain", "draw", "place")
    assert set(found) == {"slope", "mean_new", "y_new"}


def test_new_data_replace_old_and_random_numbers_follow_the_seed(line, line_draws):
    new = {"m": 3, "x_new": [0.0, -1.0, 5.0]}
    one, again, other = (ob.generated_quantities(line, line_draws, new, seed=s) for s in (1, 1, 2))
    assert one["y_new"].shape == (2, 5, 3)
    np.testing.assert_array_equal(one["y_new"], again["y_new"])
    assert not np.isclose(one["y_new"], other["y_new"]).any()
    errors = (one["y_new"] - one["mean_new"].values) / line_draws["sigma"]
    assert len(np.unique(errors)) == errors.size
