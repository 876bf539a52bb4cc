"""Tools for several studies of networks: diagnoses, scores, halves of chains, and frames in files."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment.align import prior_scales
from onebasin.base.errors import StudyError
from onebasin.models import BayesianNetwork
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view

from ..lab.study import Cell, Frames, Outcomes, Row, frame_of
from .held_out import HeldOut

PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Pairs of parametrisations without and with the unit-norm constraint, otherwise equal."""
MAX_RHAT = 1.05
"""R-hat of f above which chains disagree, so their numbers are not trusted."""
MOST = 99  # Largest number of data sets or splits: keys number them with two digits.


def check_number(option: str, number: int) -> None:
    """Reject an invalid number of data sets or splits; `option` is its name on the command line."""
    if not 1 <= number <= MOST:
        raise StudyError(f"`--{option}` must be a whole number from 1 to {MOST}; got {number}.")


def diagnosis_columns(outcomes: Outcomes, cell: Cell) -> dict[str, Any]:
    """Return the main numbers of a cell's diagnosis as columns.

    `depth_error` is the standard error of the mean tree depth, from the spread of the chain means.
    """
    diagnosis = outcomes.diagnosis(cell)
    numbers = diagnosis.summary()
    for of_the_cell in ("target", "engine", "method"):
        numbers.pop(of_the_cell, None)
    depth, error = as_view(outcomes.tree(cell)).stat(schema.TREE_DEPTH), None
    if depth is not None and len(depth) > 1:
        error = float(depth.mean(axis=1).std(ddof=1)) / len(depth) ** 0.5
    fit = diagnosis.variational
    return {**numbers, "depth_error": error, "converged": None if fit is None else fit.converged}


def score_columns(held_out: HeldOut, seconds: float | None = None) -> dict[str, Any]:
    """Return all scores and, for Markov chains, the mixing diagnostics of f.

    `seconds` is the time of the kept draws, summed over chains.
    """
    scores, ess = held_out.scores.to_dict(), held_out.median_ess
    scores.pop("num_draws")  # This is a total; the diagnosis counts per chain.
    columns = {**scores, "prediction_ess": ess, "prediction_rhat": None}
    if held_out.gradients is not None:
        columns["prediction_rhat"] = held_out.worst_rhat
        columns["rhat_above"] = float((held_out.points["rhat"] > MAX_RHAT).mean())
        columns["ess_per_1000_gradients"] = 1000 * ess / held_out.gradients
        columns["prediction_ess_per_second"] = ess / seconds if seconds else None
    return columns


def disagrees(row: Row) -> bool | None:
    """Return whether chains disagree on the predictions, or None without chains."""
    rhat = row.get("prediction_rhat")
    return None if rhat is None else bool(rhat > MAX_RHAT)


def by_variable(vectors: np.ndarray, model: BayesianNetwork) -> dict[str, np.ndarray]:
    """Split flat vectors of weights and biases (k, param) by variable, in the order of a fit's coordinates."""
    shapes = sorted(model.network.shapes.items())
    ends = np.cumsum([math.prod(shape) for _, shape in shapes])
    # The coordinate of an inferred noise may follow.
    parts = zip(shapes, np.split(vectors, ends, axis=1), strict=False)
    return {name: part.reshape(-1, *shape) for (name, shape), part in parts}


def tree_of(groups: Mapping[str, xr.Dataset], attrs: Mapping[Any, Any]) -> xr.DataTree:
    """Make a tree from groups and attributes."""
    tree = xr.DataTree.from_dict(dict(groups))
    tree.attrs = dict(attrs)
    return tree


def halves(posterior: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Divide the chains into two halves; if there is one chain, divide its draws."""
    dim = "chain" if posterior.sizes["chain"] > 1 else "draw"
    middle = posterior.sizes[dim] // 2
    return posterior.isel({dim: slice(None, middle)}), posterior.isel({dim: slice(middle, None)})


def prior_draws(model: BayesianNetwork, like: xr.Dataset, seed: int) -> xr.Dataset:
    """Draw from the prior, in the shapes of `like`. The prior draws are a baseline for large distances."""
    rng, scales = np.random.default_rng(seed), prior_scales(model)
    shapes = {name: like[name].shape for name in model.network.shapes}
    draws = {name: scales[name] * rng.standard_normal(shape) for name, shape in shapes.items()}
    return xr.Dataset({name: like[name].copy(data=values) for name, values in draws.items()})


def to_tree(frames: Frames) -> xr.DataTree:
    """Store frames as JSON in a tree with an empty posterior; `from_tree` reads them back."""
    texts = {n: ((), json.dumps(frame.to_dict("records"))) for n, frame in frames.items()}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(), "frames": xr.Dataset(texts)})


def from_tree(tree: xr.DataTree) -> Frames:
    """Read the frames that `to_tree` stored."""
    texts = tree["frames"].to_dataset()
    return {str(name): frame_of(json.loads(str(v.values))) for name, v in texts.items()}
