"""Posteriors of runs: groups next to the draws, symmetries that are searched, methods and engines."""

import json
from functools import partial

import arviz_plots
import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.infer import log_likelihood
from scipy.special import log_softmax
from scipy.stats import norm

import onebasin as ob
from onebasin.base.errors import ModelDataError
from onebasin.inference.runs import run as run_module
from onebasin.inference.runs.groups_numpyro import Sites
from onebasin.inference.runs.posterior import Origin, build, origin_of
from onebasin.posteriors.pointwise import network_groups
from onebasin.posteriors.view import GENERATED, TRANSFORMED, as_view

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 2))
REGRESSION = ob.networks.BayesianNetwork(ob.networks.Network(2, (2,), 1, activation="tanh"))
CLASSES = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (2,), 3, activation="tanh"), likelihood=ob.networks.Categorical()
)
NUMBERS = REGRESSION.condition(X, X[:, 0])
LABELS = CLASSES.condition(X, RNG.integers(0, 3, 12))


def drawn(model: ob.networks.BayesianNetwork, num: int = 40) -> dict[str, np.ndarray]:
    """Weights, and the noise where it is inferred."""
    draws = {n: RNG.normal(size=(2, num, *shape)) for n, shape in model.network.shapes.items()}
    return draws if model.is_classifier else {**draws, "sigma": RNG.uniform(0.2, 2, (2, num))}


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_takes_what_is_saved(shared, tmp_path):
    chains = shared.load("network")
    for tree in (chains, ob.approximations.fit_gaussian(chains).sample(60, seed=1)):
        again = ob.open_posterior(ob.save(tree, tmp_path / "run.nc", force=True))
        assert len(arviz_stats.summary(again)) > 1
        assert np.isfinite(arviz_stats.loo(again).elpd)
        arviz_plots.plot_ppc_dist(again, backend="none", num_samples=30)


def test_numbers_of_a_network(monkeypatch):
    draws = drawn(REGRESSION)
    here = partial(network_groups, REGRESSION, draws, NUMBERS.x, NUMBERS.y, seed=1, limit_mb=1)
    found = here()
    output = ob.networks.predict(REGRESSION, draws, X)[..., 0]
    sigma = draws["sigma"][..., None]
    terms = found["log_likelihood"].to_dataset()["y"]
    np.testing.assert_allclose(terms, norm.logpdf(NUMBERS.y[:, 0], output, sigma), rtol=1e-5)
    assert terms.dims == ("chain", "draw", "obs")
    replicated = found["posterior_predictive"].to_dataset()["y"]
    assert replicated.dims == ("chain", "draw", "obs", "out")
    standard = (replicated.values[..., 0] - output) / sigma
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)
    monkeypatch.setattr("onebasin.posteriors.pointwise.BLOCK", 12 * 7)
    by_blocks = here()["log_likelihood"].values["y"]
    np.testing.assert_allclose(by_blocks, terms, rtol=1e-5)


def test_labels_of_a_network():
    draws = drawn(CLASSES)
    groups = network_groups(CLASSES, draws, LABELS.x, LABELS.y, seed=1, limit_mb=1)
    logs = log_softmax(ob.networks.predict(CLASSES, draws, X), axis=-1)
    terms = logs[..., np.arange(12), LABELS.y]
    found = groups["log_likelihood"].values["y"]
    np.testing.assert_allclose(found, terms, rtol=1e-5, atol=1e-7)
    replicated = groups["posterior_predictive"].values["y"]
    assert replicated.dtype == np.int16
    expected = np.exp(terms)
    error = np.sqrt((expected * (1 - expected)).sum()) / expected.size
    assert abs((replicated == LABELS.y).mean() - expected.mean()) < 5 * error


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
        ({"sigma": SIGMA}, r"The model 'schools' needs num_schools as data; got sig"),
        (DATA | {"z": 1}, r"`data` contains z, but the model 'schools' takes only nu"),
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


