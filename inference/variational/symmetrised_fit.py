"""The work of `symmetrised_vi`.

Source: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the ELBO of q
plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate I by
InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default.

Departures: gradients of I are Rao-Blackwellised; every fit is reported with an interval for I, whatever it was
trained with.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.symmetry.blocks import to_json
from onebasin.posteriors import schema

from ..contracts.method import Found, Job
from ..density.numpyro import NumpyroDensity
from ..density.start import given_start
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .choice import check_permutations, choose_estimator
from .elbo import Objective, applies_locally
from .families.table import family_of
from .layout import Layout, layout_of
from .result import finish
from .starts import he_starts
from .symmetrised import Symmetrised
from .symmetrised_elbo import SymmetrisedElbo
from .symmetry_check import check_fit, check_start
from .term import Information

RADIUS = 2.0
"""Half the width of the interval in which means start where there are no better values."""


def fit(job: Job[Symmetrised]) -> Found:
    """Train the fits side by side, and draw from them.

    Raises
    ------
    ValueError
        If the target has no symmetry, or family, estimator and settings do not fit one another or the target.
    TypeError
        If single precision is asked for with a Stan program.
    SymmetryError
        If the log density does not have the declared symmetry.
    InferenceError
        If the ELBO becomes infinite or undefined.
    """
    target, s, seed, bars = job.target, job.method, job.seed, job.bars
    with precision(s.dtype):
        layout = layout_of(target, bars.say)
        density = jax.jit(layout.density.log_density)
        evidence = check_start(target, layout, density)
        q = family_of(s.family, layout, s.rank)
        choice = choose_estimator(s.mutual_information, q, layout)
        check_permutations(choice, s.permutations)
        local = applies_locally(target, q, s.local_reparametrisation)
        information = Information(layout, q, choice, s)
        optimiser = SymmetrisedElbo(Objective(layout.density, q, local), information, s, seed)
        bar = bars.add(f"symmetrised VI ({choice})", s.steps)
        optimised = optimiser.run(
            optimiser.start(_means(layout, job)),
            keeper_in(job.checkpoint, lambda: _mark(job, choice)),
            lambda steps: bars.move(bar, steps),
            key_for(Purpose.FIT_EVALUATIONS, seed),
        )
        if optimised.settled.all():
            done = int(optimised.iteration[-1])
            bars.move(bar, done, f"symmetrised VI ({choice}), stopping rule met")
        found = finish(optimiser, optimised, seed)

    def check(tree: xr.DataTree) -> None:
        with precision(s.dtype):
            seen = check_fit(target, layout, density, tree, evidence)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = seen.to_json()

    how = {
        "family": s.family,
        "mutual_information": choice,
        "information_side": information.side,
        "log_group_order": information.log_order,
        "local_reparametrisation": local,
    }
    # A network's symmetry follows from its architecture.
    return replace(
        found,
        attributes={**how, **found.attributes},
        finish=None if target.is_network else check,
    )


def _mark(job: Job[Symmetrised], choice: str) -> str | None:
    """The fingerprint of a fit."""
    s, start = job.method, job.start
    return fingerprint(
        job.target,
        engine=job.engine,
        method=f"symmetrised-{s.family}-{choice}",
        symmetry=to_json(job.target.symmetry),
        settings=replace(s, family="meanfield", mutual_information="auto"),  # `method` has them
        seed=job.seed,
        start=None if start is None else {n: np.asarray(v) for n, v in start.items()},
    )


def _means(layout: Layout, job: Job[Symmetrised]) -> jax.Array:
    """Where the means start: (fit, param)."""
    target, s, density = job.target, job.method, layout.density
    if job.start is not None:
        vector = given_start(density, job.start)
        return jnp.broadcast_to(vector[None], (s.fits, *vector.shape))
    if s.init == "he" and isinstance(target, NetworkTarget):
        assert isinstance(density, NumpyroDensity), "a network has a NumPyro model"
        return he_starts(target, density, fits=s.fits, dtype=s.dtype, seed=job.seed)
    return random_means(density.size, job.seed, s.fits)


def random_means(size: int, seed: int | jax.Array, fits: int) -> jax.Array:
    """Where means start at random: (fit, param)."""
    keys = keys_for(Purpose.FIT_START, seed, fits)
    return jax.vmap(lambda k: jax.random.uniform(k, (size,), minval=-RADIUS, maxval=RADIUS))(keys)
