"""Pruning a network by a Gaussian fit: which weights of the mean can be set to zero.

Convention: `keep` is a share of the weights of all layers together, weighed against each other by one score;
of N weights, the nearest whole number to keep * N stays, and the others are set to zero. With
`biases=True` biases are among them; otherwise they always stay. Equal scores stay in the order of
`fit.names`, entries in C order; so more is kept always means the same and others.

Source: Xiao, Liu and Bamler 2023, "A compact representation for Bayesian neural networks by removing permutation
symmetry", Figure 5, right: after alignment the weights of lowest posterior standard deviation are
kept. `signal` is the signal-to-noise ratio by which Graves 2011 and Blundell et al. 2015 prune.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.gaussian import GaussianFit
from onebasin.analysis.predictive.classification import accuracy
from onebasin.analysis.predictive.regression import rmse
from onebasin.base.checks import check_labels, check_outputs, check_seed, choose
from onebasin.base.errors import ArgumentError
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.networks.prediction import predict
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

SCORES = ("sd", "signal", "magnitude", "random")
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, eq=False)
class PruningCurve:
    """How well pruned networks predict.

    Attributes
    ----------
    by : str
        What decided which weights stay.
    measure : {"accuracy", "rmse"}
        Accuracy of a classifier, or root mean squared error of a regression in the units of `y`.
    keep : array (level,)
        Shares that were kept.
    num_kept : array (level,)
        Weights that were kept.
    score : array (level,)
        The measure.
    """

    by: str
    measure: str
    keep: Float[np.ndarray, " level"]
    num_kept: Int[np.ndarray, " level"]
    score: Float[np.ndarray, " level"]


def prune(
    fit: GaussianFit, keep: float, *, by: str = "sd", seed: int = 0, biases: bool = False
) -> xr.DataTree:
    """Keep a share of the mean's weights, and set the others to zero.

    Parameters
    ----------
    fit : GaussianFit
        Of a network's draws.
    keep : float
        Share of the weights that stay, from 0 to 1.
    by : {"sd", "signal", "magnitude", "random"}
        Which stay: those of lowest standard deviation, highest |mean| / sd, highest |mean|, or any.
    seed : int
        For "random".
    biases : bool
        Whether biases may be pruned too.

    Returns
    -------
    DataTree
        A posterior of one draw, as `GaussianFit.mean_draw`, without `sample_stats`.

    Raises
    ------
    ValueError
        If the fit is not of a network with all its weights, a word is unknown or a number out of range.
    """
    model = _network(fit)
    _check_share(keep)
    order = _order(fit, _prunable(model, biases), by, seed)
    counts = _counts(order, [keep])
    pruned = _pruned(fit, order, counts)
    view = as_view(fit.mean_draw())
    posterior = view.posterior.copy()
    for name, values in pruned.items():
        posterior[name] = (posterior[name].dims, values)
    tree = xr.DataTree.from_dict({schema.POSTERIOR: posterior, **fit.data})
    facts = {"point": "pruned mean", "keep": float(keep), "num_kept": int(counts[0]), "by": by}
    facts |= {"biases": biases, "seed": seed}
    tree.attrs = view.attributes | {schema.SETTINGS: schema.encode({**fit.settings, **facts})}
    return tree


def pruning_curve(
    fit: GaussianFit,
    x: Any,
    y: Any,
    *,
    keep: Sequence[float] = LEVELS,
    by: str = "sd",
    seed: int = 0,
    biases: bool = False,
    batch_size: int = 8,
) -> PruningCurve:
    """Measure how well networks predict that keep more and more of the mean's weights.

    Parameters
    ----------
    fit : GaussianFit
        Of a network's draws.
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    y : array (obs, out) or (obs,)
        Targets, or class labels.
    keep : sequence of float
        Shares of the weights that stay, from 0 to 1.
    by, seed, biases
        As in `prune`; "random" keeps the same and others at every higher level.
    batch_size : int
        Networks that are run at a time; bounds the memory.

    Returns
    -------
    PruningCurve
        One number a level.

    Raises
    ------
    ValueError
        As `prune`; or if `x` or `y` do not fit the network, or there are no levels.
    """
    model = _network(fit)
    for share in keep:
        _check_share(share)
    if not len(keep):
        raise ArgumentError("`keep` is empty; give at least one share, such as 0.5.")
    order = _order(fit, _prunable(model, biases), by, seed)
    counts = _counts(order, keep)
    outputs = predict(model, _pruned(fit, order, counts), x, batch_size=batch_size)
    score = _scores(model, outputs, y)
    measure = "accuracy" if model.is_classifier else "rmse"
    return PruningCurve(by, measure, np.asarray(keep, dtype=np.float64), counts, score)


def _network(fit: GaussianFit) -> BayesianNetwork:
    model = schema.network_of(fit.attributes)
    if model is None:
        raise ArgumentError(
            "`fit` has no attribute `model` that describes a network; only networks are pruned. Fit a "
            "posterior of `BayesianNetwork(...).condition(x, y)`."
        )
    absent = [name for name in model.network.shapes if name not in fit.names]
    if absent:
        raise ArgumentError(
            f"`fit` lacks {', '.join(absent)} of its network; fit all weights and biases."
        )
    return model


def _check_share(keep: Any) -> None:
    number = isinstance(keep, Real) and not isinstance(keep, bool)
    if not number or not 0 <= keep <= 1:
        raise ArgumentError(f"`keep` must be a share from 0 to 1; got {keep!r}.")


def _prunable(model: BayesianNetwork, biases: bool) -> tuple[str, ...]:
    """The variables that may lose entries."""
    weights = {layer.weight for layer in model.network.layers}
    return tuple(name for name in model.network.shapes if biases or name in weights)


@dataclass(frozen=True, eq=False)
class _Order:
    """Prunable variables, and their entries from the first to be kept to the last."""

    names: tuple[str, ...]
    entries: Int[np.ndarray, " weight"]


def _order(fit: GaussianFit, names: tuple[str, ...], by: str, seed: int) -> _Order:
    choose("by", by, SCORES)
    check_seed(seed)
    names = tuple(name for name in fit.names if name in names)
    mean = np.concatenate([fit.mean[name].ravel() for name in names])
    if by == "random":
        return _Order(names, np.random.default_rng(seed).permutation(mean.size))
    sd = np.concatenate([fit.sd[name].ravel() for name in names])
    loss = {"sd": sd, "signal": -np.abs(mean) / sd, "magnitude": -np.abs(mean)}[by]
    return _Order(names, np.argsort(loss, kind="stable"))


def _counts(order: _Order, keep: Sequence[float]) -> Int[np.ndarray, " level"]:
    """The nearest whole numbers, halves up."""
    return np.floor(np.asarray(keep) * order.entries.size + 0.5).astype(np.int64)


def _pruned(
    fit: GaussianFit, order: _Order, counts: Int[np.ndarray, " level"]
) -> dict[str, np.ndarray]:
    """All variables of the mean (1, level, ...), pruned as many times as there are counts."""
    place = np.empty(order.entries.size, dtype=np.int64)
    place[order.entries] = np.arange(place.size)
    out, first = {}, 0
    for name, mean in fit.mean.items():
        values = np.repeat(mean[None], len(counts), axis=0)
        if name in order.names:
            own = place[first : first + mean.size].reshape(mean.shape)
            first += mean.size
            late = own[None] >= counts.reshape(-1, *(1,) * mean.ndim)
            values[late] = 0.0
        out[name] = values[None]
    return out


def _scores(
    model: BayesianNetwork, outputs: Float[np.ndarray, "chain level obs out"], y: Any
) -> Float[np.ndarray, " level"]:
    num_levels, num_obs = outputs.shape[1:3]
    if model.is_classifier:
        labels = check_labels(y, num_obs, model.network.out_dim)
        scores = [accuracy(outputs[:, [level]], labels) for level in range(num_levels)]
    else:
        targets = check_outputs(y, num_obs, model.network.out_dim)
        scores = [rmse(outputs[:, [level]], targets) for level in range(num_levels)]
    return np.asarray(scores)
