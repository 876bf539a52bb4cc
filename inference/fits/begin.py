"""Start chains at draws from a fit, with its metric, if its importance weights are good.

Good weights show that the fit covers the posterior; its covariance is then the metric, and no warmup is needed. A fit
with bad weights is in the wrong place, and chains with its metric would get stuck. Such a fit is discarded, and the
chains warm up. One chain in four starts at a random point, so that R-hat can reveal a mode that the fit missed. The
fit is also discarded if such a chain does not reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.posteriors import schema
from onebasin.posteriors.pareto import EVEN, khat_of_weights, tails_of

from ..contracts.method import DEFINED, Found, Job
from ..density.network import CountedDensity
from ..mcmc.starts import Start
from .approximate import gaussians
from .dadvi import Dadvi
from .drift import MovedChains, transition
from .gaussian import ITERATIONS, WALL, NormalFit, Points, Vector, moments
from .weighting import Weighted, weigh

LARGEST = 60  # Maximum number of coordinates for a fit; with more, weights are rarely good.
STARTS = 8  # Number of starts of the search for optima.
DEAR = 8_000  # Maximum number of gradients of a fit; chains take ten times as many.
ROUNDS = 2  # Rounds of weighted draws; a metric and starts need fewer than estimates do.
GOOD, LOST = (0.7, 1.0)
"""Largest k-hat of the weights, and of a coordinate's mean or sd, for which a fit is used."""
HEAVY = 0.5  # A larger k-hat of a coordinate's mean or sd calls for shorter steps.
WORTH = 0.25  # Minimum effective share of the draws, because k-hat may be good by chance.
ONE = 0.95  # Minimum probability of the main optimum; a metric for several would fit none.
SETTLING = 16  # Minimum number of chains that determine the step size.
TRANSITIONS = 15
LENGTH = 2.0  # Length of a trajectory, in standard deviations.
LONGEST = 12  # Maximum number of steps of a trajectory.
SURPLUS = {False: 1.1, True: 2.0}
"""Factor by which rejections are rarer than `target_acceptance` implies, without and with a heavy tail. Stan's
adaptation also rejects less often than that."""


def sampled(job: Job[Any], sample: Callable[[Job[Any]], Found]) -> Found:
    """Run the chains of NUTS or static HMC by `sample`, from a fit if it is good; record the decision."""
    if job.engine not in DEFINED:
        raise ArgumentError(
            f"`init` is 'fit', which sets a metric, but engine={job.engine!r} cannot use one. Use engine='numpyro' "
            "or engine='stanli'."
        )
    with precision("float64"):
        counted = CountedDensity.of(job.target, job.bars.say)
        reason, start = start_from_fit(job, counted)
    job.bars.say(reason.removesuffix("."))
    as_always = replace(job, method=replace(job.method, init="random"))
    found = sample(as_always if start is None else replace(job, given=start))
    attributes = {
        schema.FIT_START: reason,
        schema.FIT_GRADIENTS: counted.gradients,
        schema.FIT_LOG_DENSITIES: counted.heights,
    }
    return replace(found, attributes={**found.attributes, **attributes})


def start_from_fit(job: Job[Any], counted: CountedDensity) -> tuple[str, Start | None]:
    """Fit and weigh; return a sentence on whether chains start from the fit, and the start or None."""
    s, size = job.method, counted.size
    if size > LARGEST:
        return _unused(
            f"importance weights are unreliable in {size} coordinates (the maximum is {LARGEST})"
        )
    afar = _from_afar(job, counted)
    rng = np.random.default_rng([job.seed, int(Purpose.FIT_OF_CHAINS)])
    try:
        fits = gaussians(job, counted, Dadvi(starts=STARTS, init_radius=s.init_radius), DEAR)
    except InferenceError:
        return _unused("no Gaussian with a finite ELBO was found")
    if counted.gradients > DEAR:
        return _unused(f"the fit took {counted.gradients:,} gradients, which is too many")
    weighted = weigh(counted, fits, rng, rounds=ROUNDS, more_rounds=1, tail_rounds=0, bends=False)
    reason, heavy = _judged(weighted)
    whole = moments(weighted.vectors, np.exp(weighted.log_weight)) if reason is None else None
    if whole is None:
        return _unused(reason or "its weighted draws have no covariance")
    acceptance = 1 - (1 - s.target_acceptance) / SURPLUS[heavy]
    near = s.chains - len(afar)
    starts = weighted.vectors[weighted.resampled(max(SETTLING, near), rng)]
    # Move weighted draws and adapt the step size to the acceptance rate. Rejections grow with the square of the step.
    settled = MovedChains.at(counted, starts)
    log_step = -0.25 * np.log(counted.size)
    for number in range(1, TRANSITIONS + 1):
        step = float(np.exp(log_step))
        momentum = rng.standard_normal(starts.shape)
        length = _leapfrogs(step)
        settled, gains = transition(counted, settled, whole.scale, momentum, step, length, rng)
        rejected = max(1e-3, 1 - np.exp(np.minimum(gains, 0)).mean())
        change = 0.5 * np.log((1 - acceptance) / rejected)
        log_step += change * (0.7 if number <= 3 else max(1 / number, 0.1))
    step = float(np.exp(log_step))
    come = _come(counted, afar, settled, whole, step, rng)
    if come is None:
        return _unused("a chain from a random point does not reach it")
    points = np.concatenate([settled.points[:near], come])
    metric = np.stack([whole.scale @ whole.scale.T] * len(points))
    start = Start(points, metric, np.full(len(points), step), warmup=0)
    return (
        f"Chains start from the fit: its weights leave {weighted.worth:,.0f} effective draws of {len(weighted.lp):,}.",
        start,
    )


