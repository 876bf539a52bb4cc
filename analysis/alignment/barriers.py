"""Alignment of networks to one another, their transpositions, and the loss between them.

Networks are arrays (network, ...) by variable. Alignment follows Git Re-Basin (Ainsworth, Hayase and Srinivasa 2023):
it moves whole units without scaling, by permutations and, for an odd activation, by changes of sign. Sign changes do
not count as transpositions. A permutation of n components with c cycles is a product of n - c transpositions, and of no
fewer (Xiao, Liu and Bamler 2023, section 2).

At t between 0 and 1 the weights are (1 - t) first + t second. The barrier is the largest excess of the loss over the
straight line between the losses of the two ends (Frankle et al. 2020). It is 0 if the loss is convex along the line.
The loss is the mean negative log likelihood of the data, in nats. Inferred noise is constant along the line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from onebasin.base.card import Card, Shown, Words, number
from onebasin.base.checks import check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import Exchangeable, Group, Symmetry, blocks_of
from onebasin.models.symmetry.elements import Element, permuted_parts
from onebasin.posteriors.view import Posterior, View, as_view

from ..discovery.resolve import resolve
from ..predictive.predictions import Points
from .align import align
from .alignment import Alignment
from .draws import count_transpositions, flatten, take
from .trees import AlignedNetworks

if TYPE_CHECKING:
    import jax

    from onebasin.models.networks.bayesian import BayesianNetwork


@dataclass(frozen=True, eq=False, repr=False)
class Transpositions(Shown):
    """The number of transpositions in each part of a group element.

    Attributes
    ----------
    layers : tuple of array
        One array (chain, draw) for each block that permutes, in the order of the symmetry. For a network, one for each
        hidden layer.
    """

    layers: tuple[Int[np.ndarray, "*lead"], ...]

    def _card(self) -> Card:
        total = self.total.ravel()
        words = (
            f"The median distance of a draw from the common labelling is {number(np.median(total))} transpositions, at "
            f"most {number(total.max())}. Each transposition exchanges two components."
        )
        rows = tuple(
            (f"block {place}", number(np.median(layer)), number(layer.max()))
            for place, layer in enumerate(self.layers)
        )
        table = Table(("", "median", "most"), rows, "transpositions by block")
        return Card("Transpositions", (Words(words), *([table] if len(rows) > 1 else [])))

    @property
    def total(self) -> Int[np.ndarray, "*lead"]:
        """The total number, summed over blocks."""
        return np.asarray(sum(self.layers))


def transpositions(posterior: Posterior | Alignment) -> Transpositions:
    """Count the exchanges of two components that bring each draw into the common labelling.

    Parameters
    ----------
    posterior : Alignment, or posterior
        The result of `align`, or a posterior, which is aligned first.

    Returns
    -------
    Transpositions
        `layers`, an array (chain, draw) for each block that permutes (for a network, each hidden layer), and their
        `total`.

    Raises
    ------
    ValueError
        If no symmetry is declared or found, or no block permutes components.

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


def transpositions_of(element: Element) -> Transpositions:
    """Count the transpositions of a group element, at least one block of which must permute."""
    layers = tuple(count_transpositions(part.permutation) for part in permuted_parts(element))
    if not layers:
        raise ArgumentError(
            "The symmetry of `posterior` exchanges no components, so there are no transpositions. Declare a "
            "symmetry that exchanges components."
        )
    return Transpositions(layers)


Values = Mapping[str, np.ndarray]
Loss = Callable[[dict[str, np.ndarray]], Any]

_AT_ONCE = 16
"""Number of networks whose losses are computed together."""


def match_weights(
    symmetry: Symmetry, reference: Values, others: Values
) -> tuple[dict[str, np.ndarray], Transpositions]:
    """Match weights (network, ...) with those of a reference network, without scaling, and count transpositions."""
    moved = list(dict.fromkeys(chain.from_iterable(block.variables for block in symmetry)))
    ours, theirs = ({n: v[n][None] for n in moved} for v in (others, reference))
    found = align(ours, symmetry, reference=theirs, scales=dict.fromkeys(moved, 1.0), gauge="keep")
    dataset = found.posterior["posterior"].to_dataset()
    aligned = {name: dataset[name].values[0] for name in moved}
    return {**others, **aligned}, transpositions_of(found.element)


