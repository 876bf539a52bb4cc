"""One module a method; each takes a target and an engine and returns a posterior."""

from .advi import advi
from .ensemble import ensemble
from .hmc import hmc
from .nuts import nuts
from .posterior import load, save
from .settings import AdviSettings, EnsembleSettings, HmcSettings, NutsSettings, TrainSettings
from .symmetrised import SymmetrisedSettings, symmetrised_vi
from .symmetry_check import check_symmetry
from .training import Trained, train

__all__ = [
    "AdviSettings",
    "EnsembleSettings",
    "HmcSettings",
    "NutsSettings",
    "SymmetrisedSettings",
    "TrainSettings",
    "Trained",
    "advi",
    "check_symmetry",
    "ensemble",
    "hmc",
    "load",
    "nuts",
    "save",
    "symmetrised_vi",
    "train",
]
