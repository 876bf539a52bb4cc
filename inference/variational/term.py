"""The gradient of the mutual information, by whichever estimator was chosen, and its value and interval for reports.

A term is a function of the family's parameters whose derivative is the training gradient; its value means nothing by
itself (`value` and `report` do). How each choice makes the gradient:

- "exact", "fractional", "importance" and "bethe" give marginals P, and the Rao-Blackwellised path gradient follows
  from them (`mutual_information.path_gradient`) for mean-field families; for others, the derivative through the draws
  with P fixed;
- "barber_agakov" and "infonce" are differentiated as they stand, through the draws.

Where blocks overlap (several hidden layers), the gradient is that of the chain whose lower bound is higher at this
step. Where the family or the symmetry couples the parts, group elements are applied to whole draws: all of them
("exact", small groups), or some ("infonce").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from onebasin.base.errors import ArgumentError

from ..mutual_information.estimators import (
    Estimator,
    barber_agakov,
    bethe,
    exact,
    importance,
    infonce,
    information,
)
from ..mutual_information.gradient import path_gradient
from ..mutual_information.interval import Chain, Interval, from_values, layered_interval
from ..mutual_information.messages import training_marginals
from ..mutual_information.permanent import check_size
from ..mutual_information.ratios import LogRatios
from .gaussians import Draws, GaussianFamily, MeanField, Parameters
from .layout import Element, PartColumns, SymmetryLayout
from .symmetrised import Symmetrised

MAX_EXACT = 12
"""Up to so many parts "auto" takes the exact permanent in training."""

MAX_ELEMENTS = 5040
"""Largest group whose elements are all applied to a draw."""

DIFFERENTIATED = ("barber_agakov", "infonce")
"""Choices whose bound itself is differentiated."""

Term = Callable[[Parameters, jax.Array, jax.Array], jax.Array]
"""A function of the parameters, a key and draws (draw, param), to a scalar."""


@dataclass(frozen=True)
class Information:
    """The mutual information of a family under a layout's group, by a choice of `Symmetrised.mutual_information`."""

    layout: SymmetryLayout
    family: GaussianFamily
    choice: str
    settings: Symmetrised

    @property
    def by_parts(self) -> bool:
        """Tell whether permanents apply, or group elements are applied to whole draws."""
        return self.layout.has_parts and self.family.factorises

    @property
    def side(self) -> str:
        """On which side of the truth `value` lies."""
        few = all(block.size <= MAX_EXACT for block in self.layout.blocks)
        if self.by_parts:
            return "exact" if few and not self.layout.overlaps else "lower"
        return "exact" if self.enumerable else "lower"

    @property
    def enumerable(self) -> bool:
        """Tell whether the group is small enough to be gone through."""
        return self.layout.log_order <= math.log(MAX_ELEMENTS) + 1e-9

    def term(self, p: Parameters, key: jax.Array, draws: Draws) -> jax.Array:
        """A scalar whose derivative in the parameters is the training gradient; `draws` depend on them too."""
        if self.choice == "none":
            return jnp.zeros(())
        if not self.by_parts and self.choice == "exact":
            return jnp.mean(self.enumerated(p, draws))
        if not self.by_parts or (self.choice == "infonce" and self.layout.overlaps):
            return jnp.mean(self._sampled(p, key, draws, self.settings.permutations))
        chains = self.layout.chains()
        each = [[self._part(p, key, draws, c) for c in chain if c.index.size] for chain in chains]
        terms = [sum(parts, jnp.zeros(())) for parts in each]
        if len(terms) == 1:
            return terms[0]
        fixed = jax.lax.stop_gradient(p)
        still = jax.lax.stop_gradient(draws)
        values = [jnp.mean(self._chain_values(fixed, key, still, chain)) for chain in chains]
        return jnp.where(values[0] >= values[1], terms[0], terms[1])

    def value(self, p: Parameters, key: jax.Array, draws: Draws) -> jax.Array:
        """Estimates (draw,), whose mean lies on `side`: exact for few parts, Barber-Agakov's bound for many."""
        if not self.by_parts:
            return self._reported(p, key, draws)
        chains = [self._chain_values(p, key, draws, chain) for chain in self.layout.chains()]
        best = jnp.argmax(jnp.stack([jnp.mean(values) for values in chains]))
        return jnp.stack(chains)[best]

    def report(self, p: Parameters, key: jax.Array, draws: Draws) -> Interval:
        """Both sides."""
        num = self.settings.report_permutations
        if self.by_parts:
            both = layers_of(self.layout, self.family, p, draws, self.layout.orders())
            return layered_interval(key, *both, num_permutations=num, max_exact=MAX_EXACT)
        lower = upper = self._reported(p, key, draws)
        if not self.enumerable:
            upper = self._sampled(p, key, draws, num, identity=False)
        return from_values(lower, upper, self.layout.log_order, jnp.ones_like(lower))

    def _part(self, p: Parameters, key: jax.Array, draws: Draws, columns: PartColumns) -> jax.Array:
        if isinstance(self.family, MeanField) and self.choice not in DIFFERENTIATED:
            return self._path(p, key, draws, columns)
        ratios = self.family.ratios(p, draws, columns)
        if self.choice in DIFFERENTIATED:
            estimate = self._estimator()(key, ratios)
            return jnp.mean(information(ratios, estimate, control_variate=False))
        # The derivative of a log sum over permutations by its entries is P.
        marginals = self._marginals(key, jax.lax.stop_gradient(ratios))
        return -jnp.mean(jnp.sum(marginals * ratios.total, axis=(1, 2)))

    def _path(self, p: Parameters, key: jax.Array, draws: Draws, columns: PartColumns) -> jax.Array:
        """The Rao-Blackwellised gradient, as the derivative of an inner product."""
        fixed, still = jax.lax.stop_gradient(p), jax.lax.stop_gradient(draws)
        index = columns.index
        ratios = self.family.ratios(fixed, still, columns)
        scale = jnp.exp(fixed["log_scale"])[index]
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        slopes = path_gradient(
            still[:, index],
            fixed["loc"][index],
            scale,
            self._marginals(key, ratios),
            flips=flips,
            flip_probability=None if flips is None else ratios.flip_probability,
        )
        by_loc, by_scale = (jnp.mean(slope, axis=0) for slope in slopes)
        return jnp.sum(by_loc * p["loc"][index]) + jnp.sum(by_scale * scale * p["log_scale"][index])

    def _marginals(self, key: jax.Array, ratios: LogRatios) -> jax.Array:
        if self.choice == "fractional":
            found = training_marginals(ratios, sweeps=self.settings.sweeps)
        else:
            found = self._estimator()(key, ratios).marginals
        return jax.lax.stop_gradient(found)

    def _estimator(self) -> Estimator:
        num = self.settings.permutations
        known: dict[str, Estimator] = {
            "exact": exact,
            "bethe": bethe,
            "barber_agakov": partial(barber_agakov, sweeps=self.settings.sweeps),
            "importance": partial(importance, num_permutations=num),
            "infonce": partial(infonce, num_permutations=num),
        }
        return known[self.choice]

    def _chain_values(
        self, p: Parameters, key: jax.Array, draws: Draws, chain: tuple[PartColumns, ...]
    ) -> jax.Array:
        total = jnp.zeros(len(draws))
        for columns in chain:
            if columns.index.size:
                ratios = self.family.ratios(p, draws, columns)
                estimator = exact if ratios.num_parts <= MAX_EXACT else barber_agakov
                total = total + information(ratios, estimator(key, ratios))
        return total

    def _reported(self, p: Parameters, key: jax.Array, draws: Draws) -> jax.Array:
        if self.enumerable:
            return self.enumerated(p, draws)
        return self._sampled(p, key, draws, max(2, self.settings.report_permutations))

    def enumerated(self, p: Parameters, draws: Draws) -> jax.Array:
        """-log of the mean of q(g w) / q(w) over all group elements."""
        own = self.family.log_density(p, draws)
        log_ratios = jax.lax.map(
            lambda element: self._moved(p, element, draws) - own, self.layout.elements()
        )
        return math.log(len(log_ratios)) - jax.nn.logsumexp(log_ratios, axis=0)

    def _sampled(
        self, p: Parameters, key: jax.Array, draws: Draws, num: int, *, identity: bool = True
    ) -> jax.Array:
        """The same over random elements, with the identity for the lower side (Theorem 4.3 of the paper)."""
        own = self.family.log_density(p, draws)
        log_ratios = jax.lax.map(
            lambda k: self._moved(p, self.layout.random(k), draws) - own,
            jax.random.split(key, num - identity),
        )
        if identity:
            log_ratios = jnp.concatenate([jnp.zeros_like(own)[None], log_ratios])
        return math.log(len(log_ratios)) - jax.nn.logsumexp(log_ratios, axis=0)

    def _moved(self, p: Parameters, element: Element, draws: Draws) -> jax.Array:
        """Log densities of draws, each moved by the same element."""
        return self.family.log_density(p, jax.vmap(partial(self.layout.act, element))(draws))


