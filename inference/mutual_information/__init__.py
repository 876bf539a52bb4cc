"""The mutual information that a symmetrised approximation gains over the approximation itself: estimates and bounds.

`log_ratios` takes what part of a draw has which log density under which part's distribution (`mean_field` makes them
for Gaussian parts), an estimator makes of it log sums over the group, `information` the mutual information, and
`interval` both of its sides; `layered_interval` those of several layers at once.
"""
