"""The mutual information between a group element and the draw that it moved: its gradient, value and bounds.

A term is a function of the family's parameters whose derivative is the training gradient; only `value` and `report`
estimate the information itself. The estimators "exact" and "fractional" give marginals P, the derivatives of a log sum
over permutations with respect to its entries. "infonce" is differentiated directly. If blocks overlap (several hidden
layers), the gradient is that of the chain with the higher lower bound at this step. If the symmetry couples the parts,
group elements are applied to whole draws: all elements ("exact", small groups) or some ("infonce").

The information is also the gap KL[q || q^G] between the ELBOs of a Gaussian and of its mixture over the symmetry
(Kurle et al. 2021, equation 6; Gelberg et al. 2024, Theorem 4.1), which `mixture_gap` bounds by layer. It is 0 if q is
invariant, for example with all units at the prior, and log |G| if the images of q do not overlap.

With several hidden layers, the layers are revealed in some order, and the gap is the sum of their terms. A term is at
most the layer's information given all other layers (`upper`), and at least its information without the weights shared
with layers still hidden (`lower`). Four orders are tried, and the one with the largest sum is used: from the inputs,
from the outputs, and every second layer first or last, so that each layer keeps all its weights in one of them.
"""

import math
from collections.abc import Iterable, Sequence
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
from .methods import Symmetrised

MAX_EXACT = 12  # Maximum number of parts for which "auto" uses the exact permanent.
MAX_ELEMENTS = 5040  # Order of the largest group whose elements are all applied to a draw.


@dataclass(frozen=True)
class Information:
    """The mutual information of an approximation under a layout's group, with the chosen estimator."""

    layout: SymmetryLayout
    family: MeanField
    choice: str
    settings: Symmetrised

    @property
    def side(self) -> str:
        """The kind of `value`: "exact", or a "lower" bound."""
        few = all(block.size <= MAX_EXACT for block in self.layout.blocks)
        if self.layout.has_parts:
            return "exact" if few and not self.layout.overlaps else "lower"
        return "exact" if self.enumerable else "lower"

    @property
    def enumerable(self) -> bool:
        """Return whether the group is small enough to try all elements."""
        return self.layout.log_order <= math.log(MAX_ELEMENTS) + 1e-9

    def term(self, p: Parameters, key: jax.Array, draws: Draws) -> jax.Array:
        """Return a scalar whose gradient in the parameters, including through the draws, is the training gradient."""
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
        """Return estimates (draw,); `side` says whether their mean is exact or a bound."""
        if not self.layout.has_parts:
            return self._reported(p, key, draws)
        chains = [self._chain_values(p, key, draws, chain) for chain in self.layout.chains()]
        best = jnp.argmax(jnp.stack([jnp.mean(values) for values in chains]))
        return jnp.stack(chains)[best]

    def report(self, p: Parameters, key: jax.Array, draws: Draws) -> Interval:
        """Return both bounds."""
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
        """Return -log of the mean of q(g w) / q(w) over all group elements."""
        own = self.family.log_density(p, draws)
        elements = self.layout.elements()
        log_ratios = jax.lax.map(lambda element: self._moved(p, element, draws) - own, elements)
        return math.log(len(log_ratios)) - jax.nn.logsumexp(log_ratios, axis=0)

    def _sampled(
        self, p: Parameters, key: jax.Array, draws: Draws, num: int, *, identity: bool = True
    ) -> jax.Array:
        """Return the same over random elements; with the identity it is a lower bound (Theorem 4.3 of the paper)."""
        own = self.family.log_density(p, draws)
        log_ratios = jax.lax.map(
            lambda k: self._moved(p, self.layout.random(k), draws) - own,
            jax.random.split(key, num - identity),
        )
        if identity:
            log_ratios = jnp.concatenate([jnp.zeros_like(own)[None], log_ratios])
        return math.log(len(log_ratios)) - jax.nn.logsumexp(log_ratios, axis=0)

    def _moved(self, p: Parameters, element: Element, draws: Draws) -> jax.Array:
        """Return the log densities of draws that are all moved by the same element."""
        return self.family.log_density(p, jax.vmap(partial(self.layout.act, element))(draws))


def layers_of(
    layout: SymmetryLayout,
    family: MeanField,
    p: Parameters,
    draws: Draws,
    orders: Iterable[Sequence[int]],
) -> tuple[list[LogRatios], list[Chain]]:
    """Return the ratios of every layer, and those of its remaining coordinates in each order of revealing."""
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
    """Resolve "auto", and reject an estimator that does not fit the symmetry."""
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
            "`mutual_information` is 'exact', but this symmetry couples the components and has more than "
            f"{MAX_ELEMENTS} elements. Use mutual_information='infonce'."
        )
    elif name == "fractional" and not layout.has_parts:
        raise ArgumentError(
            "`mutual_information` must not be 'fractional', because this symmetry couples the components. Use "
            "mutual_information='infonce'."
        )
    return name


def check_permutations(name: str, permutations: int) -> None:
    """Reject InfoNCE with only the identity."""
    if name == "infonce" and permutations < 2:
        raise ArgumentError(
            f"`permutations` is {permutations}, but InfoNCE needs at least 2: with the identity alone, the bound is "
            "zero."
        )


SYMMETRISED, MEAN_FIELD = "symmetrised-vi", "advi-meanfield"
"""Methods whose posteriors have parameters in a layout's coordinates."""


