"""Whether classifiers are as often right as they say.

Convention: probabilities are (obs, out), labels (obs,) from 0. The confidence of a prediction is the
probability of its most probable class. Sources: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of
modern neural networks", equation 3, for the expected calibration error; Brier 1950 for the score, here the
sum over classes, from 0 to 2.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from onebasin.models.checks import check_count, choose

BINS = ("equal-width", "equal-mass")

Probabilities = Float[np.ndarray, "obs out"]
Labels = Int[np.ndarray, " obs"]


def calibration_error(
    probability: Probabilities, labels: Labels, *, num_bins: int = 15, bins: str = "equal-width"
) -> float:
    """Return the expected calibration error of the most probable class.

    The mean over bins of confidence, weighted by how many observations each has, of the absolute
    difference between its accuracy and its mean confidence. It is biased upwards where bins hold few observations.

    Parameters
    ----------
    probability : array (obs, out)
        Class probabilities.
    labels : array (obs,)
        True classes.
    num_bins : int
        Number of bins.
    bins : {"equal-width", "equal-mass"}
        Of equal width in confidence from 0 to 1, or of as many observations each (as far as that goes).

    Returns
    -------
    float
        From 0 to 1; NaN if a probability is.

    Raises
    ------
    ValueError
        If shapes do not fit, `num_bins` is no count or `bins` unknown.
    """
    check_count("num_bins", num_bins)
    choose("bins", bins, BINS)
    _check(probability, labels)
    if np.isnan(probability).any():
        return float("nan")
    confidence = probability.max(axis=-1)
    right = probability.argmax(axis=-1) == labels
    place = _places(confidence, num_bins, bins)
    # A bin's share times the gap of its means is the gap of its sums over all observations.
    gaps = np.bincount(place, weights=right - confidence, minlength=num_bins)
    return float(np.abs(gaps).sum() / len(labels))


def brier_score(probability: Probabilities, labels: Labels) -> float:
    """Return the mean squared distance of probabilities from the truth, summed over classes: 0 to 2.

    Parameters
    ----------
    probability : array (obs, out)
        Class probabilities.
    labels : array (obs,)
        True classes.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    _check(probability, labels)
    truth = np.eye(probability.shape[1])[labels]
    return float(np.square(probability - truth).sum(axis=-1).mean())


def _places(
    confidence: Float[np.ndarray, " obs"], num_bins: int, bins: str
) -> Int[np.ndarray, " obs"]:
    """Number of each observation's bin."""
    if bins == "equal-width":
        return np.minimum((confidence * num_bins).astype(np.int64), num_bins - 1)
    rank = np.empty(len(confidence), dtype=np.int64)
    rank[np.argsort(confidence, kind="stable")] = np.arange(len(confidence))
    return rank * num_bins // len(confidence)


def _check(probability: Probabilities, labels: Labels) -> None:
    if probability.ndim != 2 or labels.shape != probability.shape[:1] or not labels.size:
        raise ValueError(
            f"`probability` has shape {probability.shape} and `labels` {labels.shape}; give (obs, out) and "
            "(obs,), of at least one observation."
        )
    if labels.min() < 0 or labels.max() >= probability.shape[1]:
        raise ValueError(
            f"`labels` run from {labels.min()} to {labels.max()}, and `probability` has classes 0 to "
            f"{probability.shape[1] - 1}."
        )
