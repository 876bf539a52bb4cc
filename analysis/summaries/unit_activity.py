"""Activity of every hidden unit in a fit: divergence from the prior, signal to noise, and which units are active.

Convention: divergences are KL[q || prior] in nats, of independent normals from their means and sds: exact of a
mean-field fit; of any other draws a lower bound, since among distributions of these moments the normal one is nearest
to a normal prior, and dependence only adds. The signal of a weight is its mean's size over its sd.

A unit that a mean-field fit has pruned has outgoing weights at zero, so that nothing it does is seen; then nothing
keeps its incoming weights from the prior, and they return to it (Trippe and Turner 2018). So a unit is called active
if one of its weights to an active unit of the next layer, or to an output, has a signal above `THRESHOLD`: what goes
to units that pass nothing on is not seen either. Orthogonal skips pass on what any unit gets. Divergences do not tell:
those of outgoing weights are large where a unit is pruned, as zero is not the prior, and those of incoming ones reach
their small values late in training.

Mean and standard deviation of every weight and bias of a network, of a Gaussian fit or of draws.

Convention: in the natural space. Of a mean-field fit they follow from its parameters (`loc`, `scale`) without Monte
Carlo error: free weights and biases are their own coordinates, and ordered biases are b_1 = z_1, b_k = b_(k-1) +
exp(z_k), a sum of independent terms. Of anything else they are those of the draws, all chains pooled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.arguments import checks_arguments
from onebasin.base.card import Card, Words, number
from onebasin.base.checks import check_positive
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.base.table import Table
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, View, as_view

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


THRESHOLD = 1.0
"""Standard deviations that a weight's mean has to be from zero to carry a signal."""


@dataclass(frozen=True, eq=False, repr=False)
class UnitActivity(Shown):
    """Divergences and signals of a network's hidden units.

    Attributes
    ----------
    units : DataFrame
        A row a hidden unit, by `layer` (``hidden1``, ...) and `unit`: `kl_in`, `kl_bias` and `kl_out`, the divergence
        of its incoming weights, its bias and its outgoing weights from the prior in nats (NaN where there are none, of
        weights of unit norm, and of ordered biases, which have a divergence together alone); `snr_in` and `snr_out`,
        the largest size of a mean over its sd among incoming and outgoing weights; `active`, whether an outgoing one
        exceeds `threshold` that leads to an output or to an active unit.
    layers : DataFrame
        A row a layer, the last one too: hidden `units`, how many are `active`, and the divergence of all its
        `kl_weights` and `kl_biases` in nats.
    threshold : float
        The size of a mean over its sd above which a weight carries a signal.
    exact : bool
        Whether divergences are those of a mean-field fit; else they are lower bounds.
    """

    units: pd.DataFrame
    layers: pd.DataFrame
    threshold: float
    exact: bool

    @property
    def kl(self) -> float:
        """Divergence of all weights and biases from the prior in nats, or a lower bound of it."""
        return float(np.nansum(self.layers[["kl_weights", "kl_biases"]].to_numpy()))

    @property
    def num_active(self) -> int:
        """Hidden units that are active."""
        return int(self.units["active"].sum())

    def _card(self) -> Card:
        least = "" if self.exact else "at least "
        said = (
            f"Of {len(self.units)} hidden units {self.num_active} are active: the mean of a weight to an output, or to "
            f"an active unit of the next layer, is more than {number(self.threshold)} sd from zero. Of all weights "
            f"and biases the data have told {least}{number(self.kl, 4)} nats (KL divergence from the prior)."
        )
        rows = tuple(
            (f"`{name}`", _whole(row["units"]), _whole(row["active"]), *map(number, row.iloc[2:]))
            for name, row in self.layers.iterrows()
        )
        heads = ("", "units", "active", "KL of weights", "of biases")
        table = Table(heads, rows, "layers, divergences in nats")
        return Card(f"{self.num_active} of {len(self.units)} units active", (Words(said), table))


