"""Kinds from public user questions: their models with different data and names."""

from __future__ import annotations

import numpy as np

from . import truths
from .data import Rng, normals
from .kinds import Kind, components, named
from .numbers import Draws
from .references import Data, rerun


def clusters(rng: Rng) -> Data:
    """Simulate three clusters in the plane, with different shapes."""
    part = rng.choice(3, p=[0.4, 0.35, 0.25], size=90)
    centre = np.array([[-3.0, 0.0], [2.5, 1.0], [0.0, -4.0]])
    y = centre[part] + rng.normal(size=(90, 2)) * np.array([[1, 0.5], [0.6, 1.0], [0.5, 0.7]])[part]
    y[:, 1] += 0.6 * (part == 1) * (y[:, 0] - 2.5)
    return {"K": 3, "N": 90, "y": y}


def plane(draws: Draws) -> Draws:
    """Return the variables of clusters in the plane."""
    return {
        "mu_x": draws["mu"][..., 0],
        "mu_y": draws["mu"][..., 1],
        "sd_x": draws["sd"][..., 0],
        "share": draws["share"],
    }


def switching(rng: Rng) -> Data:
    """Simulate two states whose answers depend on an input in opposite ways."""
    x, now, y = 1.5 * rng.normal(size=250), 0, []
    for value in x:
        now = now if rng.random() < 0.93 else 1 - now
        eta = (1.0 + 3.0 * value, -1.0 - 3.0 * value)[now]
        y.append(int(rng.random() < 1 / (1 + np.exp(-eta))))
    return {"T": 250, "K": 2, "y": y, "x": x}


def slopes(draws: Draws) -> Draws:
    """Return the variables of states that are regressions."""
    stay = np.diagonal(draws["move"], axis1=-2, axis2=-1)
    return {"slope": draws["slope"], "base": draws["base"], "stay": stay}


def profiles(rng: Rng) -> Data:
    """Simulate counts of four items from two profiles."""
    emit = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]])
    part = rng.choice(2, p=[0.6, 0.4], size=40)
    return {"N": 40, "V": 4, "count": np.array([rng.multinomial(12, emit[k]) for k in part])}


def emitted(draws: Draws) -> Draws:
    """Return the variables of profiles."""
    return {f"emit{i}": draws["emit"][..., i] for i in range(4)}


def wave(rng: Rng) -> Data:
    """Simulate three measurements of a phase with three equivalent values."""
    shift = np.array([0, 2 * np.pi / 3, 4 * np.pi / 3])
    at = rng.uniform(0.3, 1.0)
    seen = 200 * np.cos(2 * np.pi * at / (4 / 3) + shift) + 10 * rng.normal(size=3)
    return {"M": 3, "shift": shift, "seen": seen, "noise": 10.0, "wave": 4 / 3}


def doses(rng: Rng) -> Data:
    """Simulate levels after a dose of a drug that is absorbed quickly."""
    t = np.array([0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24])
    into, out, volume = 1.2, 0.15, 10.0
    level = 100 * into / (volume * (into - out)) * (np.exp(-out * t) - np.exp(-into * t))
    return {"N": 12, "t": t, "dose": 100.0, "seen": level * np.exp(0.08 * rng.normal(size=12))}


def growth(rng: Rng) -> Data:
    """Simulate a rise, a plateau and a second rise."""
    t = np.arange(0, 241, 10.0)
    y = 40 / (1 + np.exp(5 - 0.1 * t)) + 40 / (1 + np.exp(18 - 0.1 * t))
    return {"N": len(t), "t": t, "y": y + 1.5 * rng.normal(size=len(t))}


def network(rng: Rng) -> Data:
    """Simulate a network of eighteen nodes in three blocks."""
    block = np.repeat([0, 1, 2], 6)
    rate = np.array([[0.8, 0.1, 0.05], [0.3, 0.7, 0.1], [0.05, 0.2, 0.9]])
    edge = (rng.random((18, 18)) < rate[block][:, block]).astype(int)
    np.fill_diagonal(edge, 0)
    return {"N": 18, "K": 3, "edge": edge}


def regimes(rng: Rng) -> Data:
    """Simulate two lines, one on each side of 0."""
    x = rng.uniform(-3, 3, size=80)
    y = np.where(x < 0, 1 + 1.5 * x + 0.2 * rng.normal(size=80), 3 - x + 0.4 * rng.normal(size=80))
    return {"N": 80, "K": 2, "x": x, "y": y}


def lines_of_experts(draws: Draws) -> Draws:
    """Return the variables of experts."""
    return {
        "slope": draws["line"][..., 1, :],
        "base": draws["line"][..., 0, :],
        "noise": draws["noise"],
    }


def two_scales(rng: Rng) -> Data:
    """Simulate the sum of a slow and a fast function."""
    x = np.linspace(0, 8, 25)
    away = (x[:, None] - x) ** 2
    cov = 4 * np.exp(-away / 18) + 0.8 * np.exp(-away / 0.3) + 0.01 * np.eye(25)
    return {"N": 25, "x": x, "y": rng.multivariate_normal(np.zeros(25), cov)}


