"""Measures of classifiers of growing width: predictions, nearest equivalent modes and distances from HMC.

Lists have one entry per fit. Fit k has the same seed for all methods, so two methods are compared fit by fit. The
symmetrised ELBO is the lower end of its interval. The same estimator evaluates all methods, whatever trained them.
Accuracies and log scores use test images and class probabilities averaged over draws of q. Agreement and halved total
variation compare these probabilities with those from all HMC draws.

HMC is the reference. The posterior and q are compared modulo permutations. The HMC draws are aligned to their iterated
mean, and the draws of q to the same mean, by the same rule. If the HMC draws lie in several basins, their labelling is
arbitrary and no q comes close. Two baselines show which distances are small and large: the halves of the HMC chains,
and aligned draws from the prior.

The file of a fit has the groups of `inference.symmetrised_vi` and three more. `predictive` has the logarithms of the
class probabilities averaged over the draws of each fit, and the accuracy of every draw. `centre` and `spread` have the
means and standard deviations of q, variable by variable.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.spatial.distance import pdist

from onebasin.analysis.alignment import align
from onebasin.analysis.compare.distances import thin, two_sample
from onebasin.analysis.predictive.predictions import Points, Predicted, predict_points
from onebasin.analysis.predictive.scores import agreement, class_log_probability, total_variation
from onebasin.models import BayesianNetwork, predict
from onebasin.models.data import Dataset
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import as_view
from onebasin.truth.problems.networks import classifier, image_split

from ..lab.study import Frames, Outcomes, Row, find, frame_of, where
from ..networks import by_variable, from_tree, halves, prior_draws, to_tree, tree_of
from . import design
from .design import InvariantConfig, TruthSettings, units, width_problem

SOURCES = {
    "prior": "draws from the prior",
    "hmc": "draws of HMC",
    "networks": "trained networks (MAP)",
    "mfvi": "MFVI, means",
    "recommended": "SGM, recommended, means",
}
"""Labels of the sources of networks, by key."""
DRAWS = 50  # Number of draws from the prior and from HMC whose nearest modes are measured.
TRUTH = "truth"  # Name of the frame of comparisons with the HMC draws.
_SCORES = {
    "accuracy": "accuracy",
    "log_score": "log_score",
    "draw_accuracy": "single_draw_accuracy",
}
_MOMENTS = {"centre": "loc", "spread": "scale"}
"""Groups of a fit's file, with the variables of `variational` that they split."""
Values = Mapping[str, np.ndarray]


def measure(config: InvariantConfig, outcomes: Outcomes) -> Frames:
    """Measure every classifier.

    Return four frames. `classifiers` has the size of a unit. `fits` has one row per width and method. `nearest` has one
    row per width and source of networks (see `SOURCES`). `truth` has one row per width and set of draws that is
    compared with the HMC draws: "hmc", "halves", every method, and "prior".
    """
    fits = frame_of(_fits(config, outcomes))
    inputs, _, classes = classifier(config.images, config.widths[0]).network.widths
    return {
        "classifiers": frame_of([{"unit_size": inputs + 1 + classes}]),
        "fits": fits,
        "nearest": frame_of(_nearest(config, outcomes, fits)),
        TRUTH: frame_of(_truth(config, outcomes, fits)),
    }


def _fits(config: InvariantConfig, outcomes: Outcomes) -> Iterator[Row]:
    """Read the numbers of every fit; `log_order`, the log of the group order, bounds the gain from symmetrising."""
    labels = np.asarray(image_split(config.images, config.seed).test.y, dtype=np.int64)
    for width, method in ((w, m) for w in config.widths for m in design.methods(config, w)):
        tree = outcomes.find(width_problem(width), method.name)
        if tree is None:
            continue
        final, predictive = tree["variational"].to_dataset(), tree["predictive"].to_dataset()
        log_probability = predictive["log_probability"].values
        centre, spread = (tree[group].to_dataset() for group in ("centre", "spread"))
        values, sd = ({str(n): v.values for n, v in group.items()} for group in (centre, spread))
        block = units(BayesianNetwork.from_description(tree.attrs[schema.MODEL]))
        yield {
            "width": width,
            "method": method.name,
            "label": method.label,
            "kind": method.kind,
            "log_order": float(tree.attrs[schema.LOG_GROUP_ORDER]),
            "lower": final["information_lower"].values,
            "symmetrised": final["symmetrised_elbo_lower"].values,
            "accuracy": (log_probability.argmax(axis=-1) == labels).mean(axis=1),
            "log_score": log_probability[:, np.arange(len(labels)), labels].mean(axis=1),
            "draw_accuracy": predictive["draw_accuracy"].values.mean(axis=1),
            "nearest": nearest(values, block, sd=sd),
        }


