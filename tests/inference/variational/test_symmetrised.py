"""Symmetrised variational inference: families, layouts, the information and its gradient, gaps and fits."""

import math
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal

from onebasin import Advi, Symmetrised, infer
from onebasin.approximations import mixture_gap
from onebasin.base.errors import InferenceError
from onebasin.inference.variational.engine import TrainingLoop, planned
from onebasin.inference.variational.gaussians import (
    GAUSSIANS,
    GaussianFamily,
    MeanField,
    Parameters,
    layout_of,
)
from onebasin.inference.variational.term import Information, choose_estimator
from onebasin.models import NetworkTarget, Target
from onebasin.models.symmetry.blocks import Exchangeable, Group

from .problems import (
    SPREAD,
    TARGETS,
    TWO_MODES,
    by_sum,
    classification,
    layout,
    mixture,
    regression,
    two_modes,
)


def family_made(name: str, size: int = 5) -> tuple[GaussianFamily, Parameters]:
    """A family with parameters that are nothing special."""
    family = GAUSSIANS[name](size)
    p = family.initial(jnp.zeros(size), 0.5)
    keys = jax.random.split(jax.random.key(0), len(p))
    noise = zip(sorted(p), keys, strict=True)
    return family, {n: p[n] + 0.3 * jax.random.normal(key, p[n].shape) for n, key in noise}


def dense(family: GaussianFamily, p: Parameters) -> multivariate_normal:
    """The normal distribution that `transform` makes, from its derivative by the noise."""
    by_noise = jax.jacobian(lambda eps: family.transform(p, eps[None])[0])
    scale = np.asarray(by_noise(jnp.zeros(family.size)))
    return multivariate_normal(np.asarray(p["loc"]), scale @ scale.T)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_a_family_is_the_normal_distribution_of_its_transform(name):
    """Log density and entropy, what it starts as, and what is kept of it and restored."""
    family, p = family_made(name)
    points = np.random.default_rng(0).normal(size=(5, family.size))
    normal, found = dense(family, p), family.log_density(p, jnp.asarray(points))
    np.testing.assert_allclose(found, normal.logpdf(points), rtol=1e-10)
    assert float(family.entropy(p)) == pytest.approx(normal.entropy(), rel=1e-10)
    again = family.restore({n: v for n, (_, v) in family.describe(p).items()})
    np.testing.assert_allclose(family.log_density(again, jnp.asarray(points)), found, rtol=1e-10)
    start = family.initial(jnp.zeros(family.size), 0.1)
    np.testing.assert_allclose(dense(family, start).cov, 0.01 * np.eye(5), rtol=1e-10)


def test_ratios_are_those_of_exchanged_parts():
    """M_ij + M_ji is the change of log q where parts i and j change places."""
    of = layout("one layer")
    family, p = family_made("meanfield", of.density.size)
    assert isinstance(family, MeanField)
    draws = jax.random.normal(jax.random.key(1), (4, family.size))
    ratios = np.asarray(family.ratios(p, draws, of.columns(of.blocks[0])).total)
    swap = [(jnp.array([1, 0, 2, 3]), jnp.ones(4))]
    moved = jax.jit(jax.vmap(lambda w: of.act(swap, w)))(draws)
    change = family.log_density(p, moved) - family.log_density(p, draws)
    np.testing.assert_allclose(ratios[:, 0, 1] + ratios[:, 1, 0], change, rtol=1e-9)
    np.testing.assert_allclose(np.diagonal(ratios, axis1=1, axis2=2), 0, atol=1e-12)


@pytest.mark.parametrize(
    "name", sorted(set(TARGETS) - {"one layer", "two layers", "sign flips", "two modes"})
)
def test_act_keeps_the_log_density(name):
    space = layout(name).density

    @jax.jit
    def both(vector: jax.Array, element: list) -> jax.Array:
        moved = layout(name).act(element, vector)
        parts = [space.log_prior, lambda v: jnp.sum(space.log_likelihood(v))]
        return jnp.stack([f(v) for f in parts for v in (vector, moved)])

    for seed in range(3):
        key = jax.random.key(seed)
        vector = jax.random.normal(key, (space.size,))
        found = np.asarray(both(vector, layout(name).random(key)))
        np.testing.assert_allclose(found[[1, 3]], found[[0, 2]], rtol=1e-10, atol=1e-10)


