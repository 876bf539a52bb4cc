"""Names and arguments of version 0.3, accepted for one release with a notice. Delete this file, and what names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from onebasin.base.notices import notice
from onebasin.base.settings import given_or_default

from ..contracts.engines import found_at
from ..contracts.method import Method

CLASSES: Mapping[str, str] = {
    "NutsSettings": "onebasin.inference.mcmc.nuts:Nuts",
    "HmcSettings": "onebasin.inference.mcmc.hmc:Hmc",
    "MclmcSettings": "onebasin.inference.microcanonical.mclmc:Mclmc",
    "AdviSettings": "onebasin.inference.variational.advi:Advi",
    "SymmetrisedSettings": "onebasin.inference.variational.symmetrised:Symmetrised",
    "ModesSettings": "onebasin.inference.modes.sample_modes:Modes",
    "LaplaceSettings": "onebasin.inference.modes.laplace:Laplace",
    "PathfinderSettings": "onebasin.inference.modes.pathfinder:Pathfinder",
    "OptimizeSettings": "onebasin.inference.modes.optimize:Optimize",
    "EnsembleSettings": "onebasin.inference.training.ensemble:Ensemble",
    "TrainSettings": "onebasin.inference.training.ensemble:Train",
}


def former_class(name: str) -> Any:
    """Return the class that a name of version 0.3 stands for; any other name raises AttributeError."""
    if name not in CLASSES:
        raise AttributeError(f"onebasin has no attribute `{name}`.")
    new = CLASSES[name].rpartition(":")[2]
    of = "networks." if new in ("Ensemble", "Train") else ""
    _say(f"`{name}` is now `{of}{new}`; the old name goes with version 0.5")
    return found_at(CLASSES[name])


def by_settings(method: type[Method], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's keywords from those of version 0.3, which had its fields in `settings`."""
    rest = dict(given)
    settings = rest.pop("settings")
    _say(
        f"`settings=` of `{method.name}` goes with version 0.5: give its fields as keywords, or use "
        f"`ob.infer(target, {method.__name__}(...))`"
    )
    checked = given_or_default(settings, method, taker=method.name)
    return {field.name: getattr(checked, field.name) for field in fields(method)} | rest


def given_to_calibrate(method: Any, settings: Any) -> Any:
    """Return the method of `calibrate` with the settings that version 0.3 took besides its name."""
    if not isinstance(method, Method):
        return method
    _say(
        "`settings=` of `calibrate` goes with version 0.5: give the method, such as `ob.Nuts(draws=500)`"
    )
    checked = given_or_default(settings, type(method), taker="calibrate")
    return replace(checked, **{name: getattr(method, name) for name in method.apart})


@cache
def _say(text: str) -> None:
    """Say something once a process."""
    notice(text)
