"""A declared symmetry is believed only if the log density has it, in either engine."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import logsumexp

from onebasin import Exchangeable, Flip, Target
from onebasin.inference.density.symmetry import SymmetryError, check_symmetry
from onebasin.networks import BayesianNetwork, Network, Parametrisation, Rescalable

from ...each import each

Y = np.random.default_rng(5).normal(size=12) + np.repeat([-2.0, 2.0], 6)
WHOLE = Exchangeable({"weight": 0, "mu": 0, "sigma": 0})


def likelihood(name: str, weight, mu, sigma) -> None:
    parts = dist.Normal(mu[None], sigma[None]).log_prob(jnp.asarray(Y)[:, None])
    numpyro.factor(name, logsumexp(jnp.log(weight)[None] + parts, axis=1).sum())


def mixture() -> None:
    weight = numpyro.sample("weight", dist.Dirichlet(jnp.ones(3)))
    mu = numpyro.sample("mu", dist.Normal(0, 10).expand([3]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 1).expand([3]).to_event(1))
    likelihood("y", weight, mu, sigma)


def two_components() -> None:
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    mu = numpyro.sample("mu", dist.Normal(0, 2).expand([2]).to_event(1))
    likelihood("y", jnp.stack([theta, 1 - theta]), mu, jnp.ones(2))


def network_target(activation: str, *parts: str, hidden=(3, 4)):
    rng = np.random.default_rng(1)
    model = BayesianNetwork(
        Network(2, hidden, 1, activation), parametrisation=Parametrisation(*parts or ("free",))
    )
    return model.condition(rng.normal(size=(9, 2)), rng.normal(size=9))


def steep() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 10).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(jnp.tanh(mu).sum(), 1e-3), obs=jnp.asarray(Y))


def test_single_precision_of_the_process_hides_nothing():
    target = Target("steep", numpyro_model=steep, symmetry=(Exchangeable({"mu": 0}),))
    with jax.enable_x64(False):
        assert check_symmetry(target).differences[0] < 1e-6


def test_mixture_has_the_whole_symmetry_and_no_part_of_it():
    target = Target("mixture", numpyro_model=mixture, symmetry=(WHOLE,))
    found = check_symmetry(target)
    assert found.points == 5
    assert found.differences[0] < 1e-12
    partial = dataclasses.replace(target, symmetry=(Exchangeable({"mu": 0, "sigma": 0}),))
    with pytest.raises(
        SymmetryError, match=r"of 'mixture' does not hold: moving mu, sigma as declared"
    ) as caught:
        check_symmetry(partial)
    assert caught.value.difference > 1e-3
    assert f"{caught.value.difference:.3g}" in str(caught.value)


def test_two_components_change_places_with_the_complement_of_their_weight():
    block = Exchangeable({"mu": 0}, complements=("theta",))
    assert check_symmetry(Target("two", numpyro_model=two_components, symmetry=(block,)), points=8)
    with pytest.raises(SymmetryError):
        check_symmetry(
            Target("two", numpyro_model=two_components, symmetry=(Exchangeable({"mu": 0}),)),
            points=8,
        )


def item_response() -> None:
    theta = numpyro.sample("theta", dist.Normal(0, 1).expand([5]).to_event(1))
    a = numpyro.sample("a", dist.Normal(0, 1).expand([3]).to_event(1))
    numpyro.factor("y", -jnp.square(jnp.outer(theta, a) - 0.7).sum())


def test_whole_variables_of_unlike_lengths_change_sign_together():
    target = Target("2PL", numpyro_model=item_response, symmetry=(Flip(("theta", "a")),))
    assert check_symmetry(target).differences[0] < 1e-12
    broken = dataclasses.replace(target, symmetry=(Flip("theta"),))
    with pytest.raises(SymmetryError, match="moving theta as declared changes the log"):
        check_symmetry(broken)


@each("activation", ["tanh", "relu"])
def test_networks_have_the_symmetry_that_they_declare(activation):
    target = network_target(activation)
    found = check_symmetry(target)
    assert len(found.differences) == len(target.symmetry)
    assert max(found.differences) < 1e-10
    assert any(isinstance(block, Rescalable) for block in target.symmetry) is (activation == "relu")


@each(
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
    assert check_symmetry(Target("two", numpyro_model=two_components)).differences == ()
    target = Target("mixture", numpyro_model=mixture, symmetry=(Exchangeable({"muu": 0}),))
    with pytest.raises(ValueError, match="`symmetry` names muu, which is not there; there are mu"):
        check_symmetry(target)
