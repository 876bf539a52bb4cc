"""What a picture shows, in words and numbers, for those who cannot see it.

Convention: whoever reads them learns what the picture tells, not which kind of picture it is. Chains and draws count
from 0 and 1, as on the pictures' axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from onebasin.base.numbers import format_number

Quantity = Float[np.ndarray, "chain draw"]
TWO_LEVELS = 0.82
"""Share of a chain's variance that lies between two levels from which on it is said to have two: 0.64 for a normal
distribution, 0.75 for a uniform one."""
SPELLED_OUT = 3
"""Jumps of a chain up to which every one is told."""


def traces(quantities: Mapping[str, Quantity]) -> str:
    """Say of every quantity where each chain lies, and when it jumps."""
    return " ".join(_trace(name, values) for name, values in quantities.items())


def _trace(name: str, values: Quantity) -> str:
    told = [chain_in_words(draws) for draws in values]
    if len(set(told)) == 1 and len(told) > 1:
        return f"{name}: every chain {told[0]}."
    lows, highs = (np.quantile(values, q, axis=1) for q in (0.05, 0.95))
    middles = np.median(values, axis=1)
    if not any("level" in text or "until" in text for text in told) and np.ptp(
        middles
    ) < 0.25 * np.median(highs - lows):
        span = f"{format_number(lows.min())} and {format_number(highs.max())}"
        chains = "all chains mix" if len(told) > 1 else "the chain stays"
        return f"{name}: {chains} around {format_number(float(np.median(values)))}, between {span} in 90 % of draws."
    return f"{name}: " + "; ".join(f"chain {k} {text}" for k, text in enumerate(told)) + "."


def chain_in_words(draws: Float[np.ndarray, " draw"]) -> str:
    """Say where one chain lies: around one level, or at two with jumps between them."""
    if np.ptp(draws) == 0:
        return f"never leaves {format_number(float(draws[0]))}"
    low, high, share, upper = two_levels(draws)
    jumps = np.flatnonzero(np.diff(upper.astype(int))) + 1
    if share < TWO_LEVELS or not 0.02 < upper.mean() < 0.98:
        ends = np.quantile(draws, [0.05, 0.95])
        return (
            f"stays around {format_number(float(np.median(draws)))} "
            f"(90 % between {format_number(float(ends[0]))} and {format_number(float(ends[1]))})"
        )
    level = {False: format_number(low), True: format_number(high)}
    if len(jumps) <= SPELLED_OUT:
        steps = [f"sits at {level[bool(upper[0])]} until draw {jumps[0]}"]
        ends = [*jumps[1:], None]
        for start, end in zip(jumps, ends, strict=True):
            until = "from there on" if end is None else f"until draw {end}"
            steps.append(f"at {level[bool(upper[start])]} {until}")
        return ", ".join(steps)
    return (
        f"jumps {format_number(len(jumps))} times between levels {level[False]} and {level[True]}"
    )


def two_levels(
    draws: Float[np.ndarray, " draw"],
) -> tuple[float, float, float, np.ndarray]:
    """Split one chain into two levels (2-means): both, the share of variance between them, which draws are up."""
    low, high = float(np.quantile(draws, 0.1)), float(np.quantile(draws, 0.9))
    upper = draws > (low + high) / 2
    for _ in range(20):
        if upper.all() or not upper.any():
            break
        low, high = float(draws[~upper].mean()), float(draws[upper].mean())
        again = draws > (low + high) / 2
        if (again == upper).all():
            break
        upper = again
    share = float(upper.mean())
    total = float(draws.var())
    between = share * (1 - share) * (high - low) ** 2
    return low, high, between / total if total else 0.0, upper


def ranks(quantities: Mapping[str, Quantity], rhats: Mapping[str, float]) -> str:
    """Say of every quantity which chain's ranks lie furthest from even."""
    return " ".join(_ranks(name, values, rhats.get(name)) for name, values in quantities.items())


def _ranks(name: str, values: Quantity, rhat: float | None) -> str:
    if len(values) < 2:
        return f"{name}: one chain, whose ranks are even by construction."
    order = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
    mean = order.mean(axis=1)
    chain = int(np.abs(mean - 0.5).argmax())
    known = "" if rhat is None or np.isnan(rhat) else f" (R-hat {format_number(rhat, decimals=3)})"
    if abs(mean[chain] - 0.5) < 0.05:
        return f"{name}: no chain lies higher or lower than the others{known}."
    side = "high" if mean[chain] > 0.5 else "low"
    place = f"at the {100 * mean[chain]:.0f} % rank on average where 50 % is even"
    return f"{name}: chain {chain} lies {side}, {place}{known}."


def autocorrelation(
    quantities: Mapping[str, Quantity], *, limit: float = 0.1, most: int = 100
) -> str:
    """Say of every quantity at which lag its autocorrelation has fallen below a limit."""
    return " ".join(f"{n}: {_fallen(v, limit, most)}." for n, v in quantities.items())


def _fallen(values: Quantity, limit: float, most: int) -> str:
    curve = np.mean([_autocorrelation(chain, most) for chain in values], axis=0)
    below = np.flatnonzero(curve < limit)
    if not len(below):
        return f"autocorrelation still {format_number(float(curve[-1]), digits=2)} at lag {len(curve) - 1}"
    return f"autocorrelation below {limit:g} from lag {below[0]} on"


def _autocorrelation(draws: Float[np.ndarray, " draw"], most: int) -> np.ndarray:
    centred = draws - draws.mean()
    size = 2 ** int(np.ceil(np.log2(2 * len(draws))))
    spectrum = np.abs(np.fft.rfft(centred, size)) ** 2
    curve = np.fft.irfft(spectrum, size)[: min(most + 1, len(draws))]
    return curve / curve[0] if curve[0] > 0 else np.ones_like(curve)


def pairs(quantities: Mapping[str, Quantity], diverging: np.ndarray | None) -> str:
    """Say how quantities go together, and where divergences lie."""
    return " ".join(_pairs(quantities, diverging))


def _pairs(quantities: Mapping[str, Quantity], diverging: np.ndarray | None) -> Iterator[str]:
    from scipy.stats import spearmanr

    names = list(quantities)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            r = spearmanr(quantities[first].ravel(), quantities[second].ravel()).statistic
            yield f"{first} and {second}: rank correlation {format_number(float(r), decimals=2)}."
    if diverging is None:
        yield "Divergences were not recorded."
        return
    count = int(diverging.sum())
    if not count:
        yield "No draw diverged."
        return
    yield f"{format_number(count)} of {format_number(diverging.size)} draws diverged;"
    yield (
        "; ".join(
            f"their {name} is {_side(values, diverging)}" for name, values in quantities.items()
        )
        + "."
    )


def _side(values: Quantity, diverging: np.ndarray) -> str:
    below = float((values[diverging] < np.median(values)).mean())
    side, share = ("below", below) if below >= 0.5 else ("above", 1 - below)
    return f"in {100 * share:.0f} % {side} its median {format_number(float(np.median(values)))}"


def intervals(
    names: Sequence[str],
    low: Sequence[float],
    middle: Sequence[float],
    high: Sequence[float],
    *,
    most: int = 12,
) -> str:
    """Say where medians and intervals lie."""
    rows = list(zip(names, low, middle, high, strict=True))
    told = "; ".join(
        f"{name} {format_number(m)} ({format_number(a)} to {format_number(b)})"
        for name, a, m, b in rows[:most]
    )
    rest = f"; and {len(rows) - most} more" if len(rows) > most else ""
    return f"Medians, with where 90 % of draws lie: {told}{rest}."
