"""A fitted approximation from its posterior, and the log density of it and of its average over the group, anywhere.

log q^G(w) = log q(w) + sum over blocks of (l(w) - log |G|), with l(w) the log sum over the group of q(g w) / q(w) (a
log permanent). Up to 12 parts it is exact. Beyond, Bethe's free energy lies below l(w) and Sinkhorn's dual above it,
at every point: the interval is certain, and wide (Sinkhorn's side by up to about a nat a part).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..density.start import check_names
from ..mutual_information import bethe, exact, sinkhorn
from .gaussians import GaussianFamily, Parameters, family_of
from .layout import SymmetryLayout, layout_of
from .symmetrised import Symmetrised
from .term import MAX_EXACT, Information

SYMMETRISED, MEAN_FIELD = "symmetrised-vi", "advi-meanfield"
"""Methods whose posteriors tell parameters in the coordinates of a layout."""


def fitted(
    target: Target, posterior: xr.DataTree, *, fit: int = 0, evaluation: int | None = None
) -> tuple[SymmetryLayout, GaussianFamily, Parameters]:
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
            "`posterior` is of `advi`, whose coordinates of a simplex no exchange of its weights moves; give one of "
            "`symmetrised_vi`."
        )
    family = family_of(
        str(posterior.attrs.get(schema.FAMILY, "meanfield")), layout, group.sizes.get("rank", 1)
    )
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


@dataclass(frozen=True)
class LogDensities:
    """Log densities at points, in the unconstrained space, complete.

    Attributes
    ----------
    base : array (point,)
        log q.
    lower, upper : array (point,)
        Below and above log q^G; equal where it is exact.
    """

    base: Float[np.ndarray, " point"]
    lower: Float[np.ndarray, " point"]
    upper: Float[np.ndarray, " point"]


def log_density(
    target: Target, posterior: xr.DataTree, values: Mapping[str, Any], *, fit: int = 0
) -> LogDensities:
    """Log densities of a fitted approximation and of its average over the group.

    `values` holds every variable at some points, (point, ...), in the natural space. A weight vector that has more
    coordinates here than its values say is refused, and so are components that are coupled in a group too large to go
    through.
    """
    if str(posterior.attrs.get(schema.METHOD)) != SYMMETRISED:
        raise ArgumentError(
            f"`posterior` was made by {posterior.attrs.get(schema.METHOD, 'an unknown method')!r}; give one of "
            "`symmetrised_vi`."
        )
    layout, family, p = fitted(target, posterior, fit=fit)
    check_names(values, tuple(layout.density.charts))
    loose = [name for name, chart in layout.density.charts.items() if not chart.exact]
    if loose:
        raise ArgumentError(
            f"`values` of {', '.join(loose)} do not tell where they stand among q's coordinates, of which there is "
            "one more than a simplex has. The density of q is known for targets without exchangeable simplex weights."
        )
    points = jax.vmap(layout.density.unconstrain)({n: jnp.asarray(v) for n, v in values.items()})
    base, lower, upper = average_log_density(layout, family, p, points)
    return LogDensities(np.asarray(base), np.asarray(lower), np.asarray(upper))


def average_log_density(
    layout: SymmetryLayout, family: GaussianFamily, p: Parameters, points: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The log density of q, and below and above log q^G, of points (point, param)."""
    base = family.log_density(p, points)
    information = Information(layout, family, "none", Symmetrised())
    if not information.by_parts or layout.overlaps:
        if not information.enumerable:
            raise ArgumentError(
                "`target` has components that the family or the symmetry couples (several hidden layers do), and a "
                "group too large to go through: the density of the average over it is not known. `symmetrised_vi` "
                "reports bounds of its ELBO."
            )
        both = base - information.enumerated(p, points)
        return base, both, both
    key = jax.random.key(0)  # none of the three draws anything
    lower = upper = base - layout.log_order
    for block in layout.blocks:
        ratios = family.ratios(p, points, layout.columns(block))
        sides = (exact(), exact()) if block.size <= MAX_EXACT else (bethe(), sinkhorn())
        low, high = (jax.jit(side)(key, ratios).log_sum for side in sides)
        lower, upper = lower + low, upper + high
    return base, lower, upper
