"""The members of an ensemble: their starts and their training."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import xarray as xr

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.method import Found, Job
from ..density.network import NetworkDensity
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .ensemble import Ensemble
from .train import train


def trained(job: Job[Ensemble]) -> Found:
    """Train the members from their starts."""
    target, s = job.target, job.method
    bar = job.bars.add(f"ensemble of {s.members}", s.epochs)
    how: dict[str, Any] = {"engine": job.engine, "method": s.label, "settings": s, "seed": job.seed}
    found = train(
        target,
        first_values(target, s, job.seed),
        s,
        job.seed,
        keeper=keeper_in(job.checkpoint, partial(fingerprint, target, **how)),
        watch=lambda epochs: job.bars.move(bar, epochs),
    )
    return Found(
        {name: value[None] for name, value in found.values.items()},
        {"lp": found.log_density[None]},
        {"gradient_evaluations": s.members * found.steps},
        {"training": xr.Dataset({"loss": (("member", "epoch"), found.losses)})},
    )


def first_values(target: Target, settings: Ensemble, seed: int) -> dict[str, np.ndarray]:
    """Return the start of training: natural values (member, ...)."""
    with precision(settings.dtype):
        density = NetworkDensity.of(target)
        keys = keys_for(Purpose.MEMBER_START, seed, settings.members)
        draw = density.he_values if settings.init == "he" else density.prior_values
        values = jax.jit(jax.vmap(draw))(keys)  # one kernel, not a dozen
        return {name: np.asarray(value) for name, value in values.items()}
