"""Gaussian approximations in the unconstrained space, and the action of a symmetry there.

A block has H interchangeable components, here called parts. It permutes them and, if it has flips, changes the sign of
some of their coordinates. If each of its sites has one axis of parts, the parts are rows of an index (part, param)
into the vector. A site may have the parts along two axes (every entry of a transition matrix belongs to two parts), or
exchanging two parts may negate a coordinate that belongs to neither (that of a binary weight). In these cases the
group can be applied, but there are no separate parts. Rescalable blocks are left out, as scaling changes the prior.

Neighbouring hidden layers share weight matrices. When the blocks' group elements are revealed one after another, only
coordinates count that are not shared with a block still hidden (docs/explanations/symmetrised-elbo.md). `chains`
returns these coordinates for each block.

A family draws z = loc + scale eps from standard normal eps. Its entropy and its log density include all constants and
are in nats. Mean field also has the log density of each part of a draw under the distribution of each part.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, override

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Block, Group, axes_of, discrete
from onebasin.models.symmetry.plain import PlainView, plain_view
from onebasin.models.target import Target

from ..contracts.density import Vector
from ..density.charts import Softmax, is_simplex
from ..density.network import density_of
from ..density.stan_vectors import Density
from ..mutual_information.estimators import LogRatios, mean_field

Element = list[tuple[jax.Array, jax.Array]]
"""For each block, a permutation (part,) and signs (part,)."""


@dataclass(frozen=True)
class Move:
    """The coordinates of a site that a block moves, and whether flipping a part changes their sign.

    The parts lie along `axes` of the coordinates; `axes` is empty if the whole site is the block's only part.
    """

    site: str
    axes: tuple[int, ...]
    flipped: bool


Moves = tuple[Move, ...]


@dataclass(frozen=True)
class Parts:
    """Interchangeable parts: their number and their coordinates.

    Exchanging the two parts negates the coordinates of the sites in `complements`. Sites are those of the layout's
    plain view.
    """

    size: int
    moves: Moves
    complements: tuple[str, ...] = ()

    @property
    def has_flips(self) -> bool:
        """Return whether parts can be flipped."""
        return any(move.flipped for move in self.moves)

    @property
    def has_parts(self) -> bool:
        """Return whether each coordinate belongs to a single part."""
        return not self.complements and all(len(move.axes) <= 1 for move in self.moves)

    @property
    def log_order(self) -> float:
        """The log of the order of the block's group."""
        return math.lgamma(self.size + 1) + self.has_flips * self.size * math.log(2)

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that the block moves."""
        return (*(move.site for move in self.moves), *self.complements)


@dataclass(frozen=True)
class PartColumns:
    """Positions in the vector of (some) coordinates of a block's parts, and which of them a flip negates."""

    index: Int[np.ndarray, "part param"]
    flips: Bool[np.ndarray, " param"] | None


