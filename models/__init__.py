"""What is inferred: networks, priors, likelihoods, parametrisations, symmetries and data sets."""

from .activations import ACTIVATIONS, Activation
from .bayesian_network import BayesianNetwork
from .group import Group
from .likelihood import Categorical, Gaussian
from .network import Network
from .parametrisation import Parametrisation
from .prediction import predict
from .prior import NormalPrior
from .symmetry import Complement, Exchangeable, Rescalable, Symmetry
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
