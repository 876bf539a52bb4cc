"""From a target to a Gaussian on fixed draws; and from any approximation to weighted draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose
from onebasin.posteriors import schema

from ..contracts.engines import definition_of
from ..contracts.method import Found, Job, one_chain
from ..density.counted import CountedDensity
from ..density.network import density_of, numpyro_density_of
from ..density.stan_vectors import StanVectors
from .dadvi import Dadvi
from .drift import drift
from .fixed_draws import fit, linear_response, standard_draws
from .gaussian import NormalFit, moments
from .peaks import FULL, Peak, find_peaks, smoothed_peak
from .weighting import ROUNDS, weigh

STARTS = 16
"""From which optima are sought for the proposals of an approximation that has none."""
RADIUS = 2.0
SAME = 0.5
"""Standard deviations by which the centres of two fits differ at most that are one."""
BELOW = 15.0
"""Nats of the ELBO below the best fit from which on a fit is no proposal."""


def fit_fixed_draws(job: Job[Dadvi]) -> Found:
    """Fit a Gaussian at every distinct optimum; draw from the one with the highest ELBO."""
    with precision("float64"):
        counted = CountedDensity(_density(job))
        fits = gaussians(job, counted, job.method)
        best, rng = fits[0], _rng(job, Purpose.FIXED_DRAWS, 2)
        points = best.points(rng.standard_normal((job.method.draws, counted.size)))
        lp, log_q = counted.log_density(points), best.log_density(points)
        stats = {"lp": lp, "log_q": log_q}
        # Mean and scale under the names of docs/reference/posterior.md.
        scale = "scale" if best.scale.ndim == 1 else "scale_tril"
        group = xr.Dataset(
            {
                "loc": ("param", best.loc),
                scale: (("param", "param_bis")[: best.scale.ndim], best.scale),
                "elbo": ("evaluation", np.array(best.trace)),
            }
        )
        draws = counted.quantities(points)
        found = one_chain(draws, stats, group, converged=best.converged)
    return replace(
        found,
        attributes={**found.attributes, **_price(counted)},
        proposals=(counted, fits),
    )


def gaussians(
    job: Job[Any], counted: CountedDensity, s: Dadvi, most: float = math.inf
) -> tuple[NormalFit, ...]:
    """Fit a Gaussian at every distinct optimum, the highest ELBO first; at no other one beyond `most` gradients."""
    rng = _rng(job, Purpose.FIXED_DRAWS, 0)
    bar = job.bars.add("optima", s.starts)
    peaks = find_peaks(
        counted,
        starts=s.starts,
        radius=s.init_radius,
        rng=rng,
        done=lambda number: job.bars.move(bar, number),
    )
    peaks = [peak for peak in peaks if peak.is_peak] or [smoothed_peak(counted, rng, s.init_radius)]
    whole = s.family == "fullrank" or (s.family == "auto" and counted.size <= FULL)
    least = max(60, 4 * counted.size) if whole else 60
    count = least if s.fixed_draws is None else s.fixed_draws
    count = max(count + count % 2, 2 * counted.size if whole else 2)
    z = standard_draws(count, counted.size, _rng(job, Purpose.FIXED_DRAWS, 1), whole=whole)
    bar = job.bars.add("Gaussians", len(peaks))
    fits: list[NormalFit] = []
    for number, peak in enumerate(peaks, 1):
        fitted = fit(counted, _in_family(peak, whole=whole), z, s.iterations)
        job.bars.move(bar, number)
        if math.isfinite(fitted.elbo):
            fits.append(fitted)
        if counted.gradients > most:
            break
    fits.sort(key=lambda fitted: fitted.elbo, reverse=True)
    if not fits:
        raise InferenceError(
            f"No Gaussian of finite ELBO was found for {job.target.name!r} from {len(peaks)} optima; use `nuts`."
        )
    distinct: list[NormalFit] = []
    for fitted in fits:
        near = fits[0].elbo - fitted.elbo < BELOW
        if near and all(_apart(fitted, other) > SAME for other in distinct):
            distinct.append(fitted)
    if whole:
        return tuple(distinct)
    return tuple(linear_response(counted, fitted, z) or fitted for fitted in distinct)


def weighted(job: Job[Any], found: Found) -> Found:
    """Give an approximation importance weights, and take its draws by them.

    Proposals start at the approximation's own Gaussian, or at the moments of its draws, and at every other optimum.
    """
    with precision("float64"):
        counted, fits = found.proposals or _proposals(job, found)
        rng = _rng(job, Purpose.IMPORTANCE_WEIGHTS, 0)
        bar = job.bars.add("weights", ROUNDS)
        result = weigh(counted, fits, rng, lambda done: job.bars.move(bar, done))
        if not np.isfinite(result.lp).any():
            raise InferenceError(
                f"The log density of {job.target.name!r} is finite at none of {len(result.lp):,} draws, so that none "
                "has a weight; use `nuts`."
            )
        moved = drift(counted, result, rng)
        rows = result.resampled(job.method.draws, rng)
        draws = counted.quantities(result.vectors[rows])
    stats = {"lp": result.lp[rows], "log_q": result.log_q[rows]}
    group = found.groups.get(schema.VARIATIONAL, xr.Dataset()).drop_vars(
        schema.LOG_RATIO, errors="ignore"
    )
    own = {schema.LOG_RATIO: result.lp - result.log_q, schema.LOG_WEIGHT: result.log_weight}
    group = group.assign({name: (schema.SAMPLE, values) for name, values in own.items()})
    whole = one_chain(draws, stats, group, converged=True)
    attributes = {**found.attributes, **_price(counted), schema.WORTH: result.worth}
    first = {schema.WEIGHTED: (schema.SAMPLE, result.values), schema.DRIFT: ("statistic", moved)}
    groups = dict(whole.groups)
    for name, (axis, values) in first.items():
        dims = {n: [axis, *(f"{n}_dim_{i}" for i in range(v.ndim - 1))] for n, v in values.items()}
        groups[name] = xr.Dataset({n: (dims[n], v) for n, v in values.items()})
    groups[schema.DRIFT] = groups[schema.DRIFT].assign_coords(statistic=["location", "spread"])
    return replace(whole, attributes=attributes, groups=groups)


def _proposals(job: Job[Any], found: Found) -> tuple[CountedDensity, tuple[NormalFit, ...]]:
    """The moments of an approximation's draws, and Gaussians on fixed draws at optima that these do not cover."""
    counted = CountedDensity(_density(job))
    density = counted.density
    values = {name: np.asarray(found.draws[name])[0] for name in density.names}
    vectors = np.asarray(jax.vmap(density.unconstrain)(values))
    vectors = vectors[np.isfinite(vectors).all(axis=1)]
    own = moments(vectors, np.ones(len(vectors))) if len(vectors) > counted.size else None
    fits = gaussians(job, counted, Dadvi(starts=STARTS, init_radius=RADIUS))
    if own is None:
        return counted, fits
    return counted, (own, *(each for each in fits if _apart(each, own) > SAME))


