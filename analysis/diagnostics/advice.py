"""Sentences for a person: what a diagnosis, raw or of aligned draws, finds wrong, and what to do next.

Each function looks at one diagnostic and yields at most a sentence or two. The thresholds are the
diagnosis's own `limits`; the order is that in which the problems should be mended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..posterior.sampler import SamplerSummary
from ..posterior.variational import MIN_DRAWS_FOR_KHAT, VariationalSummary
from .result import AlignedDiagnosis, Diagnosis

APART = 1.2
"""R-hat above which chains are taken to disagree."""
NATS = 20.0
"""Difference of chains' mean log densities that makes the lower mode negligible."""
SHRINKS = 0.9
"""Aligned over raw standard deviation below which alignment is said to shrink the spread."""
LIKE_NOISE = 0.95
"""Ratio of the gain on draws to the gain on shuffled draws above which the two are alike."""


def warn(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Say what is wrong with a posterior and what to do about it."""
    sentences: list[str] = []
    if diagnosis.sampler is not None:
        sentences += _stuck(diagnosis.sampler)
        sentences += _rhat(diagnosis, diagnosis.sampler)
        sentences += _ess(diagnosis)
        sentences += _divergences(diagnosis, diagnosis.sampler)
        sentences += _tree_depth(diagnosis, diagnosis.sampler)
        sentences += _bfmi(diagnosis, diagnosis.sampler)
    if diagnosis.variational is not None:
        sentences += _variational(diagnosis.variational)
    return tuple(sentences)


def note(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Say which diagnostics do not apply to a posterior, and why."""
    sentences: list[str] = []
    if diagnosis.variational is not None:
        sentences.append(
            "R-hat does not apply: the draws are independent ones from an approximation, and tell "
            "nothing of its distance from the posterior; k-hat does."
        )
        if math.isnan(diagnosis.variational.khat):
            sentences.append(_khat_missing(diagnosis.variational))
    elif diagnosis.num_chains == 1:
        sentences.append("R-hat needs at least two chains, and there is one: run more.")
    if constants := diagnosis.constants:
        sentences.append(
            f"Without R-hat and ESS, because every draw is the same: {_listed(constants)} "
            f"({_count(len(constants), 'parameter')})."
        )
    if diagnosis.sampler is not None and diagnosis.sampler.divergences is None:
        sentences.append("Divergences were not recorded.")
    return tuple(sentences)


def tell_aligned(diagnosis: AlignedDiagnosis) -> tuple[str, ...]:
    """Say what alignment did: labels within chains, R-hat before and after."""
    return tuple(_events(diagnosis))


def warn_aligned(diagnosis: AlignedDiagnosis) -> tuple[str, ...]:
    """Say what to beware of in aligned draws."""
    return tuple(_cautions(diagnosis))


def _stuck(sampler: SamplerSummary) -> Iterator[str]:
    if sampler.stuck_chains:
        yield (
            f"{_chains(sampler.stuck_chains)} never moved: the step size or the starting point is "
            "hopeless there. Run with other starting points, a longer warmup or a higher target "
            "acceptance rate, and do not use these draws."
        )


def _rhat(diagnosis: Diagnosis, sampler: SamplerSummary) -> Iterator[str]:
    limit = diagnosis.limits.rhat
    bad = int((diagnosis.parameters["rhat"] > limit).sum())
    lp_agrees = sampler.lp_rhat <= limit
    if bad:
        yield (
            f"R-hat is above {limit:g} for {bad} of {len(diagnosis.parameters)} parameters (worst "
            f"{diagnosis.rhat.value:.3g}, `{diagnosis.rhat.parameter}`): the chains disagree. "
            + _remedy(diagnosis.symmetric, lp_agrees)
        )
    if sampler.lp_rhat > limit:
        heights = ", ".join(f"{mean:.1f}" for mean in sampler.lp_means)
        yield (
            f"The chains' log densities disagree (R-hat of `lp` {sampler.lp_rhat:.3g}; means by "
            f"chain {heights}): some chains sit in modes of unlike height, or have not arrived. "
            "Run longer, or start from other points."
        )


def _remedy(symmetric: bool, lp_agrees: bool) -> str:
    if symmetric and lp_agrees:
        return (
            "Their log densities agree and the target declares a symmetry, so these may be equal "
            "modes under other names: judge by what the symmetry leaves alone (`lp`, predictions), "
            "or use a parametrisation without it (ordered biases, unit-norm weights)."
        )
    if symmetric:
        return (
            "The target declares a symmetry, so some of this may be equal modes under other names: "
            "look at `lp` and predictions first, then run longer or remove the symmetry by the "
            "parametrisation."
        )
    return "Do not use the means; run a longer warmup and more draws, or reparametrise."


def _ess(diagnosis: Diagnosis) -> Iterator[str]:
    limit = diagnosis.min_ess
    for word, extreme, use in (
        ("Bulk", diagnosis.ess_bulk, "means and medians"),
        ("Tail", diagnosis.ess_tail, "intervals and variances"),
    ):
        if extreme.value < limit:
            yield (
                f"{word} ESS is below {limit:.0f} ({diagnosis.limits.ess_per_chain:g} a chain); "
                f"the smallest is {extreme.value:.0f} of {diagnosis.total_draws} draws "
                f"(`{extreme.parameter}`): {use} are not reliable yet. Draw more, or reparametrise."
            )


def _divergences(diagnosis: Diagnosis, sampler: SamplerSummary) -> Iterator[str]:
    if sampler.divergences:
        per_chain = ", ".join(map(str, sampler.divergences_per_chain))
        yield (
            f"{sampler.divergences} of {diagnosis.total_draws} draws diverged "
            f"({_percent(sampler.divergence_share)}; by chain {per_chain}): the integrator could "
            "not follow the posterior's curvature, so the draws may be biased. Raise the target "
            "acceptance rate (0.95 or 0.99), or reparametrise."
        )


def _tree_depth(diagnosis: Diagnosis, sampler: SamplerSummary) -> Iterator[str]:
    if sampler.reached_max_treedepth:
        yield (
            f"{sampler.reached_max_treedepth} of {diagnosis.total_draws} draws reached the maximal tree depth "
            f"{sampler.max_tree_depth} ({_percent(sampler.reached_max_treedepth_share)}): trajectories were "
            "cut short, which costs time and ESS. Raise `max_tree_depth`, or reparametrise."
        )


def _bfmi(diagnosis: Diagnosis, sampler: SamplerSummary) -> Iterator[str]:
    limit = diagnosis.limits.bfmi
    low = tuple(chain for chain, value in enumerate(sampler.bfmi) if value < limit)
    if low:
        values = ", ".join(f"{sampler.bfmi[chain]:.2f}" for chain in low)
        yield (
            f"E-BFMI is below {limit:g} in {_chains(low).lower()} ({values}): the energy changes "
            "too slowly for the tails to be explored. Run a longer warmup, or reparametrise."
        )


def _variational(fit: VariationalSummary) -> Iterator[str]:
    if fit.converged is False:
        yield "The optimiser stopped before its criterion was met: allow more iterations."
    if fit.elbo_evaluations and not math.isfinite(fit.elbo):
        yield f"The last ELBO is {fit.elbo}: the fit has failed; use a smaller step size."
    if fit.non_finite_ratios:
        verb = "is" if fit.non_finite_ratios == 1 else "are"
        yield (
            f"{_count(fit.non_finite_ratios, 'importance ratio')} `lp - log_q` of the draws {verb} "
            "not finite, so k-hat cannot be computed: draws fall outside the posterior's support "
            "or overflow."
        )
    if fit.khat > fit.khat_limit:
        yield (
            f"Pareto k-hat is {fit.khat:.2f}, above {fit.khat_limit:.2f}: the approximation misses "
            "part of the posterior. Hold its intervals against MCMC before using them, or try a "
            "richer family (full rank) or a better parametrisation."
        )


def _khat_missing(fit: VariationalSummary) -> str:
    if fit.non_finite_ratios:
        return "k-hat is not defined: importance ratios are not finite."
    return (
        f"k-hat was not computed: it needs `lp` and `log_q` of at least {MIN_DRAWS_FOR_KHAT} "
        "draws, and largest ratios that are not all alike."
    )


def _chains(chains: tuple[int, ...]) -> str:
    word = "Chain" if len(chains) == 1 else "Chains"
    return f"{word} {', '.join(map(str, chains))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(names: tuple[str, ...], shown: int = 6) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:shown])
    return listed + (f" and {len(names) - shown} more" if len(names) > shown else "")


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _events(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    yield diagnosis.alignment.text
    labellings = diagnosis.switching.labellings
    if max(labellings, default=1) == 1:
        yield "Labels never changed within a chain."
    else:
        share = diagnosis.switching.reassigned
        lag = max((lag for lag, value in share.items() if math.isfinite(value)), default=None)
        later = (
            f"; {100 * share[lag]:.0f} % of the parts have another place {lag} draws later"
            if lag
            else ""
        )
        counts = f"{min(labellings)} to {max(labellings)} labellings a chain"
        yield f"Labels changed within chains: {counts}{later}."
    raw, aligned, fixed = diagnosis.raw.rhat, diagnosis.aligned.rhat, diagnosis.invariant_rhat
    yield (
        f"Worst R-hat: {raw.value:.3f} raw, {aligned.value:.3f} aligned"
        + (f", {diagnosis.held_out_rhat.value:.3f} held out" if diagnosis.held_out_rhat else "")
        + (f", {fixed.value:.3f} of what the symmetry leaves alone." if fixed.parameter else ".")
    )


def _cautions(diagnosis: AlignedDiagnosis) -> Iterator[str]:
    limit = diagnosis.raw.limits.rhat
    if len(diagnosis.basins) > 1:
        groups = "; ".join(", ".join(map(str, group)) for group in diagnosis.basins)
        yield (
            f"{len(diagnosis.basins)} groups of chains stay apart after alignment ({groups}): modes that "
            "the symmetry does not join." + _heights(diagnosis)
        )
    elif _spread(diagnosis) > NATS:
        yield "The chains' log densities lie far apart." + _heights(diagnosis)
    left = _left_out(diagnosis)
    if left:
        yield (
            f"{', '.join(left)} did not move along and still disagree between chains: declare them too, "
            "if they belong to the parts."
        )
    if not diagnosis.alignment.converged:
        yield (
            f"The alignment still moved parts in its last of {diagnosis.alignment.sweeps} sweeps: give "
            "more with `max_sweeps`."
        )
    if diagnosis.raw.rhat.value <= limit and diagnosis.shrinkage < SHRINKS:
        yield (
            f"R-hat is good without alignment ({diagnosis.raw.rhat.value:.3f}), which only shrinks the spread "
            f"(to {diagnosis.shrinkage:.2f} of the raw standard deviation): either every chain visits all "
            "labellings, or the parts are alike without being modes. Use the raw draws for what does "
            "not depend on labels."
        )
    overlap = max(diagnosis.switching.labellings, default=1) > 1
    noise = diagnosis.switching.noise_ratio
    if noise is not None and diagnosis.switching.ratio > LIKE_NOISE * noise:
        yield (
            f"Alignment brings the draws hardly closer than it brings shuffled ones (to "
            f"{diagnosis.switching.ratio:.2f} and {noise:.2f} of their variance): one mode a labelling is not "
            "what this posterior looks like."
        )
    elif overlap:
        yield (
            "Parts overlap, so that aligned means and standard deviations depend on the rule of the "
            "alignment, which is stored with them; compare invariants where that matters."
        )


def _left_out(diagnosis: AlignedDiagnosis) -> list[str]:
    """Variables that no block moves, and whose chains disagree although those of the moved ones agree."""
    rhat = diagnosis.raw.parameters["rhat"].drop(index=diagnosis.aligned.parameters.index)
    if diagnosis.aligned.rhat.value > APART or diagnosis.raw.rhat.value <= APART:
        return []
    return list(dict.fromkeys(str(name).partition("[")[0] for name in rhat[rhat > APART].index))


def _spread(diagnosis: AlignedDiagnosis) -> float:
    return max(diagnosis.chain_lp) - min(diagnosis.chain_lp) if diagnosis.chain_lp else 0.0


def _heights(diagnosis: AlignedDiagnosis) -> str:
    if not diagnosis.chain_lp:
        return ""
    means = ", ".join(f"{mean:.1f}" for mean in diagnosis.chain_lp)
    heights = f" Mean log density by chain: {means}."
    if _spread(diagnosis) > NATS:
        heights += " Chains far below the highest sit in negligible modes: start from an optimum."
    return heights
