"""Variational inference through the ELBO of an approximation averaged over the target's symmetry.

Source: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the ELBO of q
plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate I by
InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default.

Departures: gradients of I are Rao-Blackwellised; every fit is reported with an interval for I, whatever it was
trained with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.checks import check_seed, choose
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.base.settings import given_or_default
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit

from ..contract import method
from ..definition import engine_for
from ..density.numpyro import NumpyroDensity
from ..density.start import given_start
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from ..runs.origin import origin_of
from ..runs.posterior import build
from ..training.batches import check_batches
from .choice import check_permutations, choose_estimator
from .elbo import Objective, applies_locally
from .families.table import family_of
from .layout import Layout, layout_of
from .result import finish
from .settings import FAMILIES, SymmetrisedSettings
from .starts import he_starts
from .symmetrised_elbo import SymmetrisedElbo
from .symmetry_check import check_fit, check_start
from .term import Information

RADIUS = 2.0
"""Half the width of the interval in which means start where there are no better values."""


@method
def symmetrised_vi(
    target: Target,
    *,
    family: str = "meanfield",
    mutual_information: str = "auto",
    settings: SymmetrisedSettings | None = None,
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    predictive_mb: float = LIMIT_MB,
    progress: bool = False,
) -> xr.DataTree:
    """Fit a Gaussian q whose average over the target's symmetry, q^G, approximates the posterior, by JAX.

    The log density is that of a NumPyro model, or of a Stan program by its library in this process.

    Parameters
    ----------
    target : Target
        What to approximate, with at least one `ob.Exchangeable` or `ob.Complement` block.
    family : {"meanfield", "block", "lowrank"}
        Independent coordinates; a full covariance within each part (and within all that is no part); a diagonal plus
        low rank.
    mutual_information : str
        What the mutual information I is trained with. "auto": "exact" up to 12 parts, else "fractional"; for families
        and symmetries that couple parts, "exact" in groups of at most 5,040 elements, else "infonce". "none" trains the
        plain ELBO. "exact", "fractional" (marginals of fractional messages), "barber_agakov", "importance" and "bethe"
        need independent parts; "infonce" is the paper's.
    settings : SymmetrisedSettings, optional
        Fits, steps, draws, batches; ``SymmetrisedSettings()`` by default.
    start : mapping of str to array, optional
        Value (...) of every variable at which all means start, with its shape in one draw, in its natural space.

    Returns
    -------
    DataTree
        One chain a fit. `posterior`: draws from q as (chain, draw, ...), all in the one basin that q lies in (a draw of
        q^G is one of them, moved by a random group element; both predict alike). `sample_stats`: `lp` and `log_q`.
        `variational`, all in nats: q's parameters; the traces `elbo`, `information` and `symmetrised_elbo (chain,
        evaluation)`, of which attribute `information_side` says on which side of the truth they lie; and at the end
        `final_elbo`, `information_lower` and `information_upper`, `symmetrised_elbo_lower` and `symmetrised_elbo_upper`
        (chain) with Monte Carlo errors (`..._mcse`): the truth is between them up to these.

    Raises
    ------
    ValueError
        If the target has no symmetry, a word is unknown, or family, estimator and settings do not fit one another or
        the target.
    TypeError
        If single precision is asked for with a Stan program.
    StanError
        If Stan cannot compile the program.
    SymmetryError
        If the log density does not have the declared symmetry.
    InferenceError
        If the ELBO becomes infinite or undefined.

    Notes
    -----
    The ELBO of q^G is that of q plus I, the mutual information between a group element and the draw that it moved; I
    lies between 0 and the logarithm of the group's order.

    References
    ----------
    Gelberg, van der Ouderaa, van der Wilk and Gal 2024, Variational inference failures under model symmetries, theorem
    4.1.

    Examples
    --------
    >>> settings = ob.SymmetrisedSettings(steps=1000, draws=200)
    >>> fit = ob.symmetrised_vi(target, settings=settings, seed=1)
    >>> gain = fit["variational"]["information_lower"].item()  # of two components: log(2) at most
    >>> bool(0.6 < gain < np.log(2) + 1e-6)
    True
    """
    check_target(target)
    settings = given_or_default(settings, SymmetrisedSettings, taker="symmetrised_vi")
    choose("family", family, FAMILIES)
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    check_batches(target, settings.batch_size)
    engine = engine_for(target, None)
    if settings.anneal and engine == "stan":
        raise ValueError(
            f"`anneal` is {settings.anneal}, which weighs the prior, but {target.name!r} is a Stan program, which does "
            "not tell it from the likelihood; use 0."
        )
    started = time.perf_counter()
    with precision(settings.dtype), ProgressBars(progress) as bars:
        layout, origin = layout_of(target, bars.say), origin_of(target, engine, bars.say)
        density = jax.jit(layout.density.log_density)
        evidence = check_start(target, layout, density)
        q = family_of(family, layout, settings.rank)
        choice = choose_estimator(mutual_information, q, layout)
        check_permutations(choice, settings.permutations)
        local = applies_locally(target, q, settings.local_reparametrisation)
        information = Information(layout, q, choice, settings)
        optimiser = SymmetrisedElbo(
            Objective(layout.density, q, local), information, settings, seed
        )
        mark = partial(
            fingerprint,
            target,
            engine=engine,
            method=f"symmetrised-{family}-{choice}",
            symmetry=to_json(target.symmetry),
            settings=settings,
            seed=seed,
            start=None if start is None else {n: np.asarray(v) for n, v in start.items()},
        )
        bar = bars.add(f"symmetrised VI ({choice})", settings.steps)
        optimised = optimiser.run(
            optimiser.start(_means(target, layout, settings, start, seed)),
            keeper_in(checkpoint, mark),
            lambda steps: bars.move(bar, steps),
            key_for(Purpose.FIT_EVALUATIONS, seed),
        )
        if optimised.settled.all():
            done = int(optimised.iteration[-1])
            bars.move(bar, done, f"symmetrised VI ({choice}), stopping rule met")
        fit = finish(optimiser, optimised, seed)
    how = {
        "engine": engine,
        "method": "symmetrised-vi",
        "family": family,
        "mutual_information": choice,
        "information_side": information.side,
        "log_group_order": information.log_order,
        "local_reparametrisation": local,
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": time.perf_counter() - started,
        "gradient_evaluations": fit.gradient_evaluations,
        "converged": int(fit.converged),
    }
    tree = build(
        target,
        fit.draws,
        fit.stats,
        how,
        origin=origin,
        variational=fit.variational,
        predictive_mb=limit,
    )
    if not target.is_network:  # whose symmetry follows from its architecture
        with precision(settings.dtype):
            found = check_fit(target, layout, density, tree, evidence)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = found.to_json()
    return tree


def _means(
    target: Target,
    layout: Layout,
    settings: SymmetrisedSettings,
    start: Mapping[str, Any] | None,
    seed: int,
) -> jax.Array:
    """Where the means start: (fit, param)."""
    density = layout.density
    if start is not None:
        vector = given_start(density, start)
        return jnp.broadcast_to(vector[None], (settings.fits, *vector.shape))
    if settings.init == "he" and isinstance(target, NetworkTarget):
        assert isinstance(density, NumpyroDensity), "a network has a NumPyro model"
        return he_starts(target, density, fits=settings.fits, dtype=settings.dtype, seed=seed)
    return random_means(density.size, seed, settings.fits)


def random_means(size: int, seed: int | jax.Array, fits: int) -> jax.Array:
    """Where means start at random: (fit, param)."""
    keys = keys_for(Purpose.FIT_START, seed, fits)
    return jax.vmap(lambda k: jax.random.uniform(k, (size,), minval=-RADIUS, maxval=RADIUS))(keys)
