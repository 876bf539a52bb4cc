"""One module a method; each takes a target and an engine and returns a posterior."""

from .advi import advi
from .hmc import hmc
from .nuts import nuts
from .posterior import load, save
from .settings import AdviSettings, HmcSettings, NutsSettings

__all__ = [
    "AdviSettings",
    "HmcSettings",
    "NutsSettings",
    "advi",
    "hmc",
    "load",
    "nuts",
    "save",
]
