"""Run several chains of a method in parallel, on the machine's cores or on a Dask cluster, and save them meanwhile.

A chain's draws depend only on the target, the settings, the seed and the chain's number. They do not depend on the
number of chains, their order or other work. Draws in the checkpoint folder are thus kept, and only the rest is run.

A chain's folder holds chunks with checksums, ``draws-000000.npz`` and so on. Each has consecutive draws with their
statistics. One file ``state.npz``, also with a checksum, has the number of chunks and draws, and the state from which
the engine continues. The state is written after the chunks that it counts, so these are always complete.

A process of a cluster runs a few chains. A worker that can access the folder of the chains saves them there during the
run. Any other worker sends the files of its chains when they have ended. In both cases draws are read from the files
piece by piece, and are never all in memory at once.
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

from onebasin.base.errors import InferenceError, RunCancelled
from onebasin.base.files.writing import Seal, examine, locked, working_folder
from onebasin.base.machine import available_cores
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
from ..runs.posterior import package_versions
from ..runs.run import spread

SECONDS = 10.0  # Minimum time between saves of a chain's state; a killed run may lose this much.
CHUNK_BYTES = 2**22  # Unsaved draws are written when they reach this size.

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Standing:
    """The progress of a chain, with the state from which it continues."""

    draws: int
    warmup_seconds: float = 0.0
    sampling_seconds: float = 0.0
    state: Arrays = field(default_factory=dict)  # The engine's own state.
    restarts: tuple[int, ...] = ()  # Numbers of draws, from 0, at which a new random stream began.
    warmed: int = 0  # Finished iterations of the warmup, if the chain can continue within it.
    start: Arrays = field(default_factory=dict)  # Initial values from a search; not saved.


class Gathered:
    """The draws of all chains of a run: the last of every `thin` draws, and the warmup's draws separately."""

    SUMMARIES: Mapping[str, Any] = {
        schema.N_STEPS: np.sum,
        schema.TREE_DEPTH: np.max,
        schema.DIVERGING: np.any,
        schema.ACCEPTANCE_RATE: np.mean,
    }
    """Statistics that summarise all iterations of a thinned draw; other statistics are those of the last iteration."""

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
        self._waiting: dict[int, list[Arrays]] = {}  # Draws and statistics of each chain.

    def put(self, number: int, first: int, draws: Arrays, stats: Arrays) -> None:
        """Add draws of a chain, arrays (draw, ...), from the iteration `first` on, with their statistics."""
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
        """Thin new draws together with the held-back remainder; keep the new remainder for the next call."""
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
        """The draws (chain, draw, ...) of every variable; large arrays stay on disk until they are read."""
        return self._room.group(schema.POSTERIOR)

    @property
    def stats(self) -> Mapping[str, Values]:
        """The values (chain, draw) of every statistic."""
        return self._room.group(schema.SAMPLE_STATS)

    @property
    def filed(self) -> xr.DataTree | None:
        """The tree that holds draws on disk, if there is one. Closing the tree removes them."""
        return self._room.filed


def _rows(arrays: Arrays, rows: slice) -> Arrays:
    return {name: values[rows] for name, values in arrays.items()}


