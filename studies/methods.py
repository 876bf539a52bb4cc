"""The methods of inference by the words of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.settings import AdviSettings, HmcSettings, NutsSettings

if TYPE_CHECKING:
    import xarray as xr

    from models.target import Target

Settings = NutsSettings | HmcSettings | AdviSettings
METHODS: Mapping[str, type[Settings]] = {
    "nuts": NutsSettings,
    "hmc": HmcSettings,
    "meanfield": AdviSettings,
    "fullrank": AdviSettings,
}


def infer(
    target: Target,
    method: str,
    *,
    engine: str,
    settings: Settings,
    seed: int,
    checkpoint: Path,
    progress: bool,
) -> xr.DataTree:
    """Run one of `METHODS`; only Markov chains are kept in the folder `checkpoint` as they end."""
    import inference

    shared: dict[str, Any] = {
        "engine": engine,
        "settings": settings,
        "seed": seed,
        "progress": progress,
    }
    if isinstance(settings, AdviSettings):
        return inference.advi(target, family=method, **shared)
    run = inference.nuts if method == "nuts" else inference.hmc
    return run(target, checkpoint=checkpoint, **shared)
