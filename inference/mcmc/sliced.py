"""A chain that advances in compiled slices, from where it was left to its end.

After every slice it can be stopped, and says where it stands: all of the sampler's state, so that another process goes
on to the same draws, bit for bit.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from onebasin.base.errors import RunCancelled
from onebasin.base.progress import ProgressBars

from ..runs.checkpoint import pack, unpack
from .chain_files import ChainPlace, Standing

State = Any
"""A pytree of arrays and random keys."""


# Leaf by leaf, every shape would be compiled by itself.
_of_chain = jax.jit(lambda states, number: jax.tree.map(lambda leaf: leaf[number], states))


class Runner(ABC):
    """Takes the steps of chains of one target; compiled once, called from several threads."""

    settings: Any  # with `warmup` and `draws`, the iterations of a chain
    slices: tuple[int, int]  # iterations of a slice, in the warmup and in sampling
    bars: ProgressBars
    like: State  # a state's shapes and types
    states: State  # those that chains begin from, (chain, ...)

    def start(self, number: int) -> State:
        """Return the state that a chain begins from."""
        state: State = _of_chain(self.states, number)
        return state

    def adapted(self, state: State) -> dict[str, np.ndarray]:
        """Return the step size and inverse metric of a state; nothing where another run has no use for them."""
        return {}

    @abstractmethod
    def advance(
        self, state: State, first: int, last: int, *, keep: bool
    ) -> tuple[State, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Take the iterations from `first` to `last` of a slice; returns draws (where wanted) and statistics as well.

        A draw may depend on its place in its slice by a last bit, since a slice is computed at once: so a chain that
        goes on takes each iteration at the place that it would have had.
        """


class Walk:
    """A chain on its way: where it is, and what it took to come there."""

    def __init__(self, runner: Runner, place: ChainPlace) -> None:
        self._runner, self._place = runner, place
        found = place.standing
        state = runner.start(place.number) if found is None else unpack(found.state, runner.like)
        self.state = jax.block_until_ready(state)
        found = found or Standing(0)
        self.warmed, self.drawn = found.warmed, found.draws
        self.divergences = int(found.state.get("divergences", 0))
        self.accepted = float(found.state.get("accepted", 0.0))
        self.warmup_steps = int(found.state.get("warmup_steps", 0))
        self.seconds = (found.warmup_seconds, found.sampling_seconds)
        s, done = runner.settings, self.warmed + self.drawn
        self._bar = runner.bars.chain(place.number, warmup=s.warmup, draws=s.draws, done=done)
        self._saves_warmup = getattr(s, "save_warmup", False)
        self._read_at = time.perf_counter()

    def run(self, cancel: threading.Event) -> None:
        """Go to the end."""
        s, step_size = self._runner.settings, float("nan")
        before = sum(self.seconds)
        while self.warmed < s.warmup:
            num, stats = self._step(self.warmed, s.warmup, cancel, phase=0)
            self.warmed += num
            self.warmup_steps += int(np.sum(stats.get("n_steps", 0)))
            self._show(self.warmed, stats)
            self._save(0)
        self._lap(0)
        while self.drawn < s.draws:
            num, stats = self._step(self.drawn, s.draws, cancel, phase=1)
            self.drawn += num
            self.divergences += int(stats["diverging"].sum())
            # Without a rate, nothing is rejected.
            self.accepted += float(np.sum(stats.get("acceptance_rate", np.nan)))
            step_size = float(stats["step_size"][-1])
            self._show(s.warmup + self.drawn, stats)
            self._save(1)
        self._lap(1)
        self._place.finish(self._standing())
        seconds = sum(self.seconds) - before
        self._bar.end(seconds, step_size=step_size, **self._so_far())

    def _step(
        self, done: int, total: int, cancel: threading.Event, *, phase: int
    ) -> tuple[int, dict[str, np.ndarray]]:
        """Take the rest of a slice: how many iterations that was, and their statistics."""
        if cancel.is_set():
            self._save(phase, now=True)
            raise RunCancelled("The chain was stopped.")
        size = self._runner.slices[phase]
        first = done % size
        last = min(size, first + total - done)
        keep = phase == 1 or self._saves_warmup
        self.state, draws, stats = self._runner.advance(self.state, first, last, keep=keep)
        if keep:
            before = self._runner.settings.warmup if phase and self._saves_warmup else 0
            self._place.put(before + done, draws, stats)
        return last - first, stats

    def _save(self, phase: int, *, now: bool = False) -> None:
        def make() -> Standing:
            self._lap(phase)
            return self._standing()

        self._place.save(make, now=now)

    def _standing(self) -> Standing:
        counted = {
            name: np.array(getattr(self, name))
            for name in ("divergences", "accepted", "warmup_steps")
        }
        state = {**counted, **pack(self.state), **self._runner.adapted(self.state)}
        return Standing(self.drawn, *self.seconds, state=state, warmed=self.warmed)

    def _lap(self, phase: int) -> None:
        """Add the time since the last look at the clock to a phase."""
        now = time.perf_counter()
        warmup, sampling = self.seconds
        took = now - self._read_at
        self.seconds = (warmup, sampling + took) if phase else (warmup + took, sampling)
        self._read_at = now

    def _show(self, done: int, stats: dict[str, np.ndarray]) -> None:
        self._bar.show(done, step_size=float(stats["step_size"][-1]), **self._so_far())

    def _so_far(self) -> dict[str, Any]:
        """Return the bar's numbers of the draws; those of the warmup do not describe them."""
        known = self.drawn and not np.isnan(self.accepted)
        acceptance = self.accepted / self.drawn if known else None
        return {"acceptance": acceptance, "divergences": self.divergences if self.drawn else None}


def rows(buffers: Mapping[str, Any], first: int, last: int) -> dict[str, np.ndarray]:
    """Take the rows of a slice that count out of its buffers, (row, ...)."""
    return {name: np.asarray(buffer)[first:last] for name, buffer in buffers.items()}
