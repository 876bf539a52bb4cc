"""Draw the figures of the explanations: `python docs/gallery/explanations.py [FOLDER]`, by default `docs/images`.

The figures have no background, and a grey that is legible on white and on black, so one file serves both themes.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import onebasin as ob
from onebasin.models.symmetry import Group
from onebasin.studies.permutation_invariant_vi.two_modes import (
    midpoint,
    mode,
    saddle,
    switching,
    vanishing,
)

IMAGES = Path(__file__).parents[1] / "images"
GREY = "#7f868f"
BLUE, ORANGE, GREEN, PINK = "#3d8fd1", "#e69f00", "#17a67d", "#cc79a7"
POINTS = {"ms": 2.6, "mew": 0, "alpha": 0.7, "rasterized": True}
STYLE = {
    "svg.hashsalt": "onebasin",
    "font.size": 9.0,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
        ),
        GREY,
    ),
}


def panels(columns: int, *, width: float = 8.0, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """Make an empty figure with panels in a row."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def posterior(**values: np.ndarray) -> xr.Dataset:
    """Make a dataset from draws of components, (chain, draw, part) or (chain, draw, part, entry)."""
    dims = ("chain", "draw", "part", "entry")
    return xr.Dataset({name: (dims[: value.ndim], value) for name, value in values.items()})


def orders() -> Figure:
    """Draw two components with equal means and different widths: as sampled, ordered by their means, and aligned."""
    rng = np.random.default_rng(0)
    truth = {
        "mu": rng.normal(0, [0.15, 0.3], (2, 150, 2)),
        "sigma": rng.normal([0.5, 2], 0.12, (2, 150, 2)),
    }
    block = ob.Exchangeable({"mu": 0, "sigma": 0})
    group = Group((block,), {"mu": (2,), "sigma": (2,)})
    drawn = group.act(group.random(rng, (2, 150)), truth)
    by_mu = drawn["mu"].argsort(axis=2)
    cut = {name: np.take_along_axis(value, by_mu, 2) for name, value in drawn.items()}
    after = ob.align(posterior(**drawn), (block,)).posterior["posterior"]
    shown = {
        "all labellings": drawn,
        "mu[0] < mu[1]": cut,
        "aligned": {name: after[name].values for name in drawn},
    }
    figure, axes = panels(3)
    for axis, (title, values) in zip(axes, shown.items(), strict=True):
        for part, colour in enumerate((BLUE, ORANGE)):
            x, y = (values[name][..., part].ravel() for name in ("mu", "sigma"))
            axis.plot(x, y, "o", color=colour, label=f"part {part}", **POINTS)
        axis.set(title=title, xlabel="mu", ylim=(0, 2.6))
    axes[0].set_ylabel("sigma")
    axes[2].legend(loc="center right", handletextpad=0.1, markerscale=2)
    return figure


def seam() -> Figure:
    """Draw a posterior across the seam, which is one piece on the circle and two on the line."""
    rng = np.random.default_rng(0)
    angle = np.pi + rng.vonmises(0, 12, 300)
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    x = 2 * np.arctanh(angle / np.pi)
    figure, (circle, line) = panels(2, height=2.5)
    around = np.linspace(-np.pi, np.pi, 200)
    circle.plot(np.cos(around), np.sin(around), color=GREY, lw=0.8)
    radius = 1 + 0.06 * rng.uniform(-1, 1, 300)
    for side, colour in ((angle > 0, BLUE), (angle <= 0, ORANGE)):
        circle.plot(
            radius[side] * np.cos(angle[side]),
            radius[side] * np.sin(angle[side]),
            "o",
            color=colour,
            **POINTS,
        )
        line.hist(x[side], bins=np.linspace(-12, 12, 61), color=colour, alpha=0.8)
    circle.plot([-1.25, -0.75], [0, 0], color=PINK, lw=2)
    circle.annotate("seam, longitude ±π", (-0.72, 0), va="center", color=PINK)
    circle.set(title="on the circle: one piece", aspect="equal", xticks=[], yticks=[])
    circle.spines[:].set_visible(False)
    line.set(title="on the line of the chart: two", xlabel="x = 2 artanh(longitude / π)")
    line.set_yticks([])
    line.spines["left"].set_visible(False)
    return figure


def two_modes() -> Figure:
    """Draw the location of one Gaussian fitted to two modes by reverse KL, and its divergence."""
    alphas = np.linspace(0.2, 4, 77)
    fold, even = vanishing()[2], switching()
    middle = [midpoint(a) for a in alphas]
    beyond = np.concatenate([[fold + 1e-4], alphas[alphas > fold + 0.01]])
    near, between = ([mode(a) for a in beyond], [saddle(a) for a in beyond])
    figure, (left, right) = panels(2)
    left.plot(alphas, 0 * alphas, color=BLUE, label="midway")
    left.plot(beyond, [o.mean for o in near], color=ORANGE, label="near a mode")
    left.plot(beyond, [o.mean for o in between], ":", color=GREY, label="saddle")
    left.set(title="mean of the fit, in σ", xlabel="half the distance of the modes, α / σ")
    right.plot(alphas, [o.divergence for o in middle], color=BLUE)
    right.plot(beyond, [o.divergence for o in near], color=ORANGE)
    right.axhline(np.log(2), color=GREY, lw=0.7, ls="--")
    right.annotate("log 2", (0.2, np.log(2)), va="bottom")
    right.set(title="its divergence from the posterior, nats", xlabel="α / σ", ylim=(0, 1.3))
    for axis in (left, right):
        for place, text in ((fold, "2.41"), (even, "2.80")):
            axis.axvline(place, color=PINK, lw=0.8)
            axis.annotate(
                text, (place, axis.get_ylim()[1]), color=PINK, ha="right", va="top", rotation=90
            )
    left.legend(loc="upper left")
    return figure


