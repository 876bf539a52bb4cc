"""NUTS by nutpie: the form of its results, known moments, seeds, kept chains, and what is rejected."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin.models import Target

from ..known import assert_known, known_target

pytestmark = pytest.mark.full

# Of a Stan program nutpie wants a library with threads: headers, interface and program are compiled for it alone.
DEFINITIONS = ["numpyro", pytest.param("stan", marks=(pytest.mark.stan, pytest.mark.slow))]
SMALL = ob.Nuts(chains=2, warmup=200, draws=100)


def run(definition: str, **more: Any) -> xr.DataTree:
    given = {"method": SMALL, "seed": 1, **more}
    return ob.infer(known_target(definition), engine="nutpie", **given)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_known_moments(definition):
    settings = ob.Nuts(chains=4, warmup=300, draws=700)
    assert_known(run(definition, method=settings, seed=3).posterior)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_more_draws_go_on_from_those_that_are_kept(definition, tmp_path):
    place = tmp_path / "kept"
    run(definition, method=replace(SMALL, draws=60), checkpoint=place)
    longer = run(definition, checkpoint=place)
    xr.testing.assert_equal(longer.posterior.to_dataset(), run(definition).posterior.to_dataset())


@pytest.mark.stan
@pytest.mark.slow
def test_everything_that_a_program_computes_is_there():
    programs = Path(__file__).parents[3] / "notebooks" / "programs"
    target = ob.stan_program(
        programs / "mixture.stan", programs / "mixture.json", symmetry="mu,sigma,1-theta"
    )
    tree = ob.infer(target, engine="nutpie", method=SMALL, seed=1)
    stan = ob.infer(target, engine="cmdstan", method=SMALL, seed=1)
    assert set(tree.children) == set(stan.children) - {"adaptation"}
    for group in tree.children:
        ours, theirs = tree[group].to_dataset(), stan[group].to_dataset()
        assert {n: v.dims for n, v in ours.items()} == {n: v.dims for n, v in theirs.items()}
        assert {n: v.dtype for n, v in ours.items()} == {n: v.dtype for n, v in theirs.items()}
    assert set(tree.attrs) - {"nutpie"} == set(stan.attrs)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "dense"}, "`metric` is 'dense', but engine='nutpie' has 'diag' alone"),
        ({"dtype": "float32"}, "`dtype` is 'float32', but engine='nutpie' has 'float64' alone"),
    ],
)
def test_settings_that_it_has_not_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        run("numpyro", method=replace(SMALL, **given))


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(
        ob.errors.InferenceError, match=r"not installed: run `pip install 'onebasin\[nutpie\]'`"
    ):
        run("numpyro")


def test_no_start_of_finite_density_is_said():
    def model() -> None:
        x = numpyro.sample("x", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        numpyro.factor("nowhere", jnp.where(x[0] > -10, -jnp.inf, 0.0))

    with pytest.raises(
        ob.errors.InferenceError, match="No starting point with a finite log density"
    ):
        ob.infer(Target("nowhere", numpyro_model=model), engine="nutpie", method=SMALL)
