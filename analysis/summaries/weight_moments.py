"""Mean and standard deviation of every weight and bias of a network, of a Gaussian fit or of draws.

Convention: in the natural space. Of a mean-field fit they follow from its parameters (`loc`, `scale`) without Monte
Carlo error: free weights and biases are their own coordinates, and ordered biases are b_1 = z_1, b_k = b_(k-1) +
exp(z_k), a sum of independent terms. Of anything else they are those of the draws, all chains pooled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from .elbo import elbo

if TYPE_CHECKING:
    from onebasin.models.networks.architecture import Layer
    from onebasin.models.networks.bayesian import BayesianNetwork


Vector = Float[np.ndarray, " param"]
Entries = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class WeightMoments:
    """Moments of a network's weights and biases, by name, each of its parameter's shape.

    `coordinates` are mean and standard deviation of the coordinates z of ordered biases of a mean-field fit. `exact`
    moments are those of independent normals (of ordered biases, of their coordinates), and so tell all.
    """

    mean: Entries
    sd: Entries
    exact: bool
    coordinates: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)


def weight_moments(
    view: View, model: BayesianNetwork, *, evaluation: int | None = None
) -> WeightMoments:
    """Find the moments of a posterior of a network; of several fits, of the one with the highest ELBO.

    `evaluation` asks for a mean-field fit as it was at an evaluation of the ELBO, from 0 or from the end; it is refused
    where parameters were not kept while the fit trained.
    """
    fit = view.group(schema.VARIATIONAL)
    best = None
    if fit is not None and "chain" in fit.sizes:
        best = elbo(view).best
        fit = fit.isel(chain=best)
    vectors = _vectors(view, fit, evaluation)
    sizes = {name: int(np.prod(shape)) for name, shape in model.network.shapes.items()}
    total = sum(sizes.values()) + model.infers_noise
    mean: dict[str, np.ndarray] = {}
    sd: dict[str, np.ndarray] = {}
    if vectors is None or model.parametrisation.unit_norm or len(vectors[0]) != total:
        for name in model.network.shapes:
            draws = np.asarray(view.values(name), np.float64)
            draws = draws if best is None else draws[best : best + 1]
            mean[name] = draws.mean(axis=(0, 1))
            several = draws.shape[0] * draws.shape[1] > 1
            sd[name] = draws.std(axis=(0, 1), ddof=1) if several else 0 * mean[name]
        return WeightMoments(mean, sd, exact=False)
    # Coordinates stand in the order of the variables' names, entries in C order.
    shapes = dict(model.network.shapes) | ({"sigma": ()} if model.infers_noise else {})
    coordinates, first = {}, 0
    for name in sorted(shapes):
        size = int(np.prod(shapes[name]))
        own = [vector[first : first + size].reshape(shapes[name]) for vector in vectors]
        first += size
        if name == "sigma":
            continue
        if name in ordered_biases(model):
            loc, scale = own
            coordinates[name] = (loc, scale)
            # Moments of z_1, z_1 + exp(z_2), ...: sums of a normal and of independent lognormals.
            steps = np.exp(loc[1:] + scale[1:] ** 2 / 2)
            variances = np.expm1(scale[1:] ** 2) * steps**2
            variances = np.cumsum(np.concatenate([scale[:1] ** 2, variances]))
            own = [np.cumsum(np.concatenate([loc[:1], steps])), np.sqrt(variances)]
        mean[name], sd[name] = own
    return WeightMoments(mean, sd, True, coordinates)


def _vectors(
    view: View, fit: xr.Dataset | None, evaluation: int | None
) -> tuple[Vector, Vector] | None:
    """Mean and standard deviation of a mean-field fit's coordinates; None of anything else."""
    names = ("loc", "scale") if evaluation is None else (schema.LOC_TRACE, schema.SCALE_TRACE)
    # With a factor, `scale` is a part of the spread; without `scale`, traces are of coordinates that depend.
    if fit is not None and not ({"scale", *names} <= set(fit) and "factor" not in fit):
        fit = None
    if evaluation is None:
        if fit is None:
            return None
        return tuple(np.asarray(fit[name].values, np.float64) for name in names)  # type: ignore[return-value]
    if fit is None:
        raise ArgumentError(
            f"`evaluation` is {evaluation!r}, but `{view.argument}` keeps no parameters of a mean-field fit while it "
            "trained: use a fit with `trace_parameters=True`, or None for the end."
        )
    traces = [np.asarray(fit[n].transpose("evaluation", ...).values, np.float64) for n in names]
    num = len(traces[0])
    if not -num <= evaluation < num:
        raise ArgumentError(
            f"`evaluation` is {evaluation}, and there are {num}: choose one from 0 to {num - 1}."
        )
    return traces[0][evaluation], traces[1][evaluation]


def ordered_biases(model: BayesianNetwork) -> dict[str, Layer]:
    """The layers whose biases increase, by the biases' name."""
    if model.parametrisation.biases != "ordered":
        return {}
    return {layer.bias: layer for layer in model.network.layers if layer.hidden and layer.bias}
