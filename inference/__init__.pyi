# The public names. `__init__.py` reads this file: a name stands here and nowhere else.

from .density.evaluate import log_density as log_density
from .density.symmetry import check_symmetry as check_symmetry
from .mcmc.hmc import hmc as hmc
from .mcmc.nuts import nuts as nuts
from .mcmc.settings import HmcSettings as HmcSettings
from .mcmc.settings import NutsSettings as NutsSettings
from .microcanonical.mclmc import mclmc as mclmc
from .microcanonical.settings import MclmcSettings as MclmcSettings
from .modes.laplace import laplace as laplace
from .modes.optimize import optimize as optimize
from .modes.pathfinder import pathfinder as pathfinder
from .modes.settings import LaplaceSettings as LaplaceSettings
from .modes.settings import OptimizeSettings as OptimizeSettings
from .modes.settings import PathfinderSettings as PathfinderSettings
from .posterior import open_posterior as open_posterior
from .posterior import save as save
from .training.ensemble import ensemble as ensemble
from .training.settings import EnsembleSettings as EnsembleSettings
from .training.settings import TrainSettings as TrainSettings
from .training.train import Trained as Trained
from .training.train import train as train
from .variational.advi import advi as advi
from .variational.gap import mixture_gap as mixture_gap
from .variational.settings import AdviSettings as AdviSettings
from .variational.settings import SymmetrisedSettings as SymmetrisedSettings
from .variational.symmetrised import symmetrised_vi as symmetrised_vi