@checks_arguments
def unit_activity(
    posterior: Posterior, *, threshold: float = THRESHOLD, evaluation: int | None = None
) -> UnitActivity:
    """Tell what a fit has learned of every hidden unit, and which units have collapsed to the prior.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        Of a network: a mean-field fit of `ob.advi` or `ob.symmetrised_vi` (of several fits the one
        with the highest ELBO), or draws in one labelling, such as aligned ones.
    threshold : float
        The size of a mean over its sd above which a weight carries a signal.
    evaluation : int, optional
        At which evaluation of the ELBO, from 0, of a mean-field fit with `trace_parameters`; by default at the end.

    Returns
    -------
    UnitActivity
        `units`, a row a unit; `layers`, with the numbers of active units; both shown in words.

    Raises
    ------
    ValueError
        If the posterior is of no network, or its draws have no common labelling; if `threshold` is not positive, or an
        evaluation was not kept.

    References
    ----------
    Trippe and Turner 2018, Overpruning in variational Bayesian neural networks, arXiv:1801.06230. Blundell, Cornebise,
    Kavukcuoglu and Wierstra 2015, Weight uncertainty in neural networks, ICML (signal to noise).

    Examples
    --------
    >>> fit = ob.advi(network, iterations=500, draws=100, seed=1)
    >>> activity = ob.networks.unit_activity(fit)
    >>> activity.units.shape, activity.layers.index.tolist()
    ((2, 6), ['hidden1', 'out'])
    """
    check_positive("threshold", threshold)
    view = as_view(posterior)
    model = view.network
    if model is None:
        raise ArgumentError(
            f"`{view.argument}` is of no network, and only networks have hidden units: give one of a `BayesianNetwork`."
        )
    fit = view.group(schema.VARIATIONAL)
    # A variational fit of one Gaussian knows each unit by its place; Pathfinder has several.
    is_one_gaussian = view.is_variational and (fit is None or schema.LOG_RATIO not in fit)
    if view.declares_equal_modes and not is_one_gaussian:
        raise ArgumentError(
            f"`{view.argument}` has draws whose hidden units may have changed places, so that no unit has a mean of "
            "its own; give `ob.align(posterior).posterior`."
        )
    moments = weight_moments(view, model, evaluation=evaluation)
    kl = _divergences(model, moments)
    with np.errstate(divide="ignore", invalid="ignore"):
        snr = {name: np.abs(mean) / moments.sd[name] for name, mean in moments.mean.items()}
    rows = []
    for layer, following in pairwise(model.network.layers):
        assert layer.weight is not None
        none = np.full(layer.out_dim, np.nan)
        out = following.weight
        columns = {
            "kl_in": kl[layer.weight].sum(axis=0),
            "kl_bias": kl[layer.bias] if layer.bias else none,
            "kl_out": kl[out].sum(axis=1) if out else none,
            "snr_in": snr[layer.weight].max(axis=0),
            "snr_out": snr[out].max(axis=1) if out else none,
        }
        index = pd.MultiIndex.from_product(
            [[layer.out_axis], range(layer.out_dim)], names=["layer", "unit"]
        )
        rows.append(pd.DataFrame(columns, index=index))
    units = pd.concat(rows)
    units["active"] = _active(model, snr, threshold)
    return UnitActivity(units, _layers(model, moments, kl, units), float(threshold), moments.exact)


def _divergences(model: BayesianNetwork, moments: WeightMoments) -> dict[str, np.ndarray]:
    """KL[N(mean, sd^2) || N(0, scale^2)] of every weight and bias, entry by entry; NaN where the prior is another."""
    network, prior = model.network, model.prior
    scales = (of(len(network.layers)) for of in (prior.weight_scales, prior.bias_scales))
    out: dict[str, np.ndarray] = {}
    for layer, weight_scale, bias_scale in zip(network.layers, *scales, strict=True):
        for name, scale in ((layer.weight, weight_scale), (layer.bias, bias_scale)):
            if name:
                out[name] = normal_divergence(moments.mean[name], moments.sd[name], scale)
    others = [*ordered_biases(model)]
    if model.parametrisation.unit_norm:
        others += [layer.weight for layer in network.layers if layer.hidden and layer.weight]
    return out | {name: np.full_like(out[name], np.nan) for name in others}


