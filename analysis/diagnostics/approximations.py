"""Verdict on draws that come from no Markov chain: approximations, with or without importance weights, and ensembles.

The verdict is on the draws that the user receives. A small k-hat shows that importance weights could correct a fit's
draws, but not that the draws are right. So each mean, standard deviation and quantile of an unweighted fit is
compared with its weighted value. Weighted draws are judged by their weights, and each summary by its own k-hat and
standard error (`posteriors.pareto`). Weights cannot reveal regions without draws, but short chains started from the
draws can. The run stores how far these chains moved (group `drift`). Their standard errors must be small enough to
detect the errors that are ruled out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.pareto import (
    CLAIMED,
    COVERED,
    EVEN,
    LEAST_WORTH,
    MIN_DRAWS_FOR_KHAT,
    STATISTICS,
    Known,
    khat_limit,
    khat_of_weights,
    known,
    quantiles,
    smoothed,
    why_lost,
    worth,
)

from ..summaries.summary import rhat_of_entries
from ..summaries.variational import KHAT_OF_DISTINCT, log_ratios
from .checks import OTHERS, check
from .labels import (
    SORTED,
    Labels,
    cannot_tell,
    labels_move,
    labels_remedy,
    overlap,
    stay,
    use_label_free,
)
from .measure import Facts
from .verdict import (
    LABELS,
    PREDICTIONS,
    SAMPLER,
    Answer,
    Extreme,
    Reason,
    Verdict,
    capital,
    digits,
    ended,
    in_rhat,
    listed,
)

DRIFTS, MATERIAL, UNSEEN, UNSEEN_BY_FEW = 4.0, 0.5, 0.75, 0.5
"""Limits on the moves of short chains: the largest move in standard errors; the share of the claimed accuracy
(`CLAIMED`) that a move must exceed to count; and the standard error, as a share of `CLAIMED`, above which a move would
go unnoticed, in general and with uneven weights."""
AGREES = (0.1, 0.1, 0.15)
"""Largest differences allowed between plain and weighted draws: in a mean (in standard deviations), a standard
deviation (relative) and a quantile (in standard deviations)."""
DESCRIBED = ("mean", "sd", "5 % quantile", "95 % quantile")
SHIFT, INFLATION = 0.2, 1.15
"""Largest effects of draws in other labellings on a mean, in standard deviations, and on an sd, as a ratio."""
APART = 0.8
"""Largest ratio of the variance after alignment to its value for noise at which components count as distinct."""
LINKED = 0.5
"""Stricter limit of k-hat that applies when another quantity exceeds the usual limit."""

Entries = tuple[str, ...]
_NO_SAMPLER = Reason(SAMPLER, "passed", "No Markov chain was run; the draws are independent")
_NUTS = "Sample with NUTS (`--method nuts`, `ob.nuts`)"


def of_others(facts: Facts) -> Verdict:
    """Judge draws that do not come from a Markov chain, leaving labels aside."""
    if facts.raw.variational is not None:
        return _of_fit(facts)
    if facts.raw.sampler is not None and not facts.raw.sampler.sampled:
        rows = (
            Reason(LABELS, "passed", "There are no parameters whose labels could switch"),
            Reason(PREDICTIONS, "passed", "Independent draws need no convergence"),
            _NO_SAMPLER,
        )
        draws = f"the {facts.raw.total_draws:,} draws are independent"
        said = f"You may use it: no Markov chain was run, and {draws}"
        return Verdict("usable", (Reason("answer", "passed", said),), rows)
    why = "nothing here measures how far they are from the posterior"
    fact = f"Members of an ensemble are optima, not draws, and {why}"
    return _of_unproved(Reason("unproved", "failed", fact, remedy=OTHERS), facts)


def modulo(verdict: Verdict, labels: Labels) -> Verdict:
    """Add the state of labels to the verdict on an approximation.

    If fits reach several optima, their draws have several labellings, so a component's mean averages over components.
    """
    state = _state(labels)
    apart = _fits_apart(labels)
    if apart.value > labels.facts.rhat_limit:
        fact = (
            f"The fits disagree (R-hat {in_rhat(apart.value)} of `{apart.parameter}`): they lie at different optima, "
            "and the draws weight these by the number of fits"
        )
        modes = "or mode by mode (`--method modes`, `ob.sample_modes`), which weights the optima."
        return _refused(labels.facts, "its fits lie at different optima", fact, f"{_NUTS}, {modes}")
    if state == "none":
        return verdict
    if state == "stay":
        return replace(verdict, rows=(Reason(LABELS, "passed", stay(labels)), *verdict.rows[1:]))
    usable, sorts = verdict.answer == "usable", state == "switch"
    if sorts:
        row = Reason(LABELS, "warned", SORTED)
        several = f"its draws have several labellings of {listed(labels.variables)}"
        means = "so the mean of one component averages over several. Use aligned means"
        once = f"You may use it once labels are aligned: {several}, {means}"
        said = Reason("answer", "passed", once)
    else:
        row = Reason(LABELS, "warned", cannot_tell(labels))
        said = Reason("answer", "warned", use_label_free(labels.reason or overlap(labels)))
    remedy = labels_remedy(labels, "aligned" if sorts else "invariant")
    cause = Reason("labels", "warned", labels_move(labels), remedy=remedy)
    answer: Answer = "invariant" if not sorts else "aligned" if usable else verdict.answer
    return replace(
        verdict,
        answer=answer,
        headline=(said, *verdict.headline[1:]) if usable else (*verdict.headline, said),
        rows=(row, *verdict.rows[1:]),
        causes=(*verdict.causes, cause),
        exchangeable=labels.words,
    )


def _fits_apart(labels: Labels) -> Extreme:
    """Return the largest R-hat between several fits, leaving out variables whose labels are not aligned."""
    follow = labels.state == "partial" and not labels.doubtful
    left_out = labels.variables if labels.state == "overlap" else ()
    facts, rhat = labels.facts, {"": np.nan}
    if facts.raw.num_chains > 1 and not follow:
        for name in (name for name in facts.values if name not in left_out):
            drawn = facts.values[name]
            known = rhat_of_entries(drawn.reshape(*drawn.shape[:2], -1))
            rhat |= dict(zip(facts.names[name], known, strict=True))
    return Extreme.of(pd.Series(rhat))


def _state(labels: Labels) -> str:
    """Return the state of labels. A few draws in another labelling count only if they change a mean or an sd."""
    aligned = labels.aligned
    if labels.state != "stay" or aligned is None or max(aligned.switching.labellings) == 1:
        return labels.state
    after = aligned.aligned.parameters[["mean", "sd"]]
    before = aligned.raw.parameters[["mean", "sd"]].reindex(after.index)
    shift, ratio = (before["mean"] - after["mean"]).abs() / after["sd"], before["sd"] / after["sd"]
    if shift.max() <= SHIFT and ratio.max() <= INFLATION:
        return "stay"
    noise = aligned.switching.noise_ratio
    return "overlap" if noise and aligned.switching.ratio > APART * noise else "switch"


def _of_fit(facts: Facts) -> Verdict:
    """Judge an approximation by its importance weights; if it was not weighted, by those that it would have."""
    if (weighted := WeightedDraws.of(facts)) is not None:
        return _of_weights(facts, weighted)
    failed = [found for found in check(facts.raw) if found.outcome == "failed"]
    if failed:
        first = next((found for found in failed if found.name == "k-hat"), failed[0])
        until = "; until then use it only for starting points."
        short = "importance weights cannot correct it"
        if first.name != "k-hat":
            short = f"{first.fact[:1].lower()}{first.fact[1:]}"
        return _refused(facts, short, first.sentences[0], f"{_advice(facts)}{until}")
    if (ratios := log_ratios(facts.view)) is None or ratios.size < MIN_DRAWS_FOR_KHAT:
        fact = "k-hat cannot be computed, and nothing else measures how far an approximation is from its posterior"
        record = f"Record `lp` and `log_q` of at least {MIN_DRAWS_FOR_KHAT} draws, or compare the draws with those of"
        cause = Reason("unproved", "failed", fact, remedy=f"{record} MCMC by `compare`.")
        return _of_unproved(cause, facts)
    if (resampled := WeightedDraws.of_resampled(facts)) is not None:
        return _of_weights(facts, resampled)
    return _of_plain(facts, ratios)


def _of_plain(facts: Facts, log_ratio: Float[np.ndarray, " draw"]) -> Verdict:
    """Compare the means, standard deviations and quantiles of a fit's draws with their weighted values."""
    log_weight, limit = smoothed(log_ratio), khat_limit(len(log_ratio))
    draws, count = worth(log_weight), len(log_ratio)
    khat, even = khat_of_weights(log_ratio), draws > EVEN * count
    weights, plain = np.exp(log_weight), np.full(count, 1 / count)
    off, unknown, entries = list[tuple[float, str]](), list[str](), 0
    for name, own in facts.names.items():
        flat = facts.values[name].reshape(count, -1)
        lacks = known(flat, log_ratio, log_weight, plain).lacks((np.inf if even else limit,) * 3)
        # Even if the weights are nearly equal, the sd of a long-tailed quantity needs enough draws.
        alone = known(flat, log_ratio, np.log(plain), with_khats=False)
        lacks[1] |= alone.lacks((np.inf,) * 3)[1]
        entries += len(own)
        for place, entry in enumerate(own):
            before, after = (_described(flat[:, place], w) for w in (plain, weights))
            apart = np.abs(before - after) / np.array([after[1], before[1], after[1], after[1]])
            worst = apart / np.array([*AGREES, AGREES[-1]])
            if lacks[:, place].any():
                unknown.append(entry)
            elif after[1] > 0 and worst.max() > 1:
                kind = int(worst.argmax())
                pair = f"{before[kind]:.3g}, {after[kind]:.3g} weighted"
                off.append((float(worst[kind]), f"{DESCRIBED[kind]} of `{entry}` ({pair})"))
    told = [text for _, text in sorted(off, reverse=True)]
    k = f"k-hat {khat:.2f}" if khat > -np.inf else ""
    rest = f"worth {draws:,.0f} of {count:,} draws"
    shown = f"Importance weights ({f'{k}, ' if k else ''}{rest})"
    if not (told or unknown):
        fact = (
            "You may use it: importance weights change no mean by more than 0.1 sd, no sd by more than 10 %, and no 5 "
            "% or 95 % quantile by more than 0.15 sd. They cannot reveal modes that the fit missed"
        )
        kept = f"{shown} leave means, sds and quantiles as they are"
        rows = _rows(facts, Reason(PREDICTIONS, "passed", kept))
        return Verdict("usable", (Reason("answer", "passed", fact),), rows)
    parts = [f"Importance weights change its {listed(told, code=False)}"] if told else []
    if unknown:
        parts.append(
            f"{'weights' if told else 'Weights'} cannot tell whether {listed(unknown)} may be used"
        )
    fact = f"{'; '.join(parts)} ({f'{k}; ' if k else ''}the weights are {rest})"
    if 2 * (len(told) + len(unknown)) > entries:
        short = "importance weights change its numbers" if told else "nothing confirms its numbers"
        return _refused(facts, short, fact, _advice(facts))
    cause = Reason("approximation", "failed", fact, remedy=ended(_advice(facts)))
    said = Reason("answer", "warned", "You may use all quantities that are not named here")
    row = Reason(PREDICTIONS, "warned", f"{shown} change the quantities named above")
    return Verdict("partly", (said, cause), _rows(facts, row), (cause,))


