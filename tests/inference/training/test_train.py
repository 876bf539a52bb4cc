"""Training and ensembles where the optimum is known, and the symmetries that training has."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np
import pytest
from numpyro.infer.util import potential_energy
from scipy.optimize import minimize

from onebasin.inference import Ensemble, infer
from onebasin.inference.training.ensemble import Train
from onebasin.inference.training.train import Trainer, first_values, train
from onebasin.models import NetworkTarget
from onebasin.networks import BayesianNetwork, Gaussian, Network

from ..known import linear_target
from ..variational.problems import classification, regression

pytestmark = pytest.mark.full

net_target = partial(regression, (4,), num_obs=24)


def potential(target: NetworkTarget, trainer: Trainer) -> Callable[[jax.Array], jax.Array]:
    """NumPyro's own potential, of a vector."""
    return lambda v: potential_energy(target.numpyro_model, (), {}, trainer.density.unravel(v))


@pytest.mark.parametrize("objective", ["posterior", "likelihood"])
def test_members_reach_the_optimum_of_a_convex_case(objective):
    """Ridge regression and ordinary least squares, in closed form."""
    target = linear_target()
    how = {"objective": objective, "init": "prior"}
    settings = Ensemble(members=3, epochs=2000, learning_rate=0.05, **how)
    tree = infer(target, settings, seed=1)
    decay = 0.7**2 * np.eye(2) if objective == "posterior" else np.zeros((2, 2))
    best = np.linalg.solve(target.x.T @ target.x + decay, target.x.T @ target.y[:, 0])
    np.testing.assert_allclose(tree.posterior["W1"][0, :, :, 0], np.tile(best, (3, 1)), rtol=1e-6)
    # The same log density, written out for the first member.
    w = tree.posterior["W1"].to_numpy()[0, 0, :, 0]
    rest = target.y[:, 0] - target.x @ w
    exact = -0.5 * (rest @ rest / 0.49 + len(rest) * np.log(2 * np.pi * 0.49))
    exact += -0.5 * (w @ w) - np.log(2 * np.pi)
    assert float(tree.sample_stats["lp"][0, 0]) == pytest.approx(exact, rel=1e-10)


def test_classifier_ends_at_an_optimum_that_scipy_does_not_improve():
    """Of NumPyro's own potential, from where training ended."""
    target = classification()
    settings = Train(epochs=3000, learning_rate=0.02)
    start = first_values(target, Ensemble(members=1), 3)
    trained = train(target, start, settings, seed=3)
    trainer = Trainer(target, settings, 1, 1, False)
    first, end = (trainer.first(values).points[0] for values in (start, trained.values))
    value = jax.jit(jax.value_and_grad(potential(target, trainer)))
    polished = minimize(
        lambda v: tuple(np.asarray(part, float) for part in value(v)), end, jac=True, method="BFGS"
    )
    assert -trained.log_density[0] == pytest.approx(polished.fun, abs=1e-3)
    assert polished.fun < float(value(first)[0]) - 1


@pytest.mark.parametrize(
    ("make", "objective"), [(net_target, "posterior"), (classification, "likelihood")]
)
def test_gradients_of_an_epochs_batches_average_to_the_full_gradient(make, objective):
    target = make()
    start = first_values(target, Ensemble(members=1), 0)

    def slopes(batch_size: int | None) -> list[jax.Array]:
        settings = Train(batch_size=batch_size, objective=objective)
        trainer = Trainer(target, settings, 1, 1, False)
        point = trainer.first(start).points[0]
        rows = trainer.batches.epoch(trainer._keys[0], 0)
        slope = jax.jit(jax.grad(trainer.loss))
        return [slope(point, batch) for batch in rows]

    (full,) = slopes(None)
    parts = slopes(6)
    assert len(parts) == 4
    np.testing.assert_allclose(np.mean(parts, axis=0), full, rtol=1e-9, atol=1e-9)
    assert not np.isclose(parts[0], full, rtol=1e-3).any()


def test_same_batches_keep_a_permuted_twin_a_twin():
    """Adam treats all weights alike, so that renamed units stay renamed; with batches of their own they do not."""
    target = net_target()
    start = first_values(target, Ensemble(members=1), 0)
    order = np.array([2, 0, 3, 1])
    move = {"W1": lambda v: v[..., order], "b1": lambda v: v[..., order]}
    move |= {"W2": lambda v: v[..., order, :]}
    twins = {k: np.concatenate([v, move.get(k, lambda u: u)(v)]) for k, v in start.items()}
    settings = Train(epochs=20, batch_size=8)
    same = train(target, twins, settings, 1, same_batches=True, record_every=5)
    apart = train(target, twins, settings, 1, same_batches=False)
    for name, value in same.values.items():
        moved = move.get(name, lambda u: u)
        np.testing.assert_allclose(value[1], moved(value[0]), rtol=1e-7, atol=1e-9)
        assert same.checkpoints[name].shape == (5, *value.shape)
        np.testing.assert_allclose(same.checkpoints[name][0], twins[name], rtol=1e-12)
        np.testing.assert_array_equal(same.checkpoints[name][-1], value)
    np.testing.assert_array_equal(same.recorded_at, [0, 5, 10, 15, 20])
    np.testing.assert_allclose(same.losses[0], same.losses[1], rtol=1e-9)
    assert not np.allclose(apart.values["b2"][0], apart.values["b2"][1], rtol=1e-6)


def test_he_start_has_the_stated_spread():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 50))
    target = BayesianNetwork(Network(50, (40,), 1), Gaussian(noise_scale=0.3)).condition(x, x[:, 0])
    he = first_values(target, Ensemble(members=20), 1)
    prior = first_values(target, Ensemble(members=20, init="prior"), 1)
    # 40,000 draws: the standard error of an sd is 0.35 %.
    assert he["W1"].std() == pytest.approx(np.sqrt(2 / 50), rel=0.02)
    assert he["W2"].std() == pytest.approx(np.sqrt(2 / 40), rel=0.1)
    assert (he["b1"] == 0).all()
    np.testing.assert_allclose(he["sigma"], 0.3)
    assert prior["W1"].std() == pytest.approx(1.0, rel=0.02)
