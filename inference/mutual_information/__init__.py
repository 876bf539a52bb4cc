"""Estimates and bounds of the mutual information that symmetrising an approximation adds to its ELBO.

`log_ratios` takes the log density of each part of a draw under each part's distribution (`mean_field` computes these
for Gaussian parts). An estimator computes log sums over the group, `information` the mutual information, and
`layered_interval` lower and upper bounds for several layers at once.
"""
