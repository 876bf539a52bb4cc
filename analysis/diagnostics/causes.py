"""Causes that make a posterior unusable, each with its condition and its sentence.

Stuck chains: a working Metropolis chain repeats draws too, so a run of equal draws is compared with the share of
repeats. A narrow chain is judged by the spread of a whole variable, because labels may be permuted.

Funnels: a scale governs the spread of a vector, so no step size suits both the narrow and the wide end. Every centred
hierarchical model has such a pair. A funnel is reported if divergences lie where the vector is narrow, energies change
slowly, or the scale is not explored (Betancourt and Girolami 2015, Hamiltonian Monte Carlo for hierarchical models).

Modes: each chain has settled in a different place.

Ridges: a sum, a difference or a product of slow parameters is known far better than each parameter. In `a * b`, for
example, `a` may grow while `b` shrinks. Chains move quickly across such a ridge and slowly along it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.rhat_ess import bulk_ess as bulk_ess_of_rows

from ..summaries.sampler import Heights
from ..summaries.summary import bulk_ess, draw_keys, overlapping, rhat_of_entries
from .measure import Facts, Values
from .verdict import (
    Extreme,
    Limits,
    Reason,
    capital,
    chains_in_words,
    counted,
    digits,
    in_rhat,
    listed,
)

ENOUGH = 100
"""Draws per chain that the advice asks for."""
_MOVE = (
    "Sample again from other starting points, with a longer warmup or a higher target acceptance rate; do not just "
    "drop the chain, because it may have stopped in a region of the posterior that the others never visited."
)


def not_finite(facts: Facts) -> Reason | None:
    """Find entries that are finite in only some draws, or parameters that are never finite."""
    entries = [entry for entries in facts.names.values() for entry in entries]
    name = next((entry for entry in entries if entry in facts.raw.broken), None)
    if name is not None:
        draws = facts.view.draws(variable_of(name, facts.names), finite=False)
        others = sum(entry in facts.raw.broken for entry in entries) - 1
        likewise = f", and so are {others} other entries" if others else ""
        first = _first_broken(draws.of(name))
        fact = f"`{name}` is finite in some draws and not in others, first in {first}{likewise}"
        why = "(an overflow, a division by zero, a log of a negative number)"
        remedy = f"Find out why the model produces such draws {why}, and sample again."
        return Reason("not-finite", "failed", fact, remedy=remedy)
    if entries and set(facts.raw.undefined).issuperset(entries):
        fact = f"No draw of {listed(tuple(facts.names))} is finite"
        why = "an overflow, a division by zero, or a start outside the support"
        remedy = f"Find out why the model gives no finite value: {why}."
        return Reason("not-finite", "failed", fact, remedy=remedy)
    sampler = facts.raw.sampler if facts.raw.has_chains else None
    counts = {} if sampler is None else sampler.not_finite
    for name, what in (("lp", "The log density `lp`"), ("energy", "`energy`")):
        if name in counts and (stat := facts.view.stat(name)) is not None:
            where = f"{sum(counts[name])} of {stat.size} draws, first in {_first_broken(stat)}"
            remedy = (
                "Find out why. A sampler never accepts a draw whose log density is not finite, so the file or the "
                "model is wrong there. Sample again, or write the file again."
            )
            return Reason("not-finite", "failed", f"{what} is not finite in {where}", remedy=remedy)
    return None


def _first_broken(values: Float[np.ndarray, "chain draw"]) -> str:
    """Name the first draw whose value is not finite, and its chain."""
    bad = ~np.isfinite(values)
    draw = int(bad.any(axis=0).argmax())
    return f"draw {draw} of chain {int(bad[:, draw].argmax())}"


def unread_weights(facts: Facts) -> Reason | None:
    """Find weights of draws under a name that onebasin does not recognise."""
    if not (name := facts.view.unread_weights):
        return None
    fact = f"`{name}` looks like weights of draws but was not used, so every draw counts equally"
    remedy = (
        "Give the logarithms of the weights, up to a constant, as `log_weight` in `sample_stats` (`log_weight__` in a "
        f"table), or leave `{name}` out."
    )
    return Reason("weighted", "failed", fact, remedy=remedy)


_AT_A_TIME = 256
"""Number of entries whose repeats are counted at a time."""


def stuck(facts: Facts) -> tuple[Reason, ...]:
    """Find draws that repeat a few points, chains that do not move, and copies of chains.

    A chain may also get stuck in the neck of a funnel. The funnel is then listed first.
    """
    raw, entries = facts.raw, set(facts.table.index)
    if raw.kinds.named("parameter") and not entries:
        fact = f"Nothing varies: every draw of {listed(tuple(facts.names))} is the same"
        return (Reason("stuck", "failed", fact, remedy=_MOVE),)
    if raw.recurring is not None and raw.recurring.worth < raw.min_ess:
        distinct = counted(raw.recurring.distinct, "distinct draw")
        worth = f"worth {raw.recurring.worth:,.0f} independent ones"
        fact = (
            f"The {raw.total_draws:,} draws are only {distinct} distinct points, as after resampling, and are "
            f"{worth}"
        )
        remedy = (
            "Use more particles before resampling, or give the draws from before it with their weights, "
            "`log_weight` in `sample_stats`. Store a parameter that takes few values as integers."
        )
        return (Reason("resampled", "failed", fact, remedy=remedy),)
    worst: tuple[str, EqualRun] | None = None
    for name, drawn in facts.values.items():
        free = np.array([entry in entries for entry in facts.names[name]], bool)
        flat = drawn.reshape(*drawn.shape[:2], -1)
        for first in range(0, flat.shape[2], _AT_A_TIME):
            part = slice(first, first + _AT_A_TIME)
            run = longest_run(flat[..., part], free[part], facts.moved_steps)
            if run is not None and (worst is None or run.length > worst[1].length):
                worst = (name, run)
    if worst is not None:
        name, run = worst
        length, first = run.length * facts.step, run.first * facts.step
        if length >= 0.99 * raw.num_draws:
            fact = f"Chain {run.chain} never moves (`{name}`)"
            return (Reason("stuck", "failed", fact, remedy=_MOVE),)
        fact = f"Chain {run.chain} repeats {length} of its {raw.num_draws} draws, from draw {first} on (`{name}`)"
        return (*_neck(facts), Reason("stuck", "failed", fact, remedy=_MOVE))
    keys = draw_keys(facts.values.values())
    if (found := overlapping(keys)) is not None:
        one, other, common = found
        both = capital(chains_in_words((one, other)))
        seed = "Give each chain its own seed and sample again, or leave"
        if np.array_equal(keys[one], keys[other]):
            fact, remedy = (f"{both} have the same draws, so they are one chain", "the copies out.")
        else:
            some = f"about {common * facts.step} of {raw.num_draws} draws in common"
            fact, remedy = (f"{both} have {some}, so they are not independent", "one of them out.")
        return (Reason("copies", "failed", fact, remedy=f"{seed} {remedy}"),)
    if narrow := narrow_chains(facts.values):
        chains = sorted(set(narrow.values()))
        hardly = f"{capital(chains_in_words(chains))} hardly move{'s' if len(chains) == 1 else ''}"
        variance = f"the variance of {listed(tuple(narrow))} is less than a thousandth of that in other chains"
        return (*_neck(facts), Reason("stuck", "failed", f"{hardly}: {variance}", remedy=_MOVE))
    return ()


def _neck(facts: Facts) -> tuple[Reason, ...]:
    found = find_funnel(facts.values, facts.diverging)
    cause = None if found is None else funnel_cause(facts, found, ridge_of(facts))
    return () if cause is None else (cause,)


SHARE = 0.1
"""Share of a chain's draws from which a run of equal draws counts."""
LEAST_RUN = 3
"""Shortest run of equal draws that counts, whatever the length of the chain."""
NARROW = 4e-4
"""Ratio of a variable's variance in one chain to that in the median chain, below which a chain is too narrow."""


