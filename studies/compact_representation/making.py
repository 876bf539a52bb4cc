"""Cells of the study, such as rows of the table: the predictions of one representation for the test images.

A row is stored as a posterior of one draw, the mean of its weights. Its group `predictive` has the class probabilities
averaged over draws, and the accuracies of single draws. Draws run in batches, and only sums are stored. Repeats
(different choices of a few draws) are a leading axis.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import xarray as xr
from scipy.special import softmax

from onebasin.analysis.alignment import align, switching
from onebasin.analysis.gaussian import GaussianFit, fit_gaussian
from onebasin.analysis.gaussian.distillation import distil
from onebasin.analysis.predictive.scores import entropy
from onebasin.base.progress import ProgressBars
from onebasin.models import BayesianNetwork, predict
from onebasin.models.data import Dataset
from onebasin.posteriors import schema
from onebasin.truth.problems.networks import image_split

from ..lab.run import sample
from ..lab.study import Cell, Context
from ..networks import halves, prior_draws, tree_of
from . import design
from .design import Distilling, RowSettings, network
from .pairs import train_dynamics, train_swaps

BATCH = 50  # Number of draws per batch.
SD_EDGES = np.linspace(0.0, 2.0, 81)
"""Bin edges for standard deviations of weights (the paper's Figure 5, left)."""
KEEP = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Draws = dict[str, np.ndarray]


def make_row(tree: xr.DataTree, cell: Cell, test: Dataset) -> xr.DataTree:
    """Predict with the representation in the cell's settings."""
    settings: RowSettings = cell.settings
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    names, groups = list(model.network.shapes), {}
    if settings.kind == "gaussian":
        fit = fit_gaussian(tree, settings.covariance, shrinkage=settings.shrinkage, var_names=names)
        repeats = [_sampled(fit, settings.num or 1000, cell.seed)]
        mean = fit.mean_draw()["posterior"].to_dataset()
        if settings.prune:
            weights = [sd.ravel() for name, sd in fit.sd.items() if name.startswith("W")]
            sds = np.minimum(np.concatenate(weights), SD_EDGES[-1])
            counts, edges = np.histogram(sds, SD_EDGES)
            spread = xr.Dataset({"count": ("bin", counts), "edge": ("edge", edges)})
            groups = {"pruning": _pruning(fit, test), "spread": spread}
    else:
        posterior, part = tree["posterior"].to_dataset()[names], settings.part
        posterior = halves(posterior)[part == "second"] if part else posterior
        total = posterior.sizes["chain"] * posterior.sizes["draw"]
        rng = np.random.default_rng(cell.seed)
        num = total if settings.num is None else min(settings.num, total)
        arrays = _arrays(posterior)
        chosen = [np.sort(rng.choice(total, num, replace=False)) for _ in range(settings.repeats)]
        repeats = [_batches(arrays, np.divmod(rows, posterior.sizes["draw"])) for rows in chosen]
        mean = posterior.mean(("chain", "draw")).expand_dims(["chain", "draw"])
    found = xr.concat([predictive(model, batches, test) for batches in repeats], "repeat")
    outputs = predict(model, _arrays(mean), test.x)[0, 0].astype(np.float64)
    found["mean_probability"] = (("obs", "class"), softmax(outputs, axis=-1))
    groups |= {"posterior": mean, "predictive": found}
    words = (schema.MODEL, schema.TARGET)
    return tree_of(groups, {word: tree.attrs.get(word, "") for word in words})


def predictive(model: BayesianNetwork, batches: Iterator[Draws], test: Dataset) -> xr.Dataset:
    """Average predictions and their entropy (nats) over batches of draws (1, draw, ...), and score each draw."""
    total = np.zeros((test.num_obs, model.network.out_dim))
    uncertainty, accuracy = np.zeros(test.num_obs), []
    for draws in batches:
        num = next(iter(draws.values())).shape[1]
        full = {  # Pad to one size, so that JAX compiles only once.
            name: np.concatenate([v, np.repeat(v[:, -1:], BATCH - num, axis=1)], axis=1)
            for name, v in draws.items()
        }
        outputs = predict(model, full, test.x)[0, :num]
        probability = softmax(outputs.astype(np.float64), axis=-1)
        total += probability.sum(axis=0)
        uncertainty += entropy(probability).sum(axis=0)
        accuracy.append((probability.argmax(axis=-1) == test.y).mean(axis=1))
    accuracies = np.concatenate(accuracy)
    return xr.Dataset(
        {
            "probability": (("obs", "class"), total / len(accuracies)),
            "entropy": ("obs", uncertainty / len(accuracies)),
            "draw_accuracy": ("member", accuracies),
        }
    )


def _sampled(fit: GaussianFit, num: int, seed: int) -> Iterator[Draws]:
    sizes = [min(BATCH, num - at) for at in range(0, num, BATCH)]
    streams = np.random.SeedSequence(seed).generate_state(len(sizes))
    for size, state in zip(sizes, streams, strict=True):
        drawn = fit.sample(size, seed=int(state), predictive_mb=0)
        yield _arrays(drawn["posterior"].to_dataset())


def _batches(arrays: Draws, places: tuple[np.ndarray, np.ndarray]) -> Iterator[Draws]:
    chains, draws = places
    for at in range(0, len(chains), BATCH):
        some = slice(at, at + BATCH)
        yield {name: v[chains[some], draws[some]][None] for name, v in arrays.items()}


def _arrays(posterior: xr.Dataset) -> Draws:
    first = posterior.transpose("chain", "draw", ...)
    return {str(name): variable.values for name, variable in first.items()}


def _pruning(fit: GaussianFit, test: Dataset) -> xr.Dataset:
    """Measure the accuracy of the mean network if only the shares `KEEP` of its weights are kept."""
    model = BayesianNetwork.from_description(fit.attributes[schema.MODEL])
    outputs = predict(model, prune(fit, KEEP), test.x, batch_size=8)
    right = (outputs[0].argmax(axis=-1) == test.y).mean(axis=-1)
    columns = {"keep": np.asarray(KEEP), "accuracy_sd": right}
    return xr.Dataset({name: ("level", values) for name, values in columns.items()})


def prune(fit: GaussianFit, keep: Sequence[float]) -> Draws:
    """Return the mean network (1, level, ...) with these shares of its weights; the other weights are zero.

    The weights with the lowest standard deviations stay, compared over all layers. Their number is the share of all
    weights, rounded. Ties are resolved in the order of `fit.names`, then in C order. Biases always stay.
    """
    network = BayesianNetwork.from_description(fit.attributes[schema.MODEL]).network
    weights = {layer.weight for layer in network.layers}
    names = [name for name in fit.names if name in weights]
    sd = np.concatenate([fit.sd[name].ravel() for name in names])
    place = np.argsort(np.argsort(sd, kind="stable"))
    counts = np.floor(np.asarray(keep) * sd.size + 0.5).astype(np.int64)
    pruned, first = {}, 0
    for name, values in fit.mean.items():
        pruned[name] = np.repeat(values[None, None], len(counts), axis=1)
        if name in weights:
            own = place[first : first + values.size].reshape(values.shape)
            first += values.size
            pruned[name][0, own >= counts.reshape(-1, *(1,) * values.ndim)] = 0.0
    return pruned


def make(config: design.CompactConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make the posterior of a cell."""
    inputs = context.inputs
    if isinstance(cell.settings, design.AlignSettings):
        return make_aligned(inputs[0], network(config), cell, progress=context.progress)
    if isinstance(cell.settings, RowSettings):
        return make_row(inputs[0], cell, image_split(config.size, cell.seed).test)
    trained = design.target(config, cell)
    if cell.key == design.DYNAMICS:
        return train_dynamics(trained, cell.settings, cell.seed)
    if cell.key == design.SWAPS:
        return train_swaps(trained, cell.settings, cell.seed)
    if cell.key == design.REFINED:
        return sample(cell, context, start=posterior_mean(inputs[0]))
    if isinstance(cell.settings, Distilling):
        start, settings = posterior_mean(inputs[1]), cell.settings.distillation
        found = distil(inputs[0], trained.x, start=start, settings=settings, seed=cell.seed)
        return found.sample(cell.settings.draws, seed=cell.seed, predictive_mb=0)
    return sample(cell, context)


def posterior_mean(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the mean of every variable over all draws."""
    means = tree[schema.POSTERIOR].to_dataset().mean(schema.SAMPLE_DIMS)
    return {str(name): value.values for name, value in means.items()}


def make_aligned(
    tree: xr.DataTree, model: BayesianNetwork, cell: Cell, *, progress: bool = False
) -> xr.DataTree:
    """Align draws, and measure the gain from alignment on them and on draws from the prior, as a baseline."""
    symmetry, how = design.permutations_of(model), asdict(cell.settings)
    with ProgressBars(progress) as bars:
        bar = bars.add("aligning draws", 100)
        alignment = align(
            tree, symmetry, **how, progress=lambda done, total: bars.move(bar, 100 * done // total)
        )
    out = alignment.to_tree()
    del out.attrs[schema.WALL_TIME]  # This is the time of the draws; the cell records its own.
    if cell.settings.cost == "weights":
        draws = prior_draws(model, tree["posterior"].to_dataset(), cell.seed)
        prior = tree_of({"posterior": draws}, {schema.MODEL: tree.attrs[schema.MODEL]})
        both = {"ratio": alignment, "prior_ratio": align(prior, symmetry, **how)}
        ratios = {n: switching(each, noise=False).ratio for n, each in both.items()}
        out.attrs["switching"] = json.dumps(ratios)
    return out
