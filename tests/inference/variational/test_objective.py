"""The ELBO's terms: the same expectation however they are estimated."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference import Advi, Symmetrised
from onebasin.inference.density.network import density_of
from onebasin.inference.training.train import Batches
from onebasin.inference.variational.elbo import Objective, applies_locally
from onebasin.inference.variational.engine import TrainingLoop
from onebasin.inference.variational.gaussians import MeanField, family_of
from onebasin.inference.variational.layout import layout_of
from onebasin.inference.variational.term import Information
from onebasin.models import NetworkTarget

from ...each import each
from .problems import broken, classification, mixture, regression

TARGETS = {
    "regression": regression,
    "classification": classification,
    "ordered": lambda: broken(biases="ordered"),
    "both": lambda: broken(skip="orthogonal", biases="ordered"),
}


def made(target: NetworkTarget, *, local: bool) -> tuple[Objective, dict[str, jax.Array]]:
    density = density_of(target)
    family = MeanField(density.size)
    loc = jax.random.normal(jax.random.key(5), (density.size,))
    return Objective(density, family, local), family.initial(loc, 0.3)


SLOW_PAIRS = (("free", None), ("ordered", None), ("free", "orthogonal"))
VARIANCE = {"free": 0.25, "ordered": 0.5}
"""Bounds of the gradient's variance by layers, in that by weights; measured 0.16 and 0.17, 0.26 and 0.36 with skips."""


def draws_of(objective: Objective, p: dict[str, jax.Array], num: int) -> jax.Array:
    eps = jax.random.normal(jax.random.key(6), (num, objective.family.noise))
    return objective.family.transform(p, eps)


def likelihood(objective: Objective, p: dict[str, jax.Array], draws: jax.Array) -> jax.Array:
    """Log likelihood of all data at the draws, compiled as a whole."""
    return jax.jit(lambda p, draws: objective.likelihood(p, jax.random.key(7), draws, None))(
        p, draws
    )


def assert_same_mean(first: np.ndarray, second: np.ndarray) -> None:
    """Means of independent draws agree within 5 standard errors of their difference."""
    error = np.sqrt(np.var(first) / len(first) + np.var(second) / len(second))
    assert error > 0
    assert abs(np.mean(first) - np.mean(second)) < 5 * error


@pytest.mark.parametrize("name", ["classification", "both"])
def test_layers_and_weights_have_the_same_expected_log_likelihood(name):
    target = TARGETS[name]()
    values = []
    for local in (False, True):
        objective, p = made(target, local=local)
        draws = draws_of(objective, p, 20_000)[:: 1 if local else -1]
        values.append(np.asarray(likelihood(objective, p, draws)))
    assert_same_mean(*values)
    assert np.var(values[1]) < np.var(values[0])


@pytest.mark.parametrize(("name", "local"), [("both", False), ("classification", True)])
def test_evaluate_in_pieces_is_the_likelihood(name, local):
    objective, p = made(TARGETS[name](), local=local)
    draws = draws_of(objective, p, 5000)
    whole = likelihood(objective, p, draws)
    pieces = jax.jit(objective.evaluate)(p, jax.random.key(8), draws)
    if local:
        assert_same_mean(np.asarray(whole), np.asarray(pieces))
    else:
        np.testing.assert_allclose(pieces, whole, rtol=1e-10)


@each("name", ["regression", "both"])
def test_log_prior_in_closed_form_is_the_mean_over_draws(name):
    objective, p = made(TARGETS[name](), local=False)
    draws = draws_of(objective, p, 20_000)
    closed = np.asarray(jax.jit(objective.log_prior)(p, draws))
    sampled = np.asarray(jax.jit(jax.vmap(objective.density.log_prior))(draws))
    difference = sampled - closed
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(len(difference))


