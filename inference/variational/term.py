"""The gradient of the mutual information, by whichever estimator was chosen, and its value and interval for reports.

A term is a function of the family's parameters whose derivative is the training gradient; its value means nothing by
itself (`value` and `report` do). "exact" and "fractional" give marginals P, the derivative of a log sum over
permutations by its entries; "infonce" is differentiated as it stands. Both go through the draws.

Where blocks overlap (several hidden layers), the gradient is that of the chain whose lower bound is higher at this
step. Where the symmetry couples the parts, group elements are applied to whole draws: all of them
("exact", small groups), or some ("infonce").

The gap between the ELBOs of a Gaussian and of its mixture over a symmetry: KL[q || q^G], with bounds, by layer.

Source: Kurle et al. 2021, equation 6 (there without numbers); the same as Gelberg et al. 2024, Theorem 4.1, as the
mutual information I(g; g w) of a group element and the draw that it moved. The gap is 0 where q is invariant, as where
all units are at the prior, and log |G| where all its images are apart.

Several hidden layers (`mutual_information.interval`): layers are revealed in an order, and the gap is the sum of their
terms. A term is at most the layer's information with all other layers held (`upper`), and at least what remains without
the weights shared with a layer that is not yet revealed (`lower`). Of several orders the one with the largest sum is
taken: from the inputs, from the outputs, and every second layer first or last, so that every layer is once among those
that keep all their weights.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import partial

import jax
import jax.numpy as jnp
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float

from onebasin.base.card import Card, Shown, Words, measured, number
from onebasin.base.checks import check_class, check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..mutual_information.estimators import (
    Chain,
    Interval,
    LogRatios,
    check_size,
    exact,
    from_values,
    infonce,
    information,
    layer_sides,
    layered_interval,
    sides,
    training_marginals,
)
from .gaussians import (
    Draws,
    Element,
    MeanField,
    Parameters,
    PartColumns,
    SymmetryLayout,
    layout_of,
    sample,
)
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
        """Check whether the group is small enough to be gone through."""
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
    """Resolve "auto", and reject what does not fit."""
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


SYMMETRISED, MEAN_FIELD = "symmetrised-vi", "advi-meanfield"
"""Methods whose posteriors tell parameters in the coordinates of a layout."""


def fitted(
    target: Target, posterior: xr.DataTree, *, fit: int = 0, evaluation: int | None = None
) -> tuple[SymmetryLayout, MeanField, Parameters]:
    """Return the approximation of a target with interchangeable parts, at the end or at an evaluation of its trace."""
    method = str(posterior.attrs.get(schema.METHOD, "an unknown method"))
    group = posterior[schema.VARIATIONAL].to_dataset() if schema.VARIATIONAL in posterior else None
    if group is None or method not in (SYMMETRISED, MEAN_FIELD) or "loc" not in group:
        by = " on Stan's engine" if method == MEAN_FIELD else ""
        raise ArgumentError(
            f"`posterior` was made by {method!r}{by}; give one of `symmetrised_vi`, or of `advi` with "
            "family='meanfield' and engine='numpyro'."
        )
    check_count("fit", fit, least=0)
    fits = group.sizes.get("chain", 1)
    if fit >= fits:
        raise ArgumentError(f"`fit` is {fit}; the posterior has {fits}, counted from 0.")
    group = group.isel(chain=fit) if "chain" in group.dims else group
    layout = layout_of(target)
    if method == MEAN_FIELD and not all(c.exact for c in layout.density.charts.values()):
        raise ArgumentError(
            "`posterior` comes from `advi`, whose simplex coordinates do not move with the components; give a "
            "posterior of "
            "`symmetrised_vi`."
        )
    family = MeanField(layout.density.size)
    if group.sizes["param"] != layout.density.size:
        raise ArgumentError(
            f"`posterior` is of an approximation of {group.sizes['param']} coordinates; the target {target.name!r} "
            f"has {layout.density.size}. Give the target that was approximated."
        )
    if evaluation is not None:
        if schema.LOC_TRACE not in group:
            raise ArgumentError(
                f"`evaluation` is {evaluation}, but the posterior tells its parameters at the end alone; fit it by "
                "`advi` with trace_parameters=True, or leave `evaluation` out."
            )
        check_count("evaluation", evaluation, least=0)
        if evaluation >= (known := group.sizes["evaluation"]):
            raise ArgumentError(
                f"`evaluation` is {evaluation}; the trace has {known}, counted from 0."
            )
        there = group[[schema.LOC_TRACE, schema.SCALE_TRACE]].isel(evaluation=evaluation)
        group = there.rename({schema.LOC_TRACE: "loc", schema.SCALE_TRACE: "scale"})
    kind = jnp.result_type(float)
    described = {str(n): jnp.asarray(group[n].values, kind) for n in group.data_vars}
    return layout, family, family.restore(described)


Values = Float[Array, " draw"]
COLUMNS = ("layer", "units", "lower", "upper", "lower_mcse", "upper_mcse", "log_order")


@dataclass(frozen=True)
class Bounds:
    """Both sides of a number in nats; equal where it is exact.

    Attributes
    ----------
    lower, upper : float
        Between which it lies, up to their errors.
    lower_mcse, upper_mcse : float
        Monte Carlo standard errors over draws of q.
    """

    lower: float
    upper: float
    lower_mcse: float
    upper_mcse: float


@dataclass(frozen=True, eq=False, repr=False)
class MixtureGap(Shown):
    """The divergence of a Gaussian from its symmetric mixture, in nats.

    Attributes
    ----------
    total : Bounds
        Of all layers together: so much higher is the ELBO of the mixture.
    layers : DataFrame
        One row per layer (a block of interchangeable parts): `layer` and its `units`; `lower` and `upper` of the
        layer's term with their errors (`lower_mcse`, `upper_mcse`); `log_order`, the most that it can be.
    log_order : float
        Log order of the group, the most that the gap can be.
    """

    total: Bounds
    layers: pd.DataFrame
    log_order: float

    def _card(self) -> Card:
        """Show the gap, its meaning, and each layer's part."""
        if self.layers.empty:
            words = "The target has no interchangeable components, so that its only mode is mixed with nothing."
            return Card("There is no mixture to compare with", (Words(words),))
        total = self.total
        value = f"{number(total.lower, 4)} to {number(total.upper, 4)} nats"
        bounds = Words(
            "So much higher than the Gaussian's own ELBO is that of its mixture over the symmetry: at least "
            f"{measured(total.lower, total.lower_mcse)}, at most {measured(total.upper, total.upper_mcse)}, and never "
            f"more than {number(self.log_order, 4)}."
        )
        meaning = Words(
            "It is zero where all units are the same, and largest where all of them are apart."
        )
        heads = ("", "units", "gap ≥", "gap ≤", "most")
        rows = tuple(
            (
                row.layer,
                str(row.units),
                *(number(v, 4) for v in (row.lower, row.upper, row.log_order)),
            )
            for row in self.layers.itertuples()
        )
        table = Table(heads, rows, "each layer's part, nats")
        return Card(f"Gap to the symmetric mixture: {value}", (bounds, meaning, table))


