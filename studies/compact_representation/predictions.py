"""A row of the table: one representation's predictions at the test images.

Convention: a row is kept as a posterior of one draw, the mean of its weights, with the group `predictive`:
class probabilities averaged over draws, and what is needed of single draws. Draws are run in batches and
only sums are kept. Where a row has repeats (other choices of a few draws), they are a leading axis.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import softmax

from onebasin.analysis.gaussian import GaussianFit, fit_gaussian
from onebasin.analysis.predictive.classification import entropy
from onebasin.models import BayesianNetwork, predict
from onebasin.models.data import Dataset
from onebasin.posteriors import schema

from ..lab import Cell
from ..lab.posteriors import halves, tree_of
from .design import RowSettings
from .pruning import pruning_curve

BATCH = 50
"""Draws that are run at a time."""
SD_EDGES = np.linspace(0.0, 2.0, 81)
"""Edges of the bins in which standard deviations of weights are counted (the paper's Figure 5, left)."""
KEEP = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Draws = dict[str, np.ndarray]


def make_row(tree: xr.DataTree, cell: Cell, test: Dataset) -> xr.DataTree:
    """Predict with the representation that the cell's settings name."""
    settings: RowSettings = cell.settings
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    names, groups = list(model.network.shapes), {}
    if settings.kind == "gaussian":
        fit = fit_gaussian(
            tree,
            settings.covariance,
            rank=settings.rank,
            shrinkage=settings.shrinkage,
            var_names=names,
        )
        repeats = [_sampled(fit, settings.num or 1000, cell.seed)]
        mean = fit.mean_draw()["posterior"].to_dataset()
        if settings.prune:
            groups = {"pruning": _pruning(fit, test), "spread": _spread(fit)}
    else:
        posterior = halve(tree["posterior"].to_dataset(), settings.part)[names]
        repeats = _chosen(posterior, settings, cell.seed)
        mean = posterior.mean(("chain", "draw")).expand_dims(["chain", "draw"])
    found = [predictive(model, batches, test) for batches in repeats]
    outputs = predict(model, _arrays(mean), test.x)[0, 0].astype(np.float64)
    variables = {
        "probability": (("repeat", "obs", "class"), np.stack([f.probability for f in found])),
        "entropy": (("repeat", "obs"), np.stack([f.entropy for f in found])),
        "draw_accuracy": (("repeat", "member"), np.stack([f.accuracy for f in found])),
        "mean_probability": (("obs", "class"), softmax(outputs, axis=-1)),
    }
    groups |= {"posterior": mean, "predictive": xr.Dataset(variables)}
    words = (schema.MODEL, schema.TARGET)
    return tree_of(groups, {word: tree.attrs.get(word, "") for word in words})


def halve(posterior: xr.Dataset, part: str) -> xr.Dataset:
    """Take the first or the second half of the chains; of the draws where there is one chain."""
    if not part:
        return posterior
    first, second = halves(posterior)
    return first if part == "first" else second


class Predictive(NamedTuple):
    """What is known of predictions over many draws: means over draws, and the accuracy of each."""

    probability: Float[np.ndarray, "obs out"]
    entropy: Float[np.ndarray, " obs"]
    accuracy: Float[np.ndarray, " draw"]


def predictive(model: BayesianNetwork, batches: Iterator[Draws], test: Dataset) -> Predictive:
    """Average predictions, and their entropy in nats, over batches of draws (1, draw, ...)."""
    total = np.zeros((test.num_obs, model.network.out_dim))
    uncertainty, accuracy = np.zeros(test.num_obs), []
    for draws in batches:
        num = next(iter(draws.values())).shape[1]
        outputs = predict(model, _filled_up(draws, BATCH - num), test.x)[0, :num]
        probability = softmax(outputs.astype(np.float64), axis=-1)
        total += probability.sum(axis=0)
        uncertainty += entropy(probability).sum(axis=0)
        accuracy.append((probability.argmax(axis=-1) == test.y).mean(axis=1))
    accuracies = np.concatenate(accuracy)
    return Predictive(total / len(accuracies), uncertainty / len(accuracies), accuracies)


def _filled_up(draws: Draws, num: int) -> Draws:
    """Append copies of the last draw: batches of one size are compiled once."""
    return {
        name: np.concatenate([v, np.repeat(v[:, -1:], num, axis=1)], axis=1)
        for name, v in draws.items()
    }


def _sampled(fit: GaussianFit, num: int, seed: int) -> Iterator[Draws]:
    """Draw from a fit, batch by batch."""
    sizes = [min(BATCH, num - at) for at in range(0, num, BATCH)]
    streams = np.random.SeedSequence(seed).generate_state(len(sizes))
    for size, state in zip(sizes, streams, strict=True):
        drawn = fit.sample(size, seed=int(state), predictive_mb=0)
        yield _arrays(drawn["posterior"].to_dataset())


def _chosen(posterior: xr.Dataset, settings: RowSettings, seed: int) -> list[Iterator[Draws]]:
    """Choose draws, as often as there are repeats."""
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    rng = np.random.default_rng(seed)
    num = total if settings.num is None else min(settings.num, total)
    arrays = _arrays(posterior)
    chosen = [np.sort(rng.choice(total, num, replace=False)) for _ in range(settings.repeats)]
    return [_batches(arrays, np.divmod(rows, posterior.sizes["draw"])) for rows in chosen]


def _batches(arrays: Draws, places: tuple[np.ndarray, np.ndarray]) -> Iterator[Draws]:
    chains, draws = places
    for at in range(0, len(chains), BATCH):
        some = slice(at, at + BATCH)
        yield {name: v[chains[some], draws[some]][None] for name, v in arrays.items()}


def _arrays(posterior: xr.Dataset) -> Draws:
    first = posterior.transpose("chain", "draw", ...)
    return {str(name): variable.values for name, variable in first.items()}


def _pruning(fit: GaussianFit, test: Dataset) -> xr.Dataset:
    curves = {by: pruning_curve(fit, test.x, test.y, keep=KEEP, by=by) for by in ("sd", "random")}
    columns = {f"accuracy_{by}": ("level", curve.score) for by, curve in curves.items()}
    return xr.Dataset({"keep": ("level", np.asarray(KEEP)), **columns})


def _spread(fit: GaussianFit) -> xr.Dataset:
    weights = [sd.ravel() for name, sd in fit.sd.items() if name.startswith("W")]
    counts, edges = np.histogram(np.minimum(np.concatenate(weights), SD_EDGES[-1]), SD_EDGES)
    return xr.Dataset({"count": ("bin", counts), "edge": ("edge", edges)})
