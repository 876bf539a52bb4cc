# The public names. `__init__.py` reads this file: a name stands here and nowhere else.

from .networks.architecture import ACTIVATIONS as ACTIVATIONS
from .networks.architecture import Activation as Activation
from .networks.architecture import Network as Network
from .networks.bayesian import BayesianNetwork as BayesianNetwork
from .networks.bayesian import NetworkTarget as NetworkTarget
from .networks.bayesian import predict as predict
from .networks.bayesian import predict_with_noise as predict_with_noise
from .networks.likelihood import Categorical as Categorical
from .networks.likelihood import Gaussian as Gaussian
from .networks.parametrisation import NormalPrior as NormalPrior
from .networks.parametrisation import Parametrisation as Parametrisation
from .numpyro_target import numpyro_model as numpyro_model
from .symmetry.blocks import AxisPart as AxisPart
from .symmetry.blocks import Complement as Complement
from .symmetry.blocks import Counterparts as Counterparts
from .symmetry.blocks import Exchangeable as Exchangeable
from .symmetry.blocks import Flip as Flip
from .symmetry.blocks import Group as Group
from .symmetry.blocks import Rescalable as Rescalable
from .symmetry.blocks import Rotation as Rotation
from .symmetry.blocks import Symmetry as Symmetry
from .target import Target as Target
