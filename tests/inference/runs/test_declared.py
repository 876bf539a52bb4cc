"""Every method holds a declared symmetry against the log density, as the command line does."""

import dataclasses
import logging

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import onebasin as ob
from onebasin import Exchangeable, Target
from onebasin.inference.runs import declared
from onebasin.models import BayesianNetwork, Network
from onebasin.posteriors.view import as_view

BLOCK = Exchangeable({"mu": 0})
SETTINGS = ob.Nuts(chains=2, warmup=30, draws=30)


def two(shift: float) -> Target:
    """Two means, alike where `shift` is 0."""

    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.factor("shift", -shift * jnp.square(mu[0] - 1))

    return Target("two", numpyro_model=model, symmetry=(BLOCK,))


def unreached(*_, **__):
    raise AssertionError("sampled what has to be refused")


def test_nothing_is_checked_where_it_is_not_asked_for_and_draws_are_the_same():
    left_out = ob.infer(two(0), method=SETTINGS, check_symmetry=False)
    assert as_view(left_out).symmetry_evidence is None
    checked = ob.infer(two(0), method=SETTINGS)
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
        tree = ob.infer(Target("far", numpyro_model=far, symmetry=(BLOCK,)), method=SETTINGS)
    found = as_view(tree).symmetry_evidence
    assert not found.holds
    assert found.refuted.endswith("nats at draws")
    assert [r.getMessage() for r in caplog.records] == [found.sentence]
