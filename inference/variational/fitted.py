"""A fitted approximation from its posterior."""

from __future__ import annotations

import jax.numpy as jnp
import xarray as xr

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError
from onebasin.models.target import Target
from onebasin.posteriors import schema

from .gaussians import GaussianFamily, Parameters, family_of
from .layout import SymmetryLayout, layout_of

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