def test_elements_are_the_group_once_each():
    for name in TARGETS:
        group = layout(name)
        vector = jnp.arange(1.0, group.density.size + 1)
        every = jax.jit(jax.vmap(group.act, in_axes=(0, None)))
        moved = np.asarray(every(group.elements(), vector))
        order = round(np.exp(group.log_order))
        assert len(np.unique(moved, axis=0)) == len(moved) == order, name
        np.testing.assert_array_equal(moved[0], vector, err_msg=name)


def test_layout_has_the_order_of_the_symmetry():
    for name in ("one layer", "two layers", "sign flips", "classifier"):
        target = TARGETS[name]()
        blocks = tuple(b for b in target.symmetry if isinstance(b, Exchangeable))
        order = Group(blocks, target.model.network.shapes).log_order
        assert layout(name).log_order == pytest.approx(order), name


def test_softmax_chart_keeps_the_evidence():
    """The prior over both coordinates of a simplex of two weights has mass one."""

    def model() -> None:
        numpyro.sample("theta", dist.Dirichlet(jnp.array([2.0, 2.0])))

    target = Target("weights", numpyro_model=model, symmetry=(Exchangeable({"theta": 0}),))
    space = layout_of(target).density
    density = jax.jit(lambda a, b: jnp.exp(space.log_prior(jnp.stack([a, b]))))
    mass, error = dblquad(lambda a, b: float(density(a, b)), -12, 12, -12, 12, epsabs=1e-6)
    assert error < 1e-4
    assert mass == pytest.approx(1.0, abs=1e-4)


def test_layout_of_needs_a_symmetry_and_a_chart_that_keeps_parts_apart():
    """An ordered vector's coordinates are differences, which belong to two entries each."""

    def model() -> None:
        normal = dist.Normal(0.0, 1.0).expand([3]).to_event(1)
        ordered = dist.TransformedDistribution(normal, dist.transforms.OrderedTransform())
        numpyro.sample("mu", ordered)

    plain = Target("plain", numpyro_model=two_modes().numpyro_model)
    with pytest.raises(ValueError, match="declares no interchangeable components"):
        layout_of(plain)
    target = Target("ordered", numpyro_model=model, symmetry=(Exchangeable({"mu": 0}),))
    with pytest.raises(ValueError, match=r"does not exchange coordinates .*of mu"):
        layout_of(target)


@cache
def made(name: str, estimator: str) -> tuple[Information, Parameters]:
    """An approximation whose parts are neither alike nor far apart."""
    q = MeanField(layout(name).density.size)
    p = q.initial(0.6 * jax.random.normal(jax.random.key(3), (layout(name).density.size,)), 0.5)
    return Information(layout(name), q, estimator, Symmetrised(permutations=20)), p


def draws_of(family: MeanField, p: Parameters, num: int, seed: int = 0) -> jax.Array:
    return family.transform(p, jax.random.normal(jax.random.key(seed), (num, family.size)))


@pytest.mark.full
@pytest.mark.parametrize("name", ["sign flips", "mixture", "complement"])
def test_value_is_the_sum_over_the_group(name):
    information, p = made(name, "none")
    draws = draws_of(information.family, p, 400)
    truth = by_sum(information.layout, information.family, p, draws)
    found = np.asarray(jax.jit(information.value)(p, jax.random.key(0), draws))
    assert information.side == "exact"
    # The control variate has mean zero, and is there in one of the two alone.
    difference = found - truth
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(400) + 1e-9
    assert 0 < truth.mean() < information.layout.log_order


@pytest.mark.full
@pytest.mark.parametrize("name", ["transition matrix", "binary weight"])
def test_small_groups_are_gone_through(name):
    """Where parts are coupled by the symmetry."""
    information, p = made(name, "exact")
    draws = draws_of(information.family, p, 50)
    truth = by_sum(information.layout, information.family, p, draws)
    found = jax.jit(information.value)(p, jax.random.key(0), draws)
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)
    term = jax.jit(information.term)(p, jax.random.key(0), draws)
    assert float(term) == pytest.approx(truth.mean(), rel=1e-9)
    both = jax.jit(information.report)(p, jax.random.key(0), draws)
    assert float(both.lower) == float(both.upper)


@pytest.mark.full
def test_report_of_two_layers_encloses_the_truth():
    information, p = made("two layers, sign flips", "none")
    draws = draws_of(information.family, p, 300)
    truth = by_sum(information.layout, information.family, p, draws).mean()
    both = jax.jit(information.report)(p, jax.random.key(0), draws)
    assert float(both.lower) - 5 * float(both.lower_mcse) < truth
    assert truth < float(both.upper) + 5 * float(both.upper_mcse)
    assert float(both.lower) > 0.5 * truth
    assert float(both.upper) < information.layout.log_order


