"""Predictions at new data, prior draws, and leave-one-out cross-validation."""

import json
import logging

import arviz_stats
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm

import onebasin as ob
from onebasin.base.errors import OnebasinError
from onebasin.cli.main import main
from onebasin.models.symmetry.blocks import as_symmetry, to_json
from onebasin.posteriors import leave_one_out

from ...shared_posteriors import regression

PROGRAM = """
data { int<lower=1> n; vector[n] x; vector[n] y; }
parameters { real a; real b; }
transformed parameters { vector[n] mu = a + b * x; real twice = 2 * a; }
model { a ~ normal(0, 1); b ~ normal(0, 1); y ~ normal(mu, 1e-3); }
generated quantities {
  array[n] real y_rep = normal_rng(mu, 1e-3);
  vector[n] log_lik;
  for (i in 1:n) log_lik[i] = normal_lpdf(y[i] | mu[i], 1e-3);
}
"""
X, Y = np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0, 1.0])
NEW = np.array([3.0, -1.0])


def line(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    numpyro.deterministic("twice", 2 * a)
    with numpyro.plate("obs", len(x)):
        mu = numpyro.deterministic("mu", a + b * x)
        numpyro.sample("y", dist.Normal(mu, 1e-3), obs=y)


def offset(rate, y):
    numpyro.sample("y", dist.Normal(numpyro.sample("a", dist.Normal(0, 1)), rate), obs=y)


TARGETS = {
    "numpyro": lambda: ob.numpyro_model(line, {"x": X, "y": Y}),
    "function": lambda: line,
    "stan": lambda: ob.stan_program(PROGRAM, {"n": 3, "x": X, "y": Y}),
}


def levels(x):
    mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
    share = numpyro.deterministic("share", jnp.exp(mu - mu.max()))
    numpyro.deterministic("at", mu * x)
    numpyro.deterministic("total", share.sum() + mu.sum() * x)


LEVELS = """
data { real x; } parameters { vector[2] mu; } transformed parameters { vector[2] share = exp(mu - max(mu)); }
model { mu ~ normal(0, 3); } generated quantities { vector[2] at = mu * x; real total = sum(share) + sum(mu) * x; }
"""


@pytest.fixture
def draws(rng):
    a = rng.normal(size=(2, 30))
    return {"a": a, "b": rng.normal(size=(2, 30)), "twice": 2 * a}


@pytest.mark.parametrize("name", list(TARGETS))
def test_every_engine_predicts_the_same_quantities(draws, name):
    new = {"x": NEW} if name != "stan" else {"n": 2, "x": NEW, "y": [0, 0]}
    found = ob.predict(draws, new, model=TARGETS[name](), seed=1)
    mu = draws["a"][..., None] + draws["b"][..., None] * NEW
    held = found.predictions
    assert set(held) == {"mu", "y"}, "what the new data leave as it was is no prediction"
    np.testing.assert_allclose(held["mu"], mu, atol=1e-6)
    errors = (held["y"] - mu).values / 1e-3
    assert abs(errors.mean()) < 5 / np.sqrt(errors.size)
    assert abs(errors.std() - 1) < 5 / np.sqrt(2 * errors.size)
    assert held["y"].dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(found.predictions_constant_data["x"], NEW)
    assert {"posterior", "predictions"} <= set(found.tree.children)


def test_at_the_data_of_the_run_predictions_are_its_own(shared):
    run = shared.load("regression").isel(draw=slice(40))
    x = run.constant_data["x"].values
    found = ob.predict(run, {"x": x}, model=regression, seed=1).predictions["y"]
    np.testing.assert_array_equal(found, run.posterior_predictive["y"])
    assert found.dims == ("chain", "draw", "obs")
    assert not np.isclose(found, ob.predict(run, {"x": x}, model=regression).predictions["y"]).any()


def test_a_network_predicts_with_noise_by_name_and_without_as_an_array(shared):
    run = shared.load("network")
    x = run.constant_data["x"].values
    found = ob.predict(run, {"x": x}, seed=1).predictions["y"]
    np.testing.assert_array_equal(found, run.posterior_predictive["y"])
    assert found.dims == ("chain", "draw", "obs", "out")
    outputs = ob.predict(run, x)
    np.testing.assert_allclose((found - outputs).std(), 0.3, rtol=0.05)


def test_a_stan_program_is_found_in_the_record(tmp_path):
    run = ob.pathfinder(TARGETS["stan"](), draws=20, seed=1)
    path = ob.save(run, tmp_path / "run.nc")
    new = {"n": 1, "x": [2.0], "y": [0.0]}
    (tmp_path / "new.json").write_text(json.dumps(new))
    found = ob.predict(path, tmp_path / "new.json", model="recorded")
    want = run.posterior["a"] + 2 * run.posterior["b"]
    np.testing.assert_allclose(found.predictions["mu"][..., 0], want, rtol=1e-6)
    run.attrs["command"] = "onebasin sample line.stan line.json"
    ob.save(run, path, force=True)
    with pytest.raises(
        OnebasinError,
        match=r"command does not lead to a file .* with the recorded text.* 'recorded' if",
    ):
        ob.predict(path, new)
    (tmp_path / "line.stan").write_text(run.attrs["program"])  # next to the posterior
    xr.testing.assert_equal(ob.predict(path, new).predictions, found.predictions)
    (tmp_path / "line.stan").write_text(run.attrs["program"] + "// changed")
    with pytest.raises(OnebasinError, match="with the recorded text"):
        ob.predict(path, new)
    run.attrs["data_sha256"] = "of others"
    with pytest.raises(OnebasinError, match=r"the recorded data of .* are missing"):
        ob.predict(run, new, model="recorded")


@pytest.mark.parametrize(
    "new, model, said",
    [
        ({"z": 1}, "numpyro", "`new_data` contains z, but the model 'line' takes only"),
        ({"x": 1.0}, "numpyro", "`new_data` does not fit the model 'line'. With x, without y"),
        ([1.0], "numpyro", "`new_data` must be a JSON file or a mapping"),
        ("no.json", "numpyro", "no.json, which does not exist"),
        ({"z": 1}, "stan", "contains z, but the program .* declares only these data: n, x, y"),
        ({"n": 2}, "stan", r"mismatch in dimension .*variable name=x.*Unchanged data: x, y"),
        ({"x": [[1, 2], [3]]}, "stan", "rows of different lengths"),
        ({"x": X}, None, r"does not record its model\. Give a NumPyro"),
        (
            {"x": X},
            "offset",
            r"`model` needs the argument\(s\) rate, y, which the posterior does not contain",
        ),
        ({"x": X}, "number", "`model` must be a target, .*; got int"),
        ({"x": X}, "bare", "the model 'bare' takes no arguments"),
    ],
)
def test_data_and_models_that_do_not_fit_are_refused_in_a_sentence(draws, new, model, said):
    bare = ob.Target("bare", numpyro_model=lambda: line(X, Y))
    models = {"offset": lambda: offset, "number": lambda: 3, "bare": lambda: bare, **TARGETS}
    given = None if model is None else models[model]()
    with pytest.raises(OnebasinError, match=said) as caught:
        ob.predict(draws, new, model=given)
    assert "\n" not in str(caught.value)


def test_intervals_are_those_of_the_draws_and_drawn_over_an_input(draws):
    found = ob.predict(draws, {"x": NEW}, model=line, seed=1)
    table = found.intervals(0.5)
    assert list(table.columns) == ["mean", "sd", "25%", "median", "75%"]
    flat = found.predictions["mu"].values[..., 1].ravel()
    want = [flat.mean(), flat.std(ddof=1), *np.quantile(flat, [0.25, 0.5, 0.75])]
    np.testing.assert_allclose(table.loc["mu[1]"], want[:2] + want[2:], rtol=1e-12)
    assert "Predictions of `mu`, `y`" in repr(found)
    with pytest.raises(ValueError, match="`prob` must be above 0 and below 1; got 1"):
        found.intervals(1)
    over = ob.plot.predictions(found, var_name="mu").alt
    assert over.startswith("mu over x. ") and "x −1.00" in over and "x 3.00" in over
    found.tree["predictions_constant_data"] = found.predictions_constant_data.drop_vars("x")
    assert "mu[0]" in ob.plot.predictions(found, var_name="mu").alt  # in rows
    with pytest.raises(ValueError, match=r"got 3 value\(s\) for 2 prediction\(s\)"):
        ob.plot.predictions(found, x=X)
    for name in ("mu", "y"):
        found.tree["predictions"][name].values[..., 0] = np.nan
    assert f"At {flat.size} of {flat.size} draws a prediction is not finite" in repr(found)
    assert found.intervals().loc["mu[0]"].isna().all()


def test_prior_draws_follow_the_prior_and_go_next_to_the_posterior(draws):
    found = ob.prior(TARGETS["numpyro"](), draws=2000, seed=1)
    held = found["prior"].to_dataset()
    assert set(held) == {"a", "b", "mu", "twice"} and held.sizes["draw"] == 2000
    assert abs(float(held["a"].mean())) < 5 / np.sqrt(2000)
    np.testing.assert_allclose(float(held["a"].std()), 1, atol=5 / np.sqrt(4000))
    mu = held["a"].values[..., None] + held["b"].values[..., None] * X
    np.testing.assert_allclose(held["mu"], mu, atol=1e-12)
    np.testing.assert_allclose(found["prior_predictive"]["y"], mu, atol=6e-3)
    np.testing.assert_array_equal(found["observed_data"]["y"], Y)
    alt = ob.plot.prior(found, draws, var_names="a").alt
    assert alt.startswith("Prior and posterior densities. Standard deviations: a ")


def test_the_command_shows_intervals_and_writes_the_groups(tmp_path, draws, capsys):
    (tmp_path / "new.json").write_text(json.dumps({"x": NEW.tolist()}))
    (tmp_path / "model.py").write_text(
        "import numpyro\nimport numpyro.distributions as dist\n\n\n"
        "def line(x, y=None):\n"
        "    mean = numpyro.sample('a', dist.Normal()) + numpyro.sample('b', dist.Normal()) * x\n"
        "    numpyro.sample('y', dist.Normal(mean, 1e-3), obs=y)\n"
    )
    chain, draw = np.indices(draws["a"].shape)
    columns = {"chain": chain, "draw": draw, "a": draws["a"], "b": draws["b"]}
    table = pd.DataFrame({n: v.ravel() for n, v in columns.items()})
    table.to_csv(tmp_path / "run.csv")
    ob.save(ob.open_posterior(tmp_path / "run.csv"), tmp_path / "run.nc")
    words = ["predict", str(tmp_path / "run.nc"), str(tmp_path / "new.json")]
    assert main(words) == 1
    assert "as `model` (`--program` on the command line)" in capsys.readouterr().err
    words += ["--program", f"{tmp_path / 'model.py'}:line", "-o", str(tmp_path / "out.nc")]
    assert main([*words, "--json", "--prob", "0.8"]) == 0
    said = json.loads(capsys.readouterr().out)["predictions"]
    want = float(np.mean(draws["a"] + draws["b"] * NEW[0]))
    assert said["y[0]"]["mean"] == pytest.approx(want, abs=1e-3)
    assert set(said["y[0]"]) == {"mean", "sd", "10%", "median", "90%"}
    found = ob.open_posterior(tmp_path / "out.nc")
    assert found["predictions"]["y"].shape == (2, 30, 2)


@pytest.fixture
def switched(rng):
    """Draws of two levels far apart, whose labels differ between chains, with what follows from them."""
    mu = np.stack([rng.normal(m, 0.1, (4, 200)) for m in (-2, 2)], -1)
    mu[[1, 2]] = mu[[1, 2]][..., ::-1]
    share = np.exp(mu - mu.max(axis=-1, keepdims=True))
    names = {"mu": "parameter", "share": "transformed"}
    drawn = {"mu": (("chain", "draw", "k"), mu), "share": (("chain", "draw", "k"), share)}
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(drawn)})
    tree.attrs["kinds"] = json.dumps(names)
    return tree


