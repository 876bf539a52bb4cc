"""Measure classifiers of growing width: fits, nearest equivalent modes, distances from HMC.

Convention: lists are over fits, each of which has a seed that all methods share; a comparison of two methods is of
the differences fit by fit. A symmetrised ELBO is that of the same estimator for all methods, whatever they were
trained with: the lower end of its interval where nothing else is said. Accuracies and log scores are of test images, of
class probabilities averaged over draws of q. Agreement and halved total variation are of these with those of all of
HMC's draws; distances in weights are those of `weight_distance`.

HMC is the truth: weights have N(0, 1) priors, so they count in their own units. Posterior and q are compared modulo
permutations: HMC's draws are aligned to their iterated mean, and draws of q to the same mean, by the same rule. What
is compared are these aligned distributions; where HMC's draws are not in one basin, so that their labelling is
arbitrary, a distance to them cannot become small by any q, and the halves of HMC's own chains, and draws from the
prior aligned in the same way, show what small and large are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.alignment import align
from onebasin.analysis.compare.distances import energy_distance, thin
from onebasin.analysis.predictive.predictions import Points, Predicted, predict_points
from onebasin.analysis.predictive.scores import agreement, total_variation
from onebasin.models import BayesianNetwork
from onebasin.models.data import Dataset
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.schema import LOG_GROUP_ORDER, MODEL, MUTUAL_INFORMATION, WALL_TIME
from onebasin.posteriors.view import as_view
from onebasin.truth.problems.images import classifier, image_split

from ...lab import Frames, Outcomes, Row, find, frame_of, where
from ...networks import from_tree, halves, prior_draws, to_tree, tree_of
from .. import design
from ..design import InvariantConfig, TruthSettings, units, width_problem
from ..proximity import Nearest, nearest

SOURCES = {
    "prior": "draws from the prior",
    "hmc": "draws of HMC",
    "networks": "trained networks (MAP)",
    "mfvi": "MFVI, means",
    "recommended": "SGM, recommended, means",
}
"""The sources of networks, by key."""
DRAWS = 50
"""Draws looked at, of the prior and of HMC."""
TRUTH = "truth"
"""The frame of what is compared with HMC's draws."""
_SCORES = {
    "accuracy": "accuracy",
    "log_score": "log_score",
    "draw_accuracy": "single_draw_accuracy",
}
_READ = {
    "elbo": "final_elbo",
    "elbo_mcse": "final_elbo_mcse",
    "lower": "information_lower",
    "upper": "information_upper",
    "lower_mcse": "information_lower_mcse",
    "symmetrised": "symmetrised_elbo_lower",
    "symmetrised_upper": "symmetrised_elbo_upper",
}


def measure(config: InvariantConfig, outcomes: Outcomes, *, within: float | None) -> Frames:
    """Measure every classifier.

    Below a separation of `within` standard deviations of q, two units count as close, and one Gaussian between two
    modes has no optimum but the midpoint; None where that was not computed. The frames: `classifiers`, one row of what
    all have in common; `fits`, a row a width and method; `nearest`, a row a width and source of networks, see
    `SOURCES`; `truth`, a row a width and whatever is compared with HMC's draws: "hmc", their "halves", every method,
    the "prior".
    """
    fits = frame_of(_fits(config, outcomes, within or 0.0))
    split = image_split(config.images, config.seed)
    inputs, _, classes = classifier(config.images, config.widths[0]).network.widths
    common = {
        "inputs": inputs,
        "classes": classes,
        "unit_size": inputs + 1 + classes,
        "train": split.train.num_obs,
        "test": split.test.num_obs,
        "source": split.train.source,
        "fits": config.vi.fits,
        "steps": config.vi.steps,
        "threshold": within,
    }
    return {
        "classifiers": frame_of([common]),
        "fits": fits,
        "nearest": frame_of(_nearest(config, outcomes, fits)),
        TRUTH: frame_of(_truth(config, outcomes, fits)),
    }


def _fits(config: InvariantConfig, outcomes: Outcomes, within: float) -> Iterator[Row]:
    """Read the numbers of every fit; `log_order`, of the group, is the most that symmetrising can gain."""
    labels = np.asarray(image_split(config.images, config.seed).test.y, dtype=np.int64)
    for width, method in ((w, m) for w in config.widths for m in design.methods(config, w)):
        tree = outcomes.find(width_problem(width), method.name)
        if tree is None:
            continue
        final, predictive = tree["variational"].to_dataset(), tree["predictive"].to_dataset()
        log_probability = predictive["log_probability"].values
        centre, spread = (tree[group].to_dataset() for group in ("centre", "spread"))
        values, sd = ({str(n): v.values for n, v in group.items()} for group in (centre, spread))
        block = units(BayesianNetwork.from_description(tree.attrs[MODEL]))
        yield {
            "width": width,
            "method": method.name,
            "label": method.label,
            "kind": method.kind,
            "permutations": method.permutations,
            "chosen": str(tree.attrs[MUTUAL_INFORMATION]),
            "log_order": float(tree.attrs[LOG_GROUP_ORDER]),
            "seconds": float(tree.attrs[WALL_TIME]),
            **{ours: np.asarray(final[name].values, float) for ours, name in _READ.items()},
            "accuracy": (log_probability.argmax(axis=-1) == labels).mean(axis=1),
            "log_score": log_probability[:, np.arange(len(labels)), labels].mean(axis=1),
            "draw_accuracy": predictive["draw_accuracy"].values.mean(axis=1),
            "nearest": vars(nearest(values, block, sd=sd, within=within)),
        }


