"""NumPyro models with arguments and plates: axes, data, log likelihoods and predictions of their own sites."""

import json

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist
from numpyro.infer import log_likelihood
from scipy.stats import norm

import onebasin as ob
from onebasin.base.errors import ModelDataError
from onebasin.inference.runs.origin import origin_of
from onebasin.inference.runs.posterior import build

Y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
SIGMA = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def schools(num_schools, sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", num_schools):
        z = numpyro.sample("z", dist.Normal())
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("effect", dist.Normal(theta, sigma), obs=y)


DATA = {"num_schools": 8, "sigma": SIGMA, "y": Y}


def put_together(target: ob.Target, draws: dict, **how) -> xr.DataTree:
    """A posterior of draws (chain, draw, ...) that are given."""
    origin = origin_of(target, "numpyro")
    return build(target, draws, {}, {"engine": "numpyro", "seed": 3}, origin=origin, **how)


@pytest.fixture(scope="module")
def target() -> ob.Target:
    return ob.numpyro_model(schools, DATA, coords={"school": list("abcdefgh")})


@pytest.fixture(scope="module")
def tree(target) -> xr.DataTree:
    """Of draws that are given."""
    rng = np.random.default_rng(3)
    draws = {n: rng.normal(size=(2, 120, *s)) for n, s in (("mu", ()), ("tau", ()), ("z", (8,)))}
    draws["tau"] = np.exp(draws["tau"])
    draws["theta"] = draws["mu"][..., None] + draws["tau"][..., None] * draws["z"]
    return put_together(target, draws)


def test_plates_are_axes_and_what_a_site_observes_is_observed(tree):
    for name in ("z", "theta"):
        assert tree["posterior"][name].dims == ("chain", "draw", "school")
    for group in ("log_likelihood", "posterior_predictive"):
        assert tree[group]["effect"].dims == ("chain", "draw", "school")
        assert "".join(tree[group]["school"].values) == "abcdefgh"
    assert tree["observed_data"]["effect"].dims == ("school",)
    np.testing.assert_array_equal(tree["observed_data"]["effect"], Y)
    assert set(tree["constant_data"].data_vars) == {"num_schools", "sigma"}
    np.testing.assert_array_equal(tree["constant_data"]["sigma"], SIGMA)


def test_log_likelihood_and_prior_are_those_of_the_model(tree):
    theta = tree["posterior"]["theta"].values
    terms = norm.logpdf(Y, theta, SIGMA)
    np.testing.assert_allclose(tree["log_likelihood"]["effect"], terms, rtol=1e-10)
    latent = {n: tree["posterior"][n].values for n in ("mu", "tau", "z")}
    theirs = log_likelihood(schools, latent, batch_ndims=2, **DATA)["effect"]
    np.testing.assert_allclose(tree["log_likelihood"]["effect"], theirs, rtol=1e-5)
    prior = norm.logpdf(latent["z"]).sum(axis=-1)
    np.testing.assert_allclose(tree["log_prior"]["z"], prior, rtol=1e-10)


def test_predictions_are_of_their_draw(tree):
    predicted = tree["posterior_predictive"]["effect"]
    assert predicted.dtype == np.float32
    standard = (predicted.values - tree["posterior"]["theta"].values) / SIGMA
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)
    assert len(np.unique(standard)) > 0.99 * standard.size


def test_the_seed_decides_predictions_and_a_limit_thins_them_without_changing_them(target, tree):
    draws = {str(name): values.values for name, values in tree["posterior"].items()}
    thinned = put_together(target, draws, predictive_mb=0.0145)
    predicted = thinned["posterior_predictive"]
    assert predicted.attrs["every"] == thinned["log_likelihood"].attrs["every"] == 2
    np.testing.assert_array_equal(predicted["draw"], range(0, 120, 2))
    whole = tree["posterior_predictive"]["effect"].sel(draw=predicted["draw"])
    np.testing.assert_array_equal(predicted["effect"], whole)
    for limit, why in ((0, "predictive_mb=0"), (0.002, "100 draws of")):
        without = put_together(target, draws, predictive_mb=limit)
        assert not {"log_likelihood", "posterior_predictive"} & set(without.children)
        assert why in json.loads(without.attrs["left_out"])["log_likelihood"]
        assert "effect" in without["observed_data"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"sigma": SIGMA},
            r"`data` lacks num_schools, which the model schools takes; it holds sig",
        ),
        (
            DATA | {"z": 1},
            r"`data` holds z, which is no argument of the model schools; it takes nu",
        ),
        ("nowhere.json", r"`data` is nowhere.json, which does not exist"),
    ],
)
def test_data_that_are_not_the_models_are_refused(data, message):
    with pytest.raises(ModelDataError, match=message):
        ob.numpyro_model(schools, data)


def nested():
    """Two plates with a gap, an event axis, a plate called like an axis of all, a factor, several observations."""
    with numpyro.plate("rater", 3, dim=-3):
        numpyro.sample("gap", dist.Normal())
        with numpyro.plate("item", 2, dim=-1):
            numpyro.sample("a", dist.Normal().expand([4]).to_event(1), infer={"event_dims": ["k"]})
            numpyro.deterministic("b", jnp.ones((3, 1, 2, 5)))
    with numpyro.plate("draw", 2):
        numpyro.sample("other", dist.Normal())
    numpyro.factor("nothing", jnp.zeros(()))
    numpyro.sample("counts", dist.Poisson(2.0), obs=np.array([1, 2, 3]))
    numpyro.sample("pairs", dist.Normal(jnp.zeros((4, 2)), 1).to_event(1), obs=np.ones((4, 2)))


def test_nested_plates_and_several_observed_sites():
    shapes = {"gap": (3, 1, 1), "a": (3, 1, 2, 4), "b": (3, 1, 2, 5), "other": (2,)}
    draws = {name: np.zeros((1, 120, *shape)) for name, shape in shapes.items()}
    fitted = put_together(ob.Target("nested", numpyro_model=nested), draws)
    dims = {n: v.dims[2:] for n, v in fitted["posterior"].data_vars.items()}
    assert dims["gap"] == ("rater", "gap_dim_1", "gap_dim_2")
    assert dims["a"] == ("rater", "a_dim_1", "item", "k")
    assert dims["b"] == ("rater", "b_dim_1", "item", "b_dim_3")
    assert dims["other"] == ("other_dim_0",)
    assert set(fitted["observed_data"].data_vars) == {"counts", "pairs"}
    assert fitted["log_likelihood"]["counts"].shape == (1, 120, 3)
    assert fitted["log_likelihood"]["pairs"].shape == (1, 120, 4)
    assert fitted["posterior_predictive"]["pairs"].shape == (1, 120, 4, 2)
    assert fitted["posterior_predictive"]["counts"].dtype.kind == "i"


def test_draws_are_not_lost_over_a_model_that_cannot_predict(caplog):
    class Odd(dist.Normal):
        def sample(self, key, sample_shape=()):
            raise RuntimeError("cannot be drawn")

    def model():
        mu = numpyro.sample("mu", dist.Normal())
        numpyro.sample("y", Odd(mu, 1), obs=np.arange(3.0))

    fit = put_together(ob.Target("odd", numpyro_model=model), {"mu": np.zeros((1, 20))})
    assert fit["posterior"].sizes["draw"] == 20
    assert "cannot be drawn" in json.loads(fit.attrs["left_out"])["posterior_predictive"]
    assert "'odd' has no group posterior_predictive: RuntimeError: cannot be drawn" in caplog.text
    assert fit["log_likelihood"]["y"].shape == (1, 20, 3)
