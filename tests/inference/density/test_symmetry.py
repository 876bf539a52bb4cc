"""A declared symmetry is believed only if the log density has it, in either engine."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from onebasin import Exchangeable, Flip, Target
from onebasin.inference.density.symmetry import SymmetryError, check_symmetry
from onebasin.networks import BayesianNetwork, Network, Parametrisation, Rescalable

from ..variational.problems import binary_weight, item_response, mixture


def network_target(activation: str, *parts: str, hidden=(3, 4)):
    rng = np.random.default_rng(1)
    model = BayesianNetwork(
        Network(2, hidden, 1, activation), parametrisation=Parametrisation(*parts or ("free",))
    )
    return model.condition(rng.normal(size=(9, 2)), rng.normal(size=9))


def steep() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 10).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(jnp.tanh(mu).sum(), 1e-3), obs=jnp.linspace(-3, 3, 12))


def test_single_precision_of_the_process_hides_nothing():
    target = Target("steep", numpyro_model=steep, symmetry=(Exchangeable({"mu": 0}),))
    with jax.enable_x64(False):
        assert check_symmetry(target).differences[0] < 1e-6


def test_mixture_has_the_whole_symmetry_and_no_part_of_it():
    found = check_symmetry(mixture())
    assert found.points == 5
    assert found.differences[0] < 1e-12
    partial = dataclasses.replace(mixture(), symmetry=(Exchangeable({"mu": 0, "sigma": 0}),))
    with pytest.raises(
        SymmetryError, match=r"of 'mixture' does not hold: moving mu, sigma as declared"
    ) as caught:
        check_symmetry(partial)
    assert caught.value.difference > 1e-3
    assert f"{caught.value.difference:.3g}" in str(caught.value)


def test_two_components_change_places_with_the_complement_of_their_weight():
    assert check_symmetry(binary_weight(), points=8)
    alone = dataclasses.replace(binary_weight(), symmetry=(Exchangeable({"mu": 0}),))
    with pytest.raises(SymmetryError):
        check_symmetry(alone, points=8)


def test_whole_variables_of_unlike_lengths_change_sign_together():
    assert check_symmetry(item_response()).differences[0] < 1e-12
    broken = dataclasses.replace(item_response(), symmetry=(Flip("theta"),))
    with pytest.raises(SymmetryError, match="moving theta as declared changes the log"):
        check_symmetry(broken)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_networks_have_the_symmetry_that_they_declare(activation):
    target = network_target(activation)
    found = check_symmetry(target)
    assert len(found.differences) == len(target.symmetry)
    assert max(found.differences) < 1e-10
    assert any(isinstance(block, Rescalable) for block in target.symmetry) is (activation == "relu")


@pytest.mark.parametrize(
    ("target", "block"),
    [
        (
            network_target("tanh", "free", "ordered", hidden=(3,)),
            Exchangeable({"W1": 1, "b1": 0, "W2": 0}),
        ),
        (
            network_target("softplus", hidden=(3,)),
            Exchangeable({"W1": 1, "b1": 0, "W2": 0}, flips=True),
        ),
        (network_target("tanh", hidden=(3,)), Rescalable({"W1": 1, "b1": 0}, {"W2": 0})),
    ],
)
def test_networks_do_not_have_what_was_broken(target, block):
    with pytest.raises(SymmetryError, match="does not hold"):
        check_symmetry(dataclasses.replace(target, symmetry=(block,)))


def test_stan_networks_are_checked_on_their_own_density():
    target = network_target("relu", "givens", hidden=(3,))
    found = check_symmetry(target, engine="stanli", points=3)
    assert found.differences[0] < 1e-10
    assert all(np.isnan(found.differences[1:]))  # the scales move the likelihood alone
    with pytest.raises(SymmetryError):
        check_symmetry(
            dataclasses.replace(target, symmetry=(Exchangeable({"W1": 1}),)), engine="stanli"
        )


def test_target_without_a_symmetry_passes_and_one_of_no_variable_does_not():
    assert check_symmetry(dataclasses.replace(mixture(), symmetry=())).differences == ()
    target = dataclasses.replace(mixture(), symmetry=(Exchangeable({"muu": 0}),))
    with pytest.raises(ValueError, match="`symmetry` names muu, which is not there; there are mu"):
        check_symmetry(target)
