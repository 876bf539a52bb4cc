"""Plots of posteriors, one module each: `labels`, `aligned`, `predictive`, `comparison`, `barriers`, `elbo`, ...

Convention: a plot takes posteriors in any form that `ob.diagnose` takes, works out what is to be seen, and has it drawn
by `analysis.figures`. It returns a figure on an opaque ground with its text in `alt`; nothing is shown or saved, and no
state of pyplot is touched.
"""