def layers_of(
    layout: SymmetryLayout,
    family: GaussianFamily,
    p: Parameters,
    draws: Draws,
    orders: Iterable[Sequence[int]],
) -> tuple[list[LogRatios], list[Chain]]:
    """The ratios of every layer, and of what is left of each in orders of revealing."""
    full = [family.ratios(p, draws, layout.columns(block)) for block in layout.blocks]
    chains = [
        Chain(
            (layer, family.ratios(p, draws, columns))
            for layer, columns in zip(order, layout.chain(order), strict=True)
            if columns.index.size
        )
        for order in orders
    ]
    return full, chains


def choose_estimator(name: str, family: GaussianFamily, layout: SymmetryLayout) -> str:
    """Resolve "auto", and refuse what does not fit."""
    by_parts = layout.has_parts and family.factorises
    few = layout.log_order <= math.log(MAX_ELEMENTS) + 1e-9
    if name == "auto":
        small = max(block.size for block in layout.blocks) <= MAX_EXACT
        return ("exact" if small else "fractional") if by_parts else ("exact" if few else "infonce")
    if name == "exact":
        if by_parts:
            for block in layout.blocks:
                check_size(block.size)
        elif not few:
            raise ArgumentError(
                f"`mutual_information` is 'exact', but this family or symmetry couples the components, and the group "
                f"has more than {MAX_ELEMENTS} elements to go through. Use 'infonce', or family='meanfield'."
            )
    elif name not in ("none", "infonce") and not by_parts:
        raise ArgumentError(
            f"`mutual_information` is {name!r}, which needs components that are independent under q; this family or "
            "symmetry couples them. Use 'infonce', or family='meanfield'."
        )
    return name


def check_permutations(name: str, permutations: int) -> None:
    """Refuse InfoNCE with the identity alone."""
    if name == "infonce" and permutations < 2:
        raise ArgumentError(
            f"`permutations` is {permutations}; InfoNCE needs 2 or more, the identity included: with one it is zero."
        )