def network_loss(model: BayesianNetwork, x: np.ndarray, y: np.ndarray) -> Loss:
    """Make a function that computes the loss of networks: the mean negative log likelihood of data, in nats.

    Raises
    ------
    ValueError
        If the network infers its noise, because weights alone then have no likelihood.
    """
    if model.infers_noise:
        raise ArgumentError(
            "`model` infers its noise sd, but the loss needs a fixed value. Set `noise_sd` in the likelihood, for "
            "example to the sd of the residuals."
        )
    import jax  # Imported late, because few callers need it.
    import jax.numpy as jnp

    @jax.jit
    def losses(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        def one(member: dict[str, jax.Array]) -> jax.Array:
            return -jnp.mean(model.likelihood.log_density(model.network.apply(member, x), y))

        return jax.lax.map(one, weights, batch_size=_AT_ONCE)

    return lambda weights: losses(weights, x, y)


@dataclass(frozen=True, eq=False)
class Barrier:
    """Losses on the lines between pairs of networks."""

    position: Float[np.ndarray, " point"]  # From 0 (first network) to 1 (second).
    loss: Float[np.ndarray, "pair point"]

    @property
    def excess(self) -> Float[np.ndarray, "pair point"]:
        """The loss minus the straight line between the losses of the two ends."""
        line = np.outer(self.loss[:, 0], 1 - self.position)
        return self.loss - line - np.outer(self.loss[:, -1], self.position)

    @property
    def height(self) -> Float[np.ndarray, " pair"]:
        """The largest excess for each pair; NaN if a loss is NaN."""
        return self.excess.max(axis=1)


def barrier(first: Values, second: Values, loss: Loss, *, num_points: int = 25) -> Barrier:
    """Compute the loss at `num_points` points on the line between pairs of networks (pair, *event).

    The points include both ends. `loss` maps weights (pair, *event) to losses (pair,) and is called once per point.
    """
    position = np.linspace(0.0, 1.0, num_points)
    between = ({n: (1 - t) * first[n] + t * second[n] for n in first} for t in position)
    return Barrier(position, np.stack([np.asarray(loss(here)) for here in between], axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Barriers(Shown):
    """The loss between pairs of draws, before and after aligning the second draw to the first.

    Attributes
    ----------
    pairs : array (pair, 2, 2)
        Chain and draw of each end.
    as_they_came, aligned : Barrier
        Losses along the lines, in nats per observation, and the heights of the barriers.
    transpositions : array (pair,)
        Number of exchanges of two hidden units in the alignment, summed over layers.
    layers : array (pair, layer)
        Number of these exchanges in each hidden layer.
    most : int
        Largest possible number of exchanges: the sum over layers of the number of units minus one.
    unit : str
        Unit of the loss.
    ends : str
        ``draws`` or ``networks``.
    """

    pairs: Int[np.ndarray, "pair 2 2"]
    as_they_came: Barrier
    aligned: Barrier
    transpositions: Int[np.ndarray, " pair"]
    layers: Int[np.ndarray, "pair layer"]
    most: int
    unit: str = "nats an observation"
    ends: str = "draws"

    def _card(self) -> Card:
        sides = {"as sampled": self.as_they_came, "aligned": self.aligned}
        rows = tuple(
            (name, *(number(q) for q in np.quantile(side.height, (0.5, 0.9, 1.0))))
            for name, side in sides.items()
        )
        caption = f"rise of the loss, {self.unit}".removesuffix(", ")
        table = Table(("", "median", "90 %", "largest"), rows, caption)
        return Card(f"Barriers between {self.ends}", (Words(self.sentence), table))

    @property
    def sentence(self) -> str:
        """A sentence that states the result."""
        before, after = (float(np.median(b.height)) for b in (self.as_they_came, self.aligned))
        count = float(np.median(self.transpositions))
        pairs = f"{len(self.pairs)} pair{'s' * (len(self.pairs) != 1)} of {self.ends}"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"Between {pairs} the loss rises by {before:.3g}{unit} (median) as "
            f"sampled, and by {after:.3g} after the second is aligned to the first, which takes "
            f"{count:.3g} {'transposition' if count == 1 else 'transpositions'} of at most {self.most}."
        )


@checks_arguments
def barriers(
    posterior: Posterior,
    *,
    loss: Callable[[Any], Any] | None = None,
    pairs: int = 8,
    x: Any = None,
    y: Any = None,
    num_points: int = 25,
    seed: int = 0,
) -> Barriers:
    """Compute the loss along straight lines between draws, before and after matching their units.

    Parameters
    ----------
    posterior : DataTree, path, what a sampler returned, or AlignedNetworks
        Draws of a network's weights, in any form that `diagnose` accepts, or networks aligned by `align`.
    loss : callable, optional
        Function from one network (its tree, or a mapping of variables to arrays) to a number; by default the mean
        negative log likelihood of `x` and `y`, for the networks of `ob.networks`.
    pairs : int
        Number of pairs of draws. The two draws are from different chains if there are several.
    x : array (obs, in), optional
        Inputs of the loss; by default the training inputs stored in the posterior.
    y : array (obs,) or (obs, out), optional
        Labels or targets at `x`.
    num_points : int
        Number of points on each line, including the ends.
    seed : int
        Seed of the choice of pairs.

    Returns
    -------
    Barriers
        Losses, heights and transpositions. `ob.plot.barriers` plots them.

    Raises
    ------
    ValueError
        If the posterior has no network or no data and you give neither `loss` nor data, or if a number is invalid.

    References
    ----------
    Ainsworth, Hayase and Srinivasa 2023, Git Re-Basin, definition 2.1 and section 3.2. Xiao, Liu and Bamler 2023,
    A compact representation for Bayesian neural networks by removing permutation symmetry, section 2.

    Examples
    --------
    >>> found = ob.networks.barriers(weights, pairs=2, num_points=5)
    >>> found.aligned.loss.shape
    (2, 5)
    """
    check_count("pairs", pairs, most=10**6)
    check_count("num_points", num_points, least=2, most=10**6)
    check_seed(seed)
    if isinstance(posterior, AlignedNetworks):
        if loss is None:
            raise ArgumentError(
                "`loss` is missing. Give a function that maps a network to its loss."
            )
        return _of_trees(posterior, loss, pairs, num_points, seed)
    view = as_view(posterior)
    model, unit, known = view.network, "nats an observation", None
    if loss is not None:
        symmetry, unit, known = resolve(view).equal_modes, "", by_one(loss)
    elif model is None:
        raise ArgumentError(
            f"`{view.argument}` is not the posterior of a network, so it has no default loss. Give `loss`, a "
            "function that maps the variables of one draw to a number."
        )
    else:
        symmetry = blocks_of(model.symmetry, Exchangeable)
    if not symmetry and model is None:
        raise ArgumentError(
            f"`{view.argument}` declares no symmetry, so there is nothing to match. Give a "
            "posterior that declares its symmetry."
        )
    if not symmetry:
        raise ArgumentError(
            f"The parametrisation of `{view.argument}` fixes the order of the hidden units, so there is nothing to "
            "match. Give a posterior with free biases, or declare the symmetry."
        )
    chosen = _choose_pairs(view, pairs, np.random.default_rng(seed))
    there = [*({*model.network.shapes} & {*view.variables} if model else view.variables)]
    first, second = (
        {n: view.values(n)[*chosen[:, end].T].astype(np.float64) for n in there} for end in (0, 1)
    )
    known = known or _loss_of(view, x, y)
    each = [
        match_weights(symmetry, *({n: v[k : k + 1] for n, v in e.items()} for e in (first, second)))
        for k in range(pairs)
    ]
    moved = {name: np.concatenate([values[name] for values, _ in each]) for name in second}
    layers = np.concatenate([np.stack(count.layers, axis=-1)[0] for _, count in each])
    sizes = Group(symmetry, {n: v.shape[1:] for n, v in first.items()}).sizes
    return Barriers(
        pairs=chosen,
        as_they_came=barrier(first, second, known, num_points=num_points),
        aligned=barrier(first, moved, known, num_points=num_points),
        transpositions=layers.sum(axis=1),
        layers=layers,
        most=sum(sizes) - len(sizes),
        unit=unit,
    )


def by_one(loss: Callable[[Any], Any], tree: Callable[[Any], Any] = dict) -> Loss:
    """Make a loss of several networks from the loss of a single network, which takes a `tree` of arrays."""

    def losses(values: dict[str, np.ndarray]) -> np.ndarray:
        each = (dict(zip(values, one, strict=True)) for one in zip(*values.values(), strict=True))
        return np.array([float(loss(tree(one))) for one in each])

    return losses


def _of_trees(
    found: AlignedNetworks, loss: Callable[[Any], Any], pairs: int, num_points: int, seed: int
) -> Barriers:
    """Compute barriers between aligned networks, for all pairs or a random selection."""
    every = np.array(list(combinations(range(len(found.layouts)), 2)))
    if len(every) > pairs:
        every = np.random.default_rng(seed).choice(every, pairs, replace=False)
    losses = by_one(loss, next(iter(found.layouts.values())).tree)
    one, other = every.T
    came, aligned = (
        barrier(
            {n: v[one] for n, v in values.items()},
            {n: v[other] for n, v in values.items()},
            losses,
            num_points=num_points,
        )
        for values in (found.given, {**found.given, **found.aligned})
    )
    flat = flatten(found.element)
    between = found.group.compose(take(flat, other), found.group.inverse(take(flat, one)))
    layers = np.stack(transpositions_of(between).layers, axis=-1)
    return Barriers(
        pairs=np.stack([np.zeros_like(every), every], axis=-1),
        as_they_came=came,
        aligned=aligned,
        transpositions=layers.sum(axis=1),
        layers=layers,
        most=sum(found.group.sizes) - len(found.group.sizes),
        unit="",
        ends="networks",
    )


def _loss_of(view: View, x: Any, y: Any) -> Loss:
    from onebasin.models.networks.likelihood import Gaussian

    model = view.network
    assert model is not None
    if (x is None) != (y is None):
        raise ArgumentError(
            "`x` and `y` must be given together. Give both, or omit both to use the data that the posterior "
            "contains."
        )
    x, y = (view.x, view.y) if x is None else (x, y)
    points = None if x is None else Points.of(model, x, y)
    if points is None or points.y is None:
        raise ArgumentError(
            f"The loss needs data, but `{view.argument}` contains none. Give `x` and `y`."
        )
    if model.infers_noise:  # Fix the noise at its posterior geometric mean.
        sigma = float(np.exp(np.log(view.values("sigma")).mean()))
        model = replace(model, likelihood=Gaussian(noise_sd=sigma))
    return network_loss(model, points.x, points.y)


def _choose_pairs(view: View, pairs: int, rng: np.random.Generator) -> np.ndarray:
    chains, draws = view.num_chains, view.num_draws
    if chains * draws < 2:
        raise ArgumentError(
            f"`{view.argument}` has only one draw, but a barrier lies between two draws. Sample longer."
        )
    chosen = np.empty((pairs, 2, 2), np.int64)
    for pair in range(pairs):
        if chains > 1:
            chosen[pair, :, 0] = rng.choice(chains, 2, replace=False)
            chosen[pair, :, 1] = rng.integers(draws, size=2)
        else:
            chosen[pair, :, 0] = 0
            chosen[pair, :, 1] = rng.choice(draws, 2, replace=False)
    return chosen
