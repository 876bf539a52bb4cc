"""Store a chain's draws as they come: in memory, or in a folder from which a killed run is resumed.

A chain's folder holds sealed chunks, ``draws-000000.npz`` and so on, each of consecutive draws with their statistics,
and one sealed ``state.npz``: how many chunks and draws there are, and all that the engine needs to continue from there.
The state is written after the chunks that it counts. So whenever the process is killed, what the state counts is whole,
and what it does not count is not there; at most what came since the last state is lost.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.errors import InferenceError, RunCancelled
from onebasin.base.files.writing import Seal, examine
from onebasin.base.run_log import notice
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import Values
from onebasin.posteriors.scratch import Room

from ..runs import checkpoint
from ..runs.checkpoint import chain_folder, chunk_file, clear, remove_chain, state_file

SECONDS = 10.0  # Least time between two states of a chain: about what a killed run loses.

CHUNK_BYTES = 2**22  # Draws are written at the latest when so many bytes of them wait.

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Standing:
    """The progress of a chain, with all that is needed to resume it."""

    draws: int  # draws that were put
    warmup_seconds: float = 0.0  # that the chain has taken so far
    sampling_seconds: float = 0.0
    state: Arrays = field(default_factory=dict)  # what the engine needs to go on, in arrays
    restarts: tuple[int, ...] = ()  # draws, from 0, at which a new random stream began
    warmed: int = 0  # iterations of the warmup that are done, of a chain that continues amid it
    # Values at which a chain of this process began, where they were looked for; not kept on disk.
    start: Arrays = field(default_factory=dict)


class Gathered:
    """The draws of all chains of a run: the last of every `thin`, after a warmup that is kept apart."""

    SUMMARIES: Mapping[str, Any] = {
        schema.N_STEPS: np.sum,
        schema.TREE_DEPTH: np.max,
        schema.DIVERGING: np.any,
        schema.ACCEPTANCE_RATE: np.mean,
    }
    """Statistics that stand for all draws that are thinned to one; others are those of the last."""

    def __init__(
        self,
        num_chains: int,
        num_draws: int,
        folder: Path | None = None,
        *,
        warmup: int = 0,
        thin: int = 1,
    ) -> None:
        self._room = Room(num_chains, num_draws, folder)
        self.warmup = Gathered(num_chains, warmup, folder) if warmup else None
        self._warmup, self._thin = warmup, thin
        self._waiting: dict[int, list[Arrays]] = {}  # draws and statistics of each chain

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws of a chain, arrays (draw, ...), from the iteration `first` on, with their statistics."""
        cut = max(0, self._warmup - first)
        if self.warmup is not None and cut:
            self.warmup.put(number, first, _rows(draws, slice(cut)), _rows(stats, slice(cut)))
            draws, stats = (_rows(each, slice(cut, None)) for each in (draws, stats))
        first = max(0, first - self._warmup)
        if self._thin > 1:
            first, draws, stats = self._thinned(number, first, draws, stats)
        self._room.put(number, first, {schema.POSTERIOR: draws, schema.SAMPLE_STATS: stats})

    def _thinned(
        self, number: int, first: int, draws: Arrays, stats: Arrays
    ) -> tuple[int, Arrays, Arrays]:
        """Thin draws, with those that waited for more; what is left of them waits."""
        thin, before = self._thin, self._waiting.get(number)
        if before is not None:
            draws, stats = (
                {name: np.concatenate([old[name], values]) for name, values in new.items()}
                for old, new in zip(before, (draws, stats), strict=True)
            )
        whole = len(next(iter(draws.values()))) // thin * thin
        self._waiting[number] = [
            {n: np.array(v[whole:]) for n, v in each.items()} for each in (draws, stats)
        ]
        summed = {}
        for name, values in stats.items():
            each, summary = values[:whole].reshape(-1, thin), self.SUMMARIES.get(name)
            summed[name] = each[:, -1] if summary is None else summary(each, axis=1)
        return first // thin, _rows(draws, slice(thin - 1, whole, thin)), summed

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


def _rows(arrays: Arrays, rows: slice) -> Arrays:
    return {name: values[rows] for name, values in arrays.items()}


