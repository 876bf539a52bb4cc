"""Chains in processes of a Dask cluster: a few of them a process, with the draws that they have at home.

The folder of the chains is the channel. A worker that sees it keeps chains there as they go, so that a second try goes
on from there; any other sends the files of its chains when they have ended. Either way draws are read from the files,
a piece at a time, and are never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from onebasin.base.cores import available_cores
from onebasin.base.files.writing import working_folder
from onebasin.base.progress import ProgressBars

from ..contracts.method import Job
from ..runs import checkpoint
from ..runs.checkpoint import chain_folder, state_file
from ..runs.spread import spread
from .chain_files import ChainPlace, Gathered, run_places

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