@pytest.mark.parametrize("name", ["numpyro", "stan"])
def test_draws_are_aligned_before_they_predict(switched, name):
    """As sampled, both levels would be predicted halfway between the two."""
    model = levels if name == "numpyro" else ob.stan_program(LEVELS, {"x": 1.0})
    if name == "stan":  # a declaration that leaves `share` as it was
        switched.attrs["symmetry"] = to_json(as_symmetry("mu"))
    found = ob.predict(switched, {"x": 3.0}, model=model)
    assert found.judged.answer == "aligned" and "aligned draws" in repr(found)
    assert set(found.predictions) == {"at", "total"}, "nothing else follows from the new data"
    means = found.predictions.mean(("chain", "draw"))
    assert sorted(means["at"].values) == pytest.approx([-6, 6], abs=0.1)
    moved = found.tree["posterior"]["mu"]
    np.testing.assert_allclose(moved * 3.0, found.predictions["at"], rtol=1e-5)
    as_sampled = 1 + np.exp(-4) + 3 * switched["posterior"]["mu"].values.sum(axis=-1)
    np.testing.assert_allclose(found.predictions["total"], as_sampled, atol=0.5)
    known = ob.diagnose(switched, align=False)
    again = ob.predict(switched, {"x": 3.0}, model=model, diagnosis=known)
    assert again.judged.answer == "unusable"


