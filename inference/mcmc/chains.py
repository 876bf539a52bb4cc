"""Several chains of one method: at once on the machine's cores, each kept on disk as it goes.

A chain's draws depend on the target, the settings, the seed and the chain's number alone, not on the
number of chains, their order or what ran next to them. So what is found of a chain in the checkpoint folder is
taken as it is, and the rest is run.

A chain's folder holds sealed chunks, ``draws-000000.npz`` and so on, each of consecutive draws with their statistics,
and one sealed ``state.npz``: how many chunks and draws there are, and all that the engine needs to continue from there.
The state is written after the chunks that it counts: whenever the process is killed, what the state counts is whole.

Chains in processes of a Dask cluster are a few a process. The folder of the chains is the channel: a worker that sees
it keeps chains there as they go; any other sends the files of its chains when they have ended. Either way draws are
read from the files, a piece at a time, and are never in memory as a whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import xarray as xr

from onebasin.base.cores import available_cores
from onebasin.base.errors import InferenceError, RunCancelled
from onebasin.base.files.writing import Seal, examine, locked, working_folder
from onebasin.base.processes.tasks import connected
from onebasin.base.progress import ProgressBars
from onebasin.base.run_log import notice
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import Values
from onebasin.posteriors.scratch import Room

from ..contracts.method import ENGINES, LIBRARIES, Found, Job, definition_of
from ..runs import checkpoint
from ..runs.checkpoint import (
    chain_folder,
    check_folder,
    chunk_file,
    clear,
    fingerprint,
    remove_chain,
    state_file,
)
from ..runs.origin import package_versions
from ..runs.run import spread

SECONDS = 10.0  # Least time between two states of a chain: about what a killed run loses.
CHUNK_BYTES = 2**22  # Draws are written at the latest when so many bytes of them wait.

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Standing:
    """The progress of a chain, with all that is needed to resume it."""

    draws: int  # draws that were put
    warmup_seconds: float = 0.0  # that the chain has taken so far
    sampling_seconds: float = 0.0
    state: Arrays = field(default_factory=dict)  # what the engine needs to continue, in arrays
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
    is found there is of this very run; what is of another one is left unchanged. The attribute `folder` is the chain's
    own, where the engine may put files to resume from, named ``stan-...``; `standing` is where the chain continues
    from, and in the end how it ended, None if it is to begin; `start` has the values at which it began, where the
    engine looks for them.
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
        """Called whenever the chain could resume from where it is; writes that down now and then, or `now`.

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


MOST_TOGETHER = 8
"""Chains that one process runs at most: what it compiles serves all of them, what it loses are these."""


class Ended(NamedTuple):
    """A chain that has ended on a worker."""

    files: Mapping[str, bytes] | None  # Its files; None if they are in the shared folder.
    start: Mapping[str, np.ndarray]  # Values at which it began, where they were looked for.


