"""Number of transpositions: how far a permutation is from leaving everything in place.

A permutation of n components with c cycles is a product of n - c exchanges of two components and of no fewer: its
distance from the identity in the Cayley graph of transpositions (Xiao, Liu and Bamler 2023, section 2, "NoT").
Signs, complements and scalings do not count.

Trained networks as they stand: one aligned to another, how far apart they are, and the loss between them.

Convention: weights and biases are arrays (network, ...) by variable. Alignment is that of Git Re-Basin (Ainsworth,
Hayase and Srinivasa 2023): whole units in their own scale, so that distances are Euclidean. Units of odd
activations may also change their signs, which no transposition counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.base.card import Card, Shown, Words, number
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Table
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.symmetry.blocks import Exchangeable, Symmetry, blocks_of
from onebasin.models.symmetry.elements import Element, permuted_parts
from onebasin.posteriors.view import Posterior

from .align import align
from .parts import count_transpositions
from .result import Alignment


@dataclass(frozen=True, eq=False, repr=False)
class Transpositions(Shown):
    """Counts for a group element, block by block.

    Attributes
    ----------
    layers : tuple of array
        One array, of the element's leading axes (chain, draw), for each block that permutes, in the symmetry's
        order: for a network, for each hidden layer.
    """

    layers: tuple[Int[np.ndarray, "*lead"], ...]

    def _card(self) -> Card:
        total = self.total.ravel()
        words = (
            f"Draws are {number(np.median(total))} transpositions (median) from the common labelling, and up to "
            f"{number(total.max())}: exchanges of two components each."
        )
        rows = tuple(
            (f"block {place}", number(np.median(layer)), number(layer.max()))
            for place, layer in enumerate(self.layers)
        )
        table = Table(("", "median", "most"), rows, "transpositions by block")
        return Card("Transpositions", (Words(words), *([table] if len(rows) > 1 else [])))

    @property
    def total(self) -> Int[np.ndarray, "*lead"]:
        """Sum over blocks."""
        return np.asarray(sum(self.layers))


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
    >>> ob.networks.transpositions(weights).total.shape
    (4, 300)
    """
    alignment = posterior if isinstance(posterior, Alignment) else align(posterior)
    return transpositions_of(alignment.element)


def swapped(rng: np.random.Generator, size: int, num: int) -> Int[np.ndarray, " component"]:
    """Draw a permutation that `num` transpositions make and no fewer; `num` is less than `size`.

    Each exchange joins two cycles, so that none undoes another.
    """
    permutation, cycle = np.arange(size), np.arange(size)
    for _ in range(num):
        first = rng.integers(size)
        second = rng.choice(np.flatnonzero(cycle != cycle[first]))
        permutation[[first, second]] = permutation[[second, first]]
        cycle[cycle == cycle[second]] = cycle[first]
    return permutation


def transpositions_of(element: Element) -> Transpositions:
    """Count the transpositions of a group element, such as an alignment's; one of its blocks has to permute."""
    layers = tuple(count_transpositions(part.permutation) for part in permuted_parts(element))
    if not layers:
        raise ArgumentError(
            "`element` has no permutation; give one of a symmetry that exchanges parts."
        )
    return Transpositions(layers)


Values = Mapping[str, np.ndarray]
Loss = Callable[[dict[str, np.ndarray]], Any]

_AT_ONCE = 16
"""Networks whose losses are computed at a time."""


def align_networks(
    model: BayesianNetwork, reference: Values, others: Values
) -> tuple[dict[str, np.ndarray], Transpositions]:
    """Align networks (network, ...) to one, and count the transpositions that it took, by hidden layer (1, network)."""
    return match_weights(blocks_of(model.symmetry, Exchangeable), reference, others)


def match_weights(
    symmetry: Symmetry, reference: Values, others: Values
) -> tuple[dict[str, np.ndarray], Transpositions]:
    """Match weights (network, ...) with those of one, in their own scale, and count the transpositions that it took."""
    moved = list(dict.fromkeys(chain.from_iterable(block.variables for block in symmetry)))
    ours, theirs = ({n: v[n][None] for n in moved} for v in (others, reference))
    found = align(ours, symmetry, reference=theirs, scales=dict.fromkeys(moved, 1.0), gauge="keep")
    dataset = found.posterior["posterior"].to_dataset()
    aligned = {name: dataset[name].values[0] for name in moved}
    return {**others, **aligned}, transpositions_of(found.element)


def as_draws(model: BayesianNetwork, networks: Values) -> xr.Dataset:
    """Lay networks out as the draws of one chain."""
    dims = model.network.dims
    return xr.Dataset({n: (("chain", "draw", *dims[n]), networks[n][None]) for n in dims})


def distances(reference: Values, others: Values) -> Float[np.ndarray, " network"]:
    """Measure how far networks are from one, over all their variables."""
    apart = [others[name] - reference[name] for name in others]
    return np.sqrt(sum(np.square(a).reshape(len(a), -1).sum(axis=1) for a in apart))


def network_loss(model: BayesianNetwork, x: np.ndarray, y: np.ndarray) -> Loss:
    """Make the loss whose barrier is measured: the mean negative log likelihood of data, in nats.

    Raises
    ------
    ValueError
        If the network infers its noise, without which its weights have no likelihood.
    """
    if model.infers_noise:
        raise ArgumentError(
            "`model` infers its noise; give one whose likelihood has a `noise_sd`, such as the residuals'."
        )
    return partial(_losses, model, x, y)


@partial(jax.jit, static_argnames="model")
def _losses(model: BayesianNetwork, x: jax.Array, y: jax.Array, weights: Any) -> jax.Array:
    def one(member: dict[str, jax.Array]) -> jax.Array:
        return -jnp.mean(model.likelihood.log_density(model.network.apply(member, x), y))

    return jax.lax.map(one, weights, batch_size=_AT_ONCE)
