"""The gap to the symmetric mixture: against sums over the group, in its limits, and from posteriors."""

import math
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from onebasin import Advi, Symmetrised, infer
from onebasin.approximations import mixture_gap
from onebasin.inference.variational.gaussians import MeanField, layout_of
from onebasin.models import NetworkTarget

from .problems import by_sum, mixture, regression

pytestmark = pytest.mark.full


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


def test_components_that_are_alike_have_no_gap():
    """Three by the coordinates of their weights, means and scales."""
    posterior = posterior_of(np.zeros(9), np.ones(9), "symmetrised-vi")
    gap = mixture_gap(mixture(), posterior)
    assert gap.total.upper == pytest.approx(0, abs=1e-9)
    assert gap.layers["layer"][0] == "theta, mu, sigma"


def test_more_than_a_dozen_units_are_bounded_by_permutations():
    target = regression((14,))
    loc, scale = spread(target, 0.5)
    total = mixture_gap(target, posterior_of(loc, scale), draws=50, permutations=20).total
    assert 0 < total.lower <= total.upper < math.lgamma(15)


@pytest.mark.slow
def test_posteriors_of_both_methods_are_read():
    target = regression((3, 2))
    settings = Advi(
        iterations=100,
        evaluate_every=25,
        draws=5,
        init_scale=1.0,
        trace_parameters=True,
        tolerance=0.0,
    )
    fit = infer(target, settings, seed=1, predictive_mb=0)
    at_end, last, first = (mixture_gap(target, fit, evaluation=k) for k in (None, 3, 0))
    assert at_end.total == last.total != first.total
    with pytest.raises(ValueError, match="`evaluation` is 4; the trace has 4"):
        mixture_gap(target, fit, evaluation=4)
    settings = Symmetrised(fits=2, steps=50, draws=5, report_draws=500)
    other = infer(target, settings, predictive_mb=0)
    variational = other["variational"].isel(chain=1)
    total = mixture_gap(target, other, fit=1, draws=500).total
    both = np.hypot(total.upper_mcse, float(variational["information_upper_mcse"]))
    assert abs(total.upper - float(variational["information_upper"])) < 5 * both
