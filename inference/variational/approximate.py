"""Fits of Gaussians by the engine: ADVI, and symmetrised variational inference, which averages q over a group.

Source of the latter: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the
ELBO of q plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate
I by InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default. Departures: gradients of I are Rao-Blackwellised; every fit
is reported with an interval for I, whatever it was trained with.

Where the declared symmetry does not hold, which is always tried (`runs.declared`), the symmetrised ELBO is no bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onebasin.base.precision import precision
from onebasin.models.symmetry.blocks import to_json

from ..contracts.method import Found, Job
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .engine import planned
from .result import plain, symmetrised


def fit(job: Job[Any]) -> Found:
    """Train the fits side by side, and draw from them."""
    target, s, bars = job.target, job.method, job.bars
    with precision(s.dtype):
        plan = planned(target, s, bars.say)
        begun = plan.begin(job.seed, job.start)

        def mark() -> str | None:
            given = {n: np.asarray(v) for n, v in (job.start or {}).items()}
            return fingerprint(
                target,
                engine=job.engine,
                method=f"{s.label}-{plan.information and plan.information.choice}",
                symmetry=to_json(target.symmetry),
                settings=replace(s, mutual_information="auto"),  # `method` has it
                seed=job.seed,
                start=None if job.start is None else given,
            )

        bar = bars.add(plan.label, begun.elbo.steps)
        optimised = begun.elbo.run(
            begun.state,
            keeper_in(job.checkpoint, mark),
            lambda done: bars.move(bar, done),
            begun.evaluations,
        )
        if optimised.settled.all():
            bars.move(bar, int(optimised.iteration[-1]), f"{plan.label}, stopping rule met")
        if plan.layout is None:
            return plain(job, begun.elbo, optimised, begun.draws[0])
        found = symmetrised(begun.elbo, optimised, job.seed, begun.draws)

    assert plan.information is not None
    how = {
        "mutual_information": plan.information.choice,
        "information_side": plan.information.side,
        "log_group_order": plan.information.layout.log_order,
    }
    return replace(found, attributes={**how, **found.attributes})
