"""What NUTS and static HMC share: chains on an engine, put together into a posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, runtime_checkable

import xarray as xr

from onebasin.base.checks import check_path
from onebasin.base.cores import available_cores
from onebasin.base.files.leftovers import working_folder
from onebasin.base.progress import ProgressBars
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..engines.engine import engine_named
from ..runs.fingerprint import fingerprint
from ..runs.run import Found, Job, run
from .chains import ChainsRequest, RunChain, run_chains
from .gathered import Gathered
from .places import Standing
from .settings import NutsSettings

Prepare = Callable[[ChainsRequest[Any]], RunChain]
"""Compiles what chains share, and returns what runs one."""


@runtime_checkable
class Settings(Protocol):
    """What all settings of chains have; they are dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def chains(self) -> int:
        """How many chains."""

    @property
    def warmup(self) -> int:
        """Iterations of each before its draws."""

    @property
    def draws(self) -> int:
        """Draws kept of each."""


def sample(
    target: Target,
    method: str,
    *,
    engine: str | None,
    settings: Settings,
    seed: int,
    checkpoint: str | Path | None,
    predictive_mb: float,
    check_symmetry: bool,
    progress: bool,
    prepare: Prepare | None = None,
    more: Mapping[str, object] = MappingProxyType({}),
    gradients: int = 1,
) -> xr.DataTree:
    """Run the chains of a method; `nuts` and `hmc` say what the arguments mean.

    Parameters
    ----------
    prepare : callable, optional
        What runs the chains; by default the engine's NUTS or static HMC.
    more : mapping
        What decides the draws beside the arguments, and is recorded in the posterior.
    gradients : int
        Gradients that a step of the integrator takes.
    """
    kept = None if checkpoint is None else check_path("checkpoint", checkpoint)

    def work(job: Job) -> Found:
        mark = None
        with working_folder("chains") as folder:
            if kept is not None:
                deciding = {"settings": _chain_settings(settings), "seed": job.seed}
                how = {"method": method, **deciding, **more}
                mark = fingerprint(target, engine=job.engine, progress=job.bars.say, **how)
            there = None if mark is None or kept is None else kept.absolute().parent
            gathered = Gathered(settings.chains, settings.draws, there)
            request = ChainsRequest(target, settings, job.seed, job.bars, folder)
            _expect(job.bars, settings)
            ended = run_chains(
                partial(prepare or _engines_chains(job.engine), request),
                gathered,
                chains=settings.chains,
                draws=settings.draws,
                folder=None if mark is None else kept,
                fingerprint=mark or "",
                finished=job.bars.taken,
            )
        return Found(
            gathered.draws,
            gathered.stats,
            {**_attributes(gathered, ended, settings, gradients), **more},
            filed=gathered.filed,
            folder=there,
        )

    return run(
        target,
        method,
        work,
        engine=engine,
        settings=settings,
        amount=(settings.chains, settings.draws),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )


def _engines_chains(engine: str) -> Prepare:
    """An engine's NUTS and static HMC, which settings of another method do not reach."""
    return engine_named(engine).chains


def _expect(bars: ProgressBars, settings: Settings) -> None:
    at_once = min(available_cores(), settings.chains)
    amount = {"warmup": settings.warmup, "draws": settings.draws}
    bars.expect(chains=settings.chains, **amount, at_once=at_once)


def _chain_settings(settings: Settings) -> dict[str, object]:
    """The settings that decide a chain's draws: all but how many there are of chains and of draws."""
    return {k: v for k, v in asdict(settings).items() if k not in ("chains", "draws")}


def _attributes(
    gathered: Gathered, ended: Sequence[Standing], settings: Settings, gradients: int
) -> dict[str, object]:
    out: dict[str, object] = {
        "warmup_seconds": [chain.warmup_seconds for chain in ended],
        "sampling_seconds": [chain.sampling_seconds for chain in ended],
        "gradient_evaluations": gradients * int(gathered.stats["n_steps"].sum()),
    }
    if any(chain.restarts for chain in ended):
        out[schema.RESTARTS] = [list(chain.restarts) for chain in ended]
    if isinstance(settings, NutsSettings):
        out["max_tree_depth"] = settings.max_tree_depth
    return out
