"""The gradient of the mutual information, by whichever estimator was chosen, and its value and interval for reports.

A term is a function of the family's parameters whose derivative is the training gradient; its value means nothing by
itself (`value` and `report` do). "exact" and "fractional" give marginals P, the derivative of a log sum over
permutations by its entries; "infonce" is differentiated as it stands. Both go through the draws.

Where blocks overlap (several hidden layers), the gradient is that of the chain whose lower bound is higher at this
step. Where the symmetry couples the parts, group elements are applied to whole draws: all of them
("exact", small groups), or some ("infonce").
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from onebasin.base.errors import ArgumentError

from ..mutual_information.estimators import (
    Chain,
    Interval,
    exact,
    from_values,
    infonce,
    information,
    layered_interval,
    sides,
)
from ..mutual_information.permanent import check_size, training_marginals
from ..mutual_information.ratios import LogRatios
from .gaussians import Draws, MeanField, Parameters
from .layout import Element, PartColumns, SymmetryLayout
from .symmetrised import Symmetrised

MAX_EXACT = 12  # Up to that many parts "auto" takes the exact permanent in training.

MAX_ELEMENTS = 5040  # Largest group whose elements are all applied to a draw.

Term = Callable[[Parameters, jax.Array, jax.Array], jax.Array]
"""A function of the parameters, a key and draws (draw, param), to a scalar."""


@dataclass(frozen=True)
class Information:
    """The mutual information of an approximation under a layout's group, by `Symmetrised.mutual_information`."""

    layout: SymmetryLayout
    family: MeanField
    choice: str
    settings: Symmetrised

    @property
    def side(self) -> str:
        """On which side of the truth `value` lies."""
        few = all(block.size <= MAX_EXACT for block in self.layout.blocks)
        if self.layout.has_parts:
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
        if not self.layout.has_parts and self.choice == "exact":
            return jnp.mean(self.enumerated(p, draws))
        if not self.layout.has_parts or (self.choice == "infonce" and self.layout.overlaps):
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
        """Estimates (draw,), whose mean lies on `side`: exact for few parts, a lower bound for many."""
        if not self.layout.has_parts:
            return self._reported(p, key, draws)
        chains = [self._chain_values(p, key, draws, chain) for chain in self.layout.chains()]
        best = jnp.argmax(jnp.stack([jnp.mean(values) for values in chains]))
        return jnp.stack(chains)[best]

    def report(self, p: Parameters, key: jax.Array, draws: Draws) -> Interval:
        """Both sides."""
        num = max(2, self.settings.report_permutations)
        if self.layout.has_parts:
            both = layers_of(self.layout, self.family, p, draws, self.layout.orders())
            return layered_interval(key, *both, num_permutations=num, max_exact=MAX_EXACT)
        lower = upper = self._reported(p, key, draws)
        if not self.enumerable:
            upper = self._sampled(p, key, draws, num, identity=False)
        return from_values(lower, upper, self.layout.log_order)

    def _part(self, p: Parameters, key: jax.Array, draws: Draws, columns: PartColumns) -> jax.Array:
        ratios = self.family.ratios(p, draws, columns)
        if self.choice == "infonce":
            estimate = infonce(key, ratios, num_permutations=self.settings.permutations)
            return jnp.mean(information(ratios, estimate, control_variate=False))
        fixed = jax.lax.stop_gradient(ratios)
        if self.choice == "fractional":
            marginals = training_marginals(fixed, sweeps=self.settings.sweeps)
        else:
            marginals = exact(key, fixed).marginals
        marginals = jax.lax.stop_gradient(marginals)
        return -jnp.mean(jnp.sum(marginals * ratios.total, axis=(1, 2)))

    def _chain_values(
        self, p: Parameters, key: jax.Array, draws: Draws, chain: tuple[PartColumns, ...]
    ) -> jax.Array:
        total = jnp.zeros(len(draws))
        for columns in chain:
            if columns.index.size:
                num = max(2, self.settings.report_permutations)
                ratios = self.family.ratios(p, draws, columns)
                total = total + sides(key, ratios, num_permutations=num, max_exact=MAX_EXACT)[0]
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
    family: MeanField,
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


def choose_estimator(name: str, layout: SymmetryLayout) -> str:
    """Resolve "auto", and refuse what does not fit."""
    few = layout.log_order <= math.log(MAX_ELEMENTS) + 1e-9
    if name == "auto":
        if not layout.has_parts:
            return "exact" if few else "infonce"
        small = max(block.size for block in layout.blocks) <= MAX_EXACT
        return "exact" if small else "fractional"
    if name == "exact" and layout.has_parts:
        for block in layout.blocks:
            check_size(block.size)
    elif name == "exact" and not few:
        raise ArgumentError(
            f"`mutual_information` is 'exact', but this symmetry couples the components, and the group has more than "
            f"{MAX_ELEMENTS} elements to go through. Use 'infonce'."
        )
    elif name == "fractional" and not layout.has_parts:
        raise ArgumentError(
            "`mutual_information` is 'fractional', which needs separate components; this symmetry couples them. Use "
            "'infonce'."
        )
    return name


def check_permutations(name: str, permutations: int) -> None:
    """Reject InfoNCE with the identity alone."""
    if name == "infonce" and permutations < 2:
        raise ArgumentError(
            f"`permutations` is {permutations}; InfoNCE needs 2 or more, the identity included: with one it is zero."
        )
