"""A network's log likelihood of every observation, and outputs drawn from its posterior predictive, draw by draw.

Outputs come from `predict`; the likelihood and its noise are NumPy's work, so that nothing is compiled for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_softmax

from .pointwise import DrawGroup, Values, every_which
from .schema import LOG_LIKELIHOOD, OUTPUTS, POSTERIOR_PREDICTIVE
from .scratch import Room

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


BLOCK = 2**22
"""Outputs that are computed at once."""
PURPOSE = 1001
"""Added to the seed of a run: random numbers for predictions, which no method draws for anything else."""


def bytes_a_draw(model: BayesianNetwork, y: np.ndarray) -> int:
    """Return the bytes that one draw's log likelihoods and predictions take."""
    return len(y) * 8 + y.size * (2 if model.is_classifier else 4)


def network_groups(
    model: BayesianNetwork,
    draws: Mapping[str, Values],
    x: np.ndarray,
    y: np.ndarray,
    *,
    seed: int,
    limit_mb: float,
    folder: Path | None = None,
) -> dict[str, DrawGroup] | None:
    """Log likelihood and posterior predictive at the data that a network was conditioned on, by groups' names.

    They are of the variable `y`: `log_likelihood` (obs), summed over outputs, and `posterior_predictive` like the data,
    in single precision; None where the limit, in megabytes, leaves too few draws. The draws are a network's weights,
    and ``sigma`` where the noise is inferred. What is drawn here shares nothing with the run of this seed. Many draws
    are laid down in the folder, if one is given.
    """
    from onebasin.models.networks.prediction import mean_and_sd, predict

    names = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    chains, num_draws = np.shape(draws[names[0]])[:2]
    every = every_which(chains, num_draws, bytes_a_draw(model, y), limit_mb)
    if every is None:
        return None
    kept = {name: draws[name][:, ::every] for name in names}
    shape = (chains, kept[names[0]].shape[1])
    room = Room(*shape, folder)
    rng = np.random.default_rng((seed, PURPOSE))
    for chain, rows in _blocks(shape, len(y) * model.network.widths[-1]):
        part = {name: np.asarray(value[chain, rows]) for name, value in kept.items()}
        if model.is_classifier:
            output = predict(model, part, x).astype(np.float64)
            log_likelihood = log_softmax(output, axis=-1)[..., np.arange(len(y)), y]
            # Labels are drawn as the largest of logits with Gumbel noise.
            labels = (output + rng.gumbel(size=output.shape)).argmax(axis=-1)
            replicated = labels.astype(np.int16)
        else:
            mean, sigma = mean_and_sd(model, part, x)
            mean = mean.astype(np.float64)
            residual = (y - mean) / sigma
            terms = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
            log_likelihood = terms.sum(axis=-1)
            replicated = (mean + sigma * rng.standard_normal(mean.shape)).astype(np.float32)
        for number, *of_chain in zip(range(chains)[chain], log_likelihood, replicated, strict=True):
            groups = zip((LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE), of_chain, strict=True)
            room.put(number, rows.start or 0, {name: {OUTPUTS: values} for name, values in groups})
    dims = {LOG_LIKELIHOOD: ("obs",), POSTERIOR_PREDICTIVE: ("obs", "out")[: y.ndim]}
    return {
        name: DrawGroup(room.group(name), {OUTPUTS: axes}, every, room.filed)
        for name, axes in dims.items()
    }


def _blocks(shape: tuple[int, int], size: int) -> list[tuple[slice, slice]]:
    """Parts of chains and draws: all at once where that is little, else a chain's draws some at a time.

    The last block of a chain begins earlier rather than to be shorter, as another length would be compiled again.
    """
    chains, draws = shape
    if chains * draws * size <= BLOCK:
        return [(slice(None), slice(None))]
    step = min(draws, max(1, BLOCK // size))
    firsts = [min(first, draws - step) for first in range(0, draws, step)]
    return [(slice(c, c + 1), slice(f, f + step)) for c in range(chains) for f in firsts]