@dataclass(frozen=True)
class EqualRun:
    """A run of equal draws of one entry: its chain, first draw and length."""

    chain: int
    first: int
    length: int


def longest_run(
    values: Float[np.ndarray, "chain draw param"],
    free: Bool[np.ndarray, " param"],
    moved: Bool[np.ndarray, "chain step"],
) -> EqualRun | None:
    """Find the longest run of equal draws of a `free` entry that rejected proposals do not explain, if any.

    An entry may stay at an end of its range while others move, such as a probability that rounds to 1. `moved` marks
    the steps from one draw to the next at which anything moved.
    """
    draws = values.shape[1]
    same = values[:, 1:] == values[:, :-1]
    varies = ~same.all(axis=(0, 1))
    ends = (values[:, 1:] == values.min(axis=(0, 1))) | (values[:, 1:] == values.max(axis=(0, 1)))
    same &= ~(ends & moved[..., None] & varies)
    share = same.mean(axis=1)
    with np.errstate(divide="ignore"):  # The share of repeats explains no longer run.
        repeats = np.clip(np.median(share, axis=0), 0, 1 - 1e-9)
        explained = -3 * np.log(draws) / np.log(repeats)
    honest = np.minimum(np.maximum(max(SHARE * draws, LEAST_RUN), explained), 0.99 * draws)
    chains, entries = np.nonzero((share * (draws - 1) + 1 > honest) & free)
    long = []
    for chain, entry in zip(chains, entries, strict=True):
        changes = np.concatenate([[True], ~same[chain, :, entry], [True]])
        starts: Int[np.ndarray, " change"] = np.flatnonzero(changes)
        lengths = np.diff(starts)
        place = int(lengths.argmax())
        run = EqualRun(int(chain), int(starts[place]), int(lengths[place]))
        long += [run] if run.length > honest[entry] else []
    return max(long, key=lambda run: run.length, default=None)


