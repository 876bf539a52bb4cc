"""Gaussians that maximise the ELBO on fixed draws (deterministic ADVI), and weighted draws from any approximation.

The expectation under q is a mean over fixed draws. They are antithetic and standardised: their mean is zero, and their
second moments are the identity. The objective therefore has no noise: L-BFGS needs no step size, and for a Gaussian
log density the optimum is its exact mean and covariance. Draws are x = c + R (t + T z) with an optimum c and a square
root R of the inverse curvature there. Above 200 coordinates T is diagonal, and the covariance is the linear response:
the derivative of the optimal mean with respect to a linear term added to the log density.

References: Giordano, Ingram and Broderick 2024, Black box variational inference with a deterministic objective, JMLR
25. Giordano, Broderick and Jordan 2018, Covariances, robustness, and variational Bayes, JMLR 19(51).
"""

from __future__ import annotations

import math
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.optimize import minimize

from onebasin.base.errors import InferenceError, OnebasinError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose
from onebasin.posteriors import schema
from onebasin.posteriors.pareto import STATISTICS, khat_limit, khat_of_weights, why_lost

from ..contracts.method import Found, Job, definition_of, one_chain
from ..density.network import CountedDensity, density_of, numpyro_density_of
from ..density.stan_vectors import StanVectors
from .dadvi import Dadvi
from .drift import drift
from .gaussian import (
    FULL,
    NormalFit,
    Peak,
    Points,
    Vector,
    cholesky,
    find_peaks,
    moments,
    smoothed_peak,
)
from .weighting import BENT_SIZE, DEAD, LOST, ROUNDS, Weighted, weigh

Fits = tuple[NormalFit, ...]

AT_ONCE = 60  # Number of evaluations before the current fit whitens the coordinates again.
ENOUGH = 1e-5  # Minimum gain of the ELBO per iteration, in nats.
SHRINKS = 12  # Maximum number of halvings of the initial scale to make all log densities finite.
RESPONSES = 20_000  # Approximate number of Hessian-vector products of a linear response.
LARGEST = 2000  # Maximum number of coordinates with a linear response.