def gradients(information: Information, p: Parameters, num: int, seed: int) -> np.ndarray:
    """Training gradients (draw, entry), each from one draw of its own."""

    def one(key: jax.Array) -> jax.Array:
        def value(p: Parameters) -> jax.Array:
            key_eps, key_term = jax.random.split(key)
            eps = jax.random.normal(key_eps, (1, information.family.size))
            return information.term(p, key_term, information.family.transform(p, eps))

        slopes = jax.grad(value)(p)
        return jnp.concatenate([slopes[n].ravel() for n in sorted(slopes)])

    keys = jax.random.split(jax.random.key(seed), num)
    return np.asarray(jax.jit(lambda ks: jax.lax.map(one, ks, batch_size=500))(keys))


@cache
def true_gradient(name: str) -> np.ndarray:
    """Derivatives of the sum over all elements, through the draws."""
    information, p = made(name, "exact")
    q = information.family

    def one(eps: jax.Array) -> jax.Array:
        slopes = jax.grad(lambda p: information.enumerated(p, q.transform(p, eps[None]))[0])(p)
        return jnp.concatenate([slopes[n].ravel() for n in sorted(slopes)])

    eps = jax.random.normal(jax.random.key(11), (20_000, q.size))
    return np.asarray(jax.jit(lambda e: jax.lax.map(one, e, batch_size=500))(eps))


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["sign flips", "complement", pytest.param("one layer", marks=pytest.mark.slow)]
)
def test_term_has_the_gradient_of_the_information(name):
    information, p = made(name, "exact")
    found = gradients(information, p, 20_000, seed=1)
    truth = true_gradient(name)
    error = np.sqrt(found.var(axis=0) / len(found) + truth.var(axis=0) / len(truth))
    assert np.all(np.abs(found.mean(axis=0) - truth.mean(axis=0)) < 5 * error + 1e-12)
    assert np.linalg.norm(truth.mean(axis=0)) > 20 * np.linalg.norm(error) / np.sqrt(error.size)


@pytest.mark.full
def test_the_fractional_term_points_where_the_information_grows():
    information, p = made("one layer", "fractional")
    truth = true_gradient("one layer").mean(axis=0)
    found = gradients(information, p, 5_000, seed=1).mean(axis=0)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < 0.2


@pytest.mark.full
@pytest.mark.parametrize("name", ["one layer", "two layers"])
def test_infonce_term_is_the_gradient_of_its_bound(name):
    """With a fixed key and draw, finite differences of the bound itself."""
    information, p = made(name, "infonce")
    eps = jax.random.normal(jax.random.key(2), (3, information.family.size))

    @jax.jit
    @jax.value_and_grad
    def bound(p: Parameters) -> jax.Array:
        return information.term(p, jax.random.key(4), information.family.transform(p, eps))

    slope = bound(p)[1]["loc"][2]
    step = jnp.zeros_like(p["loc"]).at[2].set(1e-5)
    upper, lower = (float(bound(p | {"loc": p["loc"] + sign * step})[0]) for sign in (1, -1))
    assert float(slope) == pytest.approx((upper - lower) / 2e-5, rel=1e-5)


@pytest.mark.full
def test_two_layers_train_on_the_better_chain():
    information, p = made("two layers", "exact")
    draws = draws_of(information.family, p, 50)
    chains = information.layout.chains()
    key = jax.random.key(0)

    def chain_term(p, chain):
        return sum(information._part(p, key, draws, columns) for columns in chain)

    @jax.jit
    def every(p):
        values = [information._chain_values(p, key, draws, c).mean() for c in chains]
        slopes = [jax.grad(lambda p, c=c: chain_term(p, c))(p) for c in chains]
        found = jax.grad(lambda p: information.term(p, key, draws))(p)
        return values, [slope["loc"] for slope in slopes], found["loc"]

    values, slopes, found = every(p)
    better = int(np.argmax(values))
    np.testing.assert_allclose(found, slopes[better], rtol=1e-9)
    assert not np.allclose(slopes[0], slopes[1])


@pytest.mark.full
def test_auto_follows_the_width():
    twelve, thirteen = (layout_of(regression((hidden,))) for hidden in (12, 13))
    three = (twelve, "exact"), (thirteen, "fractional"), (layout("transition matrix"), "exact")
    for of, choice in three:
        assert choose_estimator("auto", of) == choice


def posterior_of(loc: np.ndarray, scale: np.ndarray, method: str = "advi-meanfield") -> xr.DataTree:
    """A posterior of ADVI with these parameters, as far as the gap looks at it."""
    group = xr.Dataset({"loc": ("param", loc), "scale": ("param", scale)})
    tree = xr.DataTree.from_dict({"variational": group})
    tree.attrs = {"method": method, "engine": "numpyro"}
    return tree


