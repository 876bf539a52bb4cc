"""Fits of Gaussians by the engine: ADVI, and symmetrised variational inference, which averages q over a group.

Source of the latter: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the
ELBO of q plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate
I by InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default. Departures: gradients of I are Rao-Blackwellised; every fit
is reported with an interval for I, whatever it was trained with.

Layers' values may be drawn instead of weights (local reparametrisation, `elbo`), as Kurle et al. 2021 train.

The group is tried on the log density before and after a symmetrised fit: where it is no symmetry, its ELBO is no bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr

from onebasin.base.precision import precision
from onebasin.models.symmetry.blocks import equal_modes, to_json
from onebasin.models.symmetry.changes import Changes, changes
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.method import Found, Job
from ..density.changes import spread_draws
from ..density.symmetry import ELEMENTS_A_DRAW, SymmetryError
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .engine import planned
from .layout import SymmetryLayout
from .result import plain, symmetrised

POINTS = 2
DRAWS = 6
TOLERANCE = 1e-8
"""Nats; what rounding does comes on top."""

Density = Callable[[jax.Array], jax.Array]


def check_start(target: Target, layout: SymmetryLayout, density: Density) -> Evidence:
    """Try random elements at random points before anything is fitted."""
    keys = jax.random.split(jax.random.key(0), POINTS)
    found = _try(layout, density, [jax.random.normal(k, (layout.density.size,)) for k in keys])
    if found.real.any():
        raise SymmetryError(
            f"`symmetry` of {target.name!r} does not hold: a random element changes the log density by "
            f"{found.largest:.3g} nats. Declare what moves together completely; `check_symmetry` says which "
            "block it is.",
            found.largest,
        )
    return Evidence(points=POINTS, unresolved=_unresolved(target, found))


def check_fit(
    target: Target, layout: SymmetryLayout, density: Density, tree: xr.DataTree, start: Evidence
) -> Evidence:
    """Try random elements at draws of the fit too, warn where one changes the log density, and say what was found."""
    moved = [name for block in target.symmetry for name in block.variables]
    draws = spread_draws(tree, layout.density.names, DRAWS, moved)
    count = len(next(iter(draws.values())))
    vectors = [
        layout.density.unconstrain({n: v[i] for n, v in draws.items()}) for i in range(count)
    ]
    found = _try(layout, density, vectors * ELEMENTS_A_DRAW)
    if not found.real.any():
        return start.joined(Evidence(draws=count, unresolved=_unresolved(target, found)))
    evidence = replace(
        start,
        refuted=f"a random element changes the log density by {found.largest:.3g} nats at draws",
    )
    warnings.warn(
        f"`symmetry` of {target.name!r} does not hold where the fit lies: {evidence.refuted}, so that its symmetrised "
        "ELBO is no bound. Declare what moves together completely.",
        RuntimeWarning,
        stacklevel=3,
    )
    return evidence


def _try(layout: SymmetryLayout, density: Density, vectors: list[jax.Array]) -> Changes:
    """Move each point by its own random element."""
    keys = jax.random.split(jax.random.key(1), len(vectors))
    moved = [layout.act(layout.random(k), v) for k, v in zip(keys, vectors, strict=True)]

    def measure(points: Mapping[str, Any]) -> np.ndarray:
        # One after another: data may be large.
        return np.array([float(density(jax.numpy.asarray(v))) for v in points["vector"]])

    points = {"vector": np.asarray(jax.numpy.stack(vectors))}
    there = measure({"vector": np.asarray(jax.numpy.stack(moved))})
    return changes(measure, points, measure(points), there, TOLERANCE)


def _unresolved(target: Target, found: Changes) -> tuple[str, ...]:
    blocks = equal_modes(target.symmetry)
    return () if found.telling.any() else tuple(", ".join(block.variables) for block in blocks)


def fit(job: Job[Any]) -> Found:
    """Train the fits side by side, and draw from them."""
    target, s, bars = job.target, job.method, job.bars
    with precision(s.dtype):
        plan = planned(target, s, bars.say)
        layout = plan.layout
        density = jax.jit(plan.density.log_density)
        evidence = None if layout is None else check_start(target, layout, density)
        begun = plan.begin(job.seed, job.start)

        def mark() -> str | None:
            given = {n: np.asarray(v) for n, v in (job.start or {}).items()}
            return fingerprint(
                target,
                engine=job.engine,
                method=f"symmetrised-{s.family}-{plan.information and plan.information.choice}",
                symmetry=to_json(target.symmetry),
                # `method` has these two.
                settings=replace(s, family="meanfield", mutual_information="auto"),
                seed=job.seed,
                start=None if job.start is None else given,
            )

        bar = bars.add(plan.label, s.most_steps)
        optimised = begun.elbo.run(
            begun.state,
            keeper_in(job.checkpoint, mark),
            lambda done: bars.move(bar, done),
            begun.evaluations,
        )
        if optimised.settled.all():
            bars.move(bar, int(optimised.iteration[-1]), f"{plan.label}, stopping rule met")
        if layout is None:
            return plain(job, begun.elbo, optimised, begun.draws[0])
        found = symmetrised(begun.elbo, optimised, job.seed, begun.draws)

    def check(tree: xr.DataTree) -> None:
        assert layout is not None and evidence is not None
        with precision(s.dtype):
            seen = check_fit(target, layout, density, tree, evidence)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = seen.to_json()

    assert plan.information is not None
    how = {
        "family": s.family,
        "mutual_information": plan.information.choice,
        "information_side": plan.information.side,
        "log_group_order": plan.information.layout.log_order,
        "local_reparametrisation": plan.local,
    }
    # A network's symmetry follows from its architecture.
    finish = None if target.is_network else check
    return replace(found, attributes={**how, **found.attributes}, finish=finish)
