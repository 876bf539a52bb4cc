"""Points moved to the copy, modulo a symmetry, that is nearest to a reference.

A group of |G| elements has |G| copies of every point (fewer of one that an element leaves in place). Those whose
nearest copy is the point itself are one |G|-th of the space: a fundamental domain, whatever the reference and the
weights of the distance, as long as no element leaves the reference in place. An integral over the space of what the
group leaves alone is |G| times the integral over that part.

Convention: points (point, param) in charts in which the group permutes coordinates and changes their signs
(`variational.layout`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.target import Target

from ..density.network import density_of
from ..density.numpyro import NumpyroDensity
from ..density.stan_vectors import StanVectors
from ..variational.layout import Block, Layout, layout_of

ENUMERATED = 1000
"""Elements of a group that are all tried; of a larger one, parts are assigned block by block."""
SWEEPS = 20
"""Over blocks that share coordinates, at most."""

Points = Float[np.ndarray, "point param"]
Vector = Float[np.ndarray, " param"]


@dataclass(frozen=True, eq=False)
class Folding:
    """A target's density, and its symmetry there, if any.

    Attributes
    ----------
    density : NumpyroDensity or StanVectors
        In charts in which the group moves coordinates.
    layout : Layout or None
        None without a symmetry.
    """

    density: NumpyroDensity | StanVectors
    layout: Layout | None = None

    @classmethod
    def of(cls, target: Target, progress: Callable[[str], None] | None = None) -> Folding:
        """The density and the declared symmetry of a target.

        Raises
        ------
        ValueError
            If the symmetry exchanges no coordinates, or is too large where parts cannot be assigned.
        """
        if not equal_modes(target.symmetry):
            return cls(density_of(target, progress))
        layout = layout_of(target, progress)
        if layout.log_order > math.log(ENUMERATED) and not layout.has_parts:
            raise ArgumentError(
                f"`target` {target.name!r} declares a symmetry of {math.exp(layout.log_order):.3g} elements, and "
                f"its parts do not stand apart (a matrix has them along two axes), so that {ENUMERATED} can be gone "
                "through; sample it by `nuts`."
            )
        return cls(layout.density, layout)

    @property
    def log_order(self) -> float:
        """Log order of the group."""
        return 0.0 if self.layout is None else self.layout.log_order

    def fold(
        self, points: Points, reference: Vector, weight: Vector
    ) -> tuple[Points, Bool[np.ndarray, " point"]]:
        """Each point's copy nearest to a reference, and whether that is the point itself.

        Parameters
        ----------
        points : array (point, param)
            Any.
        reference, weight : array (param,)
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
        """Log of how many copies a point has: fewer than elements where some leave it in place.

        Of groups too large to go through, all elements are taken to move it.
        """
        if self.layout is None or self.layout.log_order > math.log(ENUMERATED):
            return self.log_order
        source, sign = self._elements
        same = np.isclose(sign * point[source], point, rtol=1e-6, atol=1e-6).all(axis=1)
        return self.log_order - math.log(same.sum())

    @cached_property
    def _elements(
        self,
    ) -> tuple[Int[np.ndarray, "element param"], Int[np.ndarray, "element param"]]:
        """Of every element, the identity first, which coordinate comes to each place, and its sign."""
        assert self.layout is not None
        numbered = jnp.arange(1, self.density.size + 1, dtype=float)
        moved = np.asarray(jax.vmap(self.layout.act, (0, None))(self.layout.elements(), numbered))
        return np.abs(moved).astype(int) - 1, np.sign(moved).astype(int)

    def _of_all(
        self, points: Points, reference: Vector, weight: Vector
    ) -> tuple[Points, Bool[np.ndarray, " point"]]:
        cost, chosen = np.full(len(points), np.inf), np.zeros(len(points), int)
        source, sign = self._elements
        for number, (places, signs) in enumerate(zip(source, sign, strict=True)):
            own = ((points[:, places] * signs - reference) ** 2) @ weight
            chosen, cost = np.where(own < cost, number, chosen), np.minimum(own, cost)
        moved = np.take_along_axis(points, source[chosen], axis=1) * sign[chosen]
        return moved, chosen == 0

    def _assigned(
        self, block: Block, points: Points, reference: Vector, weight: Vector
    ) -> tuple[Points, Bool[np.ndarray, " point"]]:
        """Give each place of a block the part that suits it best: an assignment a point, exact for one block."""
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
