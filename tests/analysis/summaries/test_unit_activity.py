"""What a fit has learned of every unit, against closed forms, quadrature and the engine's own layout."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin.analysis.summaries.unit_activity import (
    normal_divergence,
    ordered_divergence,
    weight_moments,
)
from onebasin.inference.density.network import density_of
from onebasin.models import BayesianNetwork, Gaussian, Network, NormalPrior, Parametrisation
from onebasin.models.transforms.distributions import OrderedNormal
from onebasin.posteriors.view import as_view

from ...cards import check_page
from ..conftest import network_posterior

X = np.linspace(-1, 1, 6)[:, None]


def network(hidden=(3, 2), **more):
    return BayesianNetwork(
        Network(1, hidden, activation="tanh", skip=more.pop("skip", None)),
        Gaussian(more.pop("noise_sd", 0.2)),
        NormalPrior(more.pop("prior", 1.0), 0.7),
        Parametrisation(**more),
    )


def fitted(rng, model, *, dims=("param",), shape=()):
    """A mean-field fit with parameters at random, of which `loc` and `scale` are also given by name."""
    target = model.condition(X, np.sin(X))
    density = density_of(target)
    loc = rng.normal(size=(*shape, density.size))
    scale = np.exp(0.5 * rng.normal(size=loc.shape))
    variational = {"loc": (dims, loc), "scale": (dims, scale)}
    names = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    shapes = model.network.shapes | {"sigma": ()}
    draws = {name: np.ones((max(shape[:1], default=1), 4, *shapes[name])) for name in names}
    return network_posterior(model, draws, variational=xr.Dataset(variational)), density, loc, scale


def expected(mean, sd, scale):
    """NumPyro's divergence, entry by entry."""
    return np.asarray(dist.kl_divergence(dist.Normal(mean, sd), dist.Normal(0.0, scale)))


