"""Plots, each with alternative text made from the same numbers.

A function `plot_x` takes posteriors in any form that `ob.diagnose` accepts, or a result, and is public as `ob.plot.x`.
A function `draw_x` draws arrays. Both return a figure without showing or saving it, and do not change the state of
pyplot. Figures of `plot_x` have an opaque background and an attribute `alt` with their text. Figures of `draw_x` are
transparent, with text in a single ink colour, so that a page can show them in light and dark mode. `style` contains
colours, sizes, axes and panels.
"""
