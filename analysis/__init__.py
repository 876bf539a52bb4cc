"""What is done with posteriors: diagnostics, predictive scores, figures, reports.

The room knows the shape of a posterior (an `xarray.DataTree`, see docs/architecture.md) and never a
sampler. This module imports nothing, so that `import analysis` costs nothing; take the functions
from their modules:

- `analysis.diagnostics`: `diagnose`, `compare_moments`
- `analysis.prediction`: `score_predictions`, `score_classes`, and the scores one by one
- `analysis.alignment`: `align`, `switching`; `analysis.modulo`: `diagnose_modulo`
- `analysis.unimodal`: `fit_gaussian`; `analysis.distillation`: `distil`; `analysis.pruning`: `prune`
- `analysis.compare`: `compare`; `analysis.agreement`, `calibration`, `discrepancy`: its measures
- `analysis.figures.trace_rank`: `plot_trace_rank`; one module per figure, likewise
- `analysis.report`: `posterior_report`, `write`, `render`, and the parts of a page
"""