class ChainPlace:
    """Storage of one chain in a folder; without a folder, draws are passed on immediately.

    The argument `folder` is the folder of all chains of a run; without it the chain cannot be resumed. Files with
    another fingerprint belong to another run and are left unchanged. The attribute `folder` belongs to this chain. The
    engine may put files named ``stan-...`` there to resume from. `standing` is the progress of the chain, or None
    before it begins. `start` has its initial values, if the engine searches for them.
    """

    def __init__(
        self, number: int, gathered: Gathered, folder: Path | None = None, fingerprint: str = ""
    ) -> None:
        self.number, self._gathered, self._fingerprint = number, gathered, fingerprint
        self.folder = None if folder is None else chain_folder(folder, number, fingerprint)
        self.standing: Standing | None = None
        self.start: Arrays = {}
        self._waiting: list[list[Arrays]] = []  # Draws and statistics of each block.
        self._bytes = self._chunks = self._draws = self._warmed = 0
        self._written = time.monotonic()

    def restore(self) -> None:
        """Read the progress of this chain; if the state or a chunk is damaged, start again with a notice."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = checkpoint.read(self._state, self._fingerprint)
        chunks = 0 if arrays is None else int(arrays["chunks"])
        paths = [self._chunk(number) for number in range(chunks)]
        damaged = [p for p in paths if not (p.is_file() and examine(p) is Seal.SEALED)]
        if arrays is None or damaged:
            for path in damaged[:1]:
                notice(f"{path} is damaged or missing: the chain starts again.")
            clear(self.folder)  # The engine's files are useless without the state.
            self._write_state(Standing(0))  # Marks the folder as belonging to this run.
            return
        warmup, sampling = (float(s) for s in arrays["seconds"])
        restarts = tuple(int(i) for i in arrays["restarts"])
        draws, warmed = int(arrays["draws"]), int(arrays["warmed"])
        standing = Standing(draws, warmup, sampling, _part(arrays, "state"), restarts, warmed)
        self._chunks, self._draws, self._warmed = chunks, draws, warmed
        if standing.draws or standing.state:
            self.standing = standing

    def put(self, first: int, draws: Arrays, stats: Arrays) -> None:
        """Add the next draws, arrays (draw, ...); the caller may reuse the arrays afterwards."""
        if self.folder is None:
            self._gathered.put(self.number, first, draws, stats)
            return
        assert first == self._draws, "draws must be added in order"
        copied: list[Arrays] = [{n: np.array(v) for n, v in p.items()} for p in (draws, stats)]
        self._waiting.append(copied)
        self._draws += len(next(iter(draws.values())))
        self._bytes += sum(v.nbytes for part in copied for v in part.values())
        if self._bytes >= CHUNK_BYTES:
            self._write_chunk()

    def save(self, make: Callable[[], Standing], *, now: bool = False) -> None:
        """Save the chain's progress from `make` if `now`, or if the last save is long enough ago."""
        if self.folder is None:
            return
        if not now and time.monotonic() - self._written < SECONDS:
            return
        self._write_chunk()
        self._write_state(make())

    def finish(self, standing: Standing) -> None:
        """Save the finished chain."""
        self.save(lambda: standing, now=True)
        self.standing = replace(standing, start=self.start)

    def deliver(self) -> None:
        """Pass on the saved draws of a finished chain."""
        for first, draws, stats in self.blocks():
            self._gathered.put(self.number, first, draws, stats)

    def tidy(self) -> None:
        """Remove the folder of a chain that stopped before it saved anything."""
        if self.folder is None or self._chunks or self._warmed:
            return
        if not any(self.folder.glob("stan-*")):
            remove_chain(self.folder)

    def blocks(self) -> Iterator[tuple[int, dict[str, np.ndarray], dict[str, np.ndarray]]]:
        """Read the chunks in order, one at a time: the number of the first draw, draws and statistics."""
        first = 0
        for path in map(self._chunk, range(self._chunks)):
            arrays = checkpoint.read(path, self._fingerprint)
            if arrays is None:
                raise InferenceError(
                    f"The file {path} of a saved chain is damaged or missing. Repeat the call to sample this chain "
                    "again."
                )
            draws, stats = _part(arrays, "draws"), _part(arrays, "stats")
            yield first, draws, stats
            first += len(next(iter(draws.values())))

    @property
    def _state(self) -> Path:
        assert self.folder is not None, "a chain without a folder is not saved"
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
        assert standing.draws == self._draws, "the state must count the draws that were added"
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


Places = Sequence[ChainPlace]
RunChain = Callable[[ChainPlace, threading.Event], None]
"""Function that runs a chain to its end, from the `standing` of its place (None at the beginning).

It calls `put` and `save` during the run, and `finish` at the end. When the event is set, it saves and raises
`RunCancelled`.
"""


