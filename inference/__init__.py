"""One module a method; each takes a target and an engine and returns a posterior."""

from .advi import advi
from .hmc import hmc
from .nuts import nuts
from .posterior import load, save
from .settings import AdviSettings, HmcSettings, NutsSettings
from .symmetry_check import check_symmetry

__all__ = [
    "AdviSettings",
    "HmcSettings",
    "NutsSettings",
    "advi",
    "check_symmetry",
    "hmc",
    "load",
    "nuts",
    "save",
]
