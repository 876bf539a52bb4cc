"""The work of `sample_modes`: optima, basins, chains, weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float

from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose
from onebasin.posteriors import schema

from ..contracts.method import Found, Job
from ..density.counted import in_blocks
from .assembly import LeftOut, draws_by_weight, table, weigh
from .basins import Basin, Regions, first_basins, full_basins
from .bridge import LogIntegral, log_integral
from .sample_modes import Modes
from .tops import Folding, Points, find_tops, highest_evidence

AT_ONCE = 512
"""Points at which a log density is computed together."""


def sampled(job: Job[Modes]) -> Found:
    """Sample every mode, and put the posterior together."""
    target, settings, seed = job.target, job.method, job.seed
    amount = {"warmup": settings.warmup, "draws": settings.draws}
    lead = {"chains": settings.chains, "draws": settings.draws}
    with precision("float64"):
        folding = Folding.of(target, job.bars.say)
        density = folding.density
        bar = job.bars.add("optima", settings.starts)
        tops, failed = find_tops(
            target,
            folding,
            starts=settings.starts,
            init_radius=settings.init_radius,
            seed=seed,
            done=lambda number: job.bars.move(bar, number),
        )
        short, pilots, lost = first_basins(
            folding, tops, settings, seed=seed, bars=ProgressBars(False)
        )
        # The basins of the largest log evidence by their short chains: of a Gaussian, the mean log density and the
        # entropy sum to the log of the integral.
        lp = pilots.stats["lp"]
        heights = [float(lp[list(one.chains)].mean()) + one.normal.entropy for one in short]
        order = np.argsort(np.nan_to_num(heights, nan=-np.inf))[::-1]
        kept = tuple(short[n] for n in order[: settings.most])
        left = tuple(
            LeftOut(heights[order[0]] - heights[n], short[n].starts) for n in order[settings.most :]
        )
        # Optima that no chain stayed at, by Laplace's estimates of their integrals.
        highest = highest_evidence(tops)
        left += tuple(LeftOut(highest - top.log_evidence, top.starts) for top in lost)
        job.bars.expect(chains=len(kept) * settings.chains, **amount, at_once=settings.chains)
        basins, walks = full_basins(folding, kept, settings, seed=seed, bars=job.bars)
        regions, estimates = _ordered(folding, basins, seed)
        weights = weigh(estimates)
        rng = np.random.default_rng([seed, int(Purpose.MODE_WEIGHTS), 1])
        vectors, stats = draws_by_weight(regions, weights, walks, **lead, rng=rng)
        constrain = jax.jit(jax.vmap(lambda v: density.quantities(density.unravel(v))))
        draws = in_blocks(constrain, vectors.reshape(-1, vectors.shape[-1]), size=AT_ONCE)
        group = table(
            regions,
            estimates,
            weights,
            walks,
            left,
            starts=settings.starts,
            failed=failed,
        )
    return Found(
        {name: value.reshape(*lead.values(), *value.shape[1:]) for name, value in draws.items()},
        stats,
        {
            "warmup_seconds": list(walks.warmup_seconds),
            "sampling_seconds": list(walks.sampling_seconds),
            "gradient_evaluations": int(walks.stats["n_steps"].sum()),
            "max_tree_depth": settings.max_tree_depth,
        },
        {schema.MODES: group},
    )


def _ordered(
    folding: Folding, basins: Sequence[Basin], seed: int
) -> tuple[Regions, list[LogIntegral]]:
    """The basins, the heaviest first, and the integral over each with all of its copies."""
    rng = np.random.default_rng([seed, int(Purpose.MODE_WEIGHTS)])
    regions = Regions(folding, tuple(basins))
    heights = jax.jit(jax.vmap(folding.density.log_density))
    found = []
    for number, basin in enumerate(basins):

        def density(points: Points, number: int = number) -> Float[np.ndarray, " point"]:
            out = np.full(len(points), -np.inf)
            inside = regions.inside(number, points)
            if inside.any():
                here = in_blocks(heights, points[inside], size=AT_ONCE)
                out[inside] = np.where(np.isfinite(here), here, -np.inf)
            return out

        own = basin.folded.copy()
        flat = own.reshape(-1, own.shape[-1])
        flat[regions.of(flat) != number] = np.nan  # a chain was elsewhere then
        estimate = log_integral(density, own, rng)
        found.append(LogIntegral(estimate.value + folding.log_order, estimate.error))
    order = sorted(
        range(len(found)), key=lambda n: -np.inf if math.isnan(found[n].value) else found[n].value
    )[::-1]
    return Regions(folding, tuple(basins[n] for n in order)), [found[n] for n in order]