def _nearest(config: InvariantConfig, outcomes: Outcomes, fits: pd.DataFrame) -> Iterator[Row]:
    """Summarise the nearest equivalent modes of networks with more than one unit, for every source."""
    for width in config.widths:
        found: dict[str, Any] = {}
        if width > 1:
            model = classifier(config.images, width)
            shapes, block = model.network.shapes, units(model)
            rng = np.random.default_rng([config.seed, width])
            prior = {n: rng.standard_normal((DRAWS, *shape)) for n, shape in shapes.items()}
            found["prior"] = nearest(prior, block)
            for source, method in (("hmc", "truth"), ("networks", "ensemble")):
                tree = outcomes.find(width_problem(width), method)
                if tree is not None:
                    posterior = tree["posterior"].to_dataset().transpose("chain", "draw", ...)
                    total = posterior.sizes["chain"] * posterior.sizes["draw"]
                    rows = np.linspace(0, total - 1, min(DRAWS, total)).astype(int)
                    arrays = {name: posterior[name].values for name in model.network.shapes}
                    some = {n: v.reshape(-1, *v.shape[2:])[rows] for n, v in arrays.items()}
                    found[source] = nearest(some, block)
        for fit in where(fits, width=width, method=tuple(SOURCES)).to_dict("records"):
            found[fit["method"]] = fit["nearest"]
        for source in (source for source in SOURCES if source in found):
            distance, separation = found[source]["distance"], found[source]["separation"]
            yield {
                "source": source,
                "label": SOURCES[source],
                "width": width,
                "distance": np.mean(distance),
                "largest": np.max(distance),
                "separation": np.mean(np.array(separation, float)),
            }


def _truth(config: InvariantConfig, outcomes: Outcomes, fits: pd.DataFrame) -> Iterator[Row]:
    for width in config.truth_widths:
        tree = outcomes.find(width_problem(width), "truth")
        if tree is None:
            continue
        *hmc, prior = ({"width": width, **row} for row in from_tree(tree)[TRUTH].to_dict("records"))
        yield from hmc
        for method in design.methods(config, width):
            found = outcomes.find(width_problem(width), design.against(method))
            if found is not None:
                fit = find(fits, width=width, method=method.name) or {}
                distance = find(from_tree(found)[TRUTH])
                how = {"width": width, "draws": method.name, "label": method.label}
                yield {**how, **{name: fit[name] for name in _SCORES}, **(distance or {})}
        yield prior


def make_truth(tree: xr.DataTree, settings: TruthSettings, test: Dataset) -> xr.DataTree:
    """Align the HMC draws, predict with all of them and with each half, and measure two baselines.

    The group `predictive` has the class probabilities from all draws. The frame `truth` has three rows: all draws, the
    second half of the chains compared with the first, and draws from the prior compared with all draws. Measures are
    lists of one number; the distance in weights is the energy distance.
    """
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    alignment = align(tree, (units(model),), reference=settings.reference, gauge="keep")
    aligned = alignment.posterior
    posterior = aligned["posterior"].to_dataset()
    prior = _aligned(prior_draws(model, posterior, 0), posterior, model)
    every, first, second, other = (
        _matrix(model, x) for x in (posterior, *halves(posterior), prior)
    )
    points = Points.of(model, test.x, test.y)
    raw = tree["posterior"].to_dataset()[list(model.network.shapes)]
    whole, one, two = (
        predict_points(model, tree_of({"posterior": part}, {}), points)
        for part in (raw, *halves(raw))
    )
    all_draws = {"agreement": [1.0], "total_variation": [0.0]} | _scores(whole)
    all_draws["spread_left"] = alignment.distance_after.mean() / alignment.distance_before.mean()
    apart = _apart(one.centre, two.centre[None]) | _scores(two)
    rows = (
        {"draws": "hmc", "label": "HMC, all draws", **all_draws},
        {
            "draws": "halves",
            "label": "HMC, second half against the first",
            **apart,
            "energy": [weight_distance(second, first, settings)],
        },
        {"draws": "prior", "label": "prior", "energy": [weight_distance(other, every, settings)]},
    )
    groups = {
        "posterior": posterior,
        "sample_stats": tree["sample_stats"].to_dataset(),
        "predictive": xr.Dataset({"probability": (("obs", "class"), whole.centre)}),
        "frames": to_tree({TRUTH: frame_of(rows)})["frames"].to_dataset(),
    }
    return tree_of(groups, {k: v for k, v in aligned.attrs.items() if k != schema.WALL_TIME})


