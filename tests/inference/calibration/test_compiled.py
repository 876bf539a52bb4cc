"""One program for many simulations draws what each method draws for each of them."""

from dataclasses import replace

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.inference.calibration import compiled
from onebasin.inference.calibration.compiled import CompiledChains, CompiledDensities
from onebasin.inference.calibration.family import simulated


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
SHORTER = FEW | {"warmup": 10}
"""As long as rounding has not grown: one program sums in another order, and after 20 steps chains part."""
CASES = [
    (FAMILY, ob.Nuts(**FEW)),
    (FAMILY, ob.Nuts(**FEW, init="optimum", init_starts=3)),
    (NETWORK, ob.Nuts(**SHORTER)),
    (NETWORK, ob.Mclmc(**SHORTER, thin=2, start_steps=5)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "settings"), CASES)
def test_what_is_drawn_for_many_simulations_is_what_the_method_draws_for_each(
    family, settings, monkeypatch
):
    simulations = [simulated(family, 1, number) for number in range(2)]
    drawn = CompiledChains(family, settings)(simulations)
    monkeypatch.setattr(compiled, "SIDE_BY_SIDE", -1)
    apart = CompiledChains(family, settings)(simulations)
    assert [one.divergences for one in apart] == [one.divergences for one in drawn]
    target = family.condition(simulations[1].data)
    posterior = ob.infer(target, settings, seed=simulations[1].seed)["posterior"]
    for name in posterior:
        assert not np.allclose(drawn[0].draws[name], drawn[1].draws[name])
        for one in (drawn[1], apart[1]):
            np.testing.assert_allclose(one.draws[name], posterior[name], rtol=1e-6, atol=1e-8)


def test_a_simulation_without_an_optimum_has_failed_alone():
    """As where each simulation is inferred by itself."""
    settings = ob.Hmc(chains=1, warmup=1, draws=1, init="optimum", init_starts=2)
    simulations = [simulated(FAMILY, 1, number) for number in range(2)]
    unlikely = replace(simulations[1], data={"y": np.full(5, np.inf)})
    fine, failed = CompiledChains(FAMILY, settings)([simulations[0], unlikely])
    assert not fine.failure
    assert "No optimum" in failed.failure
    assert not failed.draws


def test_log_densities_of_many_simulations_are_those_of_each():
    simulations = [simulated(FAMILY, 2, number) for number in range(2)]
    points = [
        {"mu": np.array([0.1, 0.5]), "sigma": np.array([1.0, 2.0])},
        {"mu": np.array([1.0, -1.0]), "sigma": np.array([0.5, 1.0])},
    ]
    found = CompiledDensities(FAMILY)(simulations, points)[1]
    y = simulations[1].data["y"]
    expected = dist.Normal(points[1]["mu"][:, None], points[1]["sigma"][:, None]).log_prob(y)
    assert np.allclose(found["log likelihood"], expected.sum(axis=1), rtol=1e-5)
    values = {name: value[0] for name, value in points[1].items()}
    alone = float(ob.log_density(FAMILY.condition(simulations[1].data), values))
    assert np.isclose(found["lp"][0], alone, rtol=1e-10)


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