def slopes_of(objective: Objective, p: dict[str, jax.Array], num: int) -> np.ndarray:
    """Gradients (draw, entry) of the ELBO by means and log standard deviations, each from one draw."""

    def one(key: jax.Array) -> jax.Array:
        def elbo(p: dict[str, jax.Array]) -> jax.Array:
            key_draw, key_layers = jax.random.split(key)
            draws = objective.draw(p, key_draw, 1)
            values = objective.likelihood(p, key_layers, draws, None) + objective.log_prior(
                p, draws
            )
            return values[0] + objective.family.entropy(p)

        slope = jax.grad(elbo)(p)
        return jnp.concatenate([slope["loc"], slope["log_scale"]])

    keys = jax.random.split(jax.random.key(9), num)
    return np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=500))(keys))


@pytest.mark.parametrize(
    ("biases", "skip"),
    [
        ("ordered", "orthogonal"),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in SLOW_PAIRS),
    ],
)
def test_gradients_by_layers_and_by_weights_agree_and_layers_have_less_noise(biases, skip):
    """The variance is summed over entries; the noise is known, which would otherwise have most of it."""
    target = broken(skip=skip, biases=biases, noise=0.5)
    values = [slopes_of(*made(target, local=local), 3000) for local in (False, True)]
    error = np.sqrt(sum(np.var(v, axis=0) / len(v) for v in values))
    gap = np.abs(values[0].mean(axis=0) - values[1].mean(axis=0))
    assert np.all(gap < 5 * error + 1e-9)
    by_weights, by_layers = (v.var(axis=0).sum() for v in values)
    assert by_layers < VARIANCE[biases] * by_weights


def test_what_is_drawn_beside_layers_is_distributed_as_in_whole_draws():
    """The noise's standard deviation and ordered biases; the weights stand at their means."""
    objective, p = made(TARGETS["ordered"](), local=True)
    frugal = replace(objective, frugal=True)
    draws = np.asarray(jax.jit(lambda p: frugal.draw(p, jax.random.key(1), 20_000))(p))
    for site, at in objective.density.places().items():
        found, loc = draws[:, at.ravel()], np.asarray(p["loc"])[at.ravel()]
        if site in ("sigma", "b1", "b2"):
            np.testing.assert_allclose(found.mean(axis=0), loc, atol=5 * 0.3 / np.sqrt(20_000))
            np.testing.assert_allclose(found.std(axis=0), 0.3, rtol=0.05)
        else:
            np.testing.assert_array_equal(found, np.broadcast_to(loc, found.shape))


def plain(size: int | None) -> TrainingLoop:
    objective, _ = made(classification(24), local=False)
    return TrainingLoop(objective, Advi(batch_size=size), 0)


def symmetrised(size: int | None) -> TrainingLoop:
    layout, settings = layout_of(classification(24)), Symmetrised(batch_size=size)
    objective = Objective(layout.density, MeanField(layout.density.size), local=False)
    information = Information(layout, objective.family, "exact", settings)
    return TrainingLoop(objective, settings, 0, information)


@pytest.mark.parametrize("trainer", [plain, symmetrised])
def test_losses_of_an_epochs_batches_average_to_the_loss_of_all_data(trainer):
    _, p = made(classification(24), local=False)
    key = jax.random.key(2)
    full, batched = trainer(None), trainer(6)
    whole = jax.jit(lambda p: full.loss(p, jnp.asarray(0), (key, None)))(p)
    rows = Batches(24, 6).epoch(jax.random.key(0), 0)
    loss = jax.jit(lambda p, rows: batched.loss(p, jnp.asarray(0), (key, rows)))
    parts = [loss(p, r) for r in rows]
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-10)


def test_applies_locally_where_weights_are_normal():
    layout = layout_of(regression())
    meanfield, block = (family_of(name, layout, 1) for name in ("meanfield", "block"))
    assert applies_locally(density_of(regression()), meanfield, None)
    assert applies_locally(density_of(broken(biases="ordered")), meanfield, None)
    assert not applies_locally(density_of(regression()), block, None)
    assert not applies_locally(density_of(mixture()), meanfield, None)
    assert not applies_locally(density_of(regression()), meanfield, False)
    with pytest.raises(ValueError, match="networks with free weights"):
        applies_locally(density_of(regression()), block, True)