def standard_draws(count: int, size: int, rng: np.random.Generator, *, whole: bool) -> Points:
    """Make an even number of antithetic standard normal draws with unit second moments.

    If `whole`, the matrix of second moments is the identity. Else only its diagonal is one, which needs fewer draws.
    """
    half = rng.standard_normal((count // 2, size))
    if whole:
        lower = np.linalg.cholesky(half.T @ half / len(half))
        half = np.linalg.solve(lower, half.T).T
    else:
        half /= np.sqrt((half**2).mean(axis=0))
    return np.concatenate([half, -half])


def fit(counted: CountedDensity, peak: Peak, draws: Points, iterations: int) -> NormalFit:
    """Maximise the ELBO of fixed standard draws (draw, param), starting from an optimum.

    If the optimum's root is a vector, the fit is mean field. The ELBO is evaluated at most `iterations` times.
    """
    found = _Climb(counted, peak.vector, peak.root, draws).climb(min(AT_ONCE, iterations))
    used = len(found.trace)
    while not found.converged and used < iterations:
        left = min(AT_ONCE, iterations - used)
        again = _Climb(counted, found.loc, found.scale, draws).climb(left)
        trace = (*found.trace, *again.trace)
        gained, used = again.elbo - found.elbo, used + len(again.trace)
        if again.elbo >= found.elbo:
            found = again
        found = replace(found, trace=trace)
        if gained < 1e-3:
            return replace(found, converged=True)
    return found


class _Climb:
    """The negative ELBO in whitened coordinates, and its optimisation."""

    def __init__(
        self, counted: CountedDensity, centre: Vector, root: Float[np.ndarray, ...], draws: Points
    ) -> None:
        self.counted, self.centre, self.root, self.draws = counted, centre, root, draws
        self.full = root.ndim == 2
        self.size = len(centre)
        self.rows, self.columns = np.tril_indices(self.size, -1)
        self.log_root = np.linalg.slogdet(root)[1] if self.full else np.log(root).sum()
        self.trace: list[float] = []
        self.wall = math.inf

    def climb(self, evaluations: int) -> NormalFit:
        """Run L-BFGS from a scale at which every draw has a finite log density."""
        start = np.zeros(2 * self.size + (len(self.rows) if self.full else 0))
        for _ in range(SHRINKS):
            first = self(start)[0]
            if np.isfinite(first):
                break
            start[self.size : 2 * self.size] -= math.log(2)
        else:
            return NormalFit(self.centre, np.ones(self.size), -math.inf, False)
        self.wall = first + 10 * (1 + abs(first))
        options = {"ftol": ENOUGH / max(1.0, abs(first)), "gtol": 1e-4, "maxfun": evaluations}
        end = minimize(self, start, jac=True, method="L-BFGS-B", options=options)
        shift, scale = self._parts(end.x)
        if self.full:
            loc, root = self.centre + self.root @ shift, self.root @ scale
            lower = cholesky(root @ root.T)
            whole = lower if lower is not None else np.diag(np.linalg.norm(root, axis=1))
        else:
            loc, whole = self.centre + self.root * shift, self.root * scale
        ended = bool(np.isfinite(end.fun) and end.status == 0)
        return NormalFit(loc, whole, -float(end.fun), ended, tuple(self.trace))

    def __call__(self, packed: Vector) -> tuple[float, Vector]:
        """Return the negative ELBO and its gradient, or a large constant if a draw's log density is not finite."""
        shift, scale = self._parts(packed)
        moved = shift + (self.draws @ scale.T if self.full else self.draws * scale)
        points = self.centre + (moved @ self.root.T if self.full else moved * self.root)
        heights, slopes = self.counted.gradient(points)
        log_scale = packed[self.size : 2 * self.size]
        elbo = heights.mean() + log_scale.sum() + self.log_root
        elbo += 0.5 * self.size * (1 + math.log(2 * math.pi))
        if not np.isfinite(elbo):
            return self.wall, np.zeros(len(packed))
        self.trace.append(float(elbo))
        slopes = slopes @ self.root if self.full else slopes * self.root
        if self.full:
            spread = slopes.T @ self.draws / len(self.draws)
            along = np.diag(spread) * np.diag(scale)
            rest = spread[self.rows, self.columns]
        else:
            along, rest = (slopes * self.draws).mean(axis=0) * scale, np.empty(0)
        return -elbo, -np.concatenate([slopes.mean(axis=0), along + 1, rest])

    def _parts(self, packed: Vector) -> tuple[Vector, Float[np.ndarray, ...]]:
        """Unpack the shift and the scale: a lower triangle or its diagonal."""
        size = self.size
        diagonal = np.exp(np.clip(packed[size : 2 * size], -50, 50))
        if not self.full:
            return packed[:size], diagonal
        scale = np.diag(diagonal)
        scale[self.rows, self.columns] = packed[2 * size :]
        return packed[:size], scale


def linear_response(counted: CountedDensity, fitted: NormalFit, draws: Points) -> NormalFit | None:
    """Return a mean-field fit with the covariance of its linear response; None if that does not exist.

    Let A be the mean Hessian of the log density over draws, B its mixed derivatives by means and log scales, and C
    those by log scales. The covariance is the inverse of -(A - B C^-1 B'), which is exact for a Gaussian log density.
    It needs one Hessian-vector product per coordinate and draw.
    """
    size = len(fitted.loc)
    if size > LARGEST:
        return None
    pairs = len(draws) // 2
    taken = min(pairs, max(2, RESPONSES // (2 * size)))
    z = np.concatenate([draws[:taken], draws[pairs : pairs + taken]])
    points = fitted.points(z)
    mean, mixed, scales = (np.empty((size, size)) for _ in range(3))
    for j in range(size):
        directions = np.zeros((len(z), size))
        directions[:, j] = 1
        turned = counted.products(points, directions)
        weight = (fitted.scale[j] * z[:, j])[:, None]
        mean[:, j] = turned.mean(axis=0)
        mixed[:, j] = (turned * weight).mean(axis=0)
        scales[:, j] = (turned * weight * fitted.scale * z).mean(axis=0)
    scales -= np.eye(size)  # The derivative with respect to the log scale is -1 at the optimum.
    with np.errstate(all="ignore"):
        try:
            precision = -(mean - mixed @ np.linalg.solve((scales + scales.T) / 2, mixed.T))
            covariance = np.linalg.inv((precision + precision.T) / 2)
        except np.linalg.LinAlgError:
            return None
    scale = cholesky((covariance + covariance.T) / 2)
    return None if scale is None else replace(fitted, scale=scale)


STARTS = 16  # Number of starts of the search for optima if an approximation has no proposals.
RADIUS = 2.0
SAME = 0.5  # Fits count as the same if their centres are closer than this, in sds.
AGAIN = 2  # Maximum number of repeated weightings, with proposals in gaps that short chains find.
BELOW = 15.0  # Fits whose ELBO is this far below the best, in nats, are not proposals.


def fit_fixed_draws(job: Job[Dadvi]) -> Found:
    """Fit a Gaussian at every distinct optimum, and draw from the one with the highest ELBO."""
    with precision("float64"):
        counted = CountedDensity(_density(job))
        fits = gaussians(job, counted, job.method)
        best, rng = fits[0], _rng(job, Purpose.FIXED_DRAWS, 2)
        points = best.points(rng.standard_normal((job.method.draws, counted.size)))
        lp, log_q = counted.log_density(points), best.log_density(points)
        stats = {"lp": lp, "log_q": log_q}
        # The names are those of docs/reference/posterior.md.
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
    attributes = {**found.attributes, **_price(counted)}
    return replace(found, attributes=attributes, proposals=(counted, fits))


def gaussians(job: Job, counted: CountedDensity, s: Dadvi, most: float = math.inf) -> Fits:
    """Fit Gaussians at distinct optima and sort them by ELBO; stop after `most` gradients."""
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
            f"The Gaussian approximation of {job.target.name!r} has no finite ELBO (optima tried: {len(peaks)}). Use "
            "`nuts`."
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
    """Compute importance weights for an approximation, and resample its draws with them.

    Proposals start at the approximation's own Gaussian, or at the moments of its draws, and at every other optimum. By
    default, an approximation of many coordinates is left uncorrected, with a note, if its own weights are useless.
    """
    asked = job.method.weights is not None
    try:
        with precision("float64"):
            counted, fits = _own(job, found)
            rng = _rng(job, Purpose.IMPORTANCE_WEIGHTS, 0)
            if not asked and counted.size > BENT_SIZE and (note := _dead(counted, fits, rng)):
                return replace(found, attributes={**found.attributes, schema.WEIGHTS_NOTE: note})
            if (
                not found.proposals
            ):  # Add Gaussians at optima that the approximation does not cover.
                with suppress(InferenceError) if fits else nullcontext():
                    others = gaussians(job, counted, Dadvi(starts=STARTS, init_radius=RADIUS))
                    apart = (o for o in others if all(_apart(o, own) > SAME for own in fits))
                    fits = (*fits, *apart)
            bar = job.bars.add("weights", ROUNDS)
            result = weigh(counted, fits, rng, lambda done: job.bars.move(bar, done))
            if not np.isfinite(result.lp).any():
                raise InferenceError(
                    f"The log density of {job.target.name!r} is not finite at any of the {len(result.lp):,} draws, "
                    "so importance weights cannot be computed. Use `nuts`."
                )
            moved, result = _checked(counted, fits, result, rng)
            rows = result.resampled(job.method.draws, rng)
            draws = counted.quantities(result.vectors[rows])
    except OnebasinError as error:
        if asked:
            raise
        note = f"No importance weights could be computed: {error}"
        return replace(found, attributes={**found.attributes, schema.WEIGHTS_NOTE: note})
    stats = {"lp": result.lp[rows], "log_q": result.log_q[rows]}
    group = found.groups.get(schema.VARIATIONAL, xr.Dataset())
    group = group.drop_vars(schema.LOG_RATIO, errors="ignore")
    own = {schema.LOG_RATIO: result.lp - result.log_q, schema.LOG_WEIGHT: result.log_weight}
    group = group.assign({name: (schema.SAMPLE, values) for name, values in own.items()})
    whole = one_chain(draws, stats, group, converged=True)
    attributes = {**found.attributes, **_price(counted), schema.WORTH: result.worth}
    first: dict[str, tuple[tuple[str, ...], dict[str, np.ndarray]]]
    first = {schema.WEIGHTED: ((schema.SAMPLE,), result.values)}
    first |= {schema.DRIFT: (("value", "statistic"), moved)}
    groups = dict(whole.groups)
    for name, (axes, values) in first.items():
        dims = {
            n: [*axes, *(f"{n}_dim_{i}" for i in range(v.ndim - len(axes)))]
            for n, v in values.items()
        }
        groups[name] = xr.Dataset({n: (dims[n], v) for n, v in values.items()})
    named = {"value": ["change", "error"], "statistic": list(STATISTICS)}
    groups[schema.DRIFT] = groups[schema.DRIFT].assign_coords(named)
    return replace(whole, attributes=attributes, groups=groups)


def _own(job: Job[Any], found: Found) -> tuple[CountedDensity, Fits]:
    """Return the density and an approximation's Gaussians; without Gaussians, one from the moments of its draws."""
    if found.proposals:
        own: tuple[CountedDensity, Fits] = found.proposals
        return own
    counted = CountedDensity(_density(job))
    density = counted.density
    values = {name: np.asarray(found.draws[name])[0] for name in density.names}
    vectors = np.asarray(jax.vmap(density.unconstrain)(values))
    vectors = vectors[np.isfinite(vectors).all(axis=1)]
    fit = moments(vectors, np.ones(len(vectors))) if len(vectors) > counted.size else None
    return counted, () if fit is None else (fit,)


def _checked(
    counted: CountedDensity, fits: Fits, weighted: Weighted, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], Weighted]:
    """Check weighted draws by short chains. If chains leave the draws, weigh again with proposals in the new region."""
    for number in range(1 + AGAIN):
        ratio = weighted.lp - weighted.log_q
        lost = why_lost(ratio, weighted.log_weight, khat_limit(len(ratio)))
        if lost and (number == AGAIN or not khat_of_weights(ratio) < LOST):
            return {}, weighted
        found = drift(counted, weighted, rng)
        if not found.gaps or number == AGAIN:
            break
        proposals = (*weighted.components, *found.gaps)
        weighted = weigh(counted, proposals, rng, optima=fits)
    return found.changes, weighted


def _dead(counted: CountedDensity, fits: Fits, rng: np.random.Generator) -> str | None:
    """Return a note if the importance weights of an approximation are useless, else None."""
    if not fits:
        return None
    first = weigh(counted, fits, rng, rounds=1, more_rounds=0, tail_rounds=0, bends=False)
    if np.isfinite(first.lp).any() and first.worth >= DEAD:
        return None
    return (
        f"Importance weights leave {first.worth:.1f} effective draws of {len(first.lp):,} in {counted.size} "
        "coordinates, so the fit was not corrected"
    )


def _density(job: Job[Any]) -> Any:
    """Return the log density of the definition that the engine runs."""
    if job.target.is_network:
        return numpyro_density_of(job.target)
    if definition_of(job.target, job.engine) == "stan":
        return StanVectors.of(job.target, job.bars.say)
    return density_of(job.target, job.bars.say)


def _rng(job: Job[Any], purpose: Purpose, number: int) -> np.random.Generator:
    return np.random.default_rng([job.seed, int(purpose), number])


def _in_family(peak: Peak, *, whole: bool) -> Peak:
    """Return the optimum with a full-rank root if `whole`, else with conditional standard deviations."""
    if whole == (peak.root.ndim == 2):
        return peak
    if whole:
        return replace(peak, root=np.diag(peak.root))
    precision_diagonal = (np.linalg.inv(peak.root) ** 2).sum(axis=0)
    return replace(peak, root=1 / np.sqrt(precision_diagonal))


def _apart(one: NormalFit, other: NormalFit) -> float:
    """Return the largest distance between the centres of two fits, in standard deviations of the wider fit."""
    z = (one.loc - other.loc) / np.maximum(one.sds, other.sds)
    return float(np.abs(z).max())


def _price(counted: CountedDensity) -> dict[str, int]:
    return {
        schema.GRADIENT_EVALUATIONS: counted.gradients,
        schema.LOG_DENSITY_EVALUATIONS: counted.heights,
    }