KINDS = {"lprior": TRANSFORMED, "log_lik": GENERATED, "y_rep": GENERATED, "y_hat": GENERATED}
SHAPES = {"mu": (2,), "lprior": (), "log_lik": (3,), "y_rep": (3,), "y_hat": (3,)}


def posterior(tmp_path, **how):
    path = tmp_path / "any.stan"
    path.write_text("")
    data = {"N": 3, "y": [1.0, 2, 3], "x": [[1.0, 2], [3, 4], [5, 6]], "pair": {"1": 0}}
    target = ob.stan_program(path, data, **how)
    rng = np.random.default_rng(1)
    draws = {name: rng.normal(size=(2, 10, *shape)) for name, shape in SHAPES.items()}
    origin = Origin(kinds=KINDS, dims=target.dims)
    return build(target, draws, {}, {"engine": "stan", "seed": 1}, origin=origin), draws


def test_quantities_go_to_their_groups(tmp_path):
    tree, draws = posterior(tmp_path)
    assert set(tree["posterior"].data_vars) == {"mu", "y_hat"}
    assert set(tree["constant_data"].data_vars) == {"N", "x"}
    for group, name, own in (
        ("log_likelihood", "y", "log_lik"),
        ("posterior_predictive", "y", "y_rep"),
        ("log_prior", "lprior", "lprior"),
    ):
        assert set(tree[group].data_vars) == {name}
        np.testing.assert_array_equal(tree[group][name], draws[own])
    np.testing.assert_array_equal(tree["observed_data"]["y"], [1, 2, 3])
    assert tree["log_likelihood"]["y"].dims[2:] == tree["observed_data"]["y"].dims == ("y_dim_0",)


def test_axes_of_quantities_are_those_of_the_data(tmp_path, caplog):
    labels = {"place": ["a", "b", "c"]}
    tree, _ = posterior(tmp_path, dims={"y_rep": ("place",)}, coords=labels)
    for group in ("log_likelihood", "posterior_predictive", "observed_data"):
        assert tree[group]["y"].dims[-1] == "place"
        assert list(tree[group]["place"].values) == ["a", "b", "c"]
    # Labels that do not fit are left out with a notice.
    tree, _ = posterior(tmp_path, dims={"mu": ("side",)}, coords={"side": ["left"]})
    assert "side" not in tree["posterior"].coords or len(tree["posterior"]["side"]) == 2
    assert "`coords` has 1 labels for side, which has length 2" in caplog.text


def test_what_a_declared_symmetry_moves_stays(tmp_path):
    block = ob.Exchangeable({"mu": 0, "log_lik": 0})
    tree, _ = posterior(tmp_path, symmetry=(block,))
    assert "log_lik" in tree["posterior"]
    assert "log_likelihood" not in tree.children
    (tmp_path / "any.stan").write_text("")  # without data
    target = ob.stan_program(tmp_path / "any.stan")
    draws = {"mu": np.zeros((1, 4))}
    tree = build(target, draws, {}, {"engine": "stan"}, origin=Origin(kinds={}))
    assert set(tree.children) == {"posterior", "sample_stats"}


MIXTURE = """
data { int N; vector[N] y; }
parameters { vector[2] mu; simplex[2] w; }
model {
  mu ~ normal(0, 5);
  for (n in 1 : N) target += log_mix(w[1], normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1));
}
generated quantities { vector[2] twice = 2 * mu; }
"""
SEEN = [*np.linspace(-4, -2, 12), *np.linspace(2, 4, 8)]
SHORT = {"seed": 1, "chains": 2, "warmup": 100, "draws": 50, "progress": False}


@pytest.fixture(scope="module")
def mixture():
    return ob.stan_program(MIXTURE, {"N": len(SEEN), "y": SEEN}, name="mixture")


def test_only_declared_integers_of_a_stan_program_are_stored_as_integers():
    program = """
    parameters { real mu; }
    model { mu ~ normal(0, 1); }
    generated quantities { array[2] int<lower=0> count = poisson_rng({2, 3}); real one = 1; }
    """
    drawn = ob.nuts(ob.stan_program(program), symmetry=False, **SHORT)["posterior"]
    assert drawn["count"].dtype == np.int64
    assert drawn["one"].dtype == drawn["mu"].dtype == np.float64


