r"""Basins (regions that chains do not leave), and the integral of the density over each.

A short chain runs from each distinct optimum. Optima whose chains agree, or enter one another's region, share a basin.
The curvature at the optimum sets the length of the first steps, because longer steps would leave a narrow optimum
before they are adapted. If the chain leaves its optimum nevertheless, the optimum is reported as lost. Then chains run
in each basin, from draws of the short chains, and basins whose chains enter one another are joined.

Each basin has a Gaussian fitted to its draws. A point belongs to the basin whose Gaussian gives the highest density to
the point's copy (under the symmetry) nearest to the centre. Every point and its copies thus belong to one basin.

Bridge sampling estimates the integral of a density from two sets of draws: one from the density, and one from a
Gaussian fitted to other draws from the density. With $p = \tilde p / Z$, a normalised $q$ and any function $h$, $Z =
E_q[h \tilde p] / E_p[h q]$. The best $h$ is $1 / (s_1 p + s_2 q)$ (Meng and Wong 1996); it contains $Z$, so the
estimate is iterated. Here $q$ is N(0, I), and $p$ is centred, scaled by the factor $C$ of its covariance and made
even, $\tilde p(\eta) = |C| [\tilde p(\mu + C \eta) + \tilde p(\mu - C \eta)] / 2$ (Meng and Schilling 2002, warp III),
which keeps the integral and suits skewed densities. The relative mean squared error is Frühwirth-Schnatter's (2004),
with effective numbers of draws.

Log densities are in nats, and points (point, param) in the unconstrained space.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from onebasin.base.errors import InferenceError
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose
from onebasin.posteriors.rhat_ess import mean_ess

from ..contracts.method import Job
from ..density.stan_vectors import Density
from ..fits.gaussian import LOG_2PI, NormalFit
from ..mcmc.chains import Gathered, run_chains
from ..mcmc.numpyro import Course, NumpyroChains
from ..mcmc.nuts import Nuts
from .optima import Folding, Mask, Points, Top, Vector, highest_evidence

ITERATIONS = 1000
TOLERANCE = 1e-10

Numbers = Float[np.ndarray, " point"]
PointsDensity = Callable[[Points], Numbers]


@dataclass(frozen=True)
class LogIntegral:
    """A log integral with its standard error, in nats."""

    value: float
    error: float


def fitted_normal(points: Points) -> NormalFit:
    """Return the Gaussian with the mean and the covariance of points.

    Correlations are shrunk by the factor param / (param + point), so that the covariance of few points has an inverse.
    A coordinate that never varies gets a tiny variance.
    """
    num, size = points.shape
    mean = points.mean(axis=0)
    covariance = np.cov(points, rowvar=False, ddof=1).reshape(size, size)
    spread = np.maximum(np.diag(covariance), 1e-20 * (1 + mean**2))
    shrunk = num / (num + size) * covariance
    np.fill_diagonal(shrunk, spread)
    return NormalFit(mean, np.linalg.cholesky(shrunk))


def log_integral(
    density: PointsDensity, draws: Float[np.ndarray, "chain draw param"], rng: np.random.Generator
) -> LogIntegral:
    """Estimate the log integral of an unnormalised density from chains that sampled it.

    `density` returns log densities, -inf outside the support. NaN draws are ignored. The Gaussian is fitted to one
    half of every chain and compared with the other half, in both directions, and the two estimates are averaged. If
    they differ by more than their errors explain, half of their difference is used as the error.
    """
    middle = draws.shape[1] // 2
    halves = draws[:, :middle], draws[:, middle:]
    estimates = []
    for fitted, other in (halves, halves[::-1]):
        normal = fitted_normal(fitted[np.isfinite(fitted).all(axis=-1)])
        there = np.isfinite(other).all(axis=-1)
        ratios = np.full(there.shape, np.nan)
        ratios[there] = _log_ratio(density, normal, normal.standard(other[there]))
        standard = rng.normal(size=other[there].shape)
        estimates.append(bridged(ratios, _log_ratio(density, normal, standard)))
    first, second = estimates
    error = max(math.hypot(first.error, second.error) / 2, abs(first.value - second.value) / 2)
    return LogIntegral((first.value + second.value) / 2, error)


def _log_ratio(density: PointsDensity, normal: NormalFit, standard: Points) -> Numbers:
    """Return the log ratio of the density, standardised and made even, to the standard Gaussian."""
    there, back = (density(normal.points(s * standard)) for s in (1, -1))
    gaussian = -0.5 * ((standard**2).sum(axis=1) + standard.shape[1] * LOG_2PI)
    even: Any = np.logaddexp(there, back) - math.log(2)
    return even + normal.log_determinant - gaussian


def bridged(of_draws: Float[np.ndarray, "chain draw"], of_gaussian: Numbers) -> LogIntegral:
    """Return the iterated estimate of Meng and Wong and its error.

    `of_draws` are log ratios of the unnormalised density to the Gaussian at draws from the former, NaN where there is
    no draw. `of_gaussian` are log ratios at independent draws from the Gaussian. The error is infinite if none of
    these lies in the support of the density.
    """
    known = of_draws[np.isfinite(of_draws)]
    if known.size < 4 or not np.isfinite(of_gaussian).any():
        return LogIntegral(math.nan, math.inf)
    level = float(np.median(known))
    # Use the effective number of draws for 1 / (1 + ratio), with its mean in place of missing draws.
    value = 1 / (1 + np.exp(np.clip(of_draws - level, -700, 700)))
    effective = _ess(np.where(np.isfinite(value), value, np.nanmean(value)))
    first, second = (n / (effective + len(of_gaussian)) for n in (effective, len(of_gaussian)))
    log_z = level
    for _ in range(ITERATIONS):
        above = of_gaussian - np.logaddexp(math.log(first) + of_gaussian, math.log(second) + log_z)
        below = -np.logaddexp(math.log(first) + known, math.log(second) + log_z)
        after = float(
            logsumexp(above) - math.log(len(above)) - logsumexp(below) + math.log(len(below))
        )
        if abs(after - log_z) < TOLERANCE:
            break
        log_z = after
    if not math.isfinite(log_z):
        return LogIntegral(math.nan, math.inf)
    # The root of the relative mean squared error is the standard error of the log.
    gaussian = 1 / (first + second * np.exp(np.clip(-(of_gaussian - log_z), -700, 700)))
    draws = 1 / (first * np.exp(np.clip(of_draws - log_z, -700, 700)) + second)
    draws = np.where(np.isfinite(draws), draws, np.nanmean(draws))
    terms = (
        gaussian.var(ddof=1) / gaussian.mean() ** 2 / len(gaussian),
        draws.var(ddof=1) / draws.mean() ** 2 / _ess(draws),
    )
    return LogIntegral(log_z, math.sqrt(sum(terms)))


def _ess(values: Float[np.ndarray, "chain draw"]) -> float:
    """Return the effective number of draws for the mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(mean_ess(values[None])[0])
    return min(found, float(values.size)) if math.isfinite(found) and found > 0 else 1.0


