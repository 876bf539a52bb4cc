"""Which labelling every draw has, chain by chain: one strip a chain, one colour a labelling."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch

from onebasin.base.table import format_number

from .style import CHAIN_COLOURS, GRID, Picture, add_legend, new_figure, style_axes

NAMED = 6
"""Labellings that have a colour of their own; rarer ones share one."""
STRIP = 700
"""Columns of a strip; in a longer chain each stands for several draws, and shows the most frequent labelling."""


def draw_labellings(numbers: Int[np.ndarray, "chain draw"]) -> Picture:
    """Draw the labelling of every draw: 0 is the most frequent one, 1 the next, ..."""
    chains, draws = numbers.shape
    known = min(int(numbers.max()) + 1, NAMED)
    colours = [*CHAIN_COLOURS[:known], GRID]
    strips = np.minimum(numbers, known)
    if draws > STRIP:
        edges = np.linspace(0, draws, STRIP + 1).astype(int)
        counts = [np.add.reduceat(strips == k, edges[:-1], axis=1) for k in range(known + 1)]
        strips = np.stack(counts).argmax(axis=0)
    figure = new_figure(7.6, 0.28 * min(chains, 16) + 1.0)
    axes = figure.subplots()
    axes.imshow(
        strips,
        cmap=ListedColormap(colours),
        norm=BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours)),
        aspect="auto",
        interpolation="nearest",
        extent=(0, draws, chains - 0.5, -0.5),
    )
    style_axes(axes, x_label="draw", y_label="chain")
    axes.grid(visible=False)
    axes.set_yticks(range(chains) if chains <= 16 else [0, chains - 1])
    axes.set_yticks(np.arange(1, chains) - 0.5, minor=True)
    axes.grid(axis="y", which="minor", color="#ffffff", linewidth=2)
    axes.tick_params(axis="y", which="minor", length=0)
    names = [f"labelling {number}" for number in range(known)]
    shown = names if numbers.max() < NAMED else [*names, "rarer ones"]
    add_legend(figure, [Patch(color=c) for c in colours[: len(shown)]], shown, columns=4)
    return figure


def labellings_in_words(numbers: Int[np.ndarray, "chain draw"]) -> str:
    """Say which labelling every chain keeps, or when it switches."""
    told = []
    for chain, row in enumerate(numbers):
        jumps = np.flatnonzero(np.diff(row)) + 1
        if not len(jumps):
            told.append(f"chain {chain} keeps labelling {row[0]}")
        elif len(jumps) <= 3:
            steps = ", ".join(f"to {row[jump]} at draw {jump}" for jump in jumps)
            told.append(f"chain {chain} starts in labelling {row[0]} and switches {steps}")
        else:
            seen_ones = len(np.unique(row))
            told.append(
                f"chain {chain} switches {format_number(len(jumps))} times among {format_number(seen_ones)} labellings"
            )
    total = format_number(int(numbers.max()) + 1)
    return f"{total} labelling{'s' if numbers.max() else ''} in all: {'; '.join(told)}."
