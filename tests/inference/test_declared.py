"""Every method holds a declared symmetry against the log density, as the command line does."""

import dataclasses
import logging
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin import Exchangeable, Target, inference, stan
from onebasin.inference.density.symmetry import SymmetryError
from onebasin.inference.methods import METHODS as REGISTRY
from onebasin.inference.runs import declared
from onebasin.models import BayesianNetwork, Network
from onebasin.posteriors.view import as_view

FREE_MIXTURE = Path(__file__).parents[1] / "stan" / "programs" / "known" / "free_mixture.stan"
BLOCK = Exchangeable({"mu": 0})
SETTINGS = ob.NutsSettings(chains=2, warmup=30, draws=30)
METHODS = {
    "nuts": lambda t, **how: ob.nuts(t, settings=SETTINGS, **how),
    "hmc": lambda t, **how: ob.hmc(t, settings=ob.HmcSettings(2, 30, 30), **how),
    "advi": lambda t, **how: ob.advi(t, settings=ob.AdviSettings(iterations=20, draws=30), **how),
    "laplace": lambda t, **how: ob.laplace(t, settings=ob.LaplaceSettings(draws=30), **how),
    "optimize": ob.optimize,
    "pathfinder": lambda t, **how: ob.pathfinder(t, engine="stan", **how),
}


def two(shift: float) -> Target:
    """Two means, alike where `shift` is 0."""

    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("shift", -shift * jnp.square(mu[0] - 1))

    return Target("two", numpyro_model=model, symmetry=(BLOCK,))


def mixture(block: Exchangeable) -> Target:
    """A Stan program that other tests compile too."""
    data = {"N": 6, "K": 2, "y": [-2.0, -1.8, -2.2, 2.1, 1.9, 2.0]}
    return stan.stan_program(FREE_MIXTURE, data, symmetry=(block,))


def unreached(*_, **__):
    raise AssertionError("sampled what has to be refused")


@pytest.mark.parametrize("method", ["nuts", "hmc", "advi", "laplace", "optimize"])
def test_every_method_records_what_it_checked(method):
    found = as_view(METHODS[method](two(0), seed=2)).symmetry_evidence
    assert found is not None
    assert (found.points, found.draws > 0, found.holds, found.unresolved) == (5, True, True, ())


@pytest.mark.parametrize("method", ["nuts", "hmc", "advi", "laplace", "optimize"])
def test_every_method_refuses_what_the_density_does_not_have_before_it_starts(method, monkeypatch):
    monkeypatch.setattr(REGISTRY[method], "run", unreached)
    with pytest.raises(SymmetryError, match=r"`symmetry` of 'two' does not hold: moving mu"):
        METHODS[method](two(1))


def test_nothing_is_checked_where_it_is_not_asked_for_and_draws_are_the_same():
    left_out = ob.nuts(two(0), settings=SETTINGS, check_symmetry=False)
    assert as_view(left_out).symmetry_evidence is None
    checked = ob.nuts(two(0), settings=SETTINGS)
    np.testing.assert_array_equal(left_out["posterior"]["mu"], checked["posterior"]["mu"])


def test_a_networks_symmetry_is_its_architectures(monkeypatch):
    monkeypatch.setattr(declared, "hold", unreached)
    x = np.zeros((3, 1))
    target = BayesianNetwork(Network(1, (2,))).condition(x, x, name="net")
    assert declared.begin(target, engine="numpyro", seed=0, progress=False) is None
    plain = dataclasses.replace(two(0), symmetry=())
    assert declared.begin(plain, engine="numpyro", seed=0, progress=False) is None


def test_what_draws_refute_is_kept_and_said(monkeypatch, caplog):
    """Unlike parts beyond 3, where no start is: the draws are valid, and are handed back."""

    def far() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
        numpyro.factor("far", -jnp.maximum(mu[0] - 3, 0.0))

    with caplog.at_level(logging.WARNING, "onebasin"):
        tree = ob.nuts(Target("far", numpyro_model=far, symmetry=(BLOCK,)), settings=SETTINGS)
    found = as_view(tree).symmetry_evidence
    assert not found.holds
    assert found.refuted.endswith("nats at draws")
    assert [r.getMessage() for r in caplog.records] == [found.sentence]


@pytest.mark.stan
@pytest.mark.parametrize("method", ["nuts", "pathfinder"])
def test_stan_programs_are_checked_by_the_program_itself(method):
    whole = Exchangeable({"weight": 0, "mu": 0, "sigma": 0})
    run = inference.nuts if method == "nuts" else METHODS[method]
    how = {"settings": SETTINGS, "engine": "stan"} if method == "nuts" else {}
    found = as_view(run(mixture(whole), seed=1, **how)).symmetry_evidence
    assert (found.points, found.draws > 0, found.holds) == (5, True, True)
    with pytest.raises(SymmetryError, match="`symmetry` of 'free_mixture' does not hold"):
        run(mixture(BLOCK), **how)
