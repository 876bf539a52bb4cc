"""Store a chain's draws as they come: in memory, or in a folder from which a killed run is resumed.

A chain's folder holds sealed chunks, ``draws-000000.npz`` and so on, each of consecutive draws with their statistics,
and one sealed ``state.npz``: how many chunks and draws there are, and all that the engine needs to go on from there.
The state is written after the chunks that it counts. So whenever the process is killed, what the state counts is whole,
and what it does not count is not there; at most what came since the last state is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError
from onebasin.base.files.seal import Seal, examine
from onebasin.base.notices import notice
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import Values
from onebasin.posteriors.scratch import Room

from ..runs import checkpoint
from ..runs.kept import chain_folder, chunk_file, clear, remove_chain, state_file

SECONDS = 10.0
"""Least time between two states of a chain: about what a killed run loses."""

CHUNK_BYTES = 2**22
"""Draws are written at the latest when so many bytes of them wait."""

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Standing:
    """The progress of a chain, with all that is needed to resume it."""

    draws: int  # draws that were put
    warmup_seconds: float = 0.0  # that the chain has taken so far
    sampling_seconds: float = 0.0
    state: Arrays = field(default_factory=dict)  # what the engine needs to go on, in arrays
    restarts: tuple[int, ...] = ()  # draws, from 0, at which a new random stream began
    warmed: int = 0  # iterations of the warmup that are done, of a chain that goes on amid it
    # Values at which a chain of this process began, where they were looked for; not kept on disk.
    start: Arrays = field(default_factory=dict)


@runtime_checkable
class DrawsReceiver(Protocol):
    """A receiver of the draws of all chains, a block at a time."""

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of the chain `number`, arrays (draw, ...), from the draw `first` on, with their statistics."""


