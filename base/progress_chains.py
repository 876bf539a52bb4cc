"""How far chains are: all of them together, with the time that is left, and each by itself."""

from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING

from .notices import record
from .time_left import TimeLeft, in_words

if TYPE_CHECKING:
    from .progress import ProgressBars

LINES_EVERY = 60.0
"""Seconds that pass at least between two lines of how far all chains are, where no bar can say it."""


class AllChains:
    """How far several chains are together.

    Parameters
    ----------
    bars : ProgressBars
        Where it is shown.
    clock : TimeLeft
        How many there are; none has begun.
    """

    def __init__(self, bars: ProgressBars, clock: TimeLeft) -> None:
        self._bars, self._clock, self._lock = bars, clock, RLock()
        self._started = self._told_at = time.monotonic()
        self._told = 0
        self._bar = bars.add(self._name, clock.total, timed=False)

    @property
    def iterations(self) -> int:
        """Of one chain."""
        return self._clock.warmup + self._clock.draws

    @property
    def _name(self) -> str:
        return f"{self._clock.chains} chains" if self._clock.chains > 1 else "1 chain"

    def begin(self, number: int, done: int) -> None:
        """Begin a chain with what it has kept from before."""
        with self._lock:
            self._clock.begin(number, done, time.monotonic())
            self._told = max(self._told, self._tenths)
            self._show()

    def look(self, number: int, done: int) -> None:
        """Take in that so many iterations of a chain are done."""
        with self._lock:
            self._clock.look(number, done, time.monotonic())
            self._show()

    @property
    def _tenths(self) -> int:
        return 10 * self._clock.done // self._clock.total

    def _show(self) -> None:
        now, done = time.monotonic(), self._clock.done
        seconds = self._clock.left(now) if done < self._clock.total else None
        left = "" if seconds is None else f", about {in_words(seconds)} left"
        self._bars.move(self._bar, done, f"{self._name}{left}")
        if left and self._told < self._tenths and now - self._told_at >= LINES_EVERY:
            self._told, self._told_at = self._tenths, now
            self._bars.note(
                f"{self._name}: {done:,} of {self._clock.total:,} iterations after "
                f"{in_words(now - self._started)}{left}"
            )


class ChainBar:
    """How far one chain is: its phase, its step size, how often it accepts, and its divergences so far.

    Parameters
    ----------
    bars : ProgressBars
        Where it is shown.
    number : int
        Of the chain, from 0.
    warmup, draws : int
        Iterations of the chain.
    done : int
        Those that were done before.
    """

    def __init__(
        self, bars: ProgressBars, number: int, warmup: int, draws: int, done: int = 0
    ) -> None:
        self._bars, self._warmup, self._total = bars, warmup, warmup + draws
        self._number, self._name = number, f"chain {number + 1}"
        self._phase = self._phase_at(done)
        again = f" again after {done:,} of {self._total:,} iterations" if done else ""
        record(f"{self._name} begins{again}: {self._phase}")
        self._bar = bars.add(f"{self._name} {self._phase}", self._total, timed=False)
        if done:
            bars.move(self._bar, done)

    @property
    def moving(self) -> bool:
        """Whether anybody sees it: if not, nothing needs to be found out for it."""
        return self._bars.moving

    def show(
        self,
        done: int,
        *,
        step_size: float | None = None,
        divergences: int | None = None,
        acceptance: float | None = None,
    ) -> None:
        """Say what is known after some iterations; `acceptance` is a mean of probabilities."""
        self._bars.look(self._number, done)
        known = _known(step_size, acceptance, divergences)
        if (phase := self._phase_at(done)) != self._phase:
            self._phase = phase
            record(
                f"{self._name} has warmed up:{known}" if known else f"{self._name} has warmed up"
            )
        self._bars.move(self._bar, done, f"{self._name} {phase:<8}{known}".rstrip())

    def end(
        self,
        seconds: float,
        *,
        step_size: float | None = None,
        divergences: int | None = None,
        acceptance: float | None = None,
    ) -> None:
        """Say how it ended."""
        known = {"step_size": step_size, "divergences": divergences, "acceptance": acceptance}
        self.show(self._total, **known)  # type: ignore[arg-type]
        words = _known(step_size, acceptance, divergences)
        self._bars.note(f"{self._name} is finished after {seconds:.1f} s:{words}")

    def _phase_at(self, done: int) -> str:
        return "warmup" if done < self._warmup else "sampling"


def _known(step_size: float | None, acceptance: float | None, divergences: int | None) -> str:
    parts = [
        "" if step_size is None else f"step {step_size:.3g}",
        "" if acceptance is None else f"accept {acceptance:.2f}",
        "" if divergences is None else f"{divergences} divergent",
    ]
    known = ", ".join(part for part in parts if part)
    return f" {known}" if known else ""