def spread(target: NetworkTarget, away: float) -> tuple[np.ndarray, np.ndarray]:
    """Means about zero, so far apart in standard deviations."""
    size = layout_of(target).density.size
    rng = np.random.default_rng(7)
    return away * rng.normal(size=size), rng.uniform(0.8, 1.2, size=size)


@pytest.mark.full
def test_one_layer_is_exact():
    target = regression((3,), activation="tanh")
    loc, scale = spread(target, 0.5)
    draws = loc + scale * np.random.default_rng(8).normal(size=(2000, len(loc)))
    p = {"loc": jnp.asarray(loc), "log_scale": jnp.log(scale)}
    truth = by_sum(layout_of(target), MeanField(len(loc)), p, draws)
    total = mixture_gap(target, posterior_of(loc, scale), draws=1000).total
    assert total.lower == total.upper
    error = np.hypot(total.lower_mcse, truth.std() / np.sqrt(len(truth)))
    assert abs(total.lower - truth.mean()) < 5 * error


@cache
def deep() -> NetworkTarget:
    return regression((3, 2, 3), activation="tanh")


@pytest.mark.full
@pytest.mark.parametrize("away", [0.7, 30.0])
def test_layers_are_listed_and_add_up_to_the_log_order_where_all_units_are_apart(away):
    gap = mixture_gap(deep(), posterior_of(*spread(deep(), away)))
    table = gap.layers
    assert list(table["layer"]) == ["hidden1", "hidden2", "hidden3"]
    assert list(table["units"]) == [3, 2, 3]
    assert np.all(table["lower"] <= table["upper"] + 1e-9)
    assert table["lower"].sum() == pytest.approx(gap.total.lower, rel=1e-6)
    assert table["upper"].sum() == pytest.approx(gap.total.upper, rel=1e-6)
    order = sum(math.log(2**n * math.factorial(n)) for n in (3, 2, 3))
    assert gap.log_order == pytest.approx(order, rel=1e-6)
    if away == 30.0:
        np.testing.assert_allclose(table["lower"], table["log_order"], rtol=1e-6)
        assert gap.total.upper == pytest.approx(order, rel=1e-6)
    text = " ".join(repr(gap).split())
    assert text.startswith("Gap to the symmetric mixture: ")
    for words in ("hidden3", "at least"):
        assert words in text
    assert "hidden3" in gap._repr_html_()


@pytest.mark.full
def test_components_that_are_alike_have_no_gap():
    """Three by the coordinates of their weights, means and scales."""
    posterior = posterior_of(np.zeros(9), np.ones(9), "symmetrised-vi")
    gap = mixture_gap(mixture(), posterior)
    assert gap.total.upper == pytest.approx(0, abs=1e-9)
    assert gap.layers["layer"][0] == "theta, mu, sigma"


@pytest.mark.full
def test_more_than_a_dozen_units_are_bounded_by_permutations():
    target = regression((14,))
    loc, scale = spread(target, 0.5)
    total = mixture_gap(target, posterior_of(loc, scale), draws=50, permutations=20).total
    assert 0 < total.lower <= total.upper < math.lgamma(15)


@pytest.mark.full
@pytest.mark.slow
def test_posteriors_of_both_methods_are_read():
    target = regression((3, 2))
    how = {"init_scale": 1.0, "trace_parameters": True, "tolerance": 0.0}
    settings = Advi(iterations=100, evaluate_every=25, draws=5, **how)
    fit = infer(target, settings, seed=1, predictive_mb=0)
    at_end, last, first = (mixture_gap(target, fit, evaluation=k) for k in (None, 3, 0))
    assert at_end.total == last.total != first.total
    with pytest.raises(ValueError, match="`evaluation` is 4, but the trace has 4"):
        mixture_gap(target, fit, evaluation=4)
    settings = Symmetrised(fits=2, steps=50, draws=5, report_draws=500)
    other = infer(target, settings, predictive_mb=0)
    variational = other["variational"].isel(chain=1)
    total = mixture_gap(target, other, fit=1, draws=500).total
    both = np.hypot(total.upper_mcse, float(variational["information_upper_mcse"]))
    assert abs(total.upper - float(variational["information_upper"])) < 5 * both