PILOT_WARMUP, PILOT_DRAWS = 300, 200  # Numbers of iterations of the short chains.
AT_TOP = 4.0
"""An optimum is lost if its chain stays farther away than this, in sds from the curvature (root mean square)."""
LIGHT = 10.0  # An optimum may be lost if its log evidence is this far below the highest, in nats.
AGREE = 1.2  # Chains share a basin if their R-hat is at most this in every coordinate.
STRAYS = 0.05  # Basins are joined if more than this share of one's draws lies in the other.
SWEEPS = 15  # Maximum number of updates of the centre to which draws are folded.


@dataclass(frozen=True, eq=False)
class Walks:
    """Chains: vectors (chain, draw, param), statistics (chain, draw) and seconds."""

    vectors: Float[np.ndarray, "chain draw param"]
    stats: dict[str, np.ndarray]
    warmup_seconds: tuple[float, ...]
    sampling_seconds: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Basin:
    """A region with its chains."""

    tops: tuple[Top, ...]  # Optima in the basin, highest first.
    chains: tuple[int, ...]  # Numbers of the chains in the basin.
    normal: NormalFit  # Gaussian fitted to the folded draws.
    folded: Float[np.ndarray, "chain draw param"]
    """Draws, each replaced by its copy nearest to the centre."""

    @property
    def starts(self) -> int:
        """Number of starting points that led to the basin's optima."""
        return sum(top.starts for top in self.tops)

    @property
    def weight(self) -> Vector:
        """Weights of coordinates in the distance to the centre."""
        return 1 / self.normal.variances


