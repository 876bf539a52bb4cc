"""How alike two classifiers' predictions are, and how much one's draws differ among themselves.

Convention: probabilities are (..., obs, out), over classes on the last axis; averages are over observations.
Source: Xiao, Liu and Bamler 2023, "A compact representation for Bayesian neural networks by removing
permutation symmetry", equations 1 and 2. Their equation 2 sums absolute differences over classes, from 0 to
2; the numbers in their Table 1 are half of that, which is the usual total variation, from 0 to 1. So
`total_variation` asks which. A value that is not finite propagates.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import xlogy

Probabilities = Float[np.ndarray, "obs out"]
DrawProbabilities = Float[np.ndarray, "chain draw obs out"]


def agreement(p: Probabilities, q: Probabilities) -> float:
    """Return the share of observations with the same most probable class (equation 1).

    Parameters
    ----------
    p, q : array (obs, out)
        Class probabilities, averaged over draws.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    p, q = _alike(p, q)
    if not (np.isfinite(p).all() and np.isfinite(q).all()):
        return float("nan")
    return float((p.argmax(axis=-1) == q.argmax(axis=-1)).mean())


def total_variation(p: Probabilities, q: Probabilities, *, halved: bool) -> float:
    """Return the mean total variation between class probabilities.

    Parameters
    ----------
    p, q : array (obs, out)
        Class probabilities, averaged over draws.
    halved : bool
        Whether the sum over classes is halved: from 0 to 1, as in the published table; equation 2 as
        printed is not, from 0 to 2.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    p, q = _alike(p, q)
    sums = np.abs(p - q).sum(axis=-1)
    return float(sums.mean() / 2 if halved else sums.mean())


def single_draw_accuracy(probability: DrawProbabilities, labels: Int[np.ndarray, " obs"]) -> float:
    """Return the accuracy of one draw, averaged over draws.

    Parameters
    ----------
    probability : array (chain, draw, obs, out)
        Class probabilities of each draw.
    labels : array (obs,)
        True classes, from 0.
    """
    if np.isnan(probability).any():
        return float("nan")
    return float((probability.argmax(axis=-1) == labels).mean())


def mutual_information(probability: DrawProbabilities) -> Float[np.ndarray, " obs"]:
    """Return how much is learned about an observation's class by knowing which draw is right, in nats.

    The entropy of the averaged probabilities less the average entropy of a draw's: 0 where all draws predict
    the same, at most the logarithm of the number of classes.

    Parameters
    ----------
    probability : array (chain, draw, obs, out)
        Class probabilities of each draw.
    """
    return np.asarray(
        entropy(probability.mean(axis=(0, 1))) - entropy(probability).mean(axis=(0, 1))
    )


def entropy(probability: Float[np.ndarray, "*lead out"]) -> Float[np.ndarray, "*lead"]:
    """Return the entropy of class probabilities, in nats."""
    return np.asarray(-xlogy(probability, probability).sum(axis=-1))


def _alike(p: Probabilities, q: Probabilities) -> tuple[Probabilities, Probabilities]:
    if p.shape != q.shape:
        raise ValueError(
            f"`p` has shape {p.shape} and `q` {q.shape}; give class probabilities (obs, out) of the same "
            "observations."
        )
    return p, q