def _density(job: Job[Any]) -> Any:
    """The log density of the definition that the engine runs."""
    if job.target.is_network:
        return numpyro_density_of(job.target)
    if definition_of(job.target, job.engine) == "stan":
        return StanVectors.of(job.target, job.bars.say)
    return density_of(job.target, job.bars.say)


def _rng(job: Job[Any], purpose: Purpose, number: int) -> np.random.Generator:
    return np.random.default_rng([job.seed, int(purpose), number])


def _in_family(peak: Peak, *, whole: bool) -> Peak:
    """The optimum's coordinates: rotated in full rank, else as they are, with the sds given the others."""
    if whole == (peak.root.ndim == 2):
        return peak
    if whole:
        return replace(peak, root=np.diag(peak.root))
    precision_diagonal = (np.linalg.inv(peak.root) ** 2).sum(axis=0)
    return replace(peak, root=1 / np.sqrt(precision_diagonal))


def _apart(one: NormalFit, other: NormalFit) -> float:
    """Standard deviations between the centres of two fits, by the wider of both: the largest over parameters."""
    z = (one.loc - other.loc) / np.maximum(one.sds, other.sds)
    return float(np.abs(z).max())


def _price(counted: CountedDensity) -> dict[str, int]:
    return {
        schema.GRADIENT_EVALUATIONS: counted.gradients,
        schema.LOG_DENSITY_EVALUATIONS: counted.heights,
    }
