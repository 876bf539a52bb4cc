"""What NUTS and static HMC share: chains on an engine, put together into a posterior."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import xarray as xr

from onebasin.models.checks import check_path, check_seed
from onebasin.models.pointwise import check_limit
from onebasin.models.storable import check_amount
from onebasin.models.storage.leftovers import working_folder
from onebasin.models.target import Target, check_target

from .. import declared
from ..engine import engine_for, engine_named
from ..fingerprint import fingerprint
from ..origin import origin_of
from ..posterior import build
from ..progress import ProgressBars
from .chains import ChainsRequest, Gathered, run_chains
from .settings import HmcSettings, NutsSettings

Settings = NutsSettings | HmcSettings


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
) -> xr.DataTree:
    """Run the chains of a method; `nuts` and `hmc` say what the arguments mean."""
    check_target(target)
    engine = engine_for(target, engine)
    chains_of = engine_named(engine).chains
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    check_amount(settings.chains, settings.draws)
    kept = None if checkpoint is None else check_path("checkpoint", checkpoint)
    trial = declared.begin(
        target, engine=engine, seed=seed, progress=progress, wanted=check_symmetry
    )
    started = time.perf_counter()
    with ProgressBars(progress) as bars, working_folder("chains") as folder:
        mark = None
        if kept is not None:
            how = {"method": method, "settings": _chain_settings(settings), "seed": seed}
            mark = fingerprint(target, engine=engine, progress=bars.say, **how)
        origin = origin_of(target, engine, bars.say)
        gathered = Gathered(settings.chains)
        chains = run_chains(
            partial(chains_of, ChainsRequest(target, settings, seed, bars, folder, gathered)),
            gathered,
            folder=None if mark is None else kept,
            fingerprint=mark or "",
        )
    wall_time = time.perf_counter() - started
    said = _attributes(chains, settings)
    said |= {"engine": engine, "method": method, "seed": seed, "wall_time": wall_time}
    tree = build(target, chains.draws, chains.stats, said, origin=origin, predictive_mb=limit)
    if trial is not None:
        trial.end(tree)
    return tree


def _chain_settings(settings: Settings) -> dict[str, object]:
    """The settings that decide a single chain: all but the number of chains."""
    return {k: v for k, v in asdict(settings).items() if k != "chains"}


def _attributes(chains: Gathered, settings: Settings) -> dict[str, object]:
    out: dict[str, object] = {
        "settings": asdict(settings),
        "warmup_seconds": chains.warmup_seconds,
        "sampling_seconds": chains.sampling_seconds,
        "gradient_evaluations": int(chains.stats["n_steps"].sum()),
    }
    if isinstance(settings, NutsSettings):
        out["max_tree_depth"] = settings.max_tree_depth
    return out
