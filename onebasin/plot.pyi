# The plots. `plot.py` reads the imports of this file: a name stands here and nowhere else.

from .analysis.plots.bands import plot_uncertainty
from .analysis.plots.chains import plot_pair, plot_ranks, plot_traces
from .analysis.plots.convergence import plot_autocorrelation, plot_energy, plot_ess, plot_rhat
from .analysis.plots.labels import plot_aligned, plot_labels
from .analysis.plots.marginals import plot_densities, plot_forest, plot_prior
from .analysis.plots.predictive import plot_loo_pit, plot_predictions, plot_predictive
from .analysis.plots.results import (
    plot_barriers,
    plot_calibration,
    plot_comparison,
    plot_elbo,
    plot_khat,
)

aligned = plot_aligned
autocorrelation = plot_autocorrelation
barriers = plot_barriers
calibration = plot_calibration
comparison = plot_comparison
densities = plot_densities
elbo = plot_elbo
energy = plot_energy
ess = plot_ess
forest = plot_forest
khat = plot_khat
labels = plot_labels
loo_pit = plot_loo_pit
pair = plot_pair
predictions = plot_predictions
predictive = plot_predictive
prior = plot_prior
ranks = plot_ranks
rhat = plot_rhat
traces = plot_traces
uncertainty = plot_uncertainty