Basins = tuple[Basin, ...]


@dataclass(frozen=True, eq=False)
class Regions:
    """The division of the space into basins."""

    folding: Folding
    basins: Basins

    def of(self, points: Points) -> Int[np.ndarray, " point"]:
        """Return the number of each point's basin."""
        return np.argmax([self._place(basin, points)[0] for basin in self.basins], axis=0)

    def inside(self, number: int, points: Points) -> Mask:
        """Return whether points belong to a basin and have no copy nearer to its centre."""
        scores, home = zip(*(self._place(basin, points) for basin in self.basins), strict=True)
        return (np.argmax(scores, axis=0) == number) & home[number]

    def _place(self, basin: Basin, points: Points) -> tuple[Numbers, Mask]:
        near, home = self.folding.fold(points, basin.normal.loc, basin.weight)
        return basin.normal.log_density(near), home


def walk(
    job: Job[Nuts],
    density: Density,
    starts: Points,
    purpose: Purpose,
    variances: Points | None = None,
) -> Walks:
    """Run a NUTS chain from each point; `variances` scale its first steps."""
    course = Course(
        density,
        jnp.asarray(starts),
        lambda z: {"vector": density.ravel(z)},
        purpose,
        None if variances is None else jnp.asarray(variances),
    )
    chains, draws = job.method.amount
    gathered = Gathered(chains, draws)
    ended = run_chains(lambda: NumpyroChains(job, course), gathered, chains=chains, draws=draws)
    return Walks(
        np.asarray(gathered.draws["vector"], np.float64),
        {name: np.asarray(values) for name, values in gathered.stats.items()},
        tuple(chain.warmup_seconds for chain in ended),
        tuple(chain.sampling_seconds for chain in ended),
    )


def first_basins(
    job: Job[Any], folding: Folding, tops: Sequence[Top]
) -> tuple[Basins, Walks, tuple[Top, ...]]:
    """Run a short chain from every optimum, and join optima that share a basin; also return the lost optima."""
    short = job.method.nuts(len(tops), warmup=PILOT_WARMUP, draws=PILOT_DRAWS)
    walks = walk(
        replace(job, method=short, bars=ProgressBars(False)),
        folding.density,
        np.stack([top.vector for top in tops]),
        Purpose.MODE_PILOT,
        # Use conditional variances from the curvature, at most 1.
        np.stack([1 / np.maximum(top.weight, 1) for top in tops]),
    )
    highest = highest_evidence(tops)
    lost = []
    for number, top in enumerate(tops):
        if not top.log_evidence > highest - LIGHT:  # Or NaN.
            continue
        near, _ = folding.fold(walks.vectors[number], top.vector, top.weight)
        apart = np.sqrt((((near - top.vector) ** 2) * top.weight).mean(axis=1))
        if not apart.min() < AT_TOP:
            lost.append(top)
    lp = walks.stats["lp"]
    finite = np.isfinite(walks.vectors).all(axis=(1, 2)) & np.isfinite(lp).all(axis=1)
    if not finite.any():
        name = folding.density.target.name
        raise InferenceError(
            f"Every chain that started at an optimum of {name!r} reached a point where the log density is not "
            "finite. Check the data and the prior."
        )
    alone = [fitted(folding, [top], [n], walks) for n, top in enumerate(tops) if finite[n]]
    pairs = combinations(range(len(alone)), 2)
    agreeing = [(a, b) for a, b in pairs if _agree(folding, alone[a], alone[b], walks)]
    return _settled(folding, _joined(folding, alone, agreeing, walks), walks), walks, tuple(lost)