def _unused(reason: str) -> tuple[str, None]:
    return f"The fit is not used and chains warm up as usual, because {reason}.", None


def _from_afar(job: Job[Any], counted: CountedDensity) -> Points:
    """Return random points for one chain in four: the points where the last chains would start without a fit."""
    chains = job.method.chains
    count = chains // 4 if chains > 3 else int(chains > 1)
    if count == 0:
        return np.empty((0, counted.size))
    keys = keys_for(Purpose.CHAIN_START, job.seed, chains)[-count:]
    return np.asarray(counted.density.random_starts(keys, job.method.init_radius))


def _judged(weighted: Weighted) -> tuple[str | None, bool]:
    """Return the reason why a fit is not used, or None, and whether it has a heavy tail."""
    log_ratio = weighted.lp - weighted.log_q
    count = len(log_ratio)
    if not weighted.worth >= WORTH * count:
        return (
            f"its {count:,} weighted draws have an effective size of only {weighted.worth:,.0f}",
            True,
        )
    if not (khat := khat_of_weights(log_ratio)) <= GOOD:
        return f"k-hat of its weights is {khat:.2f}, above {GOOD}", True
    if (share := weighted.shares.max()) < ONE:
        return (
            f"the main one of {len(weighted.shares)} optima has only {share:.0%} of the probability",
            True,
        )
    even = weighted.worth > EVEN * count  # With even weights, ignore a single extreme draw.
    tails = tails_of(weighted.vectors, log_ratio, weighted.log_weight)
    worst = np.nanmax([tails.mean, tails.square], initial=-np.inf)
    if worst > LOST and not even:
        return f"k-hat of a coordinate is {worst:.2f}, above {LOST}", True
    return None, not even or bool(worst > HEAVY)


def _leapfrogs(step: float) -> int:
    return int(np.clip(np.ceil(LENGTH / step), 1, LONGEST))


def _come(
    counted: CountedDensity,
    afar: Points,
    settled: MovedChains,
    whole: NormalFit,
    step: float,
    rng: np.random.Generator,
) -> Points | None:
    """Climb from random points to the log density of the other chains, and move on from there; None if a chain fails.

    They climb, because trajectories with the fit's metric may be slow elsewhere. They stop before an optimum, where
    chains may stay.
    """
    if not len(afar):
        return afar
    lowest = settled.heights.min()
    ends = [_climbed(counted, point, whole, lowest) for point in afar]
    here = MovedChains.at(counted, np.stack(ends))
    if not (here.heights >= lowest).all():
        return None
    for _ in range(TRANSITIONS):
        momentum = rng.standard_normal(afar.shape)
        here, _ = transition(counted, here, whole.scale, momentum, step, _leapfrogs(step), rng)
    return here.points


def _climbed(counted: CountedDensity, point: Vector, whole: NormalFit, enough: float) -> Vector:
    """Climb by L-BFGS in the fit's coordinates until the log density reaches `enough`."""

    def fall(u: Vector) -> tuple[float, Vector]:
        height, slope = counted.gradient(whole.points(u[None]))
        if not np.isfinite(height[0]):
            return WALL, np.zeros(len(u))
        return -float(height[0]), -slope[0] @ whole.scale

    def stop(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= -enough:
            raise StopIteration

    start = whole.standard(point[None])[0]
    end = minimize(fall, start, jac=True, method="L-BFGS-B", callback=stop, options=ITERATIONS)
    found: Vector = whole.points(end.x[None])[0]
    return found
