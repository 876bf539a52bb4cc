"""Leave-one-out: ArviZ's numbers, from the group or from the model, whole or in blocks; and exact values."""

import logging

import arviz_stats
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import norm

import onebasin as ob
from onebasin.posteriors import leave_one_out

SD, COUNT = 0.5, 12
Y = np.append(np.random.default_rng(1).normal(scale=SD, size=COUNT - 1), 2.4)
"""Normal data about a mean that is inferred, with an outlier at the end."""
PROGRAM = """
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
    "numpyro": lambda: ob.numpyro_model(mean, {"y": Y}),
    "stan": lambda: ob.stan_program(PROGRAM + QUANTITIES, {"n": COUNT, "y": Y}),
}


def conjugate(y):
    """Mean and standard deviation of the posterior of `mu`."""
    precision = 1 + len(y) / SD**2
    return y.sum() / SD**2 / precision, precision**-0.5


@pytest.fixture
def run(rng):
    """Independent draws of the posterior, with the log likelihoods as SciPy has them."""
    centre, sd = conjugate(Y)
    mu = centre + sd * rng.normal(size=(2, 400))
    terms = norm.logpdf(Y, mu[..., None], SD)
    return {"posterior": {"mu": mu}, "log_likelihood": {"y": terms}, "observed_data": {"y": Y}}


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
    y = np.append(Y[:-1], 8.0)
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
        (without_terms, None, "no group `log_likelihood`, and `posterior` is of an unknown model"),
        (without_terms, "bare", "does not compute the log likelihood of each observation: add"),
        (lambda run: without_terms(run) | {"posterior": {"nu": np.zeros((2, 400))}}, "numpyro", "lacks mu"),
        (lambda run: run, "scaled", "`model` is not the model of the recorded log likelihoods"),
        (lambda run: run | {"log_likelihood": {"y": np.zeros((2, 400))}}, None, "one number per draw"),
        (lambda run: run | {"log_likelihood": {"y": np.zeros((2, 400, 3))}}, None, "all observations are masked"),
        (lambda run: run | {"log_likelihood": {"y": np.append(np.ones((2, 400, 3)), np.full((2, 400, 1), np.nan), 2)}},
         None, r"not finite in some draws for `y\[3\]`"),
        (
            lambda run: run | {"log_likelihood": dict.fromkeys("ab", np.zeros((2, 400, 3)))},
            None,
            "`var_name` is missing; there are log likelihoods of a, b",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_left_out_is_refused(run, change, model, said):
    models = {
        "bare": lambda: ob.stan_program(PROGRAM, {"n": COUNT, "y": Y}),
        "scaled": lambda: ob.numpyro_model(mean, {"y": 2 * Y}),
        **MODELS,
    }
    given = None if model is None else models[model]()
    with pytest.raises(ValueError, match=said):
        ob.loo(change(run), model=given)
