"""Chains that begin from a fit whose weights are good, and as always from one whose weights are not."""

import re
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import onebasin as ob
from onebasin.base.errors import ArgumentError
from onebasin.base.progress import ProgressBars
from onebasin.inference import Nuts
from onebasin.inference.contracts.method import Found, Job
from onebasin.inference.density.counted import CountedDensity
from onebasin.inference.fits.begin import _come, _from_afar, sampled, start_from_fit
from onebasin.inference.fits.drift import MovedChains
from onebasin.inference.fits.gaussian import NormalFit

from ..known import COVARIANCE, MEAN, RATE, SHAPE, assert_mean, known_target


def job(model: Any, engine: str = "numpyro") -> Job[Nuts]:
    return Job(target(model), Nuts(init="fit"), engine, 1, ProgressBars(False))


def target(model: Any) -> ob.Target:
    return ob.Target("target", numpyro_model=model)


def funnel() -> None:
    v = numpyro.sample("v", dist.Normal(0, 3))
    numpyro.sample("x", dist.Normal(0, jnp.exp(v / 2)).expand([3]).to_event(1))


def two_modes() -> None:
    parts = dist.Normal(jnp.array([-4.0, 4.0]), 1.0)
    numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.array([0.7, 0.3])), parts))


def normal() -> None:
    numpyro.sample("x", dist.Normal(30.0, 1.0))


def low_mode() -> None:
    parts = dist.Normal(jnp.array([0.0, 30.0]), 1.0)
    numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.array([1e-9, 1.0])), parts))


def wide() -> None:
    numpyro.sample("x", dist.Normal(0, 1).expand([61]).to_event(1))


@pytest.mark.full
@pytest.mark.parametrize(("kind", "engine"), [("numpyro", "numpyro"), ("stan", "stanli")])
def test_chains_of_a_good_fit_have_its_covariance_and_need_no_warmup(kind, engine):
    tree = ob.nuts(known_target(kind), engine=engine, init="fit", draws=500, seed=2)
    assert tree.attrs["fit_start"].startswith("Chains start from the fit: its weights are worth 1,")
    assert 500 < tree.attrs["fit_gradient_evaluations"] < 2500
    metric = tree["adaptation"]["inverse_metric"].to_numpy()
    x = slice(1, 3) if engine == "numpyro" else slice(0, 2)  # tau stands first or last
    np.testing.assert_allclose(metric[0][x, x], COVARIANCE, rtol=0.2)
    assert (metric == metric[0]).all()
    steps, acceptance = (tree["sample_stats"][n] for n in ("step_size", "acceptance_rate"))
    assert len(np.unique(steps)) == 1
    assert 0.72 < float(acceptance.mean()) < 0.92
    assert_mean(tree["posterior"]["tau"].to_numpy(), SHAPE / RATE)
    assert_mean(tree["posterior"]["x"].to_numpy()[..., 0], MEAN[0])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (funnel, r"its [\d,]+ weighted draws are worth|k-hat of its weights"),
        (two_modes, "the best of 2 optima holds (69|70|71)% of the probability"),
        (wide, "no weights last in 61 coordinates"),
    ],
)
def test_a_fit_that_does_not_cover_the_posterior_is_not_used(model, reason):
    said, start = start_from_fit(job(model), CountedDensity.of(target(model)))
    assert start is None
    assert re.search(f"not used, and chains warm up as usual: .*({reason})", said)


def test_chains_without_their_fit_are_those_of_no_fit():
    how: dict[str, Any] = {"chains": 2, "warmup": 60, "draws": 20, "seed": 1}
    fitted, plain = (ob.nuts(target(two_modes), init=init, **how) for init in ("fit", "random"))
    assert fitted.attrs["fit_start"].startswith("The fit is not used")
    np.testing.assert_array_equal(fitted["posterior"]["x"], plain["posterior"]["x"])


def test_one_chain_in_four_begins_at_a_random_point():
    counted = CountedDensity.of(target(normal))
    nine = replace(job(normal), method=Nuts(init="fit", chains=9))
    start = start_from_fit(nine, counted)[1]
    assert start is not None
    assert (np.abs(start.positions - 30) < 6).all()  # those from +-2 as well
    assert (np.abs(_from_afar(replace(job(normal), method=Nuts(chains=9)), counted)) < 2).all()
    assert [
        len(_from_afar(replace(job(normal), method=Nuts(chains=n)), counted)) for n in (1, 2, 9)
    ] == [0, 1, 2]


@pytest.mark.parametrize(("model", "comes"), [(normal, True), (low_mode, False)])
def test_a_chain_from_afar_comes_or_speaks_against_the_fit(model, comes):
    counted = CountedDensity.of(target(model))
    settled = MovedChains.at(counted, 30 + np.linspace(-2, 2, 16)[:, None])
    fit = NormalFit(np.array([30.0]), np.eye(1))
    found = _come(counted, np.full((1, 1), 0.1), settled, fit, 1.0, np.random.default_rng(0))
    assert (found is not None) == comes
    if found is not None:
        assert 1e-3 < abs(found[0, 0] - 30) < 4  # not at the optimum


def test_an_engine_without_a_metric_is_refused():
    with pytest.raises(ArgumentError, match="`init` is 'fit', but engine='nutpie' takes no metric"):
        sampled(job(normal, "nutpie"), lambda _: Found({}, {}))
