"""One labelling and one scale: halves, what is set aside, and why."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.compare.comparable import check_comparable, fit_frame, halves, labelled_as
from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import compare_moments
from onebasin.models.symmetry.blocks import Exchangeable, Rescalable
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)
from onebasin.posteriors.view import as_view

from ..conftest import ORDERS, switched_mixture

MIXTURE = (Exchangeable({"mu": 0, "sigma": 0}),)


def shuffled(rng, values):
    """The same draws, the parts of each in an order of its own."""
    order = rng.permuted(np.tile(np.arange(3), (*values["mu"].shape[:2], 1)), axis=-1)
    return {
        name: np.take_along_axis(v, order, axis=-1) if v.ndim == 3 else v
        for name, v in values.items()
    }


def mixture(rng):
    values = switched_mixture(rng, draws=100, orders=ORDERS[:1])
    return values | {"noise": rng.normal(size=(4, 100))}


def by_location(values):
    return np.sort(np.asarray(values), axis=-1)


def test_halves_are_chains_or_the_draws_of_one(make_mcmc, rng):
    values = rng.normal(size=(3, 10))
    first, second = halves(make_mcmc({"mu": values}))
    np.testing.assert_array_equal(first.posterior["mu"], values[:1])
    np.testing.assert_array_equal(second.posterior["mu"], values[1:])
    assert second.group("sample_stats").sizes == {"chain": 2, "draw": 10}
    assert second.attribute("target") == "toy"
    first, second = halves(make_mcmc({"mu": values[:1]}))
    np.testing.assert_array_equal(first.posterior["mu"], values[:1, :5])
    np.testing.assert_array_equal(second.posterior["mu"], values[:1, 5:])


def test_every_draw_comes_into_the_labelling_of_the_first_half(make_mcmc, rng):
    values, others = mixture(rng), mixture(rng)
    frame = fit_frame(make_mcmc(shuffled(rng, values)), MIXTURE)
    aligned = [frame.align(frame.rest), frame.align(make_mcmc(shuffled(rng, others)))]
    order = np.argsort(aligned[0].posterior["mu"].values[0, 0])
    for view, known in zip(aligned, (values["mu"][2:], others["mu"]), strict=True):
        np.testing.assert_array_equal(view.posterior["mu"].values[..., order], known)


def test_the_scale_is_the_spread_of_the_aligned_first_half(make_mcmc, rng):
    values = mixture(rng)
    frame = fit_frame(make_mcmc(shuffled(rng, values)), MIXTURE)
    expected = [values[name][:2].std(axis=(0, 1), ddof=1) for name in ("mu", "sigma")]
    np.testing.assert_allclose(by_location(frame.scale[:3]), by_location(expected[0]), rtol=1e-10)
    np.testing.assert_allclose(by_location(frame.scale[3:6]), by_location(expected[1]), rtol=1e-10)
    assert frame.scale[6] == pytest.approx(values["noise"][:2].std(ddof=1), rel=1e-10)
    assert frame.alignment.rule.reference == "gaussian"


def test_positive_scalings_are_no_symmetry_of_a_posterior(make_mcmc, rng):
    values = {"mu": rng.normal(size=(2, 20, 3)), "nu": rng.normal(size=(2, 20, 3))}
    scaling = Rescalable({"mu": 0}, {"nu": 0})
    assert fit_frame(make_mcmc(values), (scaling,)).alignment is None
    found = fit_frame(make_mcmc(values), (Exchangeable({"mu": 0, "nu": 0}), scaling))
    assert found.symmetry == (Exchangeable({"mu": 0, "nu": 0}),)


def test_other_variables_and_shapes_are_refused(make_mcmc, rng):
    values = mixture(rng)
    frame = fit_frame(make_mcmc(values), MIXTURE)
    without = {name: v for name, v in values.items() if name != "noise"}
    wide = values | {"noise": rng.normal(size=(4, 100, 2))}
    with pytest.raises(
        ValueError, match=r"`posterior` lacks noise, but the reference has mu, sigma"
    ):
        frame.align(make_mcmc(without))
    with pytest.raises(ValueError, match=r"`posterior` also has tau, but .*choose variables"):
        frame.align(make_mcmc(values | {"tau": values["noise"]}))
    with pytest.raises(
        ValueError, match=r"noise has shape \(2,\) in `.*`, but shape \(\) in the reference"
    ):
        frame.align(make_mcmc(wide))
    some = fit_frame(make_mcmc(values), MIXTURE, var_names=["mu"])
    assert some.sample(some.align(make_mcmc(without))).shape[1] == 3
    with pytest.raises(ValueError, match=r"`var_names` must name .*; got `tau`.*mu, sigma, noise"):
        fit_frame(make_mcmc(values), MIXTURE, var_names=["tau"])


@pytest.fixture
def labelled(make_mcmc, rng):
    """The same draws of `mu`, with an axis and labels of one's own where they are given."""
    values = rng.normal(size=(4, 300, 2)) * [0.1, 3.0] + [0.0, 5.0]

    def make(labels=(), dim="group"):
        tree = make_mcmc({"mu": values, "tau": values[..., 0]})
        if labels:
            (own,) = (str(d) for d in tree["posterior"]["mu"].dims if d not in ("chain", "draw"))
            renamed = tree["posterior"].to_dataset().rename({own: dim})
            tree["posterior"] = type(tree)(renamed.assign_coords({dim: list(labels)}))
        return tree

    return make


