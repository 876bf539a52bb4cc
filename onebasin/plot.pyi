# The plots. `plot.py` reads the imports of this file: a name stands here and nowhere else.

from .analysis.plots.barriers import plot_barriers
from .analysis.plots.calibration import plot_calibration
from .analysis.plots.comparison import plot_comparison
from .analysis.plots.labels import plot_aligned, plot_labels
from .analysis.plots.marginals import plot_densities, plot_forest, plot_ranks
from .analysis.plots.optimisation import plot_elbo
from .analysis.plots.pair import plot_pair
from .analysis.plots.predictions import plot_predictions, plot_prior
from .analysis.plots.predictive import plot_predictive
from .analysis.plots.traces import plot_traces
from .analysis.plots.uncertainty import plot_uncertainty

aligned = plot_aligned
barriers = plot_barriers
calibration = plot_calibration
comparison = plot_comparison
densities = plot_densities
elbo = plot_elbo
forest = plot_forest
labels = plot_labels
pair = plot_pair
predictions = plot_predictions
predictive = plot_predictive
prior = plot_prior
ranks = plot_ranks
traces = plot_traces
uncertainty = plot_uncertainty
