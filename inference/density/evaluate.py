"""A target's log density at points of a user's choice, on either engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class
from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..contracts.engines import defined_by, density_by

Points = xr.DataTree | xr.Dataset | Mapping[str, Any]


def log_density(
    target: Target,
    points: Points,
    *,
    engine: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> xr.DataArray:
    """Evaluate a target's log density, log prior plus log likelihood, at values of its parameters.

    Two programs state the same model where their log densities differ by one constant: Stan's `~` leaves out what does
    not depend on parameters, NumPyro keeps it. Compare differences between points, or take the mean off.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    points : DataTree, Dataset or mapping
        Draws with the axes `chain` and `draw`, of a posterior or of its group `posterior`, all of them evaluated
        (`posterior.posterior.ds.isel(draw=slice(None, None, 50))` takes every 50th); or one point, name to value.
    engine : {"numpyro", "stan"}, optional
        Whose definition is evaluated; by default the one that the target has, NumPyro's where it has both.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    DataArray (chain, draw), or without axes for one point
        In nats and in double precision, on the constrained scale: no Jacobian is in it, as there is in `lp` of the
        group `sample_stats`. -inf outside the support.

    Raises
    ------
    TypeError
        If `points` are of another class.
    ValueError
        If a parameter is missing, or the target has no definition for the engine.
    StanError
        If Stan cannot compile or run the program.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> import onebasin as ob
    >>> target = ob.Target("a normal", numpyro_model=lambda: numpyro.sample("x", dist.Normal(0, 1)))
    >>> round(float(ob.log_density(target, {"x": 0.0})), 3)
    -0.919
    """
    check_target(target)
    remedy = "give a posterior, a Dataset of draws, or a mapping of parameters to values"
    check_class("points", points, xr.DataTree | xr.Dataset | Mapping, remedy=remedy)
    with precision("float64"):
        density = density_by(defined_by(target, engine), target, progress)
        values, shape = _flat(points, density.names)
        found = np.asarray(density.log_density(values), dtype=np.float64)
    return xr.DataArray(found.reshape(tuple(shape.values())), dims=tuple(shape), name="log_density")


def _flat(points: Points, names: tuple[str, ...]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Values with one leading axis of points, and the axes that it stands for."""
    if isinstance(points, xr.DataTree):
        held = points[schema.POSTERIOR] if schema.POSTERIOR in points.children else points
        points = held.to_dataset()
    if absent := [name for name in names if name not in points]:
        raise ArgumentError(
            f"`points` lack {', '.join(f'`{name}`' for name in absent)}; give every parameter of the target: "
            f"{', '.join(names)}."
        )
    if not isinstance(points, xr.Dataset):
        return {n: np.asarray(points[n], dtype=np.float64)[None] for n in names}, {}
    arrays = {n: points[n].transpose(*schema.SAMPLE_DIMS, ...) for n in names}
    shape = {dim: points.sizes[dim] for dim in schema.SAMPLE_DIMS}
    return {
        n: a.values.astype(np.float64).reshape(-1, *a.shape[2:]) for n, a in arrays.items()
    }, shape
