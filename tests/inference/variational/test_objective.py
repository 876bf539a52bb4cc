"""The ELBO's terms: the same expectation however they are estimated."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference import SymmetrisedSettings
from onebasin.inference.training.batches import Batches
from onebasin.inference.variational.elbo import Objective, applies_locally
from onebasin.inference.variational.families.table import family_of
from onebasin.inference.variational.layout import layout_of
from onebasin.models import NetworkTarget

from .problems import classification, mixture, regression

TARGETS = {"regression": regression, "classification": classification}


def made(target: NetworkTarget, *, local: bool) -> tuple[Objective, dict[str, jax.Array]]:
    layout = layout_of(target)
    family = family_of("meanfield", layout, 1)
    loc = jax.random.normal(jax.random.key(5), (layout.density.size,))
    return Objective(layout.density, family, local), family.initial(loc, 0.3)


def draws_of(objective: Objective, p: dict[str, jax.Array], num: int) -> jax.Array:
    eps = jax.random.normal(jax.random.key(6), (num, objective.family.noise))
    return objective.family.transform(p, eps)


def assert_same_mean(first: np.ndarray, second: np.ndarray) -> None:
    """Means of independent draws agree within 5 standard errors of their difference."""
    error = np.sqrt(np.var(first) / len(first) + np.var(second) / len(second))
    assert error > 0
    assert abs(np.mean(first) - np.mean(second)) < 5 * error


@pytest.mark.parametrize("name", TARGETS)
def test_layers_and_weights_have_the_same_expected_log_likelihood(name: str) -> None:
    target = TARGETS[name]()
    values = []
    for local in (False, True):
        objective, p = made(target, local=local)
        draws = draws_of(objective, p, 20_000)[:: 1 if local else -1]
        values.append(np.asarray(objective.likelihood(p, jax.random.key(7), draws, None)))
    assert_same_mean(*values)
    assert np.var(values[1]) < np.var(values[0])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("local", [False, True])
def test_evaluate_in_pieces_is_the_likelihood(name: str, local: bool) -> None:
    objective, p = made(TARGETS[name](), local=local)
    draws = draws_of(objective, p, 5000)
    whole = objective.likelihood(p, jax.random.key(7), draws, None)
    pieces = jax.jit(objective.evaluate)(p, jax.random.key(8), draws)
    if local:
        assert_same_mean(np.asarray(whole), np.asarray(pieces))
    else:
        np.testing.assert_allclose(pieces, whole, rtol=1e-10)


@pytest.mark.parametrize("name", TARGETS)
def test_log_prior_in_closed_form_is_the_mean_over_draws(name: str) -> None:
    objective, p = made(TARGETS[name](), local=False)
    draws = draws_of(objective, p, 20_000)
    closed = np.asarray(objective.log_prior(p, draws))
    sampled = np.asarray(jax.vmap(objective.density.log_prior)(draws))
    difference = sampled - closed
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(len(difference))


def test_batches_weighted_up_give_the_likelihood_of_all() -> None:
    target = classification(24)
    objective, p = made(target, local=False)
    draws = draws_of(objective, p, 3)
    batches = Batches(24, 6)
    x, y = objective.density.data
    rows = batches.epoch(jax.random.key(0), 0)
    parts = [objective.likelihood(p, jax.random.key(0), draws, (x[r], y[r])) for r in rows]
    whole = objective.likelihood(p, jax.random.key(0), draws, None)
    np.testing.assert_allclose(batches.weight * jnp.mean(jnp.stack(parts), 0), whole, rtol=1e-10)


def test_applies_locally_where_weights_are_normal() -> None:
    layout = layout_of(regression())
    meanfield, block = (family_of(name, layout, 1) for name in ("meanfield", "block"))
    settings = SymmetrisedSettings()
    assert applies_locally(regression(), meanfield, settings)
    assert not applies_locally(regression(), block, settings)
    assert not applies_locally(mixture(), meanfield, settings)
    off = replace(settings, local_reparametrisation=False)
    assert not applies_locally(regression(), meanfield, off)


def test_applies_locally_refuses_what_it_was_asked_for_in_vain() -> None:
    family = family_of("block", layout_of(regression()), 1)
    with pytest.raises(ValueError, match="networks with free parametrisation"):
        applies_locally(regression(), family, SymmetrisedSettings(local_reparametrisation=True))
