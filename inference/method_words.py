"""The methods of inference by the words of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import (
    AdviSettings,
    EnsembleSettings,
    HmcSettings,
    LaplaceSettings,
    MclmcSettings,
    ModesSettings,
    NutsSettings,
    OptimizeSettings,
    PathfinderSettings,
)

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

ModeSettings = PathfinderSettings | LaplaceSettings | OptimizeSettings
Settings = NutsSettings | HmcSettings | MclmcSettings | ModesSettings | AdviSettings | ModeSettings
METHODS: Mapping[str, type[Settings]] = {
    "nuts": NutsSettings,
    "hmc": HmcSettings,
    "mclmc": MclmcSettings,
    "modes": ModesSettings,
    "meanfield": AdviSettings,
    "fullrank": AdviSettings,
    "pathfinder": PathfinderSettings,
    "laplace": LaplaceSettings,
    "optimize": OptimizeSettings,
}
NETWORK_METHODS: Mapping[str, type[EnsembleSettings]] = {"ensemble": EnsembleSettings}
"""Those that need a network, which a Stan program of one's own is not."""


def infer(
    target: Target,
    method: str,
    *,
    engine: str,
    settings: Settings | EnsembleSettings,
    seed: int,
    checkpoint: Path | None,
    predictive_mb: float | None = None,
    progress: bool,
) -> xr.DataTree:
    """Run one of `METHODS` or `NETWORK_METHODS`; chains and training are kept in the folder `checkpoint`, if any.

    A declared symmetry is checked by whoever calls, in words and at a time of their own.
    """
    from onebasin import inference  # the functions by their names

    shared: dict[str, Any] = {"settings": settings, "seed": seed, "progress": progress}
    if predictive_mb is not None:
        shared["predictive_mb"] = predictive_mb
    if isinstance(settings, EnsembleSettings):
        if engine != "numpyro":
            raise ValueError(
                f"`engine` is {engine!r}, but --method {method} trains networks with JAX; use engine='numpyro'."
            )
        return inference.ensemble(target, checkpoint=checkpoint, **shared)
    shared["check_symmetry"] = False
    if isinstance(settings, AdviSettings):
        return inference.advi(target, family=method, engine=engine, **shared)
    if isinstance(settings, ModeSettings):
        return getattr(inference, method)(target, engine=engine, **shared)
    if isinstance(settings, MclmcSettings):
        return inference.mclmc(target, checkpoint=checkpoint, **shared)
    if isinstance(settings, ModesSettings):
        return inference.sample_modes(target, **shared)
    run = inference.nuts if method == "nuts" else inference.hmc
    return run(target, checkpoint=checkpoint, engine=engine, **shared)