def test_divergences_of_a_mean_field_fit_are_numpyros(rng):
    model = network(prior=(1.0, 0.5, 2.0), noise_sd=None)
    tree, density, loc, scale = fitted(rng, model)
    mean, sd = (density.unravel(jnp.asarray(v)) for v in (loc, scale))
    found = ob.networks.unit_activity(tree)
    second = found.units.loc["hidden2"]
    into = expected(mean["W2"], sd["W2"], 0.5)
    out = expected(mean["W3"], sd["W3"], 2.0)
    np.testing.assert_allclose(second["kl_in"], into.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(second["kl_out"], out.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(second["kl_bias"], expected(mean["b2"], sd["b2"], 0.7), rtol=1e-12)
    snr = np.abs(mean["W2"]) / sd["W2"]
    np.testing.assert_allclose(second["snr_in"], snr.max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.units.loc["hidden1", "snr_out"], snr.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.units.loc["hidden1", "kl_out"], into.sum(axis=1), rtol=1e-12)
    scales = {"W1": 1.0, "W2": 0.5, "W3": 2.0, "b1": 0.7, "b2": 0.7, "b3": 0.7}
    total = sum(expected(mean[name], sd[name], s).sum() for name, s in scales.items())
    assert found.kl == pytest.approx(total, rel=1e-12)
    assert found.exact


def test_parameters_are_those_of_the_engines_vector(rng):
    model = network(hidden=(2,) * 10, noise_sd=None)  # W10 stands before W2
    tree, density, loc, scale = fitted(rng, model)
    moments = weight_moments(as_view(tree), model)
    mean, sd = (density.unravel(jnp.asarray(v)) for v in (loc, scale))
    assert set(moments.mean) == set(mean) - {"sigma"}
    for name, value in moments.mean.items():
        np.testing.assert_array_equal(value, mean[name])
        np.testing.assert_array_equal(moments.sd[name], sd[name])


def with_signals(model, **signals):
    """A mean-field fit at the prior, but for weights at these places, whose means are 3 sds from zero."""
    density = density_of(model.condition(X, np.sin(X)))
    scales = {"W": 1.0, "b": 0.7}
    loc = {name: np.zeros(shape) for name, shape in model.network.shapes.items()}
    scale = {name: np.full(shape, scales[name[0]]) for name, shape in model.network.shapes.items()}
    for name, places in signals.items():
        for place in places:
            loc[name][place], scale[name][place] = 0.3, 0.1
    both = {"loc": loc, "scale": scale}
    vectors = {n: ("param", np.asarray(density.ravel(v))) for n, v in both.items()}
    draws = {name: np.ones((1, 4, *shape)) for name, shape in model.network.shapes.items()}
    return network_posterior(model, draws, variational=xr.Dataset(vectors))


def test_a_unit_is_active_whose_signal_reaches_an_output():
    # Unit 2 speaks to unit 1 of the second layer, which is heard; units 0 and 1 to unit 0, which is not.
    tree = with_signals(network(), W2=[(0, 0), (1, 0), (2, 1)], W3=[(1, 0)])
    found = ob.networks.unit_activity(tree)
    assert found.units["active"].tolist() == [False, False, True, False, True]
    assert found.layers["active"].tolist()[:2] == [1, 1]
    assert (found.num_active, found.units.index.names) == (2, ["layer", "unit"])
    assert found.layers.loc["hidden2", "kl_biases"] == pytest.approx(0, abs=1e-12)
    assert not ob.networks.unit_activity(tree, threshold=3.1).num_active
    text = " ".join(repr(found).split())
    assert "2 of 5 units active" in text
    check_page(found._repr_html_())


def test_skips_pass_on_what_any_unit_gets():
    tree = with_signals(network(skip="orthogonal"), W2=[(0, 0), (1, 0)])
    active = ob.networks.unit_activity(tree).units["active"]
    assert active.tolist() == [True, True, False, False, False]


def test_held_at_zero_is_far_from_the_prior_and_no_signal(rng):
    tree = with_signals(network())
    fit = tree["variational"].to_dataset()
    tree["variational"] = fit.assign(scale=0.01 * fit["scale"])
    found = ob.networks.unit_activity(tree)
    assert (found.units[["kl_in", "kl_out"]] > 1).all(axis=None)
    assert found.num_active == 0


def test_a_plain_sum_hears_every_unit_with_incoming_signals():
    plain = Network(1, (3,), activation="relu", biases=False, readout="sum")
    tree = with_signals(BayesianNetwork(plain, Gaussian(0.2)), W1=[(0, 1)])
    found = ob.networks.unit_activity(tree)
    assert found.units["active"].tolist() == [False, True, False]
    assert found.units["kl_out"].isna().all()
    assert found.layers.index.tolist() == ["hidden1", "out"]


def test_weights_of_unit_norm_have_signals_and_no_divergence(rng):
    unit = BayesianNetwork(
        Network(2, (3,), activation="relu"),
        Gaussian(0.2),
        parametrisation=Parametrisation("givens", "ordered"),
    )
    values = {n: 5 + rng.normal(size=(1, 40, *s)) for n, s in unit.network.shapes.items()}
    found = ob.networks.unit_activity(network_posterior(unit, values))
    assert found.units["kl_in"].isna().all()
    assert found.units["kl_out"].notna().all()
    assert found.num_active == 3


def quadrature(loc, scale, prior_scale, points=60):
    """KL of two ordered biases by Gauss-Hermite, and their moments."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    w = w / w.sum()
    first, second = np.meshgrid(loc[0] + scale[0] * z, loc[1] + scale[1] * z, indexing="ij")
    weight = np.outer(w, w)
    biases = np.stack([first, first + np.exp(second)], axis=-1)
    log_prior = np.asarray(OrderedNormal(prior_scale, 2).log_prob(jnp.asarray(biases))) + second
    log_q = sum(
        np.asarray(dist.Normal(loc[k], scale[k]).log_prob(v)) for k, v in enumerate((first, second))
    )
    mean = np.einsum("ij,ijk->k", weight, biases)
    sd = np.sqrt(np.einsum("ij,ijk->k", weight, (biases - mean) ** 2))
    return float(np.sum(weight * (log_q - log_prior))), mean, sd


def test_ordered_biases_have_the_divergence_and_moments_of_quadrature(rng):
    model = network(hidden=(2,), biases="ordered")
    tree, density, loc, scale = fitted(rng, model)
    coordinates = [np.asarray(density.unravel(jnp.asarray(v))["b1"]) for v in (loc, scale)]
    kl, mean, sd = quadrature(*coordinates, 0.7)
    moments = weight_moments(as_view(tree), model)
    np.testing.assert_allclose(moments.mean["b1"], mean, rtol=1e-10)
    np.testing.assert_allclose(moments.sd["b1"], sd, rtol=1e-8)
    found = ob.networks.unit_activity(tree)
    assert found.layers.loc["hidden1", "kl_biases"] == pytest.approx(kl, rel=1e-8)
    assert found.units["kl_bias"].isna().all()
    assert ordered_divergence(*coordinates, mean, sd, 0.7) == pytest.approx(kl, rel=1e-8)


def test_of_draws_divergences_are_lower_bounds_by_their_moments(rng):
    model = network(hidden=(2,), skip="orthogonal")
    values = {name: rng.normal(size=(2, 400, *s)) for name, s in model.network.shapes.items()}
    # Two narrow modes: KL = log(1 / 0.1) - ... is more than that of the normal with the same moments.
    values["W1"] = rng.choice([-2.0, 2.0], size=(2, 400, 1, 2)) + 0.1 * values["W1"]
    found = ob.networks.unit_activity(network_posterior(model, values))
    mean, sd = values["W1"].mean(axis=(0, 1)), values["W1"].std(axis=(0, 1), ddof=1)
    np.testing.assert_allclose(found.units["kl_in"], normal_divergence(mean, sd, 1.0)[0])
    samples = dist.Normal(0, 1).log_prob(jnp.asarray(values["W1"]))
    entropy = np.log(2) + 0.5 * np.log(2 * np.pi * np.e * 0.1**2)  # of well separated halves
    assert (found.units["kl_in"] < -entropy - np.asarray(samples).mean(axis=(0, 1))[0]).all()
    assert not found.exact
    assert "at least" in repr(found)


def test_draws_without_a_common_labelling_are_refused_until_they_are_aligned(rng):
    model = network()
    values = {name: rng.normal(size=(2, 20, *s)) for name, s in model.network.shapes.items()}
    tree = network_posterior(model, values)
    with pytest.raises(ValueError, match=r"units may have changed places.*ob\.align"):
        ob.networks.unit_activity(tree)
    assert len(ob.networks.unit_activity(ob.align(tree).posterior).units) == 5
    ordered = network_posterior(network(biases="ordered"), values)
    assert len(ob.networks.unit_activity(ordered).units) == 5


def test_of_several_fits_it_is_the_best(rng):
    model = network()
    tree, density, loc, scale = fitted(rng, model, dims=("chain", "param"), shape=(3,))
    fit = tree["variational"].to_dataset()
    elbo = np.array([[-9.0, -8.0], [-5.0, -3.0], [-4.0, -6.0]])
    tree["variational"] = fit.assign(elbo=(("chain", "evaluation"), elbo))
    best = weight_moments(as_view(tree), model)
    np.testing.assert_array_equal(best.mean["W2"], density.unravel(jnp.asarray(loc[1]))["W2"])
    np.testing.assert_array_equal(best.sd["W2"], density.unravel(jnp.asarray(scale[1]))["W2"])


def test_a_trace_of_parameters_tells_how_units_came_and_went(rng):
    model = network()
    tree, _, loc, scale = fitted(rng, model)
    trace = {"loc_trace": np.stack([0 * loc, loc]), "scale_trace": np.stack([0 * scale + 1, scale])}
    fit = tree["variational"].to_dataset()
    assigned = {name: (("evaluation", "param"), v) for name, v in trace.items()}
    tree["variational"] = fit.assign(assigned)
    assert ob.networks.unit_activity(tree, evaluation=0).num_active == 0
    last = ob.networks.unit_activity(tree, evaluation=-1).units
    np.testing.assert_array_equal(last.to_numpy(), ob.networks.unit_activity(tree).units.to_numpy())
    with pytest.raises(ValueError, match="`evaluation` is 2, and there are 2: choose one from 0"):
        ob.networks.unit_activity(tree, evaluation=2)
    tree["variational"] = fit.assign(assigned).drop_vars("scale")  # as of a full covariance
    with pytest.raises(ValueError, match="keeps no parameters of a mean-field fit"):
        ob.networks.unit_activity(tree, evaluation=0)


def test_a_low_rank_fit_is_judged_by_its_draws(rng):
    model = network(hidden=(2,))
    tree, _, _, _ = fitted(rng, model)
    fit = tree["variational"].to_dataset()
    tree["variational"] = fit.assign(factor=(("param", "rank"), np.ones((fit.sizes["param"], 1))))
    moments = weight_moments(as_view(tree), model)
    assert not moments.exact
    np.testing.assert_array_equal(moments.mean["W1"], np.ones((1, 2)))


def test_a_fit_without_a_trace_has_no_evaluations(rng):
    tree, *_ = fitted(rng, network())
    with pytest.raises(ValueError, match="use a fit with `trace_parameters=True`"):
        ob.networks.unit_activity(tree, evaluation=3)


@pytest.fixture(scope="module")
def ordered_fit():
    """A short fit of a network with ordered biases, which keeps its parameters while it trains."""
    model = network(hidden=(2,), biases="ordered", noise_sd=None)
    settings = ob.Advi(
        iterations=200, evaluate_every=100, draws=2000, gradient_samples=2, elbo_samples=2,
        local_reparametrisation=True, trace_parameters=True, tolerance=1e-9,
    )  # fmt: skip
    return ob.infer(model.condition(X, np.sin(X)), method=settings, seed=1)


def test_moments_of_an_engines_fit_are_those_of_its_draws(ordered_fit):
    view = as_view(ordered_fit)
    moments = weight_moments(view, view.network)
    assert moments.exact
    for name, mean in moments.mean.items():
        draws = ordered_fit["posterior"][name].values[0]
        error = moments.sd[name] / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all(), name
        np.testing.assert_allclose(draws.std(axis=0), moments.sd[name], rtol=0.2)


def test_an_engines_trace_ends_at_the_fit(ordered_fit, tmp_path):
    ob.save(ordered_fit, tmp_path / "fit.nc")
    last = ob.networks.unit_activity(tmp_path / "fit.nc", evaluation=-1)
    for name, column in ob.networks.unit_activity(ordered_fit).units.items():
        np.testing.assert_allclose(last.units[name], column, rtol=1e-12)
    assert ob.networks.unit_activity(ordered_fit, evaluation=0).kl != last.kl