def full_basins(job: Job, folding: Folding, basins: Sequence[Basin]) -> tuple[Basins, Walks]:
    """Run the chains of every basin, starting from draws of its short chains."""
    s, count, starts = job.method, job.method.chains, []
    for basin in basins:  # Take evenly spaced draws of the second halves.
        late = basin.folded[:, basin.folded.shape[1] // 2 :].reshape(-1, basin.folded.shape[-1])
        starts.append(late[np.linspace(0, len(late) - 1, count).astype(int)])
    full = s.nuts(count * len(basins), warmup=s.warmup, draws=s.draws)
    places = np.concatenate(starts)
    walks = walk(replace(job, method=full), folding.density, places, Purpose.MODE_CHAIN)
    own = [
        fitted(folding, basin.tops, range(n * count, (n + 1) * count), walks)
        for n, basin in enumerate(basins)
    ]
    return _settled(folding, own, walks), walks


def fitted(folding: Folding, tops: Sequence[Top], chains: Sequence[int], walks: Walks) -> Basin:
    """Fold the draws of some chains to their centre, and repeat with the new centre until it settles."""
    own = walks.vectors[list(chains)]
    flat = own.reshape(-1, own.shape[-1])
    normal = fitted_normal(own[0])
    centre, weight = flat[-1], 1 / normal.variances
    for _ in range(SWEEPS):
        near, _ = folding.fold(flat, centre, weight)
        normal = fitted_normal(near)
        moved = not np.allclose(centre, normal.loc, rtol=1e-9, atol=1e-12)
        centre, weight = normal.loc, 1 / normal.variances
        if folding.layout is None or not moved:
            break
    return Basin(tuple(tops), tuple(chains), normal, near.reshape(own.shape))


def _agree(folding: Folding, one: Basin, other: Basin, walks: Walks) -> bool:
    """Return whether the chains of two basins have the same distribution, modulo the symmetry."""
    flat = other.folded.reshape(-1, other.folded.shape[-1])
    near, _ = folding.fold(flat, one.normal.loc, one.weight)
    chains = np.concatenate([one.folded, near.reshape(other.folded.shape)])
    heights = walks.stats["lp"][[*one.chains, *other.chains]]
    together = np.concatenate([chains, heights[..., None]], axis=-1)
    # Compute split R-hat (Gelman et al. 2013) of all coordinates.
    middle = together.shape[1] // 2
    halves = np.concatenate([together[:, :middle], together[:, -middle:]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt((middle - 1) / middle + between / np.where(within > 0, within, np.nan))
    return bool((rhat < AGREE).all())


def _settled(folding: Folding, basins: Sequence[Basin], walks: Walks) -> Basins:
    """Join basins until no chain enters another basin."""
    while len(basins) > 1:
        regions = Regions(folding, tuple(basins))
        pairs = []
        for number, basin in enumerate(basins):
            where = regions.of(basin.folded.reshape(-1, basin.folded.shape[-1]))
            share = np.bincount(where, minlength=len(basins)) / len(where)
            pairs += [(number, int(o)) for o in np.flatnonzero(share > STRAYS) if o != number]
        if not pairs:
            break
        basins = _joined(folding, basins, pairs, walks)
    return tuple(basins)


def _joined(
    folding: Folding, basins: Sequence[Basin], pairs: Sequence[tuple[int, int]], walks: Walks
) -> list[Basin]:
    """Join the basins that the pairs connect."""
    groups = [{number} for number in range(len(basins))]
    for pair in pairs:
        joined = [group for group in groups if group & {*pair}]
        groups = [group for group in groups if group not in joined]
        groups.append(set().union(*joined))
    out = []
    for group in sorted(groups, key=min):
        own = [basins[n] for n in sorted(group)]
        tops = sorted((t for b in own for t in b.tops), key=lambda top: -top.height)
        chains = [chain for basin in own for chain in basin.chains]
        out.append(own[0] if len(own) == 1 else fitted(folding, tops, chains, walks))
    return out
