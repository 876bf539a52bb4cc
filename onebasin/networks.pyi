# The public names. `networks.py` reads the imports of this file: a name stands here and nowhere else.

from .analysis.alignment.barriers import barriers as barriers
from .analysis.alignment.barriers import transpositions as transpositions
from .analysis.predictive.predictions import summarise_predictions as summarise_predictions
from .analysis.predictive.scores import score_predictions as score_predictions
from .estimators import BayesianClassifier as BayesianClassifier
from .estimators import BayesianRegressor as BayesianRegressor
from .inference.training.ensemble import Ensemble as Ensemble
from .inference.training.ensemble import ensemble as ensemble
from .models.load_data import load_data as load_data
from .models.networks.architecture import Network as Network
from .models.networks.bayesian import BayesianNetwork as BayesianNetwork
from .models.networks.bayesian import predict as predict
from .models.networks.bayesian import predict_with_noise as predict_with_noise
from .models.networks.likelihood import Categorical as Categorical
from .models.networks.likelihood import Gaussian as Gaussian
from .models.networks.parametrisation import NormalPrior as NormalPrior
from .models.networks.parametrisation import Parametrisation as Parametrisation
from .models.symmetry.blocks import AxisPart as AxisPart
from .models.symmetry.blocks import Rescalable as Rescalable
