"""What is inferred: networks, priors, likelihoods, parametrisations, symmetries and data sets."""

from .networks.activations import ACTIVATIONS, Activation
from .networks.architecture import Network
from .networks.bayesian import BayesianNetwork
from .networks.likelihood import Categorical, Gaussian
from .networks.parametrisation import Parametrisation
from .networks.prediction import predict
from .networks.prior import NormalPrior
from .symmetry.blocks import Complement, Exchangeable, Rescalable, Symmetry
from .symmetry.group import Group
from .target import NetworkTarget, Target

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "BayesianNetwork",
    "Categorical",
    "Complement",
    "Exchangeable",
    "Gaussian",
    "Group",
    "Network",
    "NetworkTarget",
    "NormalPrior",
    "Parametrisation",
    "Rescalable",
    "Symmetry",
    "Target",
    "predict",
]
