"""A posterior mode by mode: chains in every mode that many starts lead to, weighed by bridge sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose
from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from ..runs.run import Found, Job, run
from .assembly import LeftOut, WeighedModes, draws_by_weight, table
from .basins import Basin, Regions, Walks, first_basins, full_basins
from .bridge import Estimate, log_integral
from .folding import Folding, Points
from .settings import ModesSettings
from .tops import Top, find_tops, highest_evidence
from .weights import weigh

AT_ONCE = 512
"""Points at which a log density is computed together."""


@method
def sample_modes(
    target: Target,
    *,
    settings: ModesSettings | None = None,
    seed: int = 0,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Sample a posterior mode by mode: chains in every mode that is found, weighed by bridge sampling.

    For posteriors whose chains settle in unlike modes and never cross. Optima are sought from many random points; a
    short chain from each distinct one, modulo the declared symmetry, shows which of them share a basin; NUTS samples
    every basin; bridge sampling gives the integral of the density over each, all copies that the symmetry makes
    included, with a standard error; and the draws are taken from the basins by their shares. By JAX, on a NumPyro model
    or on a Stan program's library in this process.

    Parameters
    ----------
    settings : ModesSettings, optional
        Starts, chains of each mode, adaptation; ``ModesSettings()`` by default.

    Returns
    -------
    DataTree
        As of `nuts`, with the statistic `mode (chain, draw)`, and the group `modes` with a row a mode, the heaviest
        first: `weight` with the 95 % interval `weight_low` to `weight_high`, `log_weight`, `log_evidence` and
        `log_evidence_error` (nats), `starts` that led there, `height` (the highest log density), `rhat` within the mode
        modulo the symmetry, `strays` (the share of its chains' draws that lie in other modes) and `divergences`. Its
        attributes say whether the weights are `known`, and how probably a next start finds another mode (`unseen`).
        `diagnose` says what follows.

    Raises
    ------
    InferenceError
        If no starting point of finite log density is found, or no optimum.
    ValueError
        If the symmetry exchanges no coordinates of the unconstrained space.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    find_modes : the optima alone, in a fraction of the time.
    nuts : chains from random points, which weigh modes by where they started.

    References
    ----------
    Meng and Wong 1996, Statistica Sinica 6 (bridge sampling). Meng and Schilling 2002, JCGS 11(3) (warp III).
    Frühwirth-Schnatter 2004, Econometrics Journal 7(1) (error; permuted labels). Gronau et al. 2017, Journal of
    Mathematical Psychology 81. Good 1953, Biometrika 40 (modes not seen).

    Examples
    --------
    >>> settings = ob.ModesSettings(starts=10, warmup=300, draws=300)
    >>> posterior = ob.sample_modes(target, settings=settings, seed=1)
    >>> posterior["modes"]["weight"].shape, posterior["posterior"]["mu"].shape
    ((1,), (4, 300, 2))
    """
    chosen = given_or_default(settings, ModesSettings, taker="sample_modes")

    def work(job: Job) -> Found:
        with precision("float64"):
            return _sampled(target, chosen, job)

    return run(
        target,
        "modes",
        work,
        engine=None,
        settings=chosen,
        amount=(chosen.chains, chosen.draws),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )


