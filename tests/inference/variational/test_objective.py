"""The training objective: batches average to the loss of all data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference import Advi, Symmetrised
from onebasin.inference.density.network import density_of
from onebasin.inference.training.train import Batches
from onebasin.inference.variational.engine import TrainingLoop
from onebasin.inference.variational.gaussians import MeanField
from onebasin.inference.variational.layout import layout_of
from onebasin.inference.variational.term import Information

from .problems import classification


def plain(size: int | None) -> TrainingLoop:
    density = density_of(classification(24))
    return TrainingLoop(density, MeanField(density.size), Advi(batch_size=size), 0)


def symmetrised(size: int | None) -> TrainingLoop:
    layout, settings = layout_of(classification(24)), Symmetrised(batch_size=size)
    family = MeanField(layout.density.size)
    information = Information(layout, family, "exact", settings)
    return TrainingLoop(layout.density, family, settings, 0, information)


@pytest.mark.parametrize("trainer", [plain, symmetrised])
def test_losses_of_an_epochs_batches_average_to_the_loss_of_all_data(trainer):
    key = jax.random.key(2)
    full, batched = trainer(None), trainer(6)
    p = full.family.initial(jax.random.normal(jax.random.key(5), (full.density.size,)), 0.3)
    whole = jax.jit(lambda p: full.loss(p, jnp.asarray(0), (key, None)))(p)
    rows = Batches(24, 6).epoch(jax.random.key(0), 0)
    loss = jax.jit(lambda p, rows: batched.loss(p, jnp.asarray(0), (key, rows)))
    parts = [loss(p, r) for r in rows]
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-10)