def run_places(run: RunChain, places: Places, at_once: int) -> None:
    """Run the chains of these places in parallel; the first error stops them all."""
    cancel = threading.Event()

    def work(place: ChainPlace) -> None:
        if cancel.is_set():
            raise RunCancelled
        run(place, cancel)

    with ThreadPoolExecutor(max_workers=min(at_once, len(places))) as pool:
        futures = [pool.submit(work, place) for place in places]
        try:
            # Wait with a timeout, because an endless wait cannot be interrupted on every system.
            while wait(futures, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                if any(f.done() and f.exception() for f in futures):
                    break
        finally:
            cancel.set()
        errors = [e for f in futures if f.done() and (e := f.exception())]
        if errors:
            # Cancelled chains raise as well, so prefer another error, which is the cause.
            raise next((e for e in errors if not isinstance(e, RunCancelled)), errors[0])


MOST_TOGETHER = 8
"""Maximum number of chains per process. A process compiles once for all its chains, and loses them all if it dies."""


class Ended(NamedTuple):
    """A chain that has ended on a worker."""

    files: Mapping[str, bytes] | None  # Files of the chain; None if they are in a shared folder.
    start: Mapping[str, np.ndarray]  # Initial values from a search.


def run_on_workers(job: Job, client: Any, places: Places, folder: Path, mark: str) -> None:
    """Run the chains of these places on a cluster, and put their files into their folders.

    Raises
    ------
    TaskError
        If the model cannot be sent, a worker has other package versions, or a chain's process was killed twice.
    """
    threads = max(1, sum(client.nthreads().values()))
    size = min(MOST_TOGETHER, -(-len(places) // threads))
    groups = [places[at : at + size] for at in range(0, len(places), size)]
    by_number = {place.number: place for place in places}
    numbers = ([place.number for place in group] for group in groups)
    names = {f"chains {', '.join(str(n + 1) for n in own)}": own for own in numbers}
    sent = replace(
        job, bars=cast(Any, None), client=None, start=None, adapt_from=None, checkpoint=None
    )
    tasks = {name: (sent, own, folder.absolute(), mark) for name, own in names.items()}
    for found in spread(client, job.bars, f"The model {job.target.name!r}", run_group, tasks):
        for number, ended in found.items():
            place = by_number[number]
            assert place.folder is not None, "chains of workers have a folder"
            if ended.files is not None:
                checkpoint.clear(place.folder)
                for name, content in ended.files.items():
                    (place.folder / name).write_bytes(content)
            place.restore()
            assert place.standing is not None, "a finished chain has a state"
            place.standing = replace(place.standing, start=ended.start)
            job.bars.look(number, job.method.warmup + job.method.draws)


def run_group(
    bars: ProgressBars, job: Job[Any], numbers: Sequence[int], folder: Path, mark: str
) -> dict[int, Ended]:
    """Run some chains of a job in this process, in the folder if this machine can access it."""

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
        ended = {}
        for place in places:
            assert place.folder is not None, "chains of workers have a folder"
            files = {f.name: f.read_bytes() for f in place.folder.iterdir() if f.is_file()}
            ended[place.number] = Ended(None if shared else files, place.start)
        return ended


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
    elsewhere: Callable[[Places], None] | None = None,
) -> list[Standing]:
    """Run chains in parallel, and return the final state of each.

    `prepare` compiles the code that chains share and returns a function that runs a chain; it is called only if a
    chain is unfinished. `gathered` receives the draws. Chains are saved in `folder`, and resumed from there if the
    `fingerprint` agrees. `finished` is called with the number of each finished chain. At most `at_once` chains run in
    parallel, by default one per core. `elsewhere` runs them in other processes instead.

    Raise WriteError if a disk is full; saved draws are kept. After an interrupt, chains save their state and stop.
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
            if elsewhere is not None:
                elsewhere(missing)
            else:
                run_places(prepare(), missing, at_once or available_cores())
        for place in places:
            place.deliver()
    return [place.standing for place in places if place.standing is not None]


@contextmanager
def _held(folder: Path | None) -> Iterator[None]:
    """Lock the folder, so that no other run can write there."""
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
                    f"`checkpoint` is {folder}, which is not writable ({reason.strerror or reason}). Give a folder "
                    "that you can write to."
                ) from reason
            yield
    finally:
        if not was_there:
            with suppress(OSError):  # The folder stays if it holds chains.
                folder.rmdir()


def sample(
    job: Job[Any],
    more: Mapping[str, object] = MappingProxyType({}),
    gradients: int = 1,
    *,
    thin: int = 1,
    at_once: int | None = None,
) -> Found:
    """Run the chains of a method with its engine's implementation.

    `more` has facts other than the settings that determine the draws; it is recorded in the posterior. A step of the
    integrator takes `gradients` gradients. The last of every `thin` iterations is kept.
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
            # All settings determine a chain's draws, except the numbers of chains and draws.
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
            there = there or Path(gettempdir())  # Large draws are kept on disk, not in memory.
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
    """Return the group of the chains' starting values, on the constrained scale, if given or found by a search."""
    from onebasin.posteriors.pointwise import DrawGroup

    if job.given is not None:
        from .starts import constrained

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
    """Return the group of step sizes and metrics for later runs; empty if chains have none."""
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
