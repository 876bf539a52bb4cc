"""Draw the gradients of fits and of NUTS: `python -m benchmarks.fits.picture RESULTS.json OUT.png`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib.figure import Figure

LABEL = "gradients: circles, a weighted fit (green usable, orange in part, white refused); bars, NUTS's draws"
FACE = {
    **dict.fromkeys(("usable", "aligned"), "tab:green"),
    **dict.fromkeys(("partly", "invariant"), "tab:orange"),
    "unusable": "white",
}


def picture(rows: list[dict]) -> Figure:
    """Draw one row per program: the gradients of the fit, coloured by its verdict, and the gradients of NUTS."""
    rows = sorted((row for row in rows if row["nuts"]), key=lambda row: row["nuts"]["gradients"])
    figure = Figure(figsize=(7, 0.24 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        fit, nuts = row["gradients"], row["nuts"]["gradients"]
        axes.plot([fit, nuts], [place, place], color="0.8", zorder=1)
        axes.scatter(fit, place, color=FACE[row["verdict"]], edgecolors="black", zorder=2)
        axes.scatter(nuts, place, color="black", marker="|", zorder=2)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel(LABEL)
    axes.xaxis.label.set_fontsize(8)
    return figure


if __name__ == "__main__":
    made = picture(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    made.savefig(sys.argv[2], dpi=130)
