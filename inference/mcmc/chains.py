"""Several chains of one method: at once on the machine's cores, each kept on disk as it ends.

A chain's draws depend on the target, the settings, the seed and the chain's number alone, not on the
number of chains, their order or what ran beside them. So a chain found in the checkpoint folder is taken
as it is, and the rest run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.models.cores import available_cores
from onebasin.models.errors import RunCancelled
from onebasin.models.target import Target

from .. import checkpoint
from ..kept import chain_file, check_folder
from ..progress import ProgressBars
from .settings import HmcSettings, NutsSettings


@dataclass(frozen=True)
class Chain:
    """One finished chain.

    Attributes
    ----------
    draws : dict
        Variable name to array (draw, ...).
    stats : dict
        Statistic name to array (draw,).
    warmup_seconds, sampling_seconds : float
        Time that the chain took.
    """

    draws: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    warmup_seconds: float
    sampling_seconds: float


def how_it_went(stats: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """What is said of a chain that has ended, by its statistics."""
    diverging = stats.get("diverging")
    return {
        "step_size": float(stats["step_size"][-1]),
        "divergences": None if diverging is None else int(diverging.sum()),
    }


class Gathered:
    """Chains of one run, each in its place of arrays that hold all of them: no draw is held twice for long.

    Parameters
    ----------
    num_chains : int
        How many there will be.

    Attributes
    ----------
    draws, stats : dict
        Name to array (chain, draw, ...).
    warmup_seconds, sampling_seconds : list of float
        An entry a chain.
    """

    def __init__(self, num_chains: int) -> None:
        self.draws: dict[str, np.ndarray] = {}
        self.stats: dict[str, np.ndarray] = {}
        self.warmup_seconds = [float("nan")] * num_chains
        self.sampling_seconds = [float("nan")] * num_chains
        self._lock = threading.Lock()

    def room(self, number: int, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The place of a chain's draws of a variable, (draw, ...), for an engine that writes them there itself."""
        with self._lock:
            if name not in self.draws:
                self.draws[name] = np.empty((len(self.warmup_seconds), *shape), dtype)
            return self.draws[name][number]

    def put(self, number: int, chain: Chain) -> Chain:
        """Copy a chain into its place, but what is there already; returns it as it lies there."""
        with self._lock:
            self.warmup_seconds[number] = chain.warmup_seconds
            self.sampling_seconds[number] = chain.sampling_seconds
            return Chain(
                self._put(self.draws, number, chain.draws),
                self._put(self.stats, number, chain.stats),
                chain.warmup_seconds,
                chain.sampling_seconds,
            )

    def _put(
        self, arrays: dict[str, np.ndarray], number: int, given: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        for name, values in given.items():
            if name not in arrays:
                shape = (len(self.warmup_seconds), *values.shape)
                arrays[name] = np.empty(shape, values.dtype)
            if not np.may_share_memory(arrays[name][number], values):
                arrays[name][number] = values
        return {name: arrays[name][number] for name in given}


RunChain = Callable[[int, threading.Event], Chain]
"""Runs the chain of a number (from 0); looks at the event now and then, and raises `RunCancelled` once it is set."""


@dataclass(frozen=True)
class ChainsRequest:
    """What an engine's chains have in common.

    Attributes
    ----------
    target, settings, seed
        What is sampled, and how; a chain follows from these and its number.
    bars : ProgressBars
        Where progress is shown.
    folder : Path
        For the engine's files; the caller removes it.
    gathered : Gathered
        Where the chains go.
    """

    target: Target
    settings: NutsSettings | HmcSettings
    seed: int
    bars: ProgressBars
    folder: Path
    gathered: Gathered


def run_chains(
    prepare: Callable[[], RunChain],
    gathered: Gathered,
    *,
    folder: Path | None,
    fingerprint: str,
) -> Gathered:
    """Run chains, as many at once as there are cores for this process.

    Parameters
    ----------
    prepare : callable
        Compiles what the chains share and returns what runs one; not called when no chain is missing.
    gathered : Gathered
        For how many chains there is room; they go there.
    folder : Path or None
        In which finished chains are kept, and looked for.
    fingerprint : str
        Says which chains in the folder are of this very run.

    Returns
    -------
    Gathered
        The same, with all chains.

    Raises
    ------
    KeyboardInterrupt
        After the chains at work were told to stop; finished ones are in the folder.
    """
    if folder is not None:
        check_folder(folder)
    num_chains = len(gathered.warmup_seconds)
    missing = []
    for number in range(num_chains):
        if (kept := _load(folder, number, fingerprint)) is None:
            missing.append(number)
        else:
            gathered.put(number, kept)
        del kept  # before the next one is read
    if not missing:
        return gathered
    run = prepare()
    cancel = threading.Event()

    def work(number: int) -> None:
        if cancel.is_set():
            raise RunCancelled
        _save(folder, number, fingerprint, gathered.put(number, run(number, cancel)))

    with ThreadPoolExecutor(max_workers=min(available_cores(), num_chains)) as pool:
        futures = {i: pool.submit(work, i) for i in missing}
        try:
            # In slices: a wait without an end would not let an interrupt through on every system.
            while wait(futures.values(), timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                if any(f.done() and f.exception() for f in futures.values()):
                    break
        finally:
            cancel.set()
        errors = [e for f in futures.values() if f.done() and (e := f.exception())]
        if errors:
            # The chains that were told to stop say so too; the cause is the other one.
            raise next((e for e in errors if not isinstance(e, RunCancelled)), errors[0])
    return gathered


def _save(folder: Path | None, number: int, fingerprint: str, chain: Chain) -> None:
    if folder is None:
        return
    arrays = {f"draws/{k}": v for k, v in chain.draws.items()}
    arrays |= {f"stats/{k}": v for k, v in chain.stats.items()}
    arrays["seconds"] = np.array([chain.warmup_seconds, chain.sampling_seconds])
    checkpoint.write(chain_file(folder, number), fingerprint, arrays)


def _load(folder: Path | None, number: int, fingerprint: str) -> Chain | None:
    """The chain of this run with this number, if it was finished before."""
    arrays = None if folder is None else checkpoint.read(chain_file(folder, number), fingerprint)
    if arrays is None:
        return None
    warmup, sampling = (float(s) for s in arrays.pop("seconds"))
    parts: dict[str, dict[str, np.ndarray]] = {"draws": {}, "stats": {}}
    for key, values in arrays.items():
        kind, _, name = key.partition("/")
        parts[kind][name] = values
    return Chain(parts["draws"], parts["stats"], warmup, sampling)