def _nearest(config: InvariantConfig, outcomes: Outcomes, fits: pd.DataFrame) -> Iterator[Row]:
    """Summarise the nearest equivalent modes of networks of more than one unit, of whatever source."""
    for width in config.widths:
        found: dict[str, Nearest] = {}
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
            near = {name: np.array(v) for name, v in fit["nearest"].items()}
            found[fit["method"]] = Nearest(**near)
        yield from (nearest_row(s, width, found[s]) for s in SOURCES if s in found)


def nearest_row(source: str, width: int, near: Nearest) -> dict[str, Any]:
    """Summarise distances over networks, and where spreads are known separations."""
    return {
        "source": source,
        "label": SOURCES[source],
        "width": width,
        "networks": len(near.distance),
        "distance": near.distance.mean(),
        **_spread(near.distance, ""),
        "separation": near.separation.mean(),
        **_spread(near.separation, "_separation"),
        "close": near.close.mean(),
    }


def _spread(values: np.ndarray, suffix: str) -> dict[str, float]:
    ends = {"least": values.min(), "median": np.median(values), "largest": values.max()}
    return {name + suffix: value for name, value in ends.items()}


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
    """Align HMC's draws, predict with all of them and with either half, and compare the halves and the prior.

    The group `predictive` has the class probabilities of all draws. The frame `truth` has a row for all draws, for the
    second half of the chains, compared with the first, and for draws from the prior, compared with all: lists of one
    number, in weights those of `weight_distance`.
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
            **_listed([weight_distance(second, first, settings)]),
        },
        {"draws": "prior", "label": "prior", **_listed([weight_distance(other, every, settings)])},
    )
    groups = {
        "posterior": posterior,
        "sample_stats": tree["sample_stats"].to_dataset(),
        "predictive": xr.Dataset({"probability": (("obs", "class"), whole.centre)}),
        "frames": to_tree({TRUTH: frame_of(rows)})["frames"].to_dataset(),
    }
    return tree_of(groups, {k: v for k, v in aligned.attrs.items() if k != schema.WALL_TIME})


def hold_against(fitted: xr.DataTree, truth: xr.DataTree, settings: TruthSettings) -> xr.DataTree:
    """Measure how far every fit is from HMC: in weights, both aligned, and in its stored predictions.

    The frame `truth` has one row, of lists over fits.
    """
    model = BayesianNetwork.from_description(fitted.attrs[schema.MODEL])
    posterior, reference = (tree["posterior"].to_dataset() for tree in (fitted, truth))
    draws, wanted = _matrix(model, _aligned(posterior, reference, model)), _matrix(model, reference)
    found = [weight_distance(draws[[k]], wanted, settings) for k in range(len(draws))]
    p = truth["predictive"].dataset["probability"].values
    log_probability = fitted["predictive"].dataset["log_probability"].values
    row = _apart(p, np.exp(log_probability)) | _listed(found)
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
) -> dict[str, float]:
    """Compare draws with HMC's; of either, evenly spaced draws make the energy distance.

    `energy` is that (squared, without bias); `mean` the root mean square, over weights, of the difference of means over
    HMC's standard deviation; `sd` that of the logarithm of the ratio of standard deviations; `sd_ratio` the median of
    that ratio, to HMC's.
    """
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    true_mean, true_sd = truth.mean(axis=(0, 1)), truth.std(axis=(0, 1))
    log_ratio = np.log(sd / true_sd)
    some, others = (
        thin(Draws(("",) * x.shape[2], x), autocorrelated=False, max_draws=settings.max_draws)
        for x in (draws, truth)
    )
    return {
        "energy": energy_distance(some, others),
        "mean": float(np.sqrt(np.mean(((mean - true_mean) / true_sd) ** 2))),
        "sd": float(np.sqrt(np.mean(log_ratio**2))),
        "sd_ratio": float(np.exp(np.median(log_ratio))),
    }


def _apart(
    truth: Float[np.ndarray, "obs out"], found: Float[np.ndarray, "fit obs out"]
) -> dict[str, list[float]]:
    return {
        "agreement": [agreement(p, truth) for p in found],
        "total_variation": [total_variation(p, truth, halved=True) for p in found],
    }


def _scores(found: Predicted) -> dict[str, Any]:
    return {ours: [found.scores[name]] for ours, name in _SCORES.items()}


def _listed(found: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {name: [one[name] for one in found] for name in found[0]}


def _aligned(draws: xr.Dataset, truth: xr.Dataset, model: BayesianNetwork) -> xr.Dataset:
    """Align draws to the mean of HMC's, which are aligned by then, by the same cost."""
    names, symmetry = list(model.network.shapes), (units(model),)
    scales = {name: 1.0 for block in symmetry for name in block.variables}
    found = align(draws[names], symmetry, reference=truth[names], scales=scales, gauge="keep")
    return found.posterior["posterior"].to_dataset()


def _matrix(model: BayesianNetwork, posterior: xr.Dataset) -> Float[np.ndarray, "chain draw param"]:
    return as_view(posterior).draws(list(model.network.shapes)).values
