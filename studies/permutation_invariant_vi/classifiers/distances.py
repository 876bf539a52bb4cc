"""Compare the fits with HMC's draws: claims, table, sentences."""

from collections.abc import Iterable, Iterator

import numpy as np

from ... import lab
from ...lab import Field, Frames, mean_of, read
from .widths import where

MARGINS = {"total_variation": 0.0005, "energy": 0.01}
"""Differences of halved total variation, and of the energy distance, below which nothing is gained that matters."""
_BIASES = (
    "These symmetries lead to biases in the approximate posterior, which degrade predictive performance and posterior "
    "fit if not explicitly accounted for."
)
_TEXT = (
    "HMC's draws are the truth where it is affordable. In prediction, class probabilities averaged over draws are "
    "compared: permutations do not matter there. In weights, HMC's draws are aligned to their iterated mean, draws of "
    "q to the same mean by the same rule, and what is compared are these aligned distributions. The halves of HMC's "
    "chains against each other are what can be told apart; draws from the prior, aligned in the same way, what a q "
    "without any knowledge would have."
)


def _beside_mfvi(frames: Frames) -> Iterable[lab.Row]:
    """Fits of every other method with those of the mean field at their width."""
    truth = read("truth", frames)
    others = (row for row in truth if row["draws"] not in ("hmc", "halves", "mfvi", "prior"))
    return lab.beside(others, truth.where(draws="mfvi"), same="width")


def _claim(what: str, distance: str, measure: str) -> lab.Claim:
    def closer(row: lab.Row) -> lab.Finding:
        nearer = lab.Pairs(row["other"][measure], row[measure])
        theirs, ours = nearer.means
        words = f"{ours:.4f} and {theirs:.4f}, nearer in {nearer.wins} of {nearer.num} seeds"
        return words, nearer.gains(MARGINS[measure])

    return lab.Claim(
        f"symmetrising brings {what} closer to the posterior",
        _BIASES,
        f"{distance} from HMC is smaller than that of MFVI's fits: Student's 95 % interval of paired differences is "
        f"below zero (open where it holds zero and -{MARGINS[measure]:g})",
        lab.each(_beside_mfvi, closer, where=where),
    )


CLAIMS = (
    _claim("predictions", "the total variation of predictions", "total_variation"),
    _claim("weights", "the energy distance of aligned weights", "energy"),
)


DISTANCES = lab.RowTable(
    "Distances from HMC's draws, in prediction and in aligned weights, means over seeds",
    (
        Field("units", "width", decimals=0),
        Field("draws", "label"),
        Field("agreement", mean_of("agreement"), decimals=4),
        Field("total variation", mean_of("total_variation"), decimals=4, unit="halved"),
        Field("accuracy", mean_of("accuracy"), decimals=4, unit="test"),
        Field("log score", mean_of("log_score"), decimals=4, unit="test, nats"),
        Field("accuracy", mean_of("draw_accuracy"), decimals=4, unit="one draw"),
        Field("energy distance", mean_of("energy"), unit="weights, aligned"),
        Field("means", mean_of("mean"), unit="rms difference, HMC's sds"),
        Field("sds", mean_of("sd"), unit="rms log ratio"),
        Field("sds", mean_of("sd_ratio"), unit="median ratio"),
    ),
    over="truth",
)
TABLES = (DISTANCES,)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a sentence a width."""
    truth = read("truth", frames)
    for hmc in truth.where(draws="hmc"):
        here = truth.where(width=hmc["width"])
        found = [
            f"{row['label']} {np.mean(row['total_variation']):.3f}"
            for row in here.where(draws=("mfvi", "recommended"))
        ]
        if found:
            halves = here.row(draws="halves")["total_variation"][0]
            yield (
                f"At {hmc['width']} units the predictions' total variation from HMC's is {', '.join(found)} (halves "
                f"of HMC: {halves:.3f})."
            )


def chapter(frames: Frames) -> lab.Chapter:
    """Say what was compared, whether there is one basin, and where the prior is nearer than a fit."""
    found = [row for row in read("truth", frames) if row["draws"] == "hmc"]
    left = ", ".join(f"{row['spread_left']:.0%} at {row['width']} units" for row in found)
    basins = (
        f"Of the squared distance of HMC's draws to their mean, alignment leaves {left}: the nearer to all of it, the "
        "less there is one basin, and the less a distance in weights says."
    )
    for prior in read("truth", frames).where(draws="prior"):
        plain = read("truth", frames).find(width=prior["width"], draws="mfvi")
        if plain is not None and prior["energy"][0] < np.mean(plain["energy"]):
            basins += (
                f" At {prior['width']} units draws from the prior are nearer to HMC's in weights than MFVI's fits are "
                f"(energy distances {prior['energy'][0]:.2f} and {np.mean(plain['energy']):.2f}), whose standard "
                f"deviations are {np.mean(plain['sd_ratio']):.2f} of HMC's at the median."
            )
    return lab.Chapter("How far from the posterior?", f"{_TEXT}\n\n{basins}", (DISTANCES,))
