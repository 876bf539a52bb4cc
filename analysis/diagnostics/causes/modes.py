"""Modes: chains that are settled, each in a place of its own; and heights of the log density that are unlike.

Convention: a height is the mean log density of a chain, in nats. Two are unlike where they differ by more than their
Monte Carlo errors explain, and by more than one nat: long chains make a tenth of a nat significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onebasin.posteriors.chains import bulk_ess

ERRORS = 4.5
"""Monte Carlo errors that heights have to differ by: an ESS of 30 has an error of its own."""
NATS = 1.0
"""Nats that they have to differ by."""
SETTLED_ESS, SETTLED_RHAT = 50.0, 1.1
"""ESS within a chain, and R-hat of its halves, of a chain that has settled."""
SETTLED_ESS_IF_UNLIKE = 30.0
"""ESS within a chain that is enough where heights are unlike."""
LOOKED_AT = 50
"""Worst entries that are looked at."""


@dataclass(frozen=True)
class Heights:
    """Mean log densities by chain, and which pair is unlike.

    Attributes
    ----------
    means, errors
        By chain.
    lowest, highest
        Chains of the pair that differs most beside its error.
    unlike
        Whether they differ by more than errors explain.
    """

    means: tuple[float, ...]
    errors: tuple[float, ...]
    lowest: int = 0
    highest: int = 0
    unlike: bool = False

    @property
    def gap(self) -> tuple[float, float]:
        """Difference of that pair, and its Monte Carlo error."""
        low, high = self.lowest, self.highest
        error = float(np.hypot(self.errors[low], self.errors[high]))
        return self.means[high] - self.means[low], error


def compare_heights(means: Sequence[float], errors: Sequence[float]) -> Heights:
    """Compare chains' mean log densities, beside their Monte Carlo errors."""
    mean, error = np.asarray(means, np.float64), np.asarray(errors, np.float64)
    apart = mean[:, None] - mean[None, :]
    both = np.hypot(error[:, None], error[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((apart > NATS) & (apart > ERRORS * both), apart / both, -1.0)
    highest, lowest = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    unlike = bool(ratio.max() > 0)
    return Heights(tuple(means), tuple(errors), int(lowest), int(highest), unlike)


def chain_ess(values: Float[np.ndarray, "chain draw param"]) -> Float[np.ndarray, "chain param"]:
    """Bulk ESS of every chain by itself."""
    rows = [np.ascontiguousarray(np.moveaxis(chain, -1, 0))[:, None] for chain in values]
    return np.stack([bulk_ess(chain) for chain in rows])


def settled(
    values: Float[np.ndarray, "chain draw param"], half_rhat: Float[np.ndarray, "chain param"]
) -> tuple[bool, bool]:
    """Whether chains have settled, each by itself, and whether they have if heights are known to be unlike.

    Parameters
    ----------
    values
        The worst entries.
    half_rhat
        R-hat of every chain beside itself.
    """
    ess = float(np.nanmedian(chain_ess(values)))
    agrees = float(np.nanmedian(np.nanmax(half_rhat, axis=0))) < SETTLED_RHAT
    return ess >= SETTLED_ESS and agrees, ess >= SETTLED_ESS_IF_UNLIKE