class ChainPlace:
    """The place where one chain is kept; this one hands its draws on at once, and cannot be resumed.

    Parameters
    ----------
    number : int
        The chain's, from 0.
    taker : Draws
        Where the draws go in the end.

    Attributes
    ----------
    folder : Path or None
        Where the engine may put files of its own to go on from, named ``stan-...``; None where nothing is kept.
    standing : Standing or None
        Where the chain goes on from, and in the end how it ended; None where it is to begin.
    start : mapping
        Values at which it began, where the engine looks for them.
    """

    def __init__(self, number: int, taker: DrawsReceiver) -> None:
        self.number, self._taker = number, taker
        self.folder: Path | None = None
        self.standing: Standing | None = None
        self.start: Arrays = {}

    def restore(self) -> None:
        """Look how far this very chain had come in an earlier run, and make ready for what is to come."""

    def put(self, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws, arrays (draw, ...), from the draw `first` on; they follow on those that were put before."""
        self._taker.put(self.number, first, draws, stats)

    def save(self, make: Callable[[], Standing], *, now: bool = False) -> None:
        """Called whenever the chain could go on from where it is; writes that down now and then, or `now`.

        Parameters
        ----------
        make : callable
            Gives where the chain stands: after the draws put so far.
        now : bool
            Whether to write at once, as before an end.
        """

    def finish(self, standing: Standing) -> None:
        """Take how the chain stands at its end."""
        self.save(lambda: standing, now=True)
        self.standing = replace(standing, start=self.start)

    def deliver(self) -> None:
        """Hand on the draws of a chain that has finished, here or in an earlier run."""

    def tidy(self) -> None:
        """Leave nothing behind of a chain that was broken off and has come to nothing."""


class KeptPlace(ChainPlace):
    """The place where one chain is kept in a folder.

    Parameters
    ----------
    number, taker
        As of `ChainPlace`.
    folder : Path
        Of all chains of a run.
    fingerprint : str
        Says whether what is found there is of this very run; what is of another one is left alone.
    """

    def __init__(self, number: int, taker: DrawsReceiver, folder: Path, fingerprint: str) -> None:
        super().__init__(number, taker)
        self.folder: Path = chain_folder(folder, number, fingerprint)
        self._fingerprint = fingerprint
        self._waiting: list[tuple[Arrays, Arrays]] = []
        self._bytes = self._chunks = self._draws = self._warmed = 0
        self._written = time.monotonic()

    def restore(self) -> None:
        """Read the state, if it and every chunk that it counts are whole; a notice tells of a damaged one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = checkpoint.read(state_file(self.folder), self._fingerprint)
        chunks = 0 if arrays is None else int(arrays["chunks"])
        damaged = [
            p
            for p in map(self._chunk, range(chunks))
            if not (p.is_file() and examine(p) is Seal.SEALED)
        ]
        if arrays is None or damaged:
            for path in damaged[:1]:
                notice(f"{path} is damaged or missing: the chain is made again.")
            clear(self.folder)  # what of an engine's lies there goes with a damaged state
            self._write_state(Standing(0))  # so that the folder is known to be ours, and this run's
            return
        warmup, sampling = (float(s) for s in arrays["seconds"])
        restarts = tuple(int(i) for i in arrays["restarts"])
        draws, warmed = int(arrays["draws"]), int(arrays["warmed"])
        standing = Standing(draws, warmup, sampling, _part(arrays, "state"), restarts, warmed)
        self._warmed = standing.warmed
        self._chunks, self._draws = chunks, standing.draws
        if standing.draws or standing.state:
            self.standing = standing

    def put(self, first: int, draws: Arrays, stats: Arrays) -> None:
        """See `ChainPlace`; the arrays may be used again afterwards."""
        assert first == self._draws, "draws are put one after the other"
        copied = (
            {n: np.array(v) for n, v in draws.items()},
            {n: np.array(v) for n, v in stats.items()},
        )
        self._waiting.append(copied)
        self._draws += len(next(iter(draws.values())))
        self._bytes += sum(v.nbytes for part in copied for v in part.values())
        if self._bytes >= CHUNK_BYTES:
            self._write_chunk()

    def save(self, make: Callable[[], Standing], *, now: bool = False) -> None:
        """See `ChainPlace`."""
        if not now and time.monotonic() - self._written < SECONDS:
            return
        self._write_chunk()
        self._write_state(make())

    def deliver(self) -> None:
        """See `ChainPlace`."""
        for first, draws, stats in self.blocks():
            self._taker.put(self.number, first, draws, stats)

    def tidy(self) -> None:
        """See `ChainPlace`."""
        if not self._chunks and not self._warmed and not any(self.folder.glob("stan-*")):
            remove_chain(self.folder)

    def blocks(self) -> Iterator[tuple[int, dict[str, np.ndarray], dict[str, np.ndarray]]]:
        """The chunks in their order: the first draw's number, draws and statistics; one at a time in memory."""
        first = 0
        for path in map(self._chunk, range(self._chunks)):
            arrays = checkpoint.read(path, self._fingerprint)
            if arrays is None:
                raise InferenceError(f"{path} is damaged or missing; run the same again.")
            draws, stats = _part(arrays, "draws"), _part(arrays, "stats")
            yield first, draws, stats
            first += len(next(iter(draws.values())))

    def _chunk(self, index: int) -> Path:
        return chunk_file(self.folder, index)

    def _write_chunk(self) -> None:
        if not self._waiting:
            return
        arrays: dict[str, np.ndarray] = {}
        for kind, parts in zip(("draws", "stats"), zip(*self._waiting, strict=True), strict=True):
            arrays |= {f"{kind}/{n}": np.concatenate([p[n] for p in parts]) for n in parts[0]}
        checkpoint.write(self._chunk(self._chunks), self._fingerprint, arrays)
        self._waiting, self._bytes = [], 0
        self._chunks += 1

    def _write_state(self, standing: Standing) -> None:
        assert standing.draws == self._draws, "a chain stands after the draws that were put"
        arrays = {
            "chunks": np.array(self._chunks),
            "draws": np.array(standing.draws),
            "seconds": np.array([standing.warmup_seconds, standing.sampling_seconds]),
            "restarts": np.array(standing.restarts, dtype=np.int64),
            "warmed": np.array(standing.warmed),
        }
        arrays |= {f"state/{name}": np.asarray(value) for name, value in standing.state.items()}
        checkpoint.write(state_file(self.folder), self._fingerprint, arrays)
        self._written, self._warmed = time.monotonic(), standing.warmed


def _part(arrays: Arrays, kind: str) -> dict[str, np.ndarray]:
    return {n.partition("/")[2]: v for n, v in arrays.items() if n.startswith(f"{kind}/")}


class Gathered:
    """The draws of all chains of a run, in a `Room`."""

    def __init__(self, num_chains: int, num_draws: int, folder: Path | None = None) -> None:
        self._room = Room(num_chains, num_draws, folder)

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of a chain, arrays (draw, ...), from the draw `first` on; see `Draws`."""
        self._room.put(number, first, {schema.POSTERIOR: draws, schema.SAMPLE_STATS: stats})

    @property
    def draws(self) -> Mapping[str, Values]:
        """The draws (chain, draw, ...) of every variable; on disk until they are asked for, where they are many."""
        return self._room.group(schema.POSTERIOR)

    @property
    def stats(self) -> Mapping[str, Values]:
        """The values (chain, draw) of every statistic, likewise."""
        return self._room.group(schema.SAMPLE_STATS)

    @property
    def filed(self) -> xr.DataTree | None:
        """The tree that holds them on disk, if there is one; closing it removes them."""
        return self._room.filed


class WarmupApart:
    """Hands on the first draws of each chain, those of its warmup, to one receiver and the rest to another."""

    def __init__(self, warmup: int, before: DrawsReceiver, after: DrawsReceiver) -> None:
        self._warmup, self._before, self._after = warmup, before, after

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of a chain, arrays (draw, ...), from the iteration `first` on; see `DrawsReceiver`."""
        cut = max(0, self._warmup - first)
        for taker, part, place in (
            (self._before, slice(cut), first),
            (self._after, slice(cut, None), max(0, first - self._warmup)),
        ):
            some = [
                {name: values[part] for name, values in each.items()} for each in (draws, stats)
            ]
            if len(next(iter(some[1].values()))):
                taker.put(number, place, *some)


class ThinnedDraws:
    """Hands on the last of every so many draws of each chain, with statistics of all of them."""

    SUMMARIES: Mapping[str, Any] = {
        schema.N_STEPS: np.sum,
        schema.TREE_DEPTH: np.max,
        schema.DIVERGING: np.any,
        schema.ACCEPTANCE_RATE: np.mean,
    }
    """Statistics that stand for all; others are those of the last."""

    def __init__(self, taker: DrawsReceiver, thin: int) -> None:
        self._taker, self._thin = taker, thin
        self._waiting: dict[int, tuple[int, Arrays, Arrays]] = {}

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of a chain, arrays (draw, ...), from the draw `first` on; see `DrawsReceiver`."""
        if number in self._waiting:
            first, *before = self._waiting.pop(number)
            draws, stats = (
                {name: np.concatenate([old[name], values]) for name, values in new.items()}
                for old, new in zip(before, (draws, stats), strict=True)
            )
        thin, total = self._thin, len(next(iter(draws.values())))
        whole = total // thin * thin
        if whole < total:
            rest = [{n: np.array(v[whole:]) for n, v in each.items()} for each in (draws, stats)]
            self._waiting[number] = (first + whole, rest[0], rest[1])
        if whole:
            kept = {name: values[thin - 1 : whole : thin] for name, values in draws.items()}
            self._taker.put(number, first // thin, kept, self._summed(stats, whole))

    def _summed(self, stats: Arrays, whole: int) -> dict[str, np.ndarray]:
        out = {}
        for name, values in stats.items():
            each = values[:whole].reshape(-1, self._thin)
            summary = self.SUMMARIES.get(name)
            out[name] = each[:, -1] if summary is None else summary(each, axis=1)
        return out
