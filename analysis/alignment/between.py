"""Barriers and transpositions between draws of a network's posterior, as they came and aligned.

Pairs of draws come from different chains where there are several. The second draw of a pair is aligned to the first as
trained networks are (Ainsworth, Hayase and Srinivasa 2023): whole units in their own scale, by permutations, and by
changes of sign where the activation is odd; scalings stay as they are. The loss is the mean negative log likelihood of
the data, in nats; noise that was inferred is the same all along the line, so that a barrier is the weights' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from onebasin.base.card import Card, Table, Words, number
from onebasin.base.checks import check_count, check_seed
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of
from onebasin.posteriors.view import Posterior, View, as_view

from ..predictive.points import Points
from .barriers import Barrier, barrier
from .result import Alignment
from .transpositions import Transpositions, transpositions_of

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


Networks = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class Barriers(Shown):
    """The loss between pairs of draws, before and after the second is aligned to the first.

    Attributes
    ----------
    pairs : array (pair, 2, 2)
        Chain and draw of both ends.
    as_they_came, aligned : Barrier
        Losses along the lines, in nats an observation, and their heights.
    transpositions : array (pair,)
        Exchanges of two hidden units that alignment made, over all layers.
    layers : array (pair, layer)
        The same by hidden layer.
    most : int
        Transpositions that there can be: of every layer its units less one.
    """

    pairs: Int[np.ndarray, "pair 2 2"]
    as_they_came: Barrier
    aligned: Barrier
    transpositions: Int[np.ndarray, " pair"]
    layers: Int[np.ndarray, "pair layer"]
    most: int

    def _card(self) -> Card:
        return of_barriers(self)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        before, after = (float(np.median(b.height)) for b in (self.as_they_came, self.aligned))
        count = float(np.median(self.transpositions))
        return (
            f"Between {len(self.pairs)} pairs of draws the loss rises by {before:.3g} nats an observation (median) as "
            f"they came, and by {after:.3g} after the second is aligned to the first, which takes "
            f"{count:.3g} {'transposition' if count == 1 else 'transpositions'} of at most {self.most}."
        )


def barriers(
    posterior: Posterior,
    *,
    pairs: int = 8,
    x: Any = None,
    y: Any = None,
    num_points: int = 25,
    seed: int = 0,
) -> Barriers:
    """Measure the loss on the straight line between draws, as they came and with units matched.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        Draws of a network's weights, in any form that `diagnose` takes.
    pairs : int
        Pairs of draws; of different chains where there are several.
    x : array (obs, in), optional
        Inputs of the loss; by default those that the posterior was fitted to and keeps.
    y : array (obs,) or (obs, out), optional
        Labels or targets at `x`.
    num_points : int
        Points on each line, ends included.
    seed : int
        Of the choice of pairs.

    Returns
    -------
    Barriers
        Losses, heights and transpositions; `plot_barriers` draws them.

    Raises
    ------
    ValueError
        If the posterior is of no network or keeps no data and none are given, or a number makes no sense.

    References
    ----------
    Ainsworth, Hayase and Srinivasa 2023, Git Re-Basin, definition 2.1 and section 3.2. Xiao, Liu and Bamler 2023,
    A compact representation for Bayesian neural networks by removing permutation symmetry, section 2.

    Examples
    --------
    >>> found = ob.barriers(weights, pairs=2, num_points=5)
    >>> found.aligned.loss.shape
    (2, 5)
    """
    from .networks import align_networks, network_loss  # here: it loads JAX

    check_count("pairs", pairs)
    check_seed(seed)
    view = as_view(posterior)
    model = _network_of(view)
    points = _data(view, model, x, y)
    chosen = _choose_pairs(view, pairs, np.random.default_rng(seed))
    first, second = (_networks(view, model, chosen[:, end]) for end in (0, 1))
    moved, counts = [], []
    for pair in range(len(chosen)):
        one, other = ({n: v[pair : pair + 1] for n, v in ends.items()} for ends in (first, second))
        found, count = align_networks(model, one, other)
        moved.append(found)
        counts.append(count)
    aligned = {name: np.concatenate([each[name] for each in moved]) for name in second}
    assert points.y is not None  # see `_data`
    loss = network_loss(_with_noise(model, view), points.x, points.y)
    layers = np.concatenate([np.stack(count.layers, axis=-1)[0] for count in counts])
    return Barriers(
        pairs=chosen,
        as_they_came=barrier(first, second, loss, num_points=num_points),
        aligned=barrier(first, aligned, loss, num_points=num_points),
        transpositions=layers.sum(axis=1),
        layers=layers,
        most=sum(units - 1 for units in model.network.hidden),
    )


def transpositions(posterior: Posterior | Alignment) -> Transpositions:
    """Count the exchanges of two components that bring every draw into the common labelling.

    Parameters
    ----------
    posterior : Alignment, or posterior
        What `align` returned; or a posterior, which is aligned first.

    Returns
    -------
    Transpositions
        `layers`, an array (chain, draw) for each block that permutes (of a network: each hidden layer), and their
        `total`.

    Raises
    ------
    ValueError
        If no symmetry is declared, or none of its blocks permutes.

    References
    ----------
    Xiao, Liu and Bamler 2023, A compact representation for Bayesian neural networks by removing permutation symmetry,
    section 2 (number of transpositions, NoT).

    Examples
    --------
    >>> ob.transpositions(weights).total.shape
    (4, 300)
    """
    from .align import align

    alignment = posterior if isinstance(posterior, Alignment) else align(posterior)
    return transpositions_of(alignment.element)


def _network_of(view: View) -> BayesianNetwork:
    if view.network is None:
        raise ArgumentError(
            f"`{view.argument}` is of no network, and a barrier is the loss between networks: give a posterior whose "
            "attribute `model` describes one."
        )
    if not blocks_of(view.network.symmetry, Exchangeable):
        raise ArgumentError(
            f"`{view.argument}` is of a network whose hidden units have an order (its parametrisation), so that there "
            "is nothing to match: give one with free biases."
        )
    return view.network


def _data(view: View, model: BayesianNetwork, x: Any, y: Any) -> Points:
    if (x is None) != (y is None):
        raise ArgumentError(
            "`x` and `y` belong together: give both, or neither for the data that the posterior keeps."
        )
    points = (
        Points.of(model, view.x if x is None else x, view.y if y is None else y)
        if (x is not None or view.x is not None)
        else None
    )
    if points is None or points.y is None:
        raise ArgumentError(
            f"`{view.argument}` keeps no data, which the loss is of: give `x` and `y`."
        )
    return points


def _choose_pairs(view: View, pairs: int, rng: np.random.Generator) -> np.ndarray:
    chains, draws = view.num_chains, view.num_draws
    if chains * draws < 2:
        raise ArgumentError(f"`{view.argument}` holds one draw, and a line needs two: give more.")
    chosen = np.empty((pairs, 2, 2), np.int64)
    for pair in range(pairs):
        if chains > 1:
            chosen[pair, :, 0] = rng.choice(chains, 2, replace=False)
            chosen[pair, :, 1] = rng.integers(draws, size=2)
        else:
            chosen[pair, :, 0] = 0
            chosen[pair, :, 1] = rng.choice(draws, 2, replace=False)
    return chosen


def _networks(view: View, model: BayesianNetwork, places: np.ndarray) -> dict[str, np.ndarray]:
    """The networks at some places (pair, 2)."""
    there = [name for name in model.network.shapes if name in view.variables]
    return {n: view.values(n)[places[:, 0], places[:, 1]].astype(np.float64) for n in there}


def _with_noise(model: BayesianNetwork, view: View) -> BayesianNetwork:
    """The network with noise of one known size: the posterior's geometric mean, where it was inferred."""
    from onebasin.models.networks.likelihood import Gaussian

    if not model.infers_noise:
        return model
    sigma = float(np.exp(np.log(view.values("sigma")).mean()))
    return replace(model, likelihood=Gaussian(noise_sd=sigma))


def of_barriers(found: Barriers) -> Card:
    """How far the loss rises between networks, before and after alignment."""
    sides = {"as they came": found.as_they_came, "aligned": found.aligned}
    rows = tuple(
        (name, *(number(q) for q in np.quantile(side.height, (0.5, 0.9, 1.0))))
        for name, side in sides.items()
    )
    table = Table(
        "rise of the loss, nats an observation", ("median", "90 %", "largest"), rows, words=True
    )
    return Card("Barriers between draws", (Words(found.sentence), table))