def test_predictions_of_an_unusable_posterior_say_so(rng):
    apart = {"a": rng.normal(size=(2, 100)) + np.array([[0], [9]]), "b": rng.normal(size=(2, 100))}
    found = ob.predict(apart, {"x": NEW}, model=line)
    assert found.judged.flag == "bad" and repr(found).splitlines()[1].startswith("Do not use these")


def test_a_model_that_predicts_nothing_is_refused_and_leaves_no_file(tmp_path, draws, capsys):
    file, out = tmp_path / "model.py", tmp_path / "out.nc"
    file.write_text(
        "import numpyro, numpyro.distributions as dist\n"
        "def model(y):\n"
        "    a = numpyro.sample('a', dist.Normal(0, 1))\n"
        "    numpyro.factor('likelihood', dist.Normal(a, 1).log_prob(y).sum())\n"
    )
    run, new = tmp_path / "run.nc", tmp_path / "new.json"
    held = xr.Dataset({"a": (("chain", "draw"), draws["a"])})
    ob.save(xr.DataTree.from_dict({"posterior": held}), run)
    new.write_text('{"y": [1.0, 2.0]}')
    words = ["predict", str(run), str(new), "--program", f"{file}:model", "--out", str(out)]
    for _ in range(2):
        assert main(words) == 1
        assert "has nothing to predict for these new data" in capsys.readouterr().err
    assert not out.exists()