def _sampled(target: Target, settings: ModesSettings, job: Job) -> Found:
    folding = Folding.of(target, job.bars.say)
    bar = job.bars.add("optima", settings.starts)
    tops = find_tops(
        target,
        folding,
        starts=settings.starts,
        init_radius=settings.init_radius,
        seed=job.seed,
        done=lambda number: job.bars.move(bar, number),
    )
    short, pilots, lost = first_basins(
        target, folding, tops.tops, settings, seed=job.seed, bars=ProgressBars(False)
    )
    kept, left = _foremost(short, pilots, settings.most)
    left += _lost(tops.tops, lost)
    amount = {"warmup": settings.warmup, "draws": settings.draws}
    job.bars.expect(chains=len(kept) * settings.chains, **amount, at_once=settings.chains)
    basins, walks = full_basins(target, folding, kept, settings, seed=job.seed, bars=job.bars)
    modes = _weighed(folding, basins, job.seed)
    lead = {"chains": settings.chains, "draws": settings.draws}
    rng = np.random.default_rng([job.seed, int(Purpose.MODE_WEIGHTS), 1])
    vectors, stats = draws_by_weight(modes, walks, **lead, rng=rng)
    constrain = jax.jit(jax.vmap(lambda v: folding.density.quantities(folding.density.unravel(v))))
    draws = _in_parts(constrain, vectors.reshape(-1, vectors.shape[-1]))
    return Found(
        {name: value.reshape(*lead.values(), *value.shape[1:]) for name, value in draws.items()},
        stats,
        {
            "warmup_seconds": list(walks.warmup_seconds),
            "sampling_seconds": list(walks.sampling_seconds),
            "gradient_evaluations": int(walks.stats["n_steps"].sum()),
            "max_tree_depth": settings.max_tree_depth,
        },
        modes=table(modes, walks, tops, left),
    )


def _foremost(
    basins: Sequence[Basin], walks: Walks, most: int
) -> tuple[tuple[Basin, ...], tuple[LeftOut, ...]]:
    """The basins of the largest log evidence by their short chains, and what is left out.

    Of a Gaussian, the mean log density and the entropy sum to the log of the integral.
    """
    heights = [
        float(walks.stats["lp"][list(basin.chains)].mean()) + basin.normal.entropy
        for basin in basins
    ]
    order = np.argsort(np.nan_to_num(heights, nan=-np.inf))[::-1]
    kept = tuple(basins[n] for n in order[:most])
    left = (LeftOut(heights[order[0]] - heights[n], basins[n].starts) for n in order[most:])
    return kept, tuple(left)


def _lost(tops: Sequence[Top], lost: Sequence[Top]) -> tuple[LeftOut, ...]:
    """Optima that no chain stayed at, by Laplace's estimates of their integrals."""
    highest = highest_evidence(tops)
    return tuple(LeftOut(highest - top.log_evidence, top.starts) for top in lost)


def _weighed(folding: Folding, basins: Sequence[Basin], seed: int) -> WeighedModes:
    """The integral over every basin and all of its copies, and what share that is."""
    rng = np.random.default_rng([seed, int(Purpose.MODE_WEIGHTS)])
    regions = Regions(folding, tuple(basins))
    heights = jax.jit(jax.vmap(folding.density.log_density))
    found = []
    for number, basin in enumerate(basins):

        def density(points: Points, number: int = number) -> Float[np.ndarray, " point"]:
            out = np.full(len(points), -np.inf)
            inside = regions.inside(number, points)
            if inside.any():
                here = _in_parts(lambda v: {"lp": heights(v)}, points[inside])["lp"]
                out[inside] = np.where(np.isfinite(here), here, -np.inf)
            return out

        own = basin.folded.copy()
        flat = own.reshape(-1, own.shape[-1])
        flat[regions.of(flat) != number] = np.nan  # a chain was elsewhere then
        estimate = log_integral(density, own, rng)
        found.append(Estimate(estimate.value + folding.log_order, estimate.error))
    order = sorted(
        range(len(found)), key=lambda n: -np.inf if math.isnan(found[n].value) else found[n].value
    )[::-1]
    estimates = tuple(found[n] for n in order)
    ordered = Regions(folding, tuple(basins[n] for n in order))
    return WeighedModes(ordered, estimates, weigh(estimates))


def _in_parts(function: Any, points: Points) -> dict[str, np.ndarray]:
    """Values of a compiled function at points, of as many at a time as it was compiled for."""
    parts = []
    for first in range(0, len(points), AT_ONCE):
        here = points[first : first + AT_ONCE]
        padded = np.concatenate([here, np.repeat(here[-1:], AT_ONCE - len(here), axis=0)])
        values = function(jnp.asarray(padded))
        parts.append({name: np.asarray(value)[: len(here)] for name, value in values.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