def _described(
    values: Float[np.ndarray, " draw"], weights: Float[np.ndarray, " draw"]
) -> Float[np.ndarray, " number"]:
    """Return the mean, standard deviation, 5 % and 95 % quantiles of weighted draws."""
    mean = weights @ values
    return np.array([mean, (weights @ (values - mean) ** 2) ** 0.5, *quantiles(values, weights)])


def _advice(facts: Facts) -> str:
    """Advise what to do about an unweighted fit: weights, a richer family, or NUTS."""
    method, note = facts.raw.method, facts.view.attribute(schema.WEIGHTS_NOTE)
    nuts = "sample with NUTS (`ob.nuts`, `--method nuts`)"
    richer = 'use `family="fullrank"`, or ' if "meanfield" in method else ""
    corrected = method.startswith(("advi", "dadvi", "laplace", "pathfinder"))
    # Importance weights of a network's fit are too uneven to be useful.
    if not note and corrected and not facts.view.attribute(schema.MODEL):
        richer = f"correct it with `weights=True` (`--weights`), {richer or 'or '}"
    advice = f"{richer}{nuts}"
    return f"{f'{note}. ' if note else ''}{capital(advice)}"


def _rows(facts: Facts, row: Reason) -> tuple[Reason, Reason, Reason]:
    """Return the rows on labels, predictions and the sampler. Labels are judged by the search before the run."""
    found = facts.view.found_symmetry
    others = (b for b in found.get("blocks", ()) if b.get("status") != "harmless")
    nothing = found and not (found.get("exchangeable") or found.get("open") or any(others))
    if nothing:
        fact = "The symmetry search on the log density found no labels that could switch"
        return Reason(LABELS, "passed", fact), row, _NO_SAMPLER
    if facts.view.is_aligned:
        return Reason(LABELS, "passed", "No label switching seen"), row, _NO_SAMPLER
    why = "no symmetry search was run"
    if facts.view.declared_symmetry:
        why = "its draws were not aligned"
    elif found:
        why = "the search on the log density was inconclusive"
    fact = f"Label switching was not judged: {why}"
    return Reason(LABELS, "not judged", fact), row, _NO_SAMPLER


