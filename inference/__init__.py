"""One module a method; each takes a target and an engine and returns a posterior."""

from .density.symmetry import check_symmetry
from .mcmc.hmc import hmc
from .mcmc.nuts import nuts
from .posterior import open_posterior, save
from .settings import AdviSettings, EnsembleSettings, HmcSettings, NutsSettings, TrainSettings
from .training.ensemble import ensemble
from .training.train import Trained, train
from .variational import SymmetrisedSettings, symmetrised_vi
from .variational.advi import advi

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
    "nuts",
    "open_posterior",
    "save",
    "symmetrised_vi",
    "train",
]