@checks_arguments
def mixture_gap(
    target: Target,
    posterior: xr.DataTree,
    *,
    fit: int = 0,
    evaluation: int | None = None,
    draws: int = 200,
    permutations: int = 50,
    seed: int = 0,
) -> MixtureGap:
    """Bound by how much the ELBO of a Gaussian lies below that of its mixture over the target's symmetry.

    Parameters
    ----------
    target : Target
        What was approximated. Without interchangeable parts (a network with skips or ordered biases) the gap is zero.
    posterior : DataTree
        Of `ob.advi` with family="meanfield" on the NumPyro engine, or of `ob.symmetrised_vi`.
    fit : int
        Which fit, of several.
    evaluation : int, optional
        At which evaluation of the trace, from 0 (of `ob.advi` with trace_parameters=True); by default at the end.
    draws : int
        Draws of q over which both sides are averaged, at least 2.
    permutations : int
        Permutations of each draw where a layer has more than 12 units; more bring the sides together.
    seed : int
        Seed of draws and permutations.

    Returns
    -------
    MixtureGap
        `total` and `layers`, each with a lower and an upper side and their Monte Carlo errors, in nats. Shows itself in
        words.

    Raises
    ------
    TypeError
        If `target` is not a target, or `posterior` no posterior.
    ValueError
        If the posterior is of another method or target, there is no such fit or evaluation, a number is too small, or
        the symmetry couples the parts.

    See Also
    --------
    symmetrised_vi : trains with the mixture's ELBO.

    Notes
    -----
    The gap is the mutual information of a group element (permutations of units and, for odd activations, their signs)
    and the draw of q that it moved. It lies between 0, where the units' distributions are equal, and the logarithm of
    the group's order, where they are apart.

    References
    ----------
    Kurle, Januschowski, Gasthaus and Wang 2021, On symmetries in variational Bayesian neural nets, equation 6.

    Examples
    --------
    >>> network = ob.networks.BayesianNetwork(ob.networks.Network(1, (3,), 1, "tanh"))
    >>> target = network.condition(x, np.sin(x))
    >>> fit = ob.advi(target, iterations=200, draws=10)
    >>> gap = ob.approximations.mixture_gap(target, fit)
    >>> bool(0 <= gap.total.lower <= np.log(2**3 * 6))
    True
    >>> list(gap.layers["layer"])
    ['hidden1']
    """
    check_target(target)
    check_class(
        "posterior", posterior, xr.DataTree, remedy="give what an inference method returned"
    )
    check_count("draws", draws, least=2, most=10**6)
    check_count("permutations", permutations, most=10**6)
    seed = check_seed(seed)
    if not equal_modes(target.symmetry):
        return MixtureGap(Bounds(0.0, 0.0, 0.0, 0.0), pd.DataFrame(columns=COLUMNS), 0.0)
    with precision("float64"):
        layout, family, p = fitted(target, posterior, fit=fit, evaluation=evaluation)
        if not layout.has_parts:
            raise ArgumentError(
                "`posterior` has components that the symmetry couples, so that layers have no "
                "separate terms. For a fit of `symmetrised_vi`, the group `variational` has bounds of the total: "
                "`information_lower` and `information_upper`."
            )
        key_draws, key_terms = jax.random.split(key_for(Purpose.MIXTURE_GAP, seed))
        drawn = sample(family, p, key_draws, draws)
        names = [
            f"hidden{number}" if target.is_network else ", ".join(block.sites)
            for number, block in enumerate(layout.blocks, start=1)
        ]
        ahead = range(len(layout.blocks))
        first, second = (*ahead[::2],), (*ahead[1::2],)
        orders = [*map(tuple, layout.orders()), first + second, second + first]
        both = layers_of(
            layout, family, p, drawn, dict.fromkeys(orders if layout.overlaps else orders[:1])
        )
        key_terms = jax.random.fold_in(key_terms, 0)
        lower, upper = layer_sides(
            key_terms, *both, num_permutations=permutations, max_exact=MAX_EXACT
        )
        rows = [
            (name, block.size, *astuple(_bounds(low, high, block.log_order)), block.log_order)
            for name, block, low, high in zip(names, layout.blocks, lower, upper, strict=True)
        ]
        most = layout.log_order
        total = _bounds(jnp.sum(lower, axis=0), jnp.sum(upper, axis=0), most)
        return MixtureGap(total, pd.DataFrame(rows, columns=COLUMNS), most)


def _bounds(lower: Values, upper: Values, log_order: float) -> Bounds:
    """Means over draws within 0 and the log order, and their errors."""
    return Bounds(*map(float, from_values(lower, upper, log_order)))