@dataclass(frozen=True)
class SymmetryLayout:
    """The density of a target in charts where its group moves coordinates, with at least one block."""

    density: Density
    blocks: tuple[Parts, ...]
    plain: PlainView

    def view(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all sites in the plain view, except counterparts in `complements`."""
        reflected = {name for block in self.plain.declared for name in block.reflected}
        stacked = self.plain.stack(values, 0)
        return {name: value for name, value in stacked.items() if name not in reflected}

    @property
    def log_order(self) -> float:
        """The log of the order of the group."""
        return sum(block.log_order for block in self.blocks)

    @property
    def has_parts(self) -> bool:
        """Return whether every block has separate parts."""
        return all(block.has_parts for block in self.blocks)

    @property
    def overlaps(self) -> bool:
        """Return whether blocks share sites, as neighbouring hidden layers do."""
        return any(set(a.sites) & set(b.sites) for a, b in itertools.combinations(self.blocks, 2))

    def columns(self, block: Parts, without: frozenset[str] = frozenset()) -> PartColumns:
        """Return the parts of a block with separate parts, without the coordinates of the sites `without`."""
        places = self.view(self.density.places())
        kept = [move for move in block.moves if move.site not in without]
        rows = []
        for move in kept:
            own = places[move.site]
            own = np.moveaxis(own, move.axes[0], 0) if move.axes else own
            rows.append(own.reshape(block.size, -1))
        index = np.concatenate(rows, axis=1) if rows else np.zeros((block.size, 0), np.int64)
        flipped = [np.full(r.shape[1], m.flipped) for m, r in zip(kept, rows, strict=True)]
        return PartColumns(index, np.concatenate(flipped) if block.has_flips and kept else None)

    def orders(self) -> list[Sequence[int]]:
        """Return orders in which to reveal the blocks: from the first and, if some share sites, from the last."""
        ahead = range(len(self.blocks))
        return [ahead, ahead[::-1]] if self.overlaps else [ahead]

    def chains(self) -> list[tuple[PartColumns, ...]]:
        """Return the coordinates of each block that count, for each order of revealing."""
        return [self.chain(order) for order in self.orders()]

    def chain(self, order: Sequence[int]) -> tuple[PartColumns, ...]:
        """Return the coordinates of each block that count in one order of revealing, block by block."""
        out: list[PartColumns] = []
        for place, number in enumerate(order):
            hidden = [site for later in order[place + 1 :] for site in self.blocks[later].sites]
            kept = self.columns(self.blocks[number], frozenset(hidden))
            # If there are no coordinates, flips would count elements that move nothing.
            out.append(kept if kept.index.shape[1] else replace(kept, flips=None))
        return tuple(out)

    def random(self, rng_key: jax.Array) -> Element:
        """Draw a group element uniformly."""
        out = []
        for number, block in enumerate(self.blocks):
            key_order, key_signs = jax.random.split(jax.random.fold_in(rng_key, number))
            signs = jnp.where(jax.random.bernoulli(key_signs, shape=(block.size,)), 1, -1)
            order = jax.random.permutation(key_order, block.size)
            out.append((order, signs if block.has_flips else jnp.ones_like(signs)))
        return out

    def elements(self) -> Element:
        """Return all group elements along a leading axis, the identity first."""
        single = []
        for block in self.blocks:
            orders = itertools.permutations(range(block.size))
            signs = [(1, -1) if block.has_flips else (1,)] * block.size
            single.append(list(itertools.product(orders, list(itertools.product(*signs)))))
        combined = list(itertools.product(*single))
        return [
            (
                jnp.asarray([element[number][0] for element in combined]),
                jnp.asarray([element[number][1] for element in combined]),
            )
            for number in range(len(self.blocks))
        ]

    def act(self, element: Element, vector: Vector) -> Vector:
        """Move one vector: part i of the result is the vector's part `permutation[i]` times `signs[i]`."""
        values = self.view(self.density.unravel(vector))
        for block, (permutation, signs) in zip(self.blocks, element, strict=True):
            for move in block.moves:
                own = values[move.site]
                if not move.axes:
                    own = own * signs[0]
                for axis in move.axes:
                    own = jnp.take(own, permutation, axis=axis)
                    if move.flipped:
                        shape = [1] * own.ndim
                        shape[axis] = len(permutation)
                        own = own * signs.reshape(shape).astype(own.dtype)
                values[move.site] = own
            for site in block.complements:
                values[site] = jnp.where(permutation[0] == 1, -values[site], values[site])
        return self.density.ravel(self.plain.unstack(values, 0))


def layout_of(target: Target, progress: Callable[[str], None] | None = None) -> SymmetryLayout:
    """Return the layout of a target's declared symmetry."""
    density = density_of(target, progress)
    shapes = {name: chart.event_shape for name, chart in density.charts.items()}
    # Leave out derived quantities, which follow from the parameters; unknown names were rejected before.
    declared = (
        block if set(block.variables) <= set(shapes) else block.restricted(shapes)
        for block in discrete(target.symmetry)
    )
    known = tuple(block for block in declared if block is not None)
    if not known:
        raise ArgumentError(
            f"`target` {target.name!r} declares no interchangeable components, so there is nothing to symmetrise. "
            "Declare `symmetry`, for example (Exchangeable({'mu': 0, 'sigma': 0}),), or use `advi`."
        )
    group, plain = Group(known, shapes), plain_view(known, shapes)
    blocks = []
    for block, seen, size in zip(known, plain.blocks, group.sizes, strict=True):
        if block.axes:
            density, moves = _moves(density, block, seen, plain)
            turned = (*seen.complemented, *block.reflected.values())
            if unknown := {n for name in turned for n in plain.sources(name)} - {*shapes}:
                raise _no_exchange(target.name, min(unknown))
            blocks.append(Parts(size, moves, turned))
        else:
            blocks.append(Parts(1, tuple(Move(name, (), True) for name in seen.variables)))
    layout = SymmetryLayout(density, tuple(blocks), plain)
    # Check on random vectors that moving coordinates moves values as declared.
    constrain = layout.density.constrain
    compare = jax.jit(lambda v, e: (constrain(v), constrain(layout.act(e, v))))
    for seed in range(3):
        key_vector, key_element = jax.random.split(jax.random.key(seed))
        element = layout.random(key_element)
        try:
            before, moved = compare(jax.random.normal(key_vector, (layout.density.size,)), element)
        except (ValueError, TypeError) as error:
            raise _no_exchange(target.name) from error
        declared_values = {n: np.asarray(value) for n, value in before.items()}
        for own, parts, (order, signs) in zip(group.symmetry, blocks, element, strict=True):
            flips = np.asarray(signs) if parts.has_flips else None
            change = (np.asarray(order), flips) if own.axes else (np.asarray(signs[0] == -1),)
            declared_values = own.act(declared_values, *change)
        for site, value in declared_values.items():
            tolerance = 100 * float(jnp.finfo(value.dtype).eps)
            if moved[site].shape != value.shape or not np.allclose(
                moved[site], value, rtol=tolerance, atol=tolerance
            ):
                raise _no_exchange(target.name, site)
    return layout


def _moves(density: Density, block: Block, seen: Block, plain: PlainView) -> tuple[Density, Moves]:
    """Return the coordinates that a block moves (`seen` is the block in the plain view); simplexes get a new chart."""
    moves = []
    for name, places in seen.axes.items():
        if name in block.reflected:
            continue
        for source in plain.sources(name):
            chart = density.charts[source]
            if chart.exact and is_simplex(chart.support):
                last = len(chart.event_shape) - 1
                if source != name or last in axes_of(places):
                    own: dict[str, Any] = {**density.charts, source: Softmax(chart.event_shape)}
                    density = replace(density, charts=own)
        moves.append(Move(name, axes_of(places), name in seen.flipped))
    return density, tuple(moves)


def _no_exchange(name: str, site: str = "") -> ValueError:
    which = f" (of {site})" if site else ""
    return ArgumentError(
        f"`symmetry` of {name!r} does not exchange coordinates of the unconstrained space{which}, because a transform "
        "mixes them. Use another form of the variable, with a prior whose support treats all components equally."
    )


Parameters = dict[str, jax.Array]
Draws = Float[Array, "sample param"]
Sampled = Float[Array, " sample"]  # One number per draw.

LOG_2PI = math.log(2 * math.pi)


Axes = dict[str, tuple[str, tuple[str, ...]]]
"""The names used in docs/reference/posterior.md, mapped to the family's parameters and their axes."""


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """A family of Gaussian approximations."""

    word: ClassVar[str]
    size: int

    @property
    @abstractmethod
    def axes(self) -> Axes:
        """Return all parameters except `loc`."""

    @abstractmethod
    def initial(self, loc: Vector, scale: float) -> Parameters:
        """Return the parameters of approximately N(loc, scale^2 I)."""

    @abstractmethod
    def scaled(self, p: Parameters, eps: Float[Array, "sample param"]) -> Draws:
        """Return draws with mean zero from standard normal draws."""

    @abstractmethod
    def whitened(self, p: Parameters, centred: Draws) -> Draws:
        """Return the standard normal draws from which `scaled` makes centred draws."""

    @abstractmethod
    def log_determinant(self, p: Parameters) -> Float[Array, ""]:
        """Return the log determinant of the scale, which is half that of the covariance."""

    def transform(self, p: Parameters, eps: Float[Array, "sample param"]) -> Draws:
        """Return draws from standard normal draws."""
        return p["loc"][None, :] + self.scaled(p, eps)

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return self.log_determinant(p) + 0.5 * self.size * (1 + LOG_2PI)

    def log_density(self, p: Parameters, points: Draws) -> Sampled:
        """Log densities."""
        eps = self.whitened(p, points - p["loc"][None, :])
        constant = self.log_determinant(p) + 0.5 * self.size * LOG_2PI
        return -0.5 * jnp.sum(eps * eps, axis=-1) - constant

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Return the parameters under the names of docs/reference/posterior.md, with their axes."""
        found = {name: (axes, _natural(name)[0](p[own])) for name, (own, axes) in self.axes.items()}
        return {"loc": (("param",), p["loc"]), **found}

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Return the parameters from the result of `describe`."""
        found = {own: _natural(name)[1](described[name]) for name, (own, _) in self.axes.items()}
        return {"loc": described["loc"], **found}


def sample(family: GaussianFamily, p: Parameters, key: jax.Array, num: int) -> jax.Array:
    """Return draws (sample, param) from an approximation."""
    return family.transform(p, jax.random.normal(key, (num, family.size), p["loc"].dtype))


def lower_triangle(lower: jax.Array) -> jax.Array:
    """Return Cholesky factors from matrices (..., k, k) that have the log of the diagonal."""
    diagonal = jnp.exp(jnp.diagonal(lower, axis1=-2, axis2=-1))
    eye = jnp.eye(lower.shape[-1], dtype=lower.dtype)
    return jnp.tril(lower, -1) + diagonal[..., None] * jnp.broadcast_to(eye, lower.shape)


def log_diagonal(scale: jax.Array) -> jax.Array:
    """Return the argument of `lower_triangle` that gives these Cholesky factors."""
    diagonal = jnp.diagonal(scale, axis1=-2, axis2=-1)
    eye = jnp.broadcast_to(jnp.eye(scale.shape[-1], dtype=scale.dtype), scale.shape)
    return jnp.tril(scale, -1) + jnp.log(diagonal)[..., None] * eye


def _natural(name: str) -> tuple[Callable[..., jax.Array], Callable[..., jax.Array]]:
    """Return the functions from a parameter to its described form and back."""
    if name.startswith("scale_tril"):
        return lower_triangle, log_diagonal
    return (jnp.exp, jnp.log) if name == "scale" else (jnp.asarray, jnp.asarray)


@dataclass(frozen=True)
class MeanField(GaussianFamily):
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    word: ClassVar[str] = "meanfield"

    @property
    def axes(self) -> Axes:
        """`scale`."""
        return {"scale": ("log_scale", ("param",))}

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        return {"loc": loc, "log_scale": jnp.full_like(loc, math.log(scale))}

    @override
    def scaled(self, p: Parameters, eps: jax.Array) -> jax.Array:
        return jnp.exp(p["log_scale"])[None, :] * eps

    @override
    def whitened(self, p: Parameters, centred: jax.Array) -> jax.Array:
        return centred * jnp.exp(-p["log_scale"])[None, :]

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        return jnp.sum(p["log_scale"])

    def ratios(self, p: Parameters, draws: Draws, columns: PartColumns) -> LogRatios:
        """Return the log densities of components under each other's distributions."""
        scale = jnp.exp(p["log_scale"])
        index = columns.index
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        return mean_field(draws[:, index], p["loc"][index], scale[index], flips=flips)


@dataclass(frozen=True)
class FullRank(GaussianFamily):
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    word: ClassVar[str] = "fullrank"

    @property
    def axes(self) -> Axes:
        """`scale_tril`."""
        return {"scale_tril": ("lower", ("param", "param_bis"))}

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        return {"loc": loc, "lower": jnp.diag(jnp.full_like(loc, math.log(scale)))}

    @override
    def scaled(self, p: Parameters, eps: jax.Array) -> jax.Array:
        return eps @ lower_triangle(p["lower"]).T

    @override
    def whitened(self, p: Parameters, centred: jax.Array) -> jax.Array:
        return solve_triangular(lower_triangle(p["lower"]), centred.T, lower=True).T

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        return jnp.trace(p["lower"])


GAUSSIANS: Mapping[str, type[GaussianFamily]] = {k.word: k for k in (MeanField, FullRank)}
"""The families of ADVI by name."""
