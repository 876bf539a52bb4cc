"""Several chains of one method: at once on the machine's cores, each kept on disk as it goes.

A chain's draws depend on the target, the settings, the seed and the chain's number alone, not on the
number of chains, their order or what ran next to them. So what is found of a chain in the checkpoint folder is
taken as it is, and the rest is run.

Chains in processes of a Dask cluster: a few of them a process, with the draws that they have at home.

The folder of the chains is the channel. A worker that sees it keeps chains there as they go, so that a second try goes
on from there; any other sends the files of its chains when they have ended. Either way draws are read from the files,
a piece at a time, and are never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from onebasin.base.cores import available_cores
from onebasin.base.errors import InferenceError
from onebasin.base.files.writing import locked, working_folder
from onebasin.base.processes.tasks import connected
from onebasin.base.progress import ProgressBars
from onebasin.posteriors import schema

from ..contracts.engines import ENGINES, LIBRARIES, definition_of
from ..contracts.method import Found, Job
from ..runs import checkpoint
from ..runs.checkpoint import chain_folder, check_folder, state_file
from ..runs.fingerprint import fingerprint
from ..runs.origin import package_versions
from ..runs.spread import spread
from .chain_files import ChainPlace, Gathered, RunChain, Standing, run_places

if TYPE_CHECKING:
    import xarray as xr


MOST_TOGETHER = 8
"""Chains that one process runs at most: what it compiles serves all of them, what it loses are these."""


class Ended(NamedTuple):
    """A chain that has ended on a worker."""

    files: Mapping[str, bytes] | None  # Its files; None where they are in the shared folder.
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
    """Return the group of step sizes and metrics, for a run that continues from them; empty where chains have none."""
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