SD, COUNT = 0.5, 12
SEEN = np.append(np.random.default_rng(1).normal(scale=SD, size=COUNT - 1), 2.4)
"""Normal data about a mean that is inferred, with an outlier at the end."""
POINTWISE = """
data { int n; vector[n] y; }
parameters { real mu; }
model { mu ~ normal(0, 1); y ~ normal(mu, 0.5); }
"""
QUANTITIES = "generated quantities { vector[n] log_lik; for (i in 1:n) log_lik[i] = normal_lpdf(y[i] | mu, 0.5); }"


def mean(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with numpyro.plate("obs", COUNT):
        numpyro.sample("y", dist.Normal(mu, SD), obs=y)


MODELS = {
    "numpyro": lambda: ob.numpyro_model(mean, {"y": SEEN}),
    "stan": lambda: ob.stan_program(POINTWISE + QUANTITIES, {"n": COUNT, "y": SEEN}),
}


def conjugate(y):
    """Mean and standard deviation of the posterior of `mu`."""
    precision = 1 + len(y) / SD**2
    return y.sum() / SD**2 / precision, precision**-0.5


@pytest.fixture
def run(rng):
    """Independent draws of the posterior, with the log likelihoods as SciPy has them."""
    centre, sd = conjugate(SEEN)
    mu = centre + sd * rng.normal(size=(2, 400))
    terms = norm.logpdf(SEEN, mu[..., None], SD)
    return {"posterior": {"mu": mu}, "log_likelihood": {"y": terms}, "observed_data": {"y": SEEN}}


def without_terms(run):
    return {name: group for name, group in run.items() if name != "log_likelihood"}


def of_arviz(run, **how):
    from onebasin.posteriors.view import as_view

    return arviz_stats.loo(as_view(run).tree, pointwise=True, **how)


def assert_same(found, want):
    for name in ("elpd", "se", "p", "good_k"):
        assert getattr(found, name) == pytest.approx(getattr(want, name), rel=1e-10), name
    for name in ("elpd_i", "pareto_k"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", ["group", *MODELS])
@pytest.mark.parametrize("blocks", [False, True])
def test_numbers_are_those_of_arviz(run, source, blocks, monkeypatch):
    if blocks:
        monkeypatch.setattr(leave_one_out, "AT_ONCE", 5 * 8 * 800)
    want = of_arviz(run)
    if source == "group":
        assert_same(ob.loo(run), want)
    else:
        found = ob.loo(without_terms(run), model=MODELS[source](), moment_match=False)
        assert_same(found, want)


@pytest.mark.filterwarnings("ignore")
def test_a_network_needs_no_log_likelihood(shared):
    run = shared.load("network")
    want = of_arviz(run)
    del run["log_likelihood"]
    found = ob.loo(run)
    assert found.elpd == pytest.approx(float(want.elpd), rel=1e-10)
    np.testing.assert_allclose(found.elpd_i, want.elpd_i, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_moment_matching_comes_near_the_exact_value_that_psis_misses(rng):
    y = np.append(SEEN[:-1], 8.0)
    centre, sd = conjugate(y)
    mu = centre + sd * rng.normal(size=(2, 400))
    model = ob.numpyro_model(mean, {"y": y})
    plain, matched = (ob.loo({"mu": mu}, model=model, moment_match=on) for on in (False, True))
    left, spread = conjugate(y[:-1])
    exact = norm.logpdf(y[-1], left, np.hypot(spread, SD))
    assert plain.pareto_k[-1] > plain.good_k > matched.pareto_k[-1]
    assert abs(plain.elpd_i[-1] - exact) > 2 * abs(matched.elpd_i[-1] - exact)
    np.testing.assert_array_equal(plain.elpd_i[:-1], matched.elpd_i[:-1])
    assert matched.elpd == pytest.approx(float(matched.elpd_i.sum()))
    assert matched.p - plain.p == pytest.approx(plain.elpd - matched.elpd)


def test_large_pareto_k_is_reported_with_what_to_do(run, caplog):
    run["log_likelihood"]["y"][..., 0] -= 20 * run["posterior"]["mu"] ** 2
    with caplog.at_level(logging.WARNING, "onebasin"):
        ob.loo(run)
    assert "Pareto k is above 0.66 or unknown for 1 of 12 observations (`y[0]`)" in caplog.text
    assert "Give `model`" in caplog.text


def with_columns(run, *columns):
    """Put log likelihoods of observations, each (chain, draw) or a number, in front of those of the run."""
    own = run["log_likelihood"]["y"]
    more = [np.broadcast_to(column, own.shape[:2])[..., None] for column in columns]
    return run | {"log_likelihood": {"y": np.concatenate([*more, own], axis=2)}}


@pytest.mark.filterwarnings("ignore")
def test_masked_observations_are_none_and_constant_ones_have_their_density(run):
    """An observation that is 0 in every draw would count as one, and one that never changes had no estimate at all."""
    plain = ob.loo(run)
    masked = ob.loo(with_columns(run, 0.0, 0.0))
    assert (masked.n_data_points, masked.elpd_i["y_dim_0"].values[0]) == (COUNT, 2)
    assert_same(masked, plain)
    fixed = ob.loo(with_columns(run, -1.25))
    assert fixed.n_data_points == COUNT + 1
    assert fixed.elpd == pytest.approx(plain.elpd - 1.25, rel=1e-12)
    assert (float(fixed.pareto_k[0]), float(fixed.elpd_i[0])) == (0.0, -1.25)
    two = np.where(run["posterior"]["mu"] > np.median(run["posterior"]["mu"]), -1.0, -2.0)
    either = ob.loo(with_columns(run, two))  # the mean of exp(-l) is known
    assert float(either.elpd_i[0]) == pytest.approx(-np.log((np.e + np.e**2) / 2), rel=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_the_verdict_of_the_posterior_comes_first(run):
    """Draws of chains that disagree give an estimate that looks as good as any."""
    good = ob.loo(run)
    assert good.judged.answer == good.answer == "usable"
    apart = run | {"posterior": {"mu": run["posterior"]["mu"] + np.array([[0.0], [9.0]])}}
    bad = ob.loo(apart)
    assert bad.answer == bad.judged.answer == "unusable"
    assert repr(bad).startswith("Do not use these estimates: the posterior is not usable.")
    assert ob.loo(apart, diagnosis=ob.diagnose(run)).answer == good.answer
    found = ob.compare_models({"good": good, "bad": bad})
    assert found.sentences[0].startswith("`bad`: Do not use")


@pytest.mark.parametrize(
    "change, model, said",
    [
        (without_terms, None, "no group `log_likelihood`: `posterior` does not record its model"),
        (without_terms, "bare", "does not compute the log likelihood of each observation. Add"),
        (lambda run: without_terms(run) | {"posterior": {"nu": np.zeros((2, 400))}}, "numpyro", r"lacks .* mu"),
        (lambda run: run, "scaled", "`model` does not match this posterior"),
        (lambda run: run | {"log_likelihood": {"y": np.zeros((2, 400))}}, None, "one number per draw"),
        (lambda run: run | {"log_likelihood": {"y": np.zeros((2, 400, 3))}}, None, "no observation is left"),
        (lambda run: run | {"log_likelihood": {"y": np.append(np.ones((2, 400, 3)), np.full((2, 400, 1), np.nan), 2)}},
         None, r"not finite in some draws for `y\[3\]`"),
        (
            lambda run: run | {"log_likelihood": dict.fromkeys("ab", np.zeros((2, 400, 3)))},
            None,
            r"`var_name` is missing: name one of the log likelihoods \(a, b\)",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_left_out_is_refused(run, change, model, said):
    models = {
        "bare": lambda: ob.stan_program(POINTWISE, {"n": COUNT, "y": SEEN}),
        "scaled": lambda: ob.numpyro_model(mean, {"y": 2 * SEEN}),
        **MODELS,
    }
    given = None if model is None else models[model]()
    with pytest.raises(ValueError, match=said):
        ob.loo(change(run), model=given)
