"""One labelling and one scale: halves, what is set aside, and why."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.compare.comparable import fit_frame, halves
from onebasin.models.symmetry.blocks import Exchangeable, Rescalable

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


@pytest.mark.parametrize("shape", [(1, 7), (4, 3)])
def test_halves_need_draws(make_mcmc, rng, shape):
    with pytest.raises(ValueError, match=r"at least 4 draws a chain are needed: sample longer"):
        halves(make_mcmc({"mu": rng.normal(size=shape)}))


def test_data_and_fit_belong_to_both_halves(make_variational, rng):
    lp = rng.normal(size=(1, 20))
    tree = make_variational({"mu": rng.normal(size=(1, 20))}, lp=lp, log_q=lp)
    tree["observed_data"] = xr.DataTree(xr.Dataset({"y": ("obs", np.arange(5.0))}))
    for half in halves(tree):
        assert half.group("observed_data").sizes == {"obs": 5}
        assert half.group("variational").sizes == {"evaluation": 4}
        assert half.posterior.sizes["draw"] == 10


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


def test_without_a_symmetry_draws_are_divided_and_nothing_else(make_variational, rng):
    lp, mu = rng.normal(size=(1, 40)), rng.normal(size=(1, 40, 2)) * [1.0, 100.0]
    tree = make_variational({"mu": mu, "fixed": np.full((1, 40), 7.0)}, lp=lp, log_q=lp)
    frame = fit_frame(tree)
    assert frame.alignment is None
    assert frame.align(tree).tree is tree
    np.testing.assert_allclose(frame.scale, [*mu[0, :20].std(axis=0, ddof=1), 1.0], rtol=1e-10)
    sample = frame.sample(frame.rest)
    assert sample.shape == (20, 3)  # all: they are independent
    kept = {tuple(row) for row in np.round(sample[:, :2] * frame.scale[:2], 9)}
    assert kept == {tuple(row) for row in np.round(mu[0, 20:], 9)}


@pytest.mark.parametrize(
    "mark", [lambda tree: tree.attrs.update(method="ensemble"), lambda tree: distilled(tree)]
)
def test_draws_that_were_made_one_by_one_are_all_kept(mark, make_mcmc, rng):
    drift = np.cumsum(rng.normal(size=(1, 60)), axis=1)  # by chance like a chain that hardly moves
    tree, truth = make_mcmc({"mu": drift}), make_mcmc({"mu": rng.normal(size=(2, 60))})
    frame = fit_frame(truth)
    assert len(frame.sample(frame.align(tree))) < 10
    mark(tree)
    assert len(frame.sample(frame.align(tree))) == 60


def distilled(tree):
    """Give a posterior the group that those drawn from a distilled Gaussian have."""
    tree["distilled"] = xr.DataTree(xr.Dataset({"loss": ("evaluation", [1.0])}))


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
    with pytest.raises(ValueError, match=r"`posterior` lacks noise; the reference holds mu, sigma"):
        frame.align(make_mcmc(without))
    with pytest.raises(ValueError, match=r"`posterior` also holds tau;.*choose variables"):
        frame.align(make_mcmc(values | {"tau": values["noise"]}))
    with pytest.raises(ValueError, match=r"noise of shape \(2,\), and the reference of shape \(\)"):
        frame.align(make_mcmc(wide))
    some = fit_frame(make_mcmc(values), MIXTURE, var_names=["mu"])
    assert some.sample(some.align(make_mcmc(without))).shape[1] == 3
    with pytest.raises(ValueError, match=r"`var_names` asks for `tau`.*mu, sigma, noise"):
        fit_frame(make_mcmc(values), MIXTURE, var_names=["tau"])


def test_draws_that_are_not_finite_are_refused(make_mcmc, rng):
    values = mixture(rng)
    frame = fit_frame(make_mcmc(values))
    values["noise"][1, 2] = np.inf
    with pytest.raises(
        ValueError, match=r"`posterior` holds 1 values of noise that are not finite"
    ):
        frame.sample(make_mcmc(values))
