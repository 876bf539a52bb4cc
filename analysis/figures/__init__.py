"""Figures, one module each: `trace_rank`, `weight_scatter`, `predictive_band`, `elbo`, ...

Convention: a `plot_x` only draws what it is given and returns a `matplotlib.figure.Figure`, or raises a
ValueError where there is nothing to draw; nothing is shown or saved, no pyplot state and no rcParams are
touched. Backgrounds are transparent and text is drawn in one ink colour, so that a page can show the
figure in light and in dark. `style` holds colours, sizes and the making of axes and panels.
"""