@pytest.mark.finds_symmetry
def test_the_symmetry_is_found_tried_at_draws_and_changes_none_of_them(mixture, caplog):
    found = ob.nuts(mixture, **SHORT)
    view = as_view(found)
    assert [set(block.variables) for block in view.declared_symmetry] == [{"mu", "w", "twice"}]
    assert view.symmetry_evidence.draws > 0
    assert view.symmetry_evidence.holds
    assert json.loads(found.attrs["symmetry_found"])["exchangeable"] == ["mu,w"]
    assert [line for line in caplog.messages if "mu,w" in line] == ["Found: mu,w."]
    without = ob.nuts(mixture, symmetry=False, **SHORT)
    assert as_view(without).declared_symmetry == ()
    assert "symmetry_found" not in without.attrs
    for name in ("mu", "w"):
        np.testing.assert_array_equal(found["posterior"][name], without["posterior"][name])


@pytest.mark.finds_symmetry
def test_draws_of_a_fit_at_several_optima_are_aligned(mixture):
    for how in ({}, {"symmetry": False}):  # where nothing is recorded, the draws show it
        fit = ob.pathfinder(mixture, seed=3, progress=False, **how)
        means = fit["posterior"]["mu"].mean(("chain", "draw"))
        assert abs(float(means[0] - means[1])) < 5
        assert ob.diagnose(fit).verdict == "aligned"
        aligned = ob.align(fit).posterior["posterior"]["mu"].mean(("chain", "draw"))
        np.testing.assert_allclose(np.sort(aligned), (-3, 3), atol=0.2)


@pytest.mark.finds_symmetry
def test_what_is_declared_and_what_is_no_posterior_is_not_searched(mixture, monkeypatch):
    def unwanted(*_, **__):
        raise AssertionError("searched")

    monkeypatch.setattr(run_module, "found_in", unwanted)
    ob.nuts(ob.stan_program(MIXTURE, {"N": len(SEEN), "y": SEEN}, symmetry="mu,w"), **SHORT)
    ob.optimize(mixture, seed=1, progress=False)


@pytest.mark.finds_symmetry
def test_a_search_that_fails_breaks_no_run(mixture, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("the library is\nbroken")

    monkeypatch.setattr("onebasin.inference.symmetries.find._searched", broken)
    assert ob.nuts(mixture, **SHORT).attrs["symmetry"] == "[]"
    assert "the search for symmetries failed: the library is" in caplog.messages


T = np.linspace(0.0, 1.0, 6)
INPUTS = np.ones((12, 3))


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
    _observe(INPUTS @ (z * local * tau), _positive("sigma"))


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
    _observe(_normal("alpha") + INPUTS @ _normal("beta", 3, scale=2.5), _positive("sigma"))


def network():
    hidden = jnp.tanh(INPUTS @ _normal("w1", 3, 4) + _normal("b1", 4)[None])
    _observe(hidden @ _normal("w2", 4, 4) @ jnp.ones(4), _positive("sigma"))


def growth():
    _observe(_positive("size") * jnp.exp(-_normal("rate") * T) / (1 + _positive("half")))


TOPS = {
    **{centred: "mu tau", not_centred: "mu tau sigma", correlated: "scales cholesky"},
    **{horseshoe: "tau sigma", gaussian_process: "length sd", loop: "step rho"},
    **{answers: "slope place", factors: "loadings", regression: "alpha beta sigma"},
    **{network: "w1 b1 w2 sigma", growth: "size rate half"},
}


@pytest.mark.parametrize("model", TOPS)
def test_latent_variables_of_a_hierarchy_are_below_the_top(model):
    assert set(top_of(model)) == set(TOPS[model].split())


def top_of(model):
    sites = Sites.of(ob.numpyro_model(model))

    def values():
        trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace()
        return {name: trace[name]["value"] for name in sites.latent}

    return json.loads(sites.log_prior_attributes(jax.eval_shape(values))["top_level"])