class ChainPlace:
    """The place where one chain is kept: in a folder, or nowhere, where its draws are handed on at once.

    `folder` is that of all chains of a run; without one the chain cannot be resumed. The fingerprint says whether what
    is found there is of this very run; what is of another one is left alone. The attribute `folder` is the chain's own,
    where the engine may put files to go on from, named ``stan-...``; `standing` is where the chain goes on from, and in
    the end how it ended, None where it is to begin; `start` has the values at which it began, where the engine looks
    for them.
    """

    def __init__(
        self, number: int, gathered: Gathered, folder: Path | None = None, fingerprint: str = ""
    ) -> None:
        self.number, self._gathered, self._fingerprint = number, gathered, fingerprint
        self.folder = None if folder is None else chain_folder(folder, number, fingerprint)
        self.standing: Standing | None = None
        self.start: Arrays = {}
        self._waiting: list[list[Arrays]] = []  # draws and statistics of each block
        self._bytes = self._chunks = self._draws = self._warmed = 0
        self._written = time.monotonic()

    def restore(self) -> None:
        """Read how far this very chain had come, if the state and every chunk that it counts are whole.

        A notice tells of a damaged one.
        """
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = checkpoint.read(self._state, self._fingerprint)
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
        self._chunks, self._draws, self._warmed = chunks, draws, warmed
        if standing.draws or standing.state:
            self.standing = standing

    def put(self, first: int, draws: Arrays, stats: Arrays) -> None:
        """Take draws, arrays (draw, ...), that follow on those put before; the arrays may be used again afterwards."""
        if self.folder is None:
            self._gathered.put(self.number, first, draws, stats)
            return
        assert first == self._draws, "draws are put one after the other"
        copied: list[Arrays] = [
            {n: np.array(v) for n, v in each.items()} for each in (draws, stats)
        ]
        self._waiting.append(copied)
        self._draws += len(next(iter(draws.values())))
        self._bytes += sum(v.nbytes for part in copied for v in part.values())
        if self._bytes >= CHUNK_BYTES:
            self._write_chunk()

    def save(self, make: Callable[[], Standing], *, now: bool = False) -> None:
        """Called whenever the chain could go on from where it is; writes that down now and then, or `now`.

        `make` gives where the chain stands, after the draws put so far.
        """
        if self.folder is None:
            return
        if not now and time.monotonic() - self._written < SECONDS:
            return
        self._write_chunk()
        self._write_state(make())

    def finish(self, standing: Standing) -> None:
        """Take how the chain stands at its end."""
        self.save(lambda: standing, now=True)
        self.standing = replace(standing, start=self.start)

    def deliver(self) -> None:
        """Hand on the kept draws of a chain that has finished, here or in an earlier run."""
        for first, draws, stats in self.blocks():
            self._gathered.put(self.number, first, draws, stats)

    def tidy(self) -> None:
        """Leave nothing behind of a chain that was broken off and has come to nothing."""
        if self.folder is None or self._chunks or self._warmed:
            return
        if not any(self.folder.glob("stan-*")):
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

    @property
    def _state(self) -> Path:
        assert self.folder is not None, "a chain without a folder is not kept"
        return state_file(self.folder)

    def _chunk(self, index: int) -> Path:
        return chunk_file(self._state.parent, index)

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
        checkpoint.write(self._state, self._fingerprint, arrays)
        self._written, self._warmed = time.monotonic(), standing.warmed


def _part(arrays: Arrays, kind: str) -> dict[str, np.ndarray]:
    return {n.partition("/")[2]: v for n, v in arrays.items() if n.startswith(f"{kind}/")}


RunChain = Callable[[ChainPlace, threading.Event], None]
"""Runs a chain to its end, from its place's `standing` (None at the beginning).

It puts draws and says where it stands as it goes (`put`, `save`), and how at its end (`finish`); it looks at the event
now and then, and once that is set it saves and raises `RunCancelled`.
"""


def run_places(run: RunChain, places: Sequence[ChainPlace], at_once: int) -> None:
    """Run the chains of some places, several at once; the first error stops them all."""
    cancel = threading.Event()

    def work(place: ChainPlace) -> None:
        if cancel.is_set():
            raise RunCancelled
        run(place, cancel)

    with ThreadPoolExecutor(max_workers=min(at_once, len(places))) as pool:
        futures = [pool.submit(work, place) for place in places]
        try:
            # In slices: a wait without an end would not let an interrupt through on every system.
            while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                if any(f.done() and f.exception() for f in futures):
                    break
        finally:
            cancel.set()
        errors = [e for f in futures if f.done() and (e := f.exception())]
        if errors:
            # The chains that were told to stop say so too; the cause is the other one.
            raise next((e for e in errors if not isinstance(e, RunCancelled)), errors[0])
