"""What is inferred: networks, priors, likelihoods, parametrisations, symmetries and data sets.

Names are loaded when they are first asked for: `models.schema` is read by what needs no JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .networks.activations import ACTIVATIONS, Activation
    from .networks.architecture import Network
    from .networks.bayesian import BayesianNetwork, NetworkTarget
    from .networks.likelihood import Categorical, Gaussian
    from .networks.parametrisation import Parametrisation
    from .networks.prediction import predict
    from .networks.prior import NormalPrior
    from .symmetry.blocks import Complement, Exchangeable, Rescalable, Symmetry
    from .symmetry.group import Group
    from .target import Target

_HOMES = {
    "ACTIVATIONS": ".networks.activations",
    "Activation": ".networks.activations",
    "BayesianNetwork": ".networks.bayesian",
    "Categorical": ".networks.likelihood",
    "Complement": ".symmetry.blocks",
    "Exchangeable": ".symmetry.blocks",
    "Gaussian": ".networks.likelihood",
    "Group": ".symmetry.group",
    "Network": ".networks.architecture",
    "NetworkTarget": ".networks.bayesian",
    "NormalPrior": ".networks.prior",
    "Parametrisation": ".networks.parametrisation",
    "Rescalable": ".symmetry.blocks",
    "Symmetry": ".symmetry.blocks",
    "Target": ".target",
    "predict": ".networks.prediction",
}

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


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
