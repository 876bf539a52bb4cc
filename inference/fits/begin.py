"""Chains that begin from a fit: at its draws and in its metric, if its weights are good.

The weights decide. Good ones say that the fit covers the posterior, so that its covariance is the best metric that
there is and no warmup is needed. Draws of a fit whose weights are bad lie in the wrong place, and its metric makes
chains stick: such a fit is thrown away, and the chains warm up as always. One chain in four starts at a random point
all the same, so that R-hat can reveal a mode that the fit has missed; a fit to which that chain does not come is thrown
away as well.
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

LARGEST = 60  # Coordinates above which weights rarely last, so that no fit is tried.
STARTS = 8  # From which optima are sought.
DEAR = 8_000
"""Gradients of a fit beyond which it is not used: it hardly converges, and chains alone take ten times as many."""
ROUNDS = 2  # Of weighted draws, of which metric and starts need fewer than estimates do.
GOOD, LOST = 0.7, 1.0
"""The largest k-hat of weights, and that of a coordinate's mean or sd, with which a fit is used."""
HEAVY = 0.5  # k-hat of a coordinate's mean or sd above which its tail calls for shorter steps.
WORTH = 0.25
"""Share of the draws that weights are worth below which a fit is not used, though k-hat may be good by chance."""
ONE = 0.95
"""The least share of the probability that one optimum holds, since the metric of several fits none of them."""
SETTLING = 16  # Chains by which the step size is found, at least.
TRANSITIONS = 15
LENGTH = 2.0  # Length of a trajectory, in standard deviations, and its maximum number of steps.
LONGEST = 12
SURPLUS = {False: 1.1, True: 2.0}
"""By how much rejection is rarer along trajectories of that length than `target_acceptance` says; more where a tail is
heavy. Stan's adaptation ends at rarer rejections than it aims at as well."""


def sampled(job: Job[Any], sample: Callable[[Job[Any]], Found]) -> Found:
    """Run the chains of a job of NUTS or static HMC from a fit, or as always; and record which it was, and why.

    `sample` runs the chains of a job.
    """
    if job.engine not in DEFINED:
        raise ArgumentError(
            f"`init` is 'fit', but engine={job.engine!r} takes no metric; use engine='numpyro' or 'stanli'."
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
    """Fit, weigh, and decide whether chains begin there: why, as a sentence, and where, None if the fit is not used."""
    s, size = job.method, counted.size
    if size > LARGEST:
        return _unused(f"no weights last in {size} coordinates (at most {LARGEST} are tried)")
    afar = _from_afar(job, counted)
    rng = np.random.default_rng([job.seed, int(Purpose.FIT_OF_CHAINS)])
    try:
        fits = gaussians(job, counted, Dadvi(starts=STARTS, init_radius=s.init_radius), DEAR)
    except InferenceError:
        return _unused("no Gaussian of finite ELBO was found")
    if counted.gradients > DEAR:
        return _unused(f"it alone took {counted.gradients:,} gradients")
    weighted = weigh(counted, fits, rng, rounds=ROUNDS, more_rounds=1, tail_rounds=0, bends=False)
    reason, heavy = _judged(weighted)
    whole = moments(weighted.vectors, np.exp(weighted.log_weight)) if reason is None else None
    if whole is None:
        return _unused(reason or "its weighted draws have no covariance")
    acceptance = 1 - (1 - s.target_acceptance) / SURPLUS[heavy]
    near = s.chains - len(afar)
    starts = weighted.vectors[weighted.resampled(max(SETTLING, near), rng)]
    # Weighted draws are moved, and the step size with the wanted mean acceptance along trajectories is found. The
    # energy error grows with the square of the step, and so does what is rejected.
    settled = MovedChains.at(counted, starts)
    log_step = -0.25 * np.log(counted.size)
    for number in range(1, TRANSITIONS + 1):
        step = float(np.exp(log_step))
        momentum = rng.standard_normal(starts.shape)
        settled, gains = transition(
            counted, settled, whole.scale, momentum, step, _leapfrogs(step), rng
        )
        rejected = max(1e-3, 1 - np.exp(np.minimum(gains, 0)).mean())
        change = 0.5 * np.log((1 - acceptance) / rejected)
        log_step += change * (0.7 if number <= 3 else max(1 / number, 0.1))
    step = float(np.exp(log_step))
    come = _come(counted, afar, settled, whole, step, rng)
    if come is None:
        return _unused("a chain from a random point does not come to it")
    points = np.concatenate([settled.points[:near], come])
    metric = np.stack([whole.scale @ whole.scale.T] * len(points))
    start = Start(points, metric, np.full(len(points), step), warmup=0)
    return (
        f"Chains start from the fit: its weights are worth {weighted.worth:,.0f} of {len(weighted.lp):,} draws.",
        start,
    )


def _unused(reason: str) -> tuple[str, None]:
    return f"The fit is not used, and chains warm up as usual: {reason}.", None


def _from_afar(job: Job[Any], counted: CountedDensity) -> Points:
    """The random points of one chain in four, those where the last ones would start without a fit."""
    chains = job.method.chains
    count = chains // 4 if chains > 3 else int(chains > 1)
    if count == 0:
        return np.empty((0, counted.size))
    keys = keys_for(Purpose.CHAIN_START, job.seed, chains)[-count:]
    return np.asarray(counted.density.random_starts(keys, job.method.init_radius))


def _judged(weighted: Weighted) -> tuple[str | None, bool]:
    """Why a fit is not used, None if it is; and whether a tail of it is heavy."""
    log_ratio = weighted.lp - weighted.log_q
    count = len(log_ratio)
    if not weighted.worth >= WORTH * count:
        return (
            f"its {count:,} weighted draws are worth {weighted.worth:,.0f} independent ones",
            True,
        )
    if not (khat := khat_of_weights(log_ratio)) <= GOOD:
        return f"k-hat of its weights is {khat:.2f}, above {GOOD}", True
    if (share := weighted.shares.max()) < ONE:
        return (
            f"the best of {len(weighted.shares)} optima holds {share:.0%} of the probability",
            True,
        )
    even = weighted.worth > EVEN * count  # then one draw far out says nothing
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
    """Bring chains from afar to the height of the others, and move them there; None if one does not come so high.

    They climb, since trajectories with the fit's metric may take forever where it does not fit; but not to an optimum,
    which a chain may never leave.
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
    """Climb by L-BFGS, in the fit's coordinates, until the log density is enough or there is no way up."""

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
