# The plots. `plot.py` reads the imports of this file: a name stands here and nowhere else.

from .analysis.plots.bands import plot_uncertainty
from .analysis.plots.chains import plot_pair, plot_ranks, plot_traces
from .analysis.plots.labels import plot_aligned, plot_labels
from .analysis.plots.marginals import plot_densities, plot_forest, plot_prior
from .analysis.plots.predictive import plot_predictions, plot_predictive
from .analysis.plots.results import (
    plot_barriers,
    plot_calibration,
    plot_comparison,
    plot_elbo,
    plot_khat,
)

aligned = plot_aligned
barriers = plot_barriers
calibration = plot_calibration
comparison = plot_comparison
densities = plot_densities
elbo = plot_elbo
forest = plot_forest
khat = plot_khat
labels = plot_labels
pair = plot_pair
predictions = plot_predictions
predictive = plot_predictive
prior = plot_prior
ranks = plot_ranks
traces = plot_traces
uncertainty = plot_uncertainty
