"""Analysis of posteriors: alignment, diagnostics, comparison, Gaussians, predictive scores, figures, reports.

The room knows the shape of a posterior (an `xarray.DataTree`, see docs/reference/posterior.md) and never a
sampler. Every function that takes one makes a `View` of it at its door, or takes one. Public names are in `onebasin`.
"""