def rhat() -> Figure:
    """Draw the entry mu[0] of four chains: with different labels per chain, with random labels, and aligned."""
    rng = np.random.default_rng(1)
    one = np.array([-2.0, 0.5, 3.0]) + 0.4 * rng.normal(size=(4, 150, 3))
    block = ob.Exchangeable({"mu": 0})
    group = Group((block,), {"mu": (3,)})
    own = np.take_along_axis(
        one, np.array([[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 0, 2]])[:, None], 2
    )
    mixed = group.act(group.random(rng, (4, 150)), {"mu": one})["mu"]
    after = ob.align(posterior(mu=own), (block,)).posterior["posterior"]["mu"].values
    figure, axes = panels(3)
    shown = {
        "labels of its own: R-hat {}": own,
        "labels at random: {}": mixed,
        "aligned: {}": after,
    }
    for axis, (title, values) in zip(axes, shown.items(), strict=True):
        worst = ob.diagnose(posterior(mu=values[..., :1])).rhat.value
        for chain, colour in enumerate((BLUE, ORANGE, GREEN, PINK)):
            axis.plot(values[chain, :, 0], color=colour, lw=0.7, alpha=0.9)
        axis.set(title=title.format(f"{worst:.2f}"), xlabel="draw", ylim=(-3.5, 4.5))
    axes[0].set_ylabel("mu[0], four chains")
    return figure


def references() -> Figure:
    """Draw components of different spread, aligned by three references."""
    rng = np.random.default_rng(3)
    sds, places = np.array([0.3, 1.0, 3.0]), np.arange(3)
    means = np.zeros((3, 2))
    means[:, 0] = 2.0 * places
    clean = means + sds[:, None] * rng.standard_normal((4000, 3, 2))
    hidden = rng.permuted(np.tile(places, (4000, 1)), axis=1)
    seen = np.take_along_axis(clean, hidden[..., None], axis=1)
    figure, axes = panels(3)
    words = {"draw": "one draw", "mean": "iterated mean", "gaussian": "iterated Gaussian"}
    for axis, (rule, title) in zip(axes, words.items(), strict=True):
        found = ob.align(
            posterior(w=seen[None]), (ob.Exchangeable({"w": 0}),), reference=rule, scales={"w": 1.0}
        )
        values = found.posterior["posterior"]["w"].values[0]
        labels = np.take_along_axis(hidden, np.asarray(found.element[0][0])[0], axis=1)
        _, counts = np.unique(labels, axis=0, return_counts=True)
        spread = values.std(axis=0).mean(axis=1).argsort()[::-1]
        for part, colour in zip(spread, (GREEN, ORANGE, BLUE), strict=True):
            axis.plot(*values[:300, part].T, "o", color=colour, **POINTS)
        share = 100 * (1 - counts.max() / len(labels))
        axis.set(
            title=f"{title}: {share:.0f} % wrong",
            xlabel="first feature",
            xlim=(-7, 9),
            ylim=(-8, 8),
        )
    axes[0].set_ylabel("second feature")
    return figure


def rotations() -> Figure:
    """Draw the loadings of two rotating factors: those of an item form a ring, and a cloud after alignment."""
    rng = np.random.default_rng(1)
    items = np.array([[0.9, 0.0], [0.75, 0.15], [0.5, 0.1], [0.0, 0.8], [0.1, 1.0], [0.0, 0.6]])
    drawn = items + 0.07 * rng.standard_normal((4, 150, 6, 2))
    block = ob.Rotation({"load": 1})
    turned = block.act({"load": drawn}, *block.random(rng, (4, 150), 2))["load"]
    alignment = ob.align(posterior(load=turned), (block,))
    aligned = alignment.posterior["posterior"]["load"].values
    figure, axes = panels(2, height=3.4)
    for axis, values, title in zip(
        axes, (turned, aligned), ("as sampled", "aligned by varimax"), strict=True
    ):
        for item, colour in ((0, BLUE), (4, ORANGE), (2, GREEN)):
            axis.plot(*values[:, ::2, item].reshape(-1, 2).T, "o", color=colour, **POINTS)
        axis.axhline(0, color=GREY, lw=0.5)
        axis.axvline(0, color=GREY, lw=0.5)
        axis.set(title=title, aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
        axis.set(xlabel="loading on factor 0", ylabel="loading on factor 1")
    return figure


FIGURES = {
    "rotations": rotations,
    "orders": orders,
    "seam": seam,
    "two-modes": two_modes,
    "rhat": rhat,
    "references": references,
}


def main() -> None:
    """Write all figures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with mpl.rc_context(STYLE):
        for name, make in FIGURES.items():
            make().savefig(
                folder / f"explained-{name}.svg", transparent=True, dpi=200, metadata={"Date": None}
            )


if __name__ == "__main__":
    main()
