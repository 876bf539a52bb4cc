"""Scores of classifiers: how often right, how well calibrated, how alike, how far their draws disagree.

Convention: logits and probabilities of draws are (chain, draw, obs, out), probabilities averaged over draws are
(obs, out), classes on the last axis; labels (obs,) count from 0; averages are over observations. The confidence of
a prediction is the probability of its most probable class. A value that is not finite propagates.

Sources: Xiao, Liu and Bamler 2023, "A compact representation for Bayesian neural networks by removing permutation
symmetry", equations 1 and 2. Their equation 2 sums absolute differences over classes, from 0 to 2; the numbers in
their Table 1 are half of that, which is the usual total variation, from 0 to 1. So `total_variation` asks which.
Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", equation 3, for the expected
calibration error; Brier 1950 for the score, here the sum over classes, from 0 to 2.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, logsumexp, xlogy

from .regression import Predictions

BINS = 15
"""Bins of the calibration error, of equal width in confidence."""

Probabilities = Float[np.ndarray, "obs out"]
DrawProbabilities = Float[np.ndarray, "chain draw obs out"]
Labels = Int[np.ndarray, " obs"]


def accuracy(logits: Predictions, labels: Labels) -> float:
    """Return the share of points whose most probable class, averaged over draws, is theirs."""
    log_probability = class_log_probability(logits)
    if np.isnan(log_probability).any():
        return float("nan")
    return float((log_probability.argmax(axis=-1) == labels).mean())


def class_log_probability(logits: Predictions) -> Float[np.ndarray, "obs out"]:
    """Return the log of each class's probability, averaged over draws."""
    per_draw = log_softmax(np.asarray(logits, np.float64), axis=-1)
    return logsumexp(per_draw, axis=(0, 1)) - np.log(logits.shape[0] * logits.shape[1])


def class_probability_by_draw(logits: Predictions) -> Predictions:
    """Return each class's probability given each draw."""
    return np.exp(log_softmax(np.asarray(logits, np.float64), axis=-1))


def agreement(p: Probabilities, q: Probabilities) -> float:
    """Return the share of observations with the same most probable class (equation 1)."""
    if not (np.isfinite(p).all() and np.isfinite(q).all()):
        return float("nan")
    return float((p.argmax(axis=-1) == q.argmax(axis=-1)).mean())


def total_variation(p: Probabilities, q: Probabilities, *, halved: bool) -> float:
    """Return the mean total variation between class probabilities, averaged over draws.

    Halved, it goes from 0 to 1, as in the published table; equation 2 as printed is not halved, from 0 to 2.
    """
    sums = np.abs(p - q).sum(axis=-1)
    return float(sums.mean() / 2 if halved else sums.mean())


def single_draw_accuracy(probability: DrawProbabilities, labels: Labels) -> float:
    """Return the accuracy of one draw, averaged over draws."""
    if np.isnan(probability).any():
        return float("nan")
    return float((probability.argmax(axis=-1) == labels).mean())


def mutual_information(probability: DrawProbabilities) -> Float[np.ndarray, " obs"]:
    """Return how much is learned about an observation's class by knowing which draw is right, in nats.

    The entropy of the averaged probabilities less the average entropy of a draw's: 0 where all draws predict the same,
    at most the logarithm of the number of classes.
    """
    return np.asarray(
        entropy(probability.mean(axis=(0, 1))) - entropy(probability).mean(axis=(0, 1))
    )


def entropy(probability: Float[np.ndarray, "*lead out"]) -> Float[np.ndarray, "*lead"]:
    """Return the entropy of class probabilities, in nats."""
    return np.asarray(-xlogy(probability, probability).sum(axis=-1))


def calibration_error(probability: Probabilities, labels: Labels) -> float:
    """Return the expected calibration error of the most probable class, from 0 to 1; NaN if a probability is.

    The mean over bins of confidence, weighted by how many observations each has, of the absolute difference between its
    accuracy and its mean confidence. It is biased upwards where bins hold few observations.
    """
    if np.isnan(probability).any():
        return float("nan")
    confidence = probability.max(axis=-1)
    right = probability.argmax(axis=-1) == labels
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    # A bin's share times the gap of its means is the gap of its sums over all observations.
    gaps = np.bincount(place, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(labels))


def brier_score(probability: Probabilities, labels: Labels) -> float:
    """Return the mean squared distance of probabilities from the truth, summed over classes: 0 to 2."""
    truth = np.eye(probability.shape[1])[labels]
    return float(np.square(probability - truth).sum(axis=-1).mean())