def hold_against(fitted: xr.DataTree, truth: xr.DataTree, settings: TruthSettings) -> xr.DataTree:
    """Measure the distance of every fit from HMC, in aligned weights and in stored predictions.

    The frame `truth` has one row; its lists have one entry per fit.
    """
    model = BayesianNetwork.from_description(fitted.attrs[schema.MODEL])
    posterior, reference = (tree["posterior"].to_dataset() for tree in (fitted, truth))
    draws, wanted = _matrix(model, _aligned(posterior, reference, model)), _matrix(model, reference)
    found = [weight_distance(draws[[k]], wanted, settings) for k in range(len(draws))]
    p = truth["predictive"].dataset["probability"].values
    log_probability = fitted["predictive"].dataset["log_probability"].values
    row = _apart(p, np.exp(log_probability)) | {"energy": found}
    groups = {
        "posterior": posterior.mean("draw").expand_dims("draw", axis=1),
        "frames": to_tree({TRUTH: frame_of([row])})["frames"].to_dataset(),
    }
    words = (schema.MODEL, schema.TARGET)
    return tree_of(groups, {word: fitted.attrs.get(word, "") for word in words})


def weight_distance(
    draws: Float[np.ndarray, "chain draw param"],
    truth: Float[np.ndarray, "chain_bis draw_bis param"],
    settings: TruthSettings,
) -> float:
    """Estimate the squared energy distance from the HMC draws without bias, on evenly spaced draws of both samples."""
    some, others = (
        thin(Draws(("",) * x.shape[2], x), autocorrelated=False, max_draws=settings.max_draws)
        for x in (draws, truth)
    )
    return two_sample(some, others, permutations=0).energy


def _apart(
    truth: Float[np.ndarray, "obs out"], found: Float[np.ndarray, "fit obs out"]
) -> dict[str, list[float]]:
    return {
        "agreement": [agreement(p, truth) for p in found],
        "total_variation": [total_variation(p, truth, halved=True) for p in found],
    }


def _scores(found: Predicted) -> dict[str, Any]:
    return {ours: [found.scores[name]] for ours, name in _SCORES.items()}


def _aligned(draws: xr.Dataset, truth: xr.Dataset, model: BayesianNetwork) -> xr.Dataset:
    """Align draws to the mean of the aligned HMC draws, by the same cost."""
    names, symmetry = list(model.network.shapes), (units(model),)
    scales = {name: 1.0 for block in symmetry for name in block.variables}
    found = align(draws[names], symmetry, reference=truth[names], scales=scales, gauge="keep")
    return found.posterior["posterior"].to_dataset()


def _matrix(model: BayesianNetwork, posterior: xr.Dataset) -> Float[np.ndarray, "chain draw param"]:
    return as_view(posterior).draws(list(model.network.shapes)).values


def with_predictions(tree: xr.DataTree, kept: int | None, test: Dataset) -> xr.DataTree:
    """Add predictions for the test images and the means and standard deviations of q; keep the first `kept` draws."""
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    posterior = tree["posterior"].to_dataset()
    logs, accuracy = [], []
    for chain in range(posterior.sizes["chain"]):
        one = posterior.isel(chain=slice(chain, chain + 1)).transpose("chain", "draw", ...)
        logits = predict(model, {n: one[n].values for n in model.network.shapes}, test.x)
        logs.append(class_log_probability(logits))
        accuracy.append((logits[0].argmax(axis=-1) == np.asarray(test.y)).mean(axis=-1))
    variables = {
        "log_probability": (("chain", "obs", "class"), np.stack(logs)),
        "draw_accuracy": (("chain", "member"), np.stack(accuracy)),
    }
    groups = {
        "posterior": posterior.isel(draw=slice(None, kept)),
        "sample_stats": tree["sample_stats"].to_dataset().isel(draw=slice(None, kept)),
        "variational": tree["variational"].to_dataset(),
        "predictive": xr.Dataset(variables),
        **moments(model, tree),
    }
    return tree_of(groups, tree.attrs)