def moments(first, second):
    own = labelled_as(as_view(second), as_view(first), ("mu", "tau"))
    return compare_moments(first, own).table


@pytest.mark.parametrize("other", [{}, {"labels": (1, 2), "dim": "mu_dim_0"}])
def test_labels_of_another_file_are_no_difference(labelled, other):
    found = compare({"a": labelled(("a", "b")), "b": labelled(**other)}, truth="a", permutations=19)
    assert found.table.loc["b", "verdict"] in ("agree", "undecided")
    assert found.table.loc["b", "max_abs_d"] < 0.1
    table = moments(labelled(("a", "b")), labelled(**other))
    assert list(table.index) == ["mu[a]", "mu[b]", "tau"]
    assert (table["difference"] == 0).all()


def test_chains_in_two_modes_agree_with_no_posterior_in_one():
    """The half that is compared lies in one mode, and the half that gave labels and scales in the other."""
    rng = np.random.default_rng(5)
    one = {"x": rng.normal(size=(4, 500)), "y": rng.normal(size=(4, 500))}
    two = {"x": rng.normal([[9.0], [9.0], [0.0], [0.0]], size=(4, 500)), "y": one["y"][::-1]}
    comparison = compare({"two": two, "one": one}, permutations=99)
    assert comparison.moments["one"].unmixed == ("x",)
    (answer,) = comparison.sentences
    assert "1 of 2 could not be judged, because the ESS is too small or chains" in answer
    assert "the joint distributions are not compared" in answer
    assert "The chains of `two` have not mixed: R-hat is too high for `x`" in " ".join(
        comparison.warnings
    )


NETWORK = Network(2, (3,), activation="tanh")
MODEL = BayesianNetwork(NETWORK)
X, Y = np.linspace(-1, 1, 8).reshape(4, 2), np.linspace(0, 3, 4)[:, None]


@pytest.fixture
def of(make_mcmc):
    """A posterior of a model with its data; what it holds does not matter here."""

    def make(model, x=X, y=Y, names=("x", "y")):
        tree = make_mcmc(
            {"mu": np.zeros((2, 5))},
            attrs={"model": model.describe() if model else ""},
            constant_data=xr.Dataset({names[0]: (("obs", "in"), x)}),
            observed_data=xr.Dataset({names[1]: (("obs", "out"), y)}),
        )
        return as_view(tree)

    return make


def test_priors_parametrisations_and_noise_may_differ(of):
    ordered = Parametrisation(biases="ordered")
    for other in ({"prior": NormalPrior(2.0)}, {"likelihood": Gaussian(noise_sd=0.1)}):
        check_comparable({"a": of(MODEL), "b": of(BayesianNetwork(NETWORK, **other))}, "a")
    other = BayesianNetwork(NETWORK, parametrisation=ordered)
    check_comparable({"a": of(MODEL), "b": of(other), "c": of(MODEL)}, "a")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (BayesianNetwork(Network(2, (2,), activation="tanh")), r"hidden is \(2,\) .* \(3,\)"),
        (BayesianNetwork(Network(2, (3,))), r"activation is relu in `b`, but tanh in `a`"),
        (
            BayesianNetwork(Network(2, (3,), 2, activation="tanh"), Categorical()),
            r"likelihood is Categorical in `b`, but Gaussian in `a`",
        ),
        (None, r"Give posteriors of the same network"),
    ],
)
def test_other_networks_are_refused(of, other, message):
    with pytest.raises(ValueError, match=message):
        check_comparable({"a": of(MODEL), "b": of(other)}, "a")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"names": ("inputs", "y")}, r"data of `b` are named inputs, but those of `a` are named x"),
        ({"x": X + 1e-4}, r"values of x differ between `b` and `a`"),
        ({"y": Y[:, [0, 0]]}, r"values of y differ"),
    ],
)
def test_other_data_are_refused(of, how, message):
    with pytest.raises(ValueError, match=message):
        check_comparable({"a": of(MODEL), "b": of(MODEL, **how)}, "a")
