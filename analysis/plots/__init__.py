"""Plots, each with an alternative text made from the same numbers.

Convention: a `plot_x` takes posteriors in any form that `ob.diagnose` takes, or a result, and is public as `ob.plot.x`;
a `draw_x` draws arrays. Both return a figure; nothing is shown or saved, and no state of pyplot is touched. A `plot_x`
has an opaque ground and its text in `alt`; what `draw_x` returns is transparent, with text in one ink colour, so that a
page can show it in light and in dark. `style` holds colours, sizes, axes and panels.
"""
