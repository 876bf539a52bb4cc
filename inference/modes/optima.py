"""Search for optima of a log density from many starts, and find the distinct optima modulo its symmetry.

Two optima are the same if they are equally high and closer than a third of a standard deviation, from the curvature at
the higher one. An optimum need not be a mode: the density may rise without bound at a point with no probability, and
several optima may share a basin (`basins`).

To compare points modulo a symmetry, each is replaced by its copy nearest to a reference. Under a group of |G| elements
a point has |G| copies, or fewer if an element leaves it unchanged. The points that are their own nearest copy form a
fundamental domain, one |G|-th of the space. This holds for any reference that every element except the identity
changes, and for any weights of the distance. The integral of an invariant function over the space is |G| times its
integral over this domain.

Points (point, param) are in charts where the group permutes coordinates and changes their signs
(`variational.gaussians`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from onebasin.base.card import Card, Shown
from onebasin.base.checks import check_count, check_positive, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose, keys_for
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.target import Target, check_target

from ..density.network import density_of
from ..density.stan_vectors import Density
from ..mcmc.optimum import BestOptimum, OptimiserEnd
from ..runs.run import spread
from ..variational.gaussians import Parts, SymmetryLayout, layout_of

ENUMERATED = 1000  # Up to this many elements, all are tried; otherwise components are assigned block by block.
SWEEPS = 20  # Maximum number of sweeps over blocks that share coordinates.

Points = Float[np.ndarray, "point param"]
Vector = Float[np.ndarray, " param"]
Mask = Bool[np.ndarray, " point"]
ByElement = Int[np.ndarray, "element param"]


@dataclass(frozen=True, eq=False)
class Folding:
    """The density of a target in charts where its group moves coordinates, and its symmetry there, if any."""

    density: Density
    layout: SymmetryLayout | None = None

    @classmethod
    def of(cls, target: Target, progress: Callable[[str], None] | None = None) -> Folding:
        """Return the density and the declared symmetry of a target."""
        if not equal_modes(target.symmetry):
            return cls(density_of(target, progress))
        layout = layout_of(target, progress)
        if layout.log_order > math.log(ENUMERATED) and not layout.has_parts:
            raise ArgumentError(
                f"`target` {target.name!r} declares a symmetry with {math.exp(layout.log_order):.3g} elements, and "
                "several blocks of this symmetry move the same coordinates (such as the rows and the columns of one "
                f"matrix). For such symmetries, onebasin supports at most {ENUMERATED} elements. Use `nuts`."
            )
        return cls(layout.density, layout)

    @property
    def log_order(self) -> float:
        """The log of the number of elements of the group."""
        return 0.0 if self.layout is None else self.layout.log_order

    def fold(self, points: Points, reference: Vector, weight: Vector) -> tuple[Points, Mask]:
        """Return each point's copy nearest to a reference, and whether that is the point itself.

        The distance is the sum of weight (x - reference)^2.
        """
        if self.layout is None:
            return points, np.ones(len(points), bool)
        if self.layout.log_order <= math.log(ENUMERATED):
            return self._of_all(points, reference, weight)
        home = np.ones(len(points), bool)
        for _ in range(SWEEPS):
            still = np.ones(len(points), bool)
            for block in self.layout.blocks:
                points, stays = self._assigned(block, points, reference, weight)
                still &= stays
            home &= still
            if still.all() or len(self.layout.blocks) == 1:
                break
        return points, home

    def log_copies(self, point: Vector) -> float:
        """Return the log number of copies of a point, which is smaller if some elements leave the point unchanged.

        In groups too large to enumerate, every element is assumed to move the point.
        """
        if self.layout is None or self.layout.log_order > math.log(ENUMERATED):
            return self.log_order
        source, sign = self._elements
        same = np.isclose(sign * point[source], point, rtol=1e-6, atol=1e-6).all(axis=1)
        return self.log_order - math.log(same.sum())

    @cached_property
    def _elements(self) -> tuple[ByElement, ByElement]:
        """Return for each element, the identity first, the coordinate that it moves to each position, and the sign."""
        assert self.layout is not None
        numbered = jnp.arange(1, self.density.size + 1, dtype=float)
        moved = np.asarray(jax.vmap(self.layout.act, (0, None))(self.layout.elements(), numbered))
        return np.abs(moved).astype(int) - 1, np.sign(moved).astype(int)

    def _of_all(self, points: Points, reference: Vector, weight: Vector) -> tuple[Points, Mask]:
        cost, chosen = np.full(len(points), np.inf), np.zeros(len(points), int)
        source, sign = self._elements
        for number, (places, signs) in enumerate(zip(source, sign, strict=True)):
            own = ((points[:, places] * signs - reference) ** 2) @ weight
            chosen, cost = np.where(own < cost, number, chosen), np.minimum(own, cost)
        moved = np.take_along_axis(points, source[chosen], axis=1) * sign[chosen]
        return moved, chosen == 0

    def _assigned(
        self, block: Parts, points: Points, reference: Vector, weight: Vector
    ) -> tuple[Points, Mask]:
        """Assign the components of a block to labels so that the distance is smallest; this is exact for one block."""
        assert self.layout is not None
        columns = self.layout.columns(block)
        flips = np.zeros(columns.index.shape[1], bool) if columns.flips is None else columns.flips
        parts, centre = points[:, columns.index], reference[columns.index]
        scale = weight[columns.index]
        square = np.einsum("nip,jp->nij", parts**2, scale)
        plain = np.einsum("nip,jp->nij", parts[..., ~flips], (scale * centre)[:, ~flips])
        turned = np.einsum("nip,jp->nij", parts[..., flips], (scale * centre)[:, flips])
        cost = square - 2 * (plain + np.abs(turned))
        order = np.stack([linear_sum_assignment(each.T)[1] for each in cost])
        signs = np.where(np.take_along_axis(turned, order[:, None, :], 1)[:, 0] < 0, -1.0, 1.0)
        moved = np.take_along_axis(parts, order[:, :, None], axis=1)
        moved[..., flips] *= signs[..., None]
        out = points.copy()
        out[:, columns.index] = moved
        return out, ((order == np.arange(block.size)) & (signs > 0)).all(axis=1)


ITERATIONS = 2000
NEAR = 0.3  # Optima closer than this, in standard deviations, are the same,
LEVEL = 0.01  # if their log densities differ by at most this, in nats.
CURVED = 1000  # Maximum number of coordinates for which the curvature is computed.


@dataclass(frozen=True, eq=False)
class Top:
    """A distinct optimum."""

    vector: Vector
    height: float  # Log density, in nats.
    starts: int  # Number of starting points that led to it.
    log_evidence: float  # Laplace's estimate, with all copies; NaN if it is not a peak or unknown.
    weight: Vector  # Curvature along each coordinate.


def find_tops(
    folding: Folding, bars: ProgressBars, starts: int, init_radius: float, seed: int
) -> tuple[list[Top], int]:
    """Climb from random points, uniform within +-`init_radius` in the unconstrained space.

    Return the distinct optima, highest first, and the number of starts that led to no optimum.
    """
    plain = density_of(folding.density.target)  # Starting points are drawn in these charts.
    points = plain.random_starts(keys_for(Purpose.MODE_START, seed, starts), init_radius)
    vectors = jax.vmap(lambda v: folding.density.unconstrain(plain.constrain(v)))(points)
    search = BestOptimum(folding.density.log_density, maxiter=ITERATIONS)
    ends = search.every(vectors, partial(bars.move, bars.add("optima", starts)))
    found = [end for end in ends if np.isfinite(end.potential)]
    if not found:
        raise InferenceError(
            f"No optimum with a finite log density was found (starting points: {starts}). Raise `starts`, or lower "
            "`init_radius`."
        )
    tops: list[Top] = []
    hessian = jax.jit(jax.hessian(lambda v: -folding.density.log_density(v)))
    for end in sorted(found, key=lambda end: end.potential):
        for n, top in enumerate(tops):
            if abs(top.height + end.potential) <= LEVEL + 1e-6 * abs(top.height):
                near, _ = folding.fold(end.vector[None], top.vector, top.weight)
                if float(((near[0] - top.vector) ** 2) @ top.weight) < NEAR**2:
                    tops[n] = replace(top, starts=top.starts + 1)
                    break
        else:
            tops.append(_top(folding, hessian, end))
    return tops, starts - len(found)


def _top(folding: Folding, curvature: Callable[[jax.Array], jax.Array], end: OptimiserEnd) -> Top:
    """Measure the curvature around an optimum."""
    size, height = len(end.vector), -end.potential
    if size > CURVED:
        return Top(end.vector, height, 1, math.nan, np.ones(size))
    hessian = np.asarray(curvature(jnp.asarray(end.vector)))
    weight = np.abs(np.diag(hessian))
    sign, log_det = np.linalg.slogdet(hessian) if np.isfinite(hessian).all() else (0, math.nan)
    evidence = math.nan
    if end.is_flat and sign > 0 and np.linalg.eigvalsh(hessian)[0] > 0:
        evidence = height + 0.5 * (size * math.log(2 * math.pi) - log_det)
        evidence += folding.log_copies(end.vector)
    return Top(end.vector, height, 1, evidence, np.where(np.isfinite(weight), weight, 1.0))


def highest_evidence(tops: Sequence[Top]) -> float:
    """Return the largest known Laplace log evidence; NaN if none is known."""
    return max((t.log_evidence for t in tops if np.isfinite(t.log_evidence)), default=math.nan)


def unseen(counts: Sequence[int], starts: int) -> float:
    """Estimate the probability that another start finds a new mode, from modes found only once (Good 1953)."""
    return sum(count == 1 for count in counts) / starts


SHOWN = 10


@dataclass(frozen=True, eq=False)
class Optimum:
    """A distinct optimum of a log density.

    Attributes
    ----------
    starts : int
        Number of starting points that led to this optimum or one of its copies.
    height : float
        Log density at the optimum, in nats, with the Jacobian of the transforms.
    log_evidence : float
        Laplace's estimate of the log integral of the density around the optimum and all its copies, in nats. NaN if it
        is not a peak, or if there are more than 1,000 parameters.
    values : mapping of str to array (*event)
        Value of every parameter at the optimum.
    """

    starts: int
    height: float
    log_evidence: float
    values: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class FoundModes(Shown):
    """The result of `find_modes`.

    Attributes
    ----------
    optima : tuple of Optimum
        Distinct optima, highest first.
    starts : int
        Number of starting points.
    failed : int
        Number of starting points that led to no finite log density.
    unseen : float
        Estimated probability of a new optimum from another start: share of starts whose optimum no other found.
    """

    optima: tuple[Optimum, ...]
    starts: int
    failed: int
    unseen: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        count = len(self.optima)
        ends = "one optimum" if count == 1 else f"{count} optima that no symmetry relates"
        return (
            f"{self.starts} starts led to {ends}, {self.optima[0].starts} of them to the highest. Another start would "
            f"find a new optimum with probability {self.unseen:.2g}."
        )

    def _card(self) -> Card:
        rows = tuple(
            (
                str(n),
                str(o.starts),
                f"{o.height:.2f}",
                "no peak" if math.isnan(o.log_evidence) else f"{o.log_evidence:.2f}",
            )
            for n, o in enumerate(self.optima[:SHOWN])
        )
        heads = ("", "starts", "log density", "Laplace log evidence")
        return Card(self.sentence, (Table(heads, rows, "Highest first, in nats"),))


@checks_arguments
def find_modes(
    target: Target,
    *,
    starts: int = 40,
    init_radius: float = 2.0,
    seed: int = 0,
    client: Any = None,
    progress: bool | None = None,
) -> FoundModes:
    """Find the optima of a target's log density from many random points, modulo its symmetry.

    The search takes seconds and shows whether chains may settle in different modes. An optimum need not be a mode:
    several may lie in one basin, and the highest may have almost no probability. `sample_modes` samples and weights
    the modes that chains can distinguish.

    Parameters
    ----------
    target : Target
        The model conditioned on data, a NumPyro model or a Stan program, with its symmetry declared.
    starts : int
        Number of random points from which L-BFGS climbs.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    seed : int
        Seed of the starting points.
    client : distributed.Client or str, optional
        A Dask cluster, or the address of its scheduler. One of its workers runs the search.
    progress : bool, optional
        Whether to show progress; by default only in terminals and notebooks.

    Returns
    -------
    FoundModes
        Distinct optima, highest first, with the number of starts that led to each. It prints as a table.

    Raises
    ------
    TypeError
        If `target` is not a Target.
    ValueError
        If a number is invalid, or the symmetry exchanges no coordinates of the unconstrained space.
    InferenceError
        If no start leads to a finite log density.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    sample_modes : Run chains in every mode, and weight the modes.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16(5) (L-BFGS-B). Good 1953, Biometrika 40
    (probability of unseen modes).

    Examples
    --------
    >>> found = ob.find_modes(target, starts=10, seed=1)
    >>> len(found.optima), found.optima[0].starts
    (1, 10)
    """
    check_target(target)
    check_count("starts", starts, most=10**6)
    check_positive("init_radius", init_radius)
    check_seed(seed)
    how = {"find_modes": (target, starts, float(init_radius), seed)}
    with ProgressBars(progress) as bars:
        (found,) = spread(client, bars, f"The model {target.name!r}", _found, how)
    return found


def _found(
    bars: ProgressBars, target: Target, starts: int, init_radius: float, seed: int
) -> FoundModes:
    with precision("float64"):
        folding = Folding.of(target, bars.say)
        tops, failed = find_tops(folding, bars, starts, init_radius, seed)
        optima = []
        for top in tops:
            values = folding.density.constrain(jnp.asarray(top.vector))
            arrays = {name: np.asarray(value) for name, value in values.items()}
            optima.append(Optimum(top.starts, top.height, top.log_evidence, arrays))
    counts = [optimum.starts for optimum in optima]
    return FoundModes(tuple(optima), starts, failed, unseen(counts, starts))
