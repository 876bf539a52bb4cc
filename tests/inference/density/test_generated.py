"""Generated quantities at stored draws: those of the run, predictions for new data, and what is refused."""

import numpy as np
import pytest
import xarray as xr

import onebasin as ob

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
def target(tmp_path) -> ob.Target:
    path = tmp_path / "line.stan"
    path.write_text(PROGRAM)
    return ob.stan_program(path, DATA, dims={"mean_new": ("place",)})


@pytest.fixture
def draws(rng) -> xr.Dataset:
    beta, sigma = rng.normal(size=(2, 5, 2)), rng.uniform(0.5, 2, size=(2, 5))
    dims = ("chain", "draw")
    return xr.Dataset({"beta": ((*dims, "part"), beta), "sigma": (dims, sigma)})


def test_quantities_follow_from_the_draws(target, draws):
    found = ob.generated_quantities(target, draws, seed=1)
    beta = draws["beta"].values
    np.testing.assert_allclose(found["slope"], beta[..., 1], rtol=1e-12)
    want = beta[..., :1] + beta[..., 1:] * np.array([1.0, 2.0])
    np.testing.assert_allclose(found["mean_new"], want, rtol=1e-12)
    assert found["mean_new"].dims == ("chain", "draw", "place")
    assert set(found) == {"slope", "mean_new", "y_new"}


def test_new_data_replace_old_and_random_numbers_follow_the_seed(target, draws):
    new = {"m": 3, "x_new": [0.0, -1.0, 5.0]}
    one, again, other = (ob.generated_quantities(target, draws, new, seed=s) for s in (1, 1, 2))
    assert one["y_new"].shape == (2, 5, 3)
    np.testing.assert_array_equal(one["y_new"], again["y_new"])
    assert not np.isclose(one["y_new"], other["y_new"]).any()
    errors = (one["y_new"] - one["mean_new"].values) / draws["sigma"]
    assert len(np.unique(errors)) == errors.size


def test_draws_of_another_program_are_refused(target, draws):
    with pytest.raises(ValueError, match="`draws` lack the parameter sigma"):
        ob.generated_quantities(target, draws[["beta"]])
    with pytest.raises(ValueError, match=r"have beta of shape \(1,\), but .* declares \(2,\)"):
        ob.generated_quantities(target, draws.isel(part=slice(1)))