def _of_unproved(cause: Reason, facts: Facts) -> Verdict:
    """Return the verdict on draws whose distance from the posterior cannot be measured."""
    why = f"{cause.fact[:1].lower()}{cause.fact[1:]}"
    fact = f"Do not use it: {why}. {cause.remedy}"
    row = replace(cause, name=PREDICTIONS, outcome="not judged")
    return Verdict("unusable", (Reason("answer", "failed", fact),), _rows(facts, row), (cause,))


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws of a file with their importance weights, raw and smoothed."""

    log_ratio: Float[np.ndarray, " draw"]
    log_weight: Float[np.ndarray, " draw"]
    values: xr.Dataset
    limit: float  # Of k-hat; lower for resampled draws.
    resampled: bool = False  # Only the draws kept by resampling remain.

    @classmethod
    def of(cls, facts: Facts) -> WeightedDraws | None:
        """Read the weighted draws of a posterior; None without weights."""
        fit, values = facts.view.group(schema.VARIATIONAL), facts.view.group(schema.WEIGHTED)
        if fit is None or values is None or schema.LOG_WEIGHT not in fit:
            return None
        log_ratio, log_weight = fit[schema.LOG_RATIO], fit[schema.LOG_WEIGHT]
        arrays = np.asarray(log_ratio, np.float64), np.asarray(log_weight, np.float64)
        return cls(*arrays, values, khat_limit(len(log_ratio)))

    @classmethod
    def of_resampled(cls, facts: Facts) -> WeightedDraws | None:
        """Return the distinct draws of a resampled fit, weighted by their counts; None if it was not resampled.

        Resampling drops draws with small weights, which makes k-hat too small.
        """
        lp, log_q = facts.view.stat(schema.LP), facts.view.stat(schema.LOG_Q)
        fit = facts.raw.variational
        if lp is None or log_q is None or fit is None or (ratios := log_ratios(facts.view)) is None:
            return None
        if fit.distinct_draws is None and ratios.size == lp.size:
            return None
        pairs = np.stack([lp.ravel(), log_q.ravel()], axis=-1)
        _, first, times = np.unique(pairs, axis=0, return_index=True, return_counts=True)
        values = {
            name: (
                (schema.SAMPLE, *(f"{name}_{axis}" for axis in range(drawn.ndim - 2))),
                drawn.reshape(len(pairs), *drawn.shape[2:])[first],
            )
            for name, drawn in facts.values.items()
        }
        log_ratio = (pairs[:, 0] - pairs[:, 1])[first]
        log_weight = np.log(times / times.sum())
        limit = khat_limit(len(first))
        if worth(log_weight) < EVEN * len(first):
            limit = min(limit, KHAT_OF_DISTINCT)
        return cls(log_ratio, log_weight, xr.Dataset(values), limit, resampled=True)


def _of_weights(facts: Facts, weighted: WeightedDraws) -> Verdict:
    """Judge draws by their importance weights and by short chains started from them."""
    log_ratio, log_weight, limit = weighted.log_ratio, weighted.log_weight, weighted.limit
    khat = khat_of_weights(log_ratio)
    draws = min(worth(log_weight), facts.view.number(schema.WORTH) or np.inf)
    count, even = len(log_ratio), khat == -np.inf or draws > EVEN * len(log_ratio)
    many = f"{count:,} weighted draws are worth {draws:,.0f} independent ones"
    k = f"k-hat of the weights is {digits(khat, (limit,), 2)}"
    if (lost := why_lost(log_ratio, log_weight, limit)) or draws < LEAST_WORTH:
        fact = f"The {many}, and {LEAST_WORTH:.0f} are needed"
        if lost == "heavy weights":
            fact = f"Pareto {k}, above {limit:.2f}: a few draws dominate, and the {many}"
        elif lost == "uneven weights":
            fact = f"The {many}, {draws / count:.0%} of them, and {k}: the draws hardly reach part of the posterior"
        return _refused(facts, "its weighted draws are worth too few", fact, _NUTS)
    moved: list[tuple[float, str]] = []  # Moves in standard errors, by entry.
    drift = _drift(facts)
    for name, (change, error) in drift.items():
        far = change > MATERIAL * np.array(CLAIMED)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            moves = np.where(far, change / error, 0.0)[:2].max(axis=0)
        named = zip(moves, facts.names[name], strict=True)
        moved += [(float(m), e) for m, e in named if m > DRIFTS]
    if moved:
        move, name = max(moved)
        away = f"Chains started from the draws move away: `{name}` by {move:.1f} standard errors"
        fact = f"{away}. The draws do not cover the posterior"
        return _refused(facts, "its draws do not cover the posterior", fact, _NUTS)
    means, sds, ends = not_carried(facts, weighted)
    if even:
        k = f"the weights are {'almost equal' if draws > EVEN * count else 'similar'}"
    row = Reason(PREDICTIONS, "passed", f"The {many}, and {k}")
    if not (means or sds or ends):
        rest = (
            ", and short chains started from them do not move away"
            if drift
            else ". Weights cannot reveal modes that the fit missed"
        )
        fact = f"You may use it: means, sds and quantiles rest on enough weighted draws{rest}"
        return Verdict("usable", (Reason("answer", "passed", fact), row), _rows(facts, row))
    if 2 * len(means) > sum(map(len, _entries(facts, weighted.values).values())):
        fact = f"The tails of {listed(means)} are too heavy for these draws"
        return _refused(facts, "tails are too heavy for its draws", fact, _NUTS)
    parts = {"the mean and sd": means, "the sd": sds, "the quantiles": ends}
    told = "; ".join(f"{part} of {listed(names)}" for part, names in parts.items() if names)
    unsure = "these draws do not determine them well enough, or short chains from the draws could not confirm them"
    remedy = f"{_NUTS} if you need more."
    cause = Reason("tails", "failed", f"Do not use {told}: {unsure}", remedy=remedy)
    others = {"means": means, "sds": (*means, *sds), "quantiles": ends}
    kept = [f"{'other ' if named else ''}{kind}" for kind, named in others.items()]
    said = Reason("answer", "warned", f"You may use the {listed(kept, code=False)}")
    rows = _rows(facts, replace(row, outcome="warned"))
    return Verdict("partly", (said, cause, row), rows, (cause,))


def _refused(facts: Facts, short: str, fact: str, remedy: str) -> Verdict:
    """Reject an approximation. `short` is the reason as a clause, `fact` the whole finding."""
    cause = Reason("approximation", "failed", fact, remedy=ended(remedy))
    said = Reason("answer", "failed", f"Do not use it: {short}")
    rows = _rows(facts, replace(cause, name=PREDICTIONS))
    return Verdict("unusable", (said, cause), rows, (cause,))


def _entries(facts: Facts, group: xr.Dataset) -> dict[str, tuple[str, ...]]:
    """Return the entries of those variables of a group that decide the verdict."""
    return {name: entries for name, entries in facts.names.items() if name in group}


def _drift(facts: Facts) -> dict[str, Float[np.ndarray, "value statistic entry"]]:
    """Read how far short chains moved, with standard errors, by variable. Return {} if no chains ran."""
    group = facts.view.group(schema.DRIFT)
    if group is None or "value" not in group.dims:
        return {}
    return {
        name: np.abs(group[name].to_numpy()).reshape(2, len(STATISTICS), -1)
        for name in _entries(facts, group)
    }


def not_carried(facts: Facts, weighted: WeightedDraws) -> tuple[Entries, Entries, Entries]:
    """Name the entries whose mean, sd or quantiles the weighted draws do not determine, the worst first.

    Each summary is judged by its own k-hat and standard error, and by how far short chains move.
    """
    drift = _drift(facts)
    khats, lacks, names = list[np.ndarray](), list[np.ndarray](), list[str]()
    measured: dict[str, Known] = {}
    count = len(weighted.log_ratio)
    beside = np.full(count, 1 / count) if weighted.resampled else None
    for name, entries in _entries(facts, weighted.values).items():
        values = weighted.values[name].to_numpy()
        own = known(values, weighted.log_ratio, weighted.log_weight, beside)
        measured[name] = own
        khats.append(own.khats)
        names += entries
    every = np.concatenate(khats, axis=1)
    # If one quantity exceeds the limit, the draws miss a tail, so the other quantities get a stricter limit.
    worst = np.nanmax(every, axis=1, initial=-np.inf)
    limits = np.where(worst > weighted.limit, min(weighted.limit, LINKED), weighted.limit)
    share = worth(weighted.log_weight) / count
    even, thin = share > EVEN, share < COVERED
    unseen = UNSEEN_BY_FEW if thin else UNSEEN
    limits[2] = np.inf if even else limits[2]
    for name, own in measured.items():
        found = own.lacks((limits[0], limits[1], limits[2]))
        if name in drift:
            change, error = drift[name]
            claimed = np.array(CLAIMED)[:, None]
            unsure = (change > claimed) | (error > unseen * claimed)
            unsure |= (change > DRIFTS * error) & (change > MATERIAL * claimed)
            found |= np.stack([unsure[0], unsure[1], unsure[2] | unsure[3]])
            found[1] |= thin & found[2]  # The tails dominate the sd.
        lacks.append(found)
    bad = np.concatenate(lacks, axis=1)
    order = np.argsort(-np.nan_to_num(every, nan=-np.inf), axis=1)
    bad[1] &= ~bad[0]  # Without a mean, there is no sd.
    named = [tuple(names[i] for i in order[kind] if bad[kind, i]) for kind in range(3)]
    return named[0], named[1], named[2]