def moments(model: BayesianNetwork, tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Return the means and standard deviations of a mean-field q over the weights, variable by variable."""
    group, dims = tree["variational"].to_dataset(), model.network.dims
    parts = {n: by_variable(group[v].values, model) for n, v in _MOMENTS.items()}
    return {
        name: xr.Dataset({n: (("chain", *dims[n]), values) for n, values in arrays.items()})
        for name, arrays in parts.items()
    }


def theorem_bound(num_parts: float, part_dim: int) -> float:
    """Bound the least relative distance to a permuted copy by 2 d / log H! (Theorem 3.1).

    w are all weights and biases of a network with one hidden layer of H units; d = H D of them belong to units. The
    text available to us lacks the formulas of Theorem 3.1 and Appendix B; they follow from the proof. If all copies
    were at least 2 r apart, the H! balls of radius r around them would be disjoint. All these balls lie in the ball of
    radius ||w|| + r around 0, so H! r^d <= (||w|| + r)^d. Hence

        min ||w - g w|| / ||w|| <= 2 / (H!^(1/d) - 1) <= 2 d / log H! ~ 2 D / (log H - 1).

    The triangle inequality bounds the relative distance by 2. The theorem is sharper only for H above about e 2^D.
    """
    return 2.0 * num_parts * part_dim / math.lgamma(num_parts + 1)


def mean_bound(num_parts: float) -> float:
    """Bound the least relative distance to a permuted copy by 2 / sqrt(H - 1).

    The smallest squared distance between units is at most the mean. The squared distances add up to
    H sum_i ||u_i||^2 - ||sum_i u_i||^2 <= H ||w||^2. Equality holds for equidistant units that average to 0 if w has no
    other weights.
    """
    return 2.0 / math.sqrt(num_parts - 1)


def units_of(values: Values, block: Exchangeable) -> Float[np.ndarray, "network part param"]:
    """Collect the parameters of each unit into one row, from arrays (network, ...)."""
    rows = []
    for name, axis in block.axes.items():
        assert isinstance(axis, int), "of one hidden layer"
        value = np.moveaxis(np.asarray(values[name], dtype=np.float64), axis + 1, 1)
        rows.append(value.reshape(*value.shape[:2], -1))
    return np.concatenate(rows, axis=-1)


def nearest(
    values: Values, block: Exchangeable, *, sd: Values | None = None
) -> dict[str, Float[np.ndarray, " network"]]:
    """Find the closest pair of units in every network, from weights and biases (network, ...).

    `distance` is the distance to the nearest permuted copy, divided by ||w||. The nearest copy is one transposition
    away: let m be the least ||u_i - u_j|| over i != j. Then ||w - g w||^2 is the sum of ||u_i - u_g(i)||^2 over the
    units that g moves. Each term is at least m^2, and every g except the identity moves at least two units. So the sum
    is at least 2 m^2, and a transposition of the closest pair attains this bound.

    `separation` is half the distance between the two modes, in standard deviations `sd` of a Gaussian q, for the pair
    with the smallest value. For two Gaussian modes -a and a with equal covariance S it is ||S^(-1/2) a||. Below 2.41,
    the only optimum of one Gaussian is midway between the modes. Without `sd`, `separation` is NaN.
    """
    units = units_of(values, block)
    norm = np.linalg.norm(np.hstack([np.reshape(v, (len(v), -1)) for v in values.values()]), axis=1)
    distance = math.sqrt(2) * np.array([pdist(own).min() for own in units]) / norm
    least = np.full(len(units), np.nan if sd is None else np.inf)
    # Half the distances to the transposed copies, scaled by the mean variance of the two units.
    for place, spread in enumerate([] if sd is None else units_of(sd, block)):
        for i in range(len(spread) - 1):
            variance = (spread[i] ** 2 + spread[i + 1 :] ** 2) / 2
            scaled = np.square(units[place, i + 1 :] - units[place, i]) / variance
            least[place] = min(least[place], np.sqrt(scaled.sum(axis=1) / 2).min())
    return {"distance": distance, "separation": least}