def steps(rng: Rng) -> Data:
    """Simulate a level that jumps up and later down."""
    t = np.arange(60.0)
    return {"N": 60, "t": t, "y": 1 + 3 * (t > 18) - 2 * (t > 42) + 0.5 * rng.normal(size=60)}


def votes(rng: Rng) -> Data:
    """Simulate the votes of four raters on sixty items of three classes."""
    kind = rng.choice(3, p=[0.5, 0.3, 0.2], size=60)
    right = rng.random((60, 4)) < [0.95, 0.9, 0.85, 0.8]
    vote = np.where(right, kind[:, None], rng.integers(0, 3, size=(60, 4))) + 1
    return {"N": 60, "R": 4, "K": 3, "vote": vote}


def two_lines(rng: Rng) -> Data:
    """Simulate two lines that cross."""
    x, first = rng.normal(size=80), rng.random(80) < 0.7
    y = np.where(first, 2 + 1.5 * x + 0.5 * rng.normal(size=80), -1 - x + 0.9 * rng.normal(size=80))
    return {"N": 80, "x": x, "y": y}


def lines_by_logit(draws: Draws) -> Draws:
    """Return the variables of two lines, with both shares on the logit scale."""
    eta = np.stack([draws["eta"], -draws["eta"]], axis=-1)
    return {"a": draws["a"], "b": draws["b"], "s": draws["s"], "eta": eta}


def lines_by_name(draws: Draws) -> Draws:
    """Stack the scalars of two lines, under the names of the program with arrays."""

    def two(name: str) -> np.ndarray:
        return np.stack(
            [draws[f"{name}{k}"].reshape(draws["sigma1"].shape) for k in (1, 2)], axis=-1
        )

    return {"a": two("Intercept_mu"), "b": two("b_mu"), "s": two("sigma"), "theta": draws["theta"]}


def two_rises(draws: Draws) -> Draws:
    """Stack the scalars of two rises."""
    return {
        "shift": np.stack([draws["b"], draws["d"]], axis=-1),
        "rate": np.stack([draws["a"], draws["c"]], axis=-1),
    }


def near_priors(rng: Rng) -> Data:
    """Simulate two clusters whose prior means differ a little."""
    return normals(rng, [-2.0, 1.5], [0.8, 1.0], [0.6, 0.4], 80, centre=[-1.0, 1.0], width=2.0)


def first_rate(_: Data, draws: Draws) -> np.ndarray:
    """Return for each draw whether absorption is the faster process."""
    return (draws["into"] > draws["out"]).astype(float)


def wavelength(data: Data, draws: Draws) -> np.ndarray:
    """Return the repetition of the phase that each draw is in."""
    return np.floor(draws["away"] / data["wave"])


QUESTIONS = (
    components(
        "clusters with correlations", "planes", clusters, "share,mu:0,sd:0,root:0", plane, None
    ),
    components(
        "states that are regressions", "states", switching, "move:0:1,base,slope", slopes, None
    ),
    components("sorted by hand", "sorted_shares", profiles, "emit:0", emitted, None),
    Kind("phase", "phase", wave, truths.apart(wavelength, ["height", "away"])),
    Kind(
        "absorption or elimination",
        "absorption",
        doses,
        truths.apart(first_rate, ["into", "out", "volume", "noise"]),
    ),
    components(
        "two rises as scalars", "rises", growth, "", two_rises, None, judge=truths.of_scalars
    ),
    components(
        "blocks of a network",
        "blocks",
        network,
        "member:1,rate:0:1",
        lambda draws: {f"member{i}": draws["member"][..., i, :] for i in (0, 6, 12)},
        None,
    ),
    components("experts", "experts", regimes, "gate:1,line:1,noise", lines_of_experts, None),
    components(
        "two kernels", "kernels", two_scales, "length,height", named("length", "height"), None
    ),
    components("two breaks", "breaks", steps, "when,jump", named("when", "jump"), None),
    components(
        "raters",
        "raters",
        votes,
        "share,says:1",
        lambda draws: {
            "says": draws["says"][..., 0, :, :]
            @ np.arange(3),  # The mean vote identifies the class.
            "share": draws["share"],
        },
        None,
    ),
    components(
        "share on the logit scale",
        "logit_share",
        two_lines,
        "",
        lines_by_logit,
        rerun("logit_ordered", lines_by_logit),
        judge=truths.of_scalars,
    ),
    components(
        "formula's scalars",
        "scalar_lines",
        two_lines,
        "",
        lines_by_name,
        None,
        judge=truths.of_scalars,
    ),
    Kind(
        "priors that differ a little",
        "unlike",
        near_priors,
        truths.apart(
            lambda _, draws: (draws["mu"][..., 0] > draws["mu"][..., 1]).astype(float),
            ["mu", "sigma", "share"],
        ),
    ),
)
