"""One program for many simulations draws what each method draws for each of them."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.inference.calibration import compiled
from onebasin.inference.calibration.compiled import CompiledChains, CompiledDensities
from onebasin.inference.calibration.drawn import simulated
from onebasin.inference.calibration.fits import CompiledFits, together
from onebasin.truth.problems import PROBLEMS

from ...each import each


def normal(y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    numpyro.sample("y", dist.Normal(mu, sigma).expand([5]), obs=y)


FAMILY = ob.truth.Family.of_numpyro(normal, observed="y")
NETWORK = ob.truth.Family.of_network(
    ob.networks.BayesianNetwork(
        ob.networks.Network(2, (2,)), parametrisation=ob.networks.Parametrisation("givens")
    ),
    np.random.default_rng(0).normal(size=(6, 2)),
)
FEW = {"chains": 2, "warmup": 20, "draws": 4}


def same(drawn, posterior, names):
    for name in names:
        values = posterior["posterior"][name].values
        assert np.allclose(drawn.draws[name], values, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_chains_of_many_simulations_are_those_of_nuts():
    settings = ob.Nuts(**FEW)
    simulations = [simulated(FAMILY, 1, number) for number in range(3)]
    drawn = CompiledChains(FAMILY, settings)(simulations)
    assert drawn[0].draws["mu"].shape == (2, 4)
    assert not np.allclose(drawn[0].draws["mu"], drawn[1].draws["mu"])
    last = simulations[2]
    posterior = ob.infer(FAMILY.condition(last.data), method=settings, seed=last.seed)
    same(drawn[2], posterior, ("mu", "sigma"))


@pytest.mark.slow
def test_chains_from_optima_are_those_of_nuts():
    settings = ob.Nuts(**FEW, init="optimum", init_starts=3)
    simulations = [simulated(FAMILY, 1, number) for number in range(2)]
    drawn = CompiledChains(FAMILY, settings)(simulations)
    last = simulations[1]
    posterior = ob.infer(FAMILY.condition(last.data), method=settings, seed=last.seed)
    same(drawn[1], posterior, ("mu", "sigma"))


def test_chains_from_fits_are_not_compiled_together():
    """Their program has no fit: each would start at a random point."""
    assert together(FAMILY, ob.Nuts(init="fit")) is None
    assert together(FAMILY, ob.Nuts()) is not None


def test_a_simulation_without_an_optimum_has_failed_alone():
    """As where each simulation is inferred by itself."""
    settings = ob.Nuts(chains=1, warmup=1, draws=1, init="optimum", init_starts=2)
    simulations = [simulated(FAMILY, 1, number) for number in range(2)]
    unlikely = replace(simulations[1], data={"y": np.full(5, np.inf)})
    fine, failed = CompiledChains(FAMILY, settings)([simulations[0], unlikely])
    assert not fine.failure
    assert "No optimum" in failed.failure
    assert not failed.draws


@pytest.mark.slow
def test_simulations_one_after_the_other_are_those_side_by_side(monkeypatch):
    settings = ob.Nuts(**FEW)
    simulations = [simulated(FAMILY, 1, number) for number in range(3)]
    together = CompiledChains(FAMILY, settings)(simulations)
    monkeypatch.setattr(compiled, "SIDE_BY_SIDE", -1)
    for one, other in zip(together, CompiledChains(FAMILY, settings)(simulations), strict=True):
        assert np.allclose(one.draws["mu"], other.draws["mu"], rtol=1e-6, atol=1e-8)
        assert one.divergences == other.divergences


@pytest.mark.slow
@each(("name", "wanted"), [("mixture-2", True), ("hidden-markov", False)])
def test_a_long_gradient_is_known_by_its_operations(name, wanted):
    make = PROBLEMS[name].family
    assert make is not None
    family = make()
    first = simulated(family, 0, 0)
    chains = CompiledChains(family, ob.Nuts(**FEW))
    with jax.numpy_rank_promotion("allow"):  # as in a user's process
        assert chains._side_by_side(family.condition(first.data), first.data) == wanted


@pytest.mark.slow
def test_chains_of_a_network_are_those_of_nuts_and_mclmc():
    """As long as rounding has not grown: one program sums in another order, and after 20 steps chains part."""
    few = FEW | {"warmup": 10}
    simulations = [simulated(NETWORK, 1, number) for number in range(2)]
    target = NETWORK.condition(simulations[1].data)
    seed = simulations[1].seed
    for settings in (ob.Nuts(**few), ob.Mclmc(**few, thin=2, start_steps=5)):
        drawn = CompiledChains(NETWORK, settings)(simulations)
        same(drawn[1], ob.infer(target, settings, seed=seed), ("W1", "b2", "sigma"))


@pytest.mark.slow
@each("method", ["meanfield", "fullrank"])
def test_fits_of_many_simulations_are_those_of_advi(method):
    settings = ob.Advi(iterations=300, draws=20, evaluate_every=20, tolerance=0.05)
    simulations = [simulated(FAMILY, 1, number) for number in range(3)]
    drawn = CompiledFits(FAMILY, method, settings)(simulations)
    for simulation, one in zip(simulations, drawn, strict=True):
        fit = ob.infer(
            FAMILY.condition(simulation.data),
            replace(settings, family=method),
            seed=simulation.seed,
        )
        same(one, fit, ("mu", "sigma"))


@pytest.mark.slow
def test_fits_of_many_simulations_are_those_of_symmetrised_vi():
    settings = ob.Symmetrised(steps=100, draws=20, evaluate_every=50)
    simulations = [simulated(NETWORK, 1, number) for number in range(2)]
    drawn = CompiledFits(NETWORK, "symmetrised", settings)(simulations)
    target = NETWORK.condition(simulations[1].data)
    fit = ob.infer(target, method=settings, seed=simulations[1].seed)
    same(drawn[1], fit, ("W1", "b1", "W2", "sigma"))


def test_log_densities_of_many_simulations_are_those_of_each():
    simulations = [simulated(FAMILY, 2, number) for number in range(2)]
    points = {"mu": np.array([[0.1, 0.5], [1.0, -1.0]]), "sigma": np.array([[1.0, 2], [0.5, 1]])}
    likelihood, both = CompiledDensities(FAMILY)([s.data for s in simulations], points)
    y = simulations[1].data["y"]
    expected = dist.Normal(points["mu"][1][:, None], points["sigma"][1][:, None]).log_prob(y)
    assert np.allclose(likelihood[1], expected.sum(axis=1), rtol=1e-5)
    values = {name: value[1, 0] for name, value in points.items()}
    alone = float(ob.log_density(FAMILY.condition(simulations[1].data), values))
    assert np.isclose(both[1, 0], alone, rtol=1e-10)


def test_data_whose_size_changes_are_refused_in_words():
    growing = ob.truth.Family(
        "growing",
        lambda rng: ({"mu": 0.0, "sigma": 1.0}, {"y": np.zeros(rng.integers(3, 9))}),
        FAMILY.condition,
        model=FAMILY.model,
    )
    with pytest.raises(ValueError, match="`simulate` gave data of shapes"):
        CompiledChains(growing, ob.Nuts(**FEW))(
            [simulated(growing, 1, number) for number in range(6)]
        )


def test_what_advi_refuses_is_refused_of_many_simulations_too():
    settings = ob.Advi(init="he", draws=10)
    with pytest.raises(ValueError, match=r"`init` is 'he', but the target .* is no network"):
        ob.calibrate(FAMILY, settings, simulations=2)