def run_on_workers(
    job: Job[Any], client: Any, places: Sequence[ChainPlace], folder: Path, mark: str
) -> None:
    """Run the chains of these places on a cluster; afterwards their files are in their folders.

    Raises
    ------
    TaskError
        If the model cannot be sent, a worker has other versions, or a chain's process was killed twice.
    """
    threads = max(1, sum(client.nthreads().values()))
    size = min(MOST_TOGETHER, -(-len(places) // threads))
    groups = [places[at : at + size] for at in range(0, len(places), size)]
    by_number = {place.number: place for place in places}
    names = {_name([p.number for p in group]): [p.number for p in group] for group in groups}
    sent = replace(
        job, bars=cast(Any, None), client=None, start=None, adapt_from=None, checkpoint=None
    )
    tasks = {name: (sent, numbers, folder.absolute(), mark) for name, numbers in names.items()}
    for found in spread(client, job.bars, f"The model {job.target.name!r}", run_group, tasks):
        for number, ended in found.items():
            place = by_number[number]
            assert place.folder is not None, "chains of workers have one"
            if ended.files is not None:
                checkpoint.clear(place.folder)
                for name, content in ended.files.items():
                    (place.folder / name).write_bytes(content)
            place.restore()
            assert place.standing is not None, "it has ended"
            place.standing = replace(place.standing, start=ended.start)


def run_group(
    bars: ProgressBars, job: Job[Any], numbers: Sequence[int], folder: Path, mark: str
) -> dict[int, Ended]:
    """Run some chains of a job in this process, in the folder if this machine sees it."""

    def seen(number: int) -> bool:
        return checkpoint.read(state_file(chain_folder(folder, number, mark)), mark) is not None

    with working_folder("chains") as own:
        shared = all(map(seen, numbers))
        kept, nowhere = folder if shared else own / "kept", Gathered(1, 1)
        places = [ChainPlace(number, nowhere, kept, mark) for number in numbers]
        for place in places:
            place.restore()
        draws = job.method.draws
        missing = [p for p in places if (p.standing.draws if p.standing else -1) < draws]
        if missing:
            implementation = job.implementation(replace(job, bars=bars, folder=own))
            run_places(implementation, missing, available_cores())
        return {p.number: Ended(None if shared else _files(p.folder), p.start) for p in places}


def _files(folder: Path | None) -> dict[str, bytes]:
    assert folder is not None, "chains of workers have one"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _name(numbers: Sequence[int]) -> str:
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"chain {first}" if first == last else f"chains {first} to {last}"


def run_chains(
    prepare: Callable[[], RunChain],
    gathered: Gathered,
    *,
    chains: int,
    draws: int,
    folder: Path | None = None,
    fingerprint: str = "",
    at_once: int | None = None,
    finished: Callable[[int], None] = lambda _: None,
    elsewhere: Callable[[Sequence[ChainPlace]], None] | None = None,
) -> list[Standing]:
    """Run chains, several at once, and return how each stood at its end.

    `prepare` compiles what the chains share and returns what runs one; it is not called when no chain is missing.
    `gathered` takes the draws. In `folder` chains are kept as they go, and looked for: those whose `fingerprint` says
    that they are of this very run; `finished` is called with the number of each that is there. At most `at_once`
    chains run together, by default as many as there are cores. `elsewhere` runs them in other processes instead.

    A full disk raises WriteError, and what was kept until then stays. After an interrupt, the chains at work are told
    to stop; what they came to is in the folder.
    """
    with _held(folder), ExitStack() as unfinished:
        places = [ChainPlace(number, gathered, folder, fingerprint) for number in range(chains)]
        for place in places:
            unfinished.callback(place.tidy)
            place.restore()
        missing = [p for p in places if p.standing is None or p.standing.draws < draws]
        for place in places:
            if place not in missing:
                finished(place.number)
        if missing:
            with _saying_what_is_gone(places):
                if elsewhere is not None:
                    elsewhere(missing)
                else:
                    run_places(prepare(), missing, at_once or available_cores())
        for place in places:
            place.deliver()
    return [place.standing for place in places if place.standing is not None]


@contextmanager
def _held(folder: Path | None) -> Iterator[None]:
    """Hold the folder, so that no other run writes there meanwhile."""
    if folder is None:
        yield
        return
    check_folder(folder)
    was_there = folder.exists()
    try:
        with ExitStack() as held:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(folder, argument="checkpoint"))
            except OSError as reason:
                raise InferenceError(
                    f"`checkpoint` is {folder}, where nothing can be written: {reason.strerror or reason}; name a "
                    "folder of yours."
                ) from reason
            yield
    finally:
        if not was_there:
            with suppress(OSError):  # it holds chains
                folder.rmdir()


@contextmanager
def _saying_what_is_gone(places: Sequence[ChainPlace]) -> Iterator[None]:
    """Say, where chains fail because a folder of theirs was removed meanwhile, which it was and what is still there."""
    try:
        yield
    except Exception as error:
        kept = [place.folder for place in places if place.folder is not None]
        if not (gone := [folder for folder in kept if not folder.is_dir()]):
            raise
        raise InferenceError(
            f"{gone[0]}, where a chain was kept, was removed while it ran, so that the run has ended; what was kept of "
            f"{len(kept) - len(gone)} of {len(kept)} chains is still there, and the same call continues from it."
        ) from error


def sample(
    job: Job[Any],
    more: Mapping[str, object] = MappingProxyType({}),
    gradients: int = 1,
    *,
    thin: int = 1,
    at_once: int | None = None,
) -> Found:
    """Run the chains of a method by its engine's implementation.

    `more` decides the draws besides the settings, and is recorded in the posterior; a step of the integrator takes
    `gradients`; of every `thin` iterations the last one is kept.
    """
    package = ENGINES[job.engine].package
    more = {**more, **(package_versions(package) if package else {})}
    if job.given is not None:
        job = replace(job, method=job.given.settle(job.method, job.engine))
    s = job.method
    run = s if thin == 1 else replace(s, draws=s.draws * thin, thin=1)
    at_once = at_once or available_cores()
    with working_folder("chains") as folder, ExitStack() as cluster:
        mark = elsewhere = None
        if job.checkpoint is not None:
            # All settings that decide a chain's draws: not how many there are of chains and of draws.
            settings = {n: v for n, v in run.recorded().items() if n not in ("chains", "draws")}
            how = {"method": s.label, "settings": settings, "seed": job.seed, **more}
            if job.given is not None:
                how["given"] = job.given
            mark = fingerprint(job.target, engine=job.engine, progress=job.bars.say, **how)
        kept = None if mark is None else job.checkpoint
        there = None if kept is None else kept.absolute().parent
        if job.client is not None:
            client = cluster.enter_context(connected(job.client))
            kept, mark = kept or folder / "kept", mark or token_hex(16)
            there = there or Path(gettempdir())  # many draws come to lie on disk, not in memory
            at_once = max(1, sum(client.nthreads().values()))
            sent = replace(job, method=run)
            elsewhere = partial(run_on_workers, sent, client, folder=kept, mark=mark)
        warmup = s.warmup if getattr(s, "save_warmup", False) else 0
        gathered = Gathered(s.chains, s.draws, there, warmup=warmup, thin=thin)
        at_once = min(at_once, s.chains)
        job.bars.expect(chains=s.chains, warmup=s.warmup, draws=run.draws)
        ended = run_chains(
            partial(job.implementation, replace(job, method=run, folder=folder)),
            gathered,
            chains=s.chains,
            draws=run.draws,
            folder=kept,
            fingerprint=mark or "",
            at_once=at_once,
            finished=job.bars.taken,
            elsewhere=elsewhere,
        )
    recorded: dict[str, object] = {
        "warmup_seconds": [chain.warmup_seconds for chain in ended],
        "sampling_seconds": [chain.sampling_seconds for chain in ended],
        "gradient_evaluations": gradients * int(gathered.stats["n_steps"].sum()),
    }
    if any(chain.restarts for chain in ended):
        recorded[schema.RESTARTS] = [list(chain.restarts) for chain in ended]
    if all("warmup_steps" in chain.state for chain in ended):
        steps = sum(int(chain.state["warmup_steps"]) for chain in ended)
        recorded[schema.WARMUP_GRADIENTS] = gradients * steps
    if hasattr(s, "max_tree_depth"):
        recorded["max_tree_depth"] = s.max_tree_depth
    recorded |= more
    if job.given is not None:
        if job.given.how is not None:
            recorded[schema.START] = dict(job.given.how)
        recorded[schema.SETTINGS] = s.recorded()
    warmed = gathered.warmup
    return Found(
        gathered.draws,
        gathered.stats,
        recorded,
        {**_adaptation(ended, definition_of(job.target, job.engine)), **_starts(job, ended)},
        filed=gathered.filed,
        folder=there,
        warmup=None if warmed is None else Found(warmed.draws, warmed.stats, filed=warmed.filed),
    )


def _starts(job: Job[Any], ended: Sequence[Standing]) -> dict[str, xr.Dataset]:
    """Return the group of the chains' starts, on the constrained scale, where they were given or looked for."""
    from onebasin.posteriors.pointwise import DrawGroup

    if job.given is not None:
        from .given import constrained

        found = constrained(job.target, job.given)
    else:
        names = () if job.target.is_network and job.engine in LIBRARIES else ended[0].start
        if any(name not in chain.start for chain in ended for name in names):
            return {}
        found = {name: np.stack([chain.start[name] for chain in ended]) for name in names}
    if not found:
        return {}
    values = {name: np.repeat(value[:, None], len(value), axis=1) for name, value in found.items()}
    group = DrawGroup(values, job.target.dims).to_dataset(job.target.coords)
    return {schema.STARTS: group.isel(draw=0, drop=True)}


def _adaptation(ended: Sequence[Standing], definition: str) -> dict[str, xr.Dataset]:
    """Return the group of step sizes and metrics, for a run that continues from them; empty if chains have none."""
    import xarray as xr

    found: dict[str, Any] = {}
    for name in ("step_size", "inverse_metric"):
        arrays = [chain.state[name] for chain in ended if name in chain.state]
        if len(arrays) == len(ended) and arrays[0].size:
            dims = ("chain", "coordinate", "other_coordinate")[: arrays[0].ndim + 1]
            found[name] = (dims, np.stack(arrays))
    if not found:
        return {}
    attributes = {"definition": definition}
    group = xr.Dataset(found, {"chain": np.arange(len(ended))}, attributes)
    return {schema.ADAPTATION: group}