def fitted(
    target: Target, posterior: xr.DataTree, *, fit: int = 0, evaluation: int | None = None
) -> tuple[SymmetryLayout, MeanField, Parameters]:
    """Return a target's approximation with interchangeable parts, final or at an evaluation of its trace."""
    method = str(posterior.attrs.get(schema.METHOD, "an unknown method"))
    group = posterior[schema.VARIATIONAL].to_dataset() if schema.VARIATIONAL in posterior else None
    if group is None or method not in (SYMMETRISED, MEAN_FIELD) or "loc" not in group:
        by = " on Stan's engine" if method == MEAN_FIELD else ""
        raise ArgumentError(
            "`posterior` must come from `symmetrised_vi`, or from `advi` with family='meanfield' and "
            f"engine='numpyro'; got a posterior from {method!r}{by}."
        )
    check_count("fit", fit, least=0)
    fits = group.sizes.get("chain", 1)
    if fit >= fits:
        raise ArgumentError(f"`fit` is {fit}, but the posterior has {fits} fit(s), counted from 0.")
    group = group.isel(chain=fit) if "chain" in group.dims else group
    layout = layout_of(target)
    if method == MEAN_FIELD and not all(c.exact for c in layout.density.charts.values()):
        raise ArgumentError(
            "`posterior` comes from `advi`, but the coordinates that `advi` uses for a simplex do not move with the "
            "components. Give a posterior from `symmetrised_vi`."
        )
    family = MeanField(layout.density.size)
    if group.sizes["param"] != layout.density.size:
        raise ArgumentError(
            f"`posterior` has {group.sizes['param']} coordinate(s), but the target {target.name!r} has "
            f"{layout.density.size}. Give the target that the posterior approximates."
        )
    if evaluation is not None:
        if schema.LOC_TRACE not in group:
            raise ArgumentError(
                f"`evaluation` is {evaluation}, but the posterior stores only the final parameters. Use `advi` with "
                "trace_parameters=True, or omit `evaluation`."
            )
        check_count("evaluation", evaluation, least=0)
        if evaluation >= (known := group.sizes["evaluation"]):
            raise ArgumentError(
                f"`evaluation` is {evaluation}, but the trace has {known} evaluation(s), counted from 0."
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
    """Bounds of a number in nats, which are equal if the number is exact.

    Attributes
    ----------
    lower, upper : float
        Estimates of the bounds.
    lower_mcse, upper_mcse : float
        Monte Carlo standard errors of the bounds over draws from q.
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
        The gap for all layers together: the ELBO of the mixture minus that of the Gaussian.
    layers : DataFrame
        One row per layer (a block of interchangeable units): `layer` and its number of `units`; the bounds `lower` and
        `upper` of the layer's term with their errors (`lower_mcse`, `upper_mcse`); and its maximum `log_order`.
    log_order : float
        Log of the group's order, which is the maximum of the gap.
    """

    total: Bounds
    layers: pd.DataFrame
    log_order: float

    def _card(self) -> Card:
        """Show the gap, its meaning, and the share of each layer."""
        if self.layers.empty:
            words = "The target has no interchangeable components."
            return Card("There is no mixture to compare with", (Words(words),))
        total = self.total
        value = f"{number(total.lower, 4)} to {number(total.upper, 4)} nats"
        bounds = Words(
            "The mixture over the symmetry has a higher ELBO than the Gaussian, by at least "
            f"{measured(total.lower, total.lower_mcse)} and at most {measured(total.upper, total.upper_mcse)}. The "
            f"maximum for this symmetry is {number(self.log_order, 4)}."
        )
        meaning = Words(
            "The gap is zero if all units are the same, and largest if their distributions do not overlap."
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
        table = Table(heads, rows, "share of each layer, nats")
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
    """Bound the difference between the ELBOs of a Gaussian and of its mixture over the target's symmetry.

    Parameters
    ----------
    target : Target
        The approximated target. Without interchangeable units (a network with skips or ordered biases) the gap is zero.
    posterior : DataTree
        The result of `ob.advi` with family="meanfield" on the NumPyro engine, or of `ob.symmetrised_vi`.
    fit : int
        Number of the fit, from 0.
    evaluation : int, optional
        Number of an evaluation of the trace, from 0 (`ob.advi` with trace_parameters=True); by default the final fit.
    draws : int
        Number of draws from q over which both bounds are averaged, at least 2.
    permutations : int
        Number of permutations of each draw for layers of more than 12 units. More permutations bring the bounds closer.
    seed : int
        Seed of the draws and permutations.

    Returns
    -------
    MixtureGap
        `total` and `layers`, each with a lower and an upper bound and their Monte Carlo errors, in nats.

    Raises
    ------
    TypeError
        If `target` is not a Target, or `posterior` is not a posterior.
    ValueError
        If the posterior comes from another method or target, there is no such fit or evaluation, a number is too
        small, or the symmetry couples the units.

    See Also
    --------
    symmetrised_vi : Maximise the ELBO of the mixture.

    Notes
    -----
    The gap is the mutual information between a group element (permutations of units and, for odd activations, their
    signs) and the draw from q that it moved. It is 0 if the units' distributions are equal, and the logarithm of the
    group's order if they do not overlap.

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
        "posterior", posterior, xr.DataTree, remedy="give the result of an inference method"
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
                "The symmetry of `posterior` couples the components, so the layers have no separate terms. For "
                "bounds on the total, use `symmetrised_vi` and read `information_lower` and `information_upper` in "
                "the group `variational`."
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
    """Return means over draws, clipped to 0 and the log order, with their errors."""
    return Bounds(*map(float, from_values(lower, upper, log_order)))
