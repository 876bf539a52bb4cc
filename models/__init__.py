"""What is inferred: networks, priors, likelihoods, parametrisations, symmetries and data sets."""

from .activations import ACTIVATIONS, Activation
from .bayesian_network import BayesianNetwork
from .likelihood import Categorical, Gaussian
from .network import Network
from .parametrisation import Parametrisation
from .prediction import predict
from .prior import NormalPrior
from .symmetry import Exchangeable, Rescalable, Symmetry
from .target import NetworkTarget, Target

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "BayesianNetwork",
    "Categorical",
    "Exchangeable",
    "Gaussian",
    "Network",
    "NetworkTarget",
    "NormalPrior",
    "Parametrisation",
    "Rescalable",
    "Symmetry",
    "Target",
    "predict",
]