def narrow_chains(values: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Find variables (chain, draw, *event) that hardly vary in one of three or more chains, and name that chain."""
    found = {}
    for name, drawn in values.items():
        variance = np.array([chain.var(axis=0).sum() for chain in drawn])
        if len(variance) > 2 and variance.min() < NARROW * np.median(variance):
            found[name] = int(variance.argmin())
    return found


GOES_WITH = 0.5
"""Rank correlation between a scale and a vector's log variance above which they form a pair."""
ALONE = 0.6
"""Rank correlation needed if the sampler's statistics were not recorded."""
SMALL = 0.25
"""Median rank of the scale at divergent draws below which divergences lie at the narrow end."""
FEW, MANY = 5, 10
"""Number of divergences needed if there are other signs of a funnel, and if there are none."""
SHORT_VECTOR = 8
"""Maximum length of a positive vector whose entries are treated as scales."""


@dataclass(frozen=True)
class Funnel:
    """A scale (an entry of a variable) and a vector whose spread depends on it."""

    scale: str
    vector: str
    correlation: float  # Absolute rank correlation.
    large: bool  # The vector is narrow where the scale is large, as with a precision.
    divergences: int = 0
    rank: float = math.nan  # Median rank of the scale at divergences, 0 at the narrow end.
    there: int = 0  # Divergences in the quarter of draws at the narrow end.

    @property
    def diverges(self) -> bool:
        """Check whether enough divergences lie at the narrow end."""
        return self.divergences >= FEW and self.rank < SMALL

    @property
    def diverges_often(self) -> bool:
        """Check whether these divergences alone indicate a funnel."""
        return self.divergences >= MANY and self.rank < SMALL


def find_funnel(values: Values, diverging: Bool[np.ndarray, "chain draw"] | None) -> Funnel | None:
    """Return the pair with the highest correlation and count its divergences. Return None without a pair."""
    pairs = list(_pairs(values))
    if not pairs:
        return None
    best, ranks = max(pairs, key=lambda pair: pair[0].correlation)
    if diverging is None or not diverging.any():
        return best
    at = ranks[diverging.ravel()]
    there = int((at < SMALL).sum())
    return replace(best, divergences=at.size, rank=float(np.median(at)), there=there)


def _pairs(values: Values) -> Iterator[tuple[Funnel, Float[np.ndarray, " all"]]]:
    # Use ranks within chains: between chains in different modes everything differs, which is not a funnel.
    spreads = {}
    scales: list[tuple[str, str, Float[np.ndarray, "chain draw"]]] = []
    for name, drawn in values.items():
        flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
        square = flat.var(axis=1) if flat.shape[1] > 1 else np.zeros(1)
        if square.min() > 0:  # Vectors whose entries vary.
            spreads[name] = _ranks_by_chain(np.log(square).reshape(drawn.shape[:2]))
        # Scales are scalars, and entries of short positive vectors.
        if drawn.ndim == 2:
            scales.append((name, name, drawn))
        elif drawn.ndim == 3 and drawn.shape[2] <= SHORT_VECTOR and drawn.min(initial=1.0) > 0:
            entries = range(drawn.shape[2])
            scales += [(name, f"{name}[{place}]", drawn[..., place]) for place in entries]
    for variable, name, scale in scales:
        ranks, within = _ranks(scale.ravel()), _ranks_by_chain(scale)
        for vector, spread in spreads.items():
            if vector == variable:
                continue
            r = float(np.corrcoef(within, spread)[0, 1])
            large = r < 0 and bool(scale.min() > 0)
            if abs(r) > GOES_WITH and (r > 0 or large):
                yield (Funnel(name, vector, abs(r), large), 1 - ranks if large else ranks)


def _ranks_by_chain(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, " all"]:
    return np.concatenate([_ranks(chain) for chain in values])


def _ranks(values: Float[np.ndarray, " all"]) -> Float[np.ndarray, " all"]:
    """Return ranks, scaled to run from 0 to 1."""
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = np.arange(values.size)
    return ranks / max(values.size - 1, 1)


def funnel_cause(facts: Facts, found: Funnel, ridge: Ridge | None) -> Reason | None:
    """Return the funnel as a cause if it explains poor sampling."""
    raw = facts.raw
    if ridge and ridge.holds(found.scale, found.vector):
        return None  # The scale multiplies each entry.
    slow = bool(facts.table["ess_bulk"].get(found.scale, np.inf) < raw.min_ess)
    if facts.diverging is None and not (raw.sampler and raw.sampler.bfmi):
        blamed = found.correlation > ALONE and slow
    else:
        energies = bool(raw.sampler and np.nanmin(raw.sampler.bfmi or (np.inf,)) < raw.limits.bfmi)
        blamed = found.diverges or energies or (found.divergences > 0 and slow)
    return funnel_reason(facts, found) if blamed else None


def funnel_reason(facts: Facts, found: Funnel) -> Reason:
    """Give the evidence for a funnel and the remedy."""
    raw, scale, vector = facts.raw, found.scale, found.vector
    fact = f"Where `{scale}` is {'large' if found.large else 'small'}, `{vector}` becomes narrow"
    fact += f" (rank correlation {found.correlation:.2f})"
    if found.divergences:
        fact += (
            f"; {found.there} of {found.divergences} divergences lie in that quarter of the draws"
        )
    if raw.sampler is not None and raw.sampler.min_bfmi < raw.limits.bfmi:
        fact += f"; E-BFMI is {digits(raw.sampler.min_bfmi, (raw.limits.bfmi,), 2)}"
    if (ess := facts.table["ess_bulk"].get(scale, math.inf)) < raw.min_ess:
        fact += f"; `{scale}` has {ess:.0f} effective draws"
    remedy = (
        f"Non-centre `{vector}`: sample {vector}_raw ~ normal(0, 1) and compute {vector} as its location plus {scale} "
        f"times {vector}_raw; a higher target acceptance rate (0.95 or 0.99) helps less."
    )
    return Reason("funnel", "failed", fact, remedy=remedy)


SETTLED_ESS, SETTLED_RHAT = 50.0, 1.1
"""Smallest ESS within a chain that has settled, and largest R-hat between its halves."""
SETTLED_ESS_IF_UNLIKE = 30.0
"""Smallest ESS within a settled chain if the chains' mean log densities differ."""
LOOKED_AT = 50
"""Number of worst entries to examine."""


def have_settled(facts: Facts, heights: Heights | None) -> bool:
    """Check, by the worst entries, whether each chain has settled in its own mode.

    These entries need enough ESS within each chain, and the halves of each chain must agree. A lower ESS is enough if
    the chains' mean log densities differ.
    """
    if facts.raw.num_chains < 2 or facts.raw.num_draws < Limits.FEW:
        return False
    unlike = bool(heights and heights.unlike)
    worst = facts.bad_rhat.sort_values("rhat", ascending=False).index[:LOOKED_AT]
    if not len(worst):
        return unlike
    values = facts.columns(tuple(worst))
    rows = (np.ascontiguousarray(np.moveaxis(chain, -1, 0))[:, None] for chain in values)
    ess = float(np.nanmedian(np.stack([bulk_ess_of_rows(chain) for chain in rows])))
    if ess >= SETTLED_ESS_IF_UNLIKE and unlike:
        return True
    halves = np.fmax.reduce([rhat_of_entries(chain[None]) for chain in values])
    known = halves[~np.isnan(halves)]  # NaN for entries that are constant in every chain.
    agrees = known.size > 0 and float(np.median(known)) < SETTLED_RHAT
    return ess >= SETTLED_ESS and agrees


def modes_cause(facts: Facts, heights: Heights | None) -> Reason:
    """Describe how chains in different modes differ."""
    fact = "Chains have settled in different places"
    if bad := len(facts.bad_rhat):
        rhat, name = facts.worst
        many = f"R-hat {in_rhat(rhat, facts.raw.numbers.limits_of('rhat'))} of `{name}`; {bad} of {len(facts.table)}"
        fact = f"Each chain agrees with itself and not with the others ({many} entries)"
    if heights is not None:
        apart = heights.apart("lower than") if heights.unlike else "their heights are equal"
        fact += f"; {apart}"
    remedy = (
        "Do not average over these chains: they weight modes by where they started. Sample mode by mode: "
        "`ob.sample_modes(target)`, or `onebasin sample --method modes`, finds modes from many starts and weights "
        "them by bridge sampling."
    )
    return Reason("modes", "failed", fact, remedy=remedy)


def integers_cause(facts: Facts) -> Reason:
    """Name the integer parameters on which chains disagree."""
    rows = facts.integers_apart
    rhat = in_rhat(Extreme.of(rows["rhat"]).value)
    fact = f"Chains disagree about the integers {listed(tuple(rows.index))} (R-hat {rhat})"
    remedy = (
        "If they are interchangeable, like two changepoints, align them: "
        '`symmetry="a~b"` or `--exchangeable a~b` for `a` and `b`. Otherwise sample longer, or from other points.'
    )
    return Reason("modes", "failed", fact, remedy=remedy)


def times_as_many(ess: float, needed: float, rhat: float, limit: float) -> int:
    """Estimate the factor by which the number of draws must grow, from ESS and R-hat."""
    by_ess = needed / ess if ess > 0 else 1.0
    by_rhat = (rhat - 1) / (limit - 1) if math.isfinite(rhat) else 1.0
    return max(2, math.ceil(max(by_ess, by_rhat)))


def short_cause(facts: Facts, ridge: Ridge | None) -> Reason:
    """Ask for more draws if there are too few effective draws or the halves of chains disagree."""
    raw = facts.raw
    if raw.num_draws < Limits.FEW:
        fact = f"Chains of {raw.num_draws} draws are too short to judge"
        remedy = f"Take at least {ENOUGH} draws per chain, after a warmup."
        return Reason("short", "failed", fact, remedy=remedy)
    least, (lp_rhat, lp_ess) = facts.least_ess, facts.lp_numbers
    of_lp = lp_ess < least.value or math.isnan(least.value)
    ess, name = (lp_ess, "lp") if of_lp else (least.value, str(least.parameter))
    rhat = float(max(facts.worst_rhat.value, np.nan_to_num(lp_rhat, nan=1.0)))
    ess_known = float(np.nanmin([ess, np.inf]))
    times = times_as_many(ess_known, raw.min_ess, rhat, facts.rhat_limit)
    fact = f"`{name}` has {ess:.0f} effective draws of {raw.total_draws}"
    if not facts.chains_agree:
        worst, worst_name = facts.worst
        rhat_text = in_rhat(worst, raw.numbers.limits_of("rhat"))
        halves = "Chains disagree with their own halves as much as with one another"
        fact = f"{halves} (R-hat {rhat_text} of `{worst_name}`); {fact}"
    if ridge is None:
        if facts.chains_agree and ess < raw.min_ess:
            fact += f", and {raw.min_ess:.0f} are needed"
        return Reason("short", "failed", fact, remedy=draw_more(times))
    names, combination = listed(ridge.names), ridge.combination
    known = f"{ridge.known:,.0f} effective draws, sd {ridge.narrower:.0f} times smaller"
    fact += f". The model identifies {combination} ({known}), but hardly {names} separately"
    remedy = (
        f"Use {combination}, or make it a parameter in place of one of {names}. A constraint (one of them constant, a "
        "sum of zero) or a narrower prior removes the ridge. For single values draw about "
        f"{times} times as many."
    )
    return Reason("short", "failed", fact, remedy=remedy)


def draw_more(times: int) -> str:
    """Ask for more draws, by the factor `times`."""
    return f"Draw about {times} times as many, with a longer warmup, or reparametrise what mixes slowly."


NARROW_RIDGE = 0.02
"""Ratio of a combination's variance within chains to that of its terms, up to which the terms lie on a ridge."""
ROUNDING = 1e-12
"""Value of this ratio below which a combination counts as constant, such as the sum of a simplex."""
MOST_TERMS = 4
"""Maximum number of slow parameters that are combined at once. With more, some combination is narrow by chance."""
PAIRS = 10
"""Number of most strongly correlated pairs of variables to examine."""
HALF = 0.1
"""Limit of this ratio within each half of the draws. If two modes merely look like a ridge, one half exceeds it."""
LEAST_HALF = 0.05
"""Smallest half to examine, as a share of the draws."""
FASTER = 4.0
"""Smallest required ratio of a combination's effective draws to those of its slowest term."""


@dataclass(frozen=True)
class Ridge:
    """A combination of slow parameters that is known far better than each of them.

    Its standard deviation is `narrower` times smaller than that of any term (on the log scale for products).
    """

    names: tuple[str, ...]  # Terms or factors.
    combination: str  # A formula, or a phrase if some coefficient is not 1 or -1.
    known: float  # Bulk ESS.
    narrower: float

    def holds(self, *names: str) -> bool:
        """Check whether all given entries, or some entry of each given variable, are terms."""
        return {*names} <= {*self.names, *map(_variable, self.names)}


def ridge_of(facts: Facts) -> Ridge | None:
    """Find the narrowest combination of slow parameters that has enough effective draws and agrees between chains.

    Try sums and differences, and products and quotients of parameters that keep their sign. Prefer combinations of
    different variables, such as an intercept and its effects.
    """
    names = tuple(facts.bad.sort_values("ess_bulk").index[:LOOKED_AT])
    if not names:
        return None
    values = facts.columns(names)
    kept = (values > 0).all(axis=(0, 1)) | (values < 0).all(axis=(0, 1))
    factors = [name for name, keeps in zip(names, kept, strict=True) if keeps]
    words = (" * ", " / ", "a product of powers of ")
    found = [*_ridges(facts, names, values, (" + ", " - ", "a weighted sum of "))]
    found += _ridges(facts, factors, np.log(np.abs(values[..., kept])), words)
    return max(
        found, key=lambda each: (len({*map(_variable, each.names)}), each.narrower), default=None
    )


def _ridges(
    facts: Facts,
    names: Sequence[str],
    values: Float[np.ndarray, "chain draw param"],
    words: tuple[str, str, str],
) -> Iterator[Ridge]:
    """Yield combinations that are narrow within chains and mix fast. `words` are used to write them."""
    within = values - values.mean(axis=1, keepdims=True)
    sd = within.std(axis=(0, 1))
    sd[sd == 0] = 1.0
    ess = facts.table["ess_bulk"].reindex(names).to_numpy()
    for terms, weights in _candidates(within / sd, names):
        # Try coefficients of 1 and -1 first.
        for factor in (np.sign(weights * weights[0]), weights / sd[terms]):
            width = (within[..., terms] @ factor).std() / np.abs(factor * sd[terms]).min()
            drawn = (values[..., terms] @ factor)[..., None]
            known = float(bulk_ess(drawn)[0])
            fast = known >= max(facts.raw.min_ess, FASTER * ess[terms].min())
            agrees = not rhat_of_entries(drawn)[0] > facts.rhat_limit
            narrow = ROUNDING < width**2 <= NARROW_RIDGE and _is_one(values[..., terms] * factor)
            if narrow and fast and agrees:
                there = [names[term] for term in terms]
                listed = " and ".join(f"`{name}`" for name in there)
                signs = (words[0] if each > 0 else words[1] for each in factor[1:])
                formula = there[0] + "".join(s + n for s, n in zip(signs, there[1:], strict=True))
                plain = np.ptp(np.abs(factor)) == 0
                text = f"`{formula}`" if plain else words[2] + listed
                yield Ridge(tuple(there), text, known, float(1 / width))
                break


def _is_one(terms: Float[np.ndarray, "chain draw term"]) -> bool:
    """Check whether a combination stays narrow when the draws are split in two by its first term.

    The split minimises the variance within the halves (Otsu 1979), so it separates two modes.
    """
    flat = terms.reshape(-1, terms.shape[2])
    flat = flat[flat[:, 0].argsort()] - flat.mean(axis=0)
    count = np.arange(1, len(flat))
    between = np.cumsum(flat[:, 0])[:-1] ** 2 / (count * (len(flat) - count))
    halves = np.split(flat, [int(between.argmax()) + 1])
    return all(
        half.sum(axis=1).var() <= HALF * half.var(axis=0).min()
        for half in halves
        if len(half) >= LEAST_HALF * len(flat)
    )


def _variable(entry: str) -> str:
    return entry.partition("[")[0]


def _candidates(
    units: Float[np.ndarray, "chain draw param"], names: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield terms and their weights, in standard deviations: correlated pairs, then all terms if there are few."""
    count = units.shape[2]
    flat = units.reshape(len(units) * units.shape[1], count)
    together = flat.T @ flat / len(flat)
    if not np.isfinite(together).all():
        return
    closest: dict[frozenset[str], tuple[int, int]] = {}
    for pair in sorted(combinations(range(count), 2), key=lambda pair: -abs(together[pair])):
        closest.setdefault(frozenset(_variable(names[place]) for place in pair), pair)
    for pair in list(closest.values())[:PAIRS]:
        yield np.array(pair), np.array([1.0, -np.sign(together[pair])])
    if 2 < count <= MOST_TERMS:
        yield np.arange(count), np.linalg.eigh(together)[1][:, 0]