QUICK = Symmetrised(
    steps=300, evaluate_every=100, elbo_samples=20, report_draws=50, draws=40, learning_rate=0.05
)
LONG = replace(QUICK, steps=2050, tolerance=0.0, report_draws=1000, samples=20, init_scale=0.3)


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    """By steps that are compiled once, whatever is left of them at the end."""
    loss = TrainingLoop.loss
    with patch.object(TrainingLoop, "loss", autospec=True, side_effect=loss) as traced:
        tree = infer(two_modes(), LONG, seed=1)
    assert traced.call_count == 1
    return tree


@pytest.fixture(scope="module")
def network() -> xr.DataTree:
    """Fits of a network that end where their traces are level."""
    settings = replace(QUICK, steps=3000, evaluate_every=50, tolerance=0.5, fits=2)
    return infer(regression(), settings, predictive_mb=0)


def test_fit_finds_a_posterior_that_is_a_symmetrised_gaussian(fitted):
    """Its evidence is one: the symmetrised ELBO reaches zero, which the ELBO misses by the information."""
    v = fitted["variational"]
    error = float(v["final_elbo_mcse"][0]) + float(v["information_lower_mcse"][0])
    assert float(v["symmetrised_elbo_lower"][0]) == pytest.approx(0.0, abs=5 * error + 0.01)
    assert float(v["final_elbo"][0]) < -0.6  # log 2 is what one of two modes lacks
    loc, scale = np.asarray(v["loc"][0]), np.asarray(v["scale"][0])
    np.testing.assert_allclose(np.sort(loc), np.sort(TWO_MODES), atol=0.05)
    np.testing.assert_allclose(scale, SPREAD, rtol=0.1)


@pytest.mark.full
def test_symmetrised_elbo_is_never_below_the_elbo_and_says_its_side(network):
    """Corollary 4.2 of the paper."""
    v = network["variational"]
    assert np.all(v["information"] >= 0)
    assert np.all(v["symmetrised_elbo_lower"] >= v["final_elbo"])
    assert np.all(v["information_upper"] <= network.attrs["log_group_order"])
    np.testing.assert_allclose(v["symmetrised_elbo"], v["elbo"] + v["information"])
    assert v["elbo"].dims == ("chain", "evaluation")
    assert network.attrs["mutual_information"] == network.attrs["information_side"] == "exact"
    sides = {n: v.attrs["side"] for n, v in v.data_vars.items() if "side" in v.attrs}
    assert sides["symmetrised_elbo_lower"] == "lower bound of the log evidence"
    assert "no bound of the log evidence" in sides["symmetrised_elbo_upper"]
    assert len(sides) == 8


def test_draws_come_from_the_reported_gaussian(fitted):
    v, draws = fitted["variational"], fitted["posterior"]["w"].values[0]
    residuals = (draws - v["loc"].values[0]) / v["scale"].values[0]
    expected = -0.5 * np.sum(residuals**2, 1) - np.log(2 * np.pi * np.prod(v["scale"].values[0]))
    np.testing.assert_allclose(fitted["sample_stats"]["log_q"].values[0], expected, rtol=1e-9)


def test_training_ends_early_where_the_trace_is_level(network):
    assert int(network["variational"]["iteration"][-1]) < 3000
    assert network.attrs["converged"] == 1
    assert np.all(network["variational"]["settled"] == 1)


@pytest.mark.slow
def test_minibatches_in_single_precision_keep_to_it():
    settings = replace(QUICK, batch_size=6, dtype="float32", anneal=0.3, schedule="constant")
    tree = infer(classification(), settings)
    assert tree["variational"]["loc"].dtype == np.float32
    assert np.isfinite(tree["variational"]["symmetrised_elbo_lower"].values).all()


def test_start_is_where_the_means_begin():
    begun = planned(two_modes(), replace(QUICK, fits=2)).begin(0, {"w": np.array([0.25, 7.0])})
    np.testing.assert_array_equal(begun.state.params["loc"], [[0.25, 7.0]] * 2)


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`permutations` is 1"):
        planned(two_modes(), replace(QUICK, permutations=1, mutual_information="infonce"))
    with pytest.raises(ValueError, match=r"`anneal` must be a share from 0 to 1; got 2.0"):
        replace(QUICK, anneal=2.0)


def test_an_elbo_that_is_lost_is_an_error():
    def model() -> None:
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        numpyro.factor("gone", jnp.where(jnp.abs(w).sum() > 2.0, jnp.nan, 0.0))

    lost = Target("lost", numpyro_model=model, symmetry=(Exchangeable({"w": 0}),))
    with pytest.raises(InferenceError, match=r"'lost'.* not finite"):
        infer(lost, replace(QUICK, steps=100))
