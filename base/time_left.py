"""Estimate the time that several chains still take, from the time of their iterations so far.

Iterations of the warmup and draws are priced apart: a warmup begins with short steps and long trajectories, and says
little of what draws cost before its end. What a chain has kept from before costs nothing and prices nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

MEMORY = 100
"""Iterations over which the present price of a chain's iterations is taken."""
LEAST_SECONDS = 2.0
"""Shortest measurement that an estimate is made from."""


@dataclass
class _Spent:
    """Seconds and iterations that were measured together."""

    seconds: float = 0.0
    iterations: int = 0

    def add(self, seconds: float, iterations: int) -> None:
        self.seconds, self.iterations = self.seconds + seconds, self.iterations + iterations


@dataclass
class _Chain:
    """The progress of one chain at a time, and the cost of its iterations: lately, in the warmup, of draws."""

    done: int
    at: float
    recent: float | None = None
    warmed: _Spent = field(default_factory=_Spent)
    drawn: _Spent = field(default_factory=_Spent)

    def look(self, done: int, at: float, warmup: int) -> None:
        iterations, seconds = done - self.done, at - self.at
        if iterations <= 0:
            return
        (self.drawn if self.done >= warmup else self.warmed).add(seconds, iterations)
        price, old = seconds / iterations, max(0.0, 1 - iterations / MEMORY)
        self.recent = price if self.recent is None else old * self.recent + (1 - old) * price
        self.done, self.at = done, at


@dataclass
class TimeLeft:
    """Foretells when the last of several chains will have ended, of which `at_once` run at once."""

    chains: int
    warmup: int
    draws: int
    at_once: int
    _seen: dict[int, _Chain] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Iterations of all chains."""
        return self.chains * (self.warmup + self.draws)

    @property
    def done(self) -> int:
        """Iterations that are done, of all chains."""
        return sum(chain.done for chain in self._seen.values())

    def begin(self, chain: int, done: int, at: float) -> None:
        """Begin a chain at a time (in seconds, on any clock) with what it has kept from before."""
        self._seen[chain] = _Chain(done, at)

    def look(self, chain: int, done: int, at: float) -> None:
        """Take in that so many iterations of a chain are done at a time."""
        self._seen[chain].look(done, at, self.warmup)

    def left(self, at: float) -> float | None:
        """Seconds until all have ended; None while too little was measured."""
        seen = self._seen.values()
        recent = [chain.recent for chain in seen if chain.recent is not None]
        measured = sum(chain.warmed.seconds + chain.drawn.seconds for chain in seen)
        if not recent or measured < LEAST_SECONDS:
            return None
        price = sum(recent) / len(recent)
        draw = _price((chain.drawn for chain in seen), price)
        working = [chain for chain in seen if chain.done < self.warmup + self.draws]
        ends = [max(0.0, self._cost(chain, price, draw) - (at - chain.at)) for chain in working]
        fresh = self.warmup * _price((c.warmed for c in seen), price) + self.draws * draw
        waiting = self.chains - len(seen)
        ends += [0.0] * min(self.at_once - len(ends), waiting)
        heapq.heapify(ends)
        for _ in range(waiting):  # each begins as the first of those at work ends
            heapq.heapreplace(ends, ends[0] + fresh)
        return max(ends, default=0.0)

    def _cost(self, chain: _Chain, price: float, draw: float) -> float:
        """Return the time that a running chain still takes, by its own prices where it has some."""
        own = price if chain.recent is None else chain.recent
        if chain.done >= self.warmup and chain.recent is not None:
            draw = chain.recent
        drawn = max(0, chain.done - self.warmup)
        return max(0, self.warmup - chain.done) * own + (self.draws - drawn) * draw


def in_words(seconds: float) -> str:
    """Such as ``40 s``, ``12 min`` or ``2 h 10 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _price(spent: Iterable[_Spent], otherwise: float) -> float:
    """Seconds an iteration, of all that was measured."""
    parts = list(spent)
    iterations = sum(part.iterations for part in parts)
    return sum(part.seconds for part in parts) / iterations if iterations else otherwise