def _active(
    model: BayesianNetwork, snr: dict[str, np.ndarray], threshold: float
) -> Bool[np.ndarray, " unit"]:
    """Follow signals from the outputs back: which units of all layers, in order, have one that is seen."""
    found: list[np.ndarray] = []
    seen = np.ones(model.network.layers[-1].out_dim, bool)
    for layer, following in reversed(list(pairwise(model.network.layers))):
        if following.weight:
            active = (snr[following.weight][:, seen] > threshold).any(axis=1)
        else:  # a plain sum sees every unit, and what it has to tell is in its incoming weights
            assert layer.weight is not None
            active = (snr[layer.weight] > threshold).any(axis=0)
        found.insert(0, active)
        seen = active if model.network.skip is None else np.ones_like(active)
    return np.concatenate(found)


def normal_divergence(mean: np.ndarray, sd: np.ndarray, scale: float) -> np.ndarray:
    """KL[N(mean, sd^2) || N(0, scale^2)] in nats; infinite where the sd is 0."""
    with np.errstate(divide="ignore"):
        return (mean**2 + sd**2) / (2 * scale**2) - 0.5 - np.log(sd / scale)


def ordered_divergence(
    loc: Float[np.ndarray, " hidden"],
    scale: Float[np.ndarray, " hidden"],
    mean: Float[np.ndarray, " hidden"],
    sd: Float[np.ndarray, " hidden"],
    prior_scale: float,
) -> float:
    """KL from the prior of ordered biases whose coordinates are independent normals, in nats.

    The prior is that of `OrderedNormal`: N(0, prior_scale^2) for each, given their order. `mean` and `sd` are the
    biases' moments, `loc` and `scale` those of the coordinates.
    """
    size = len(loc)
    entropy = np.log(scale).sum() + 0.5 * size * (1 + math.log(2 * math.pi))
    normal = (
        -(mean**2 + sd**2) / (2 * prior_scale**2)
        - math.log(prior_scale)
        - 0.5 * math.log(2 * math.pi)
    )
    log_jacobian = loc[1:].sum()
    return float(-entropy - normal.sum() - math.lgamma(size + 1) - log_jacobian)


def _layers(
    model: BayesianNetwork, moments: WeightMoments, kl: dict[str, np.ndarray], units: pd.DataFrame
) -> pd.DataFrame:
    network = model.network
    bias_scales = dict(
        zip(network.layers, model.prior.bias_scales(len(network.layers)), strict=True)
    )
    rows = {}
    for layer in network.layers:
        active = units.loc[layer.out_axis, "active"].sum() if layer.hidden else pd.NA
        biases = kl[layer.bias].sum() if layer.bias else np.nan
        if layer.bias and layer.bias in moments.coordinates:
            own = (moments.mean[layer.bias], moments.sd[layer.bias])
            biases = ordered_divergence(*moments.coordinates[layer.bias], *own, bias_scales[layer])
        weights = kl[layer.weight].sum() if layer.weight else np.nan
        count = layer.out_dim if layer.hidden else pd.NA
        rows[layer.out_axis] = (count, active, weights, biases)
    frame = pd.DataFrame.from_dict(
        rows, orient="index", columns=["units", "active", "kl_weights", "kl_biases"]
    )
    types = {"units": "Int64", "active": "Int64", "kl_weights": float, "kl_biases": float}
    return frame.astype(types).rename_axis("layer")


def _whole(count: object) -> str:
    return "–" if count is pd.NA else str(count)
