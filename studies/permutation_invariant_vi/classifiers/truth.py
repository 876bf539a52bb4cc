"""HMC as the truth: its draws in one labelling, its predictions, and how far fits are from it in weights.

Convention: weights have N(0, 1) priors, so they count in their own units. Posterior and q are compared modulo
permutations: HMC's draws are aligned to their iterated mean, and draws of q to the same mean, by the same rule. What
is compared are these aligned distributions; where HMC's draws are not in one basin, so that their labelling is
arbitrary, a distance to them cannot become small by any q, and the halves of HMC's own chains, and draws from the
prior aligned alike, show what small and large are.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.alignment import align
from onebasin.analysis.compare.thinning import independent_draws
from onebasin.analysis.compare.two_sample import energy_distance
from onebasin.analysis.predictive.classification import agreement, total_variation
from onebasin.analysis.predictive.points import Points, predict_points
from onebasin.models import BayesianNetwork
from onebasin.models.data import Dataset
from onebasin.posteriors import schema

from ...lab.posteriors import halves, prior_draws, tree_of
from ..design import TruthSettings, units


def make_truth(tree: xr.DataTree, settings: TruthSettings, test: Dataset) -> xr.DataTree:
    """Align HMC's draws, predict with all of them and with either half, and compare the halves and the prior.

    The group `predictive` has class probabilities of all draws and of the halves of the chains, and the distance of
    the second half from the first; the group `weights` the same in weights, and that of draws from the prior from
    all draws, as `weight_distance` says.
    """
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    alignment = align(tree, (units(model),), reference=settings.reference, gauge="keep")
    aligned = alignment.posterior
    posterior = aligned["posterior"].to_dataset()
    prior = _aligned(prior_draws(model, posterior, 0), posterior, model)
    every, first, second, other = (
        _matrix(model, x) for x in (posterior, *halves(posterior), prior)
    )
    found = {
        "halves": weight_distance(second, first, settings),
        "prior": weight_distance(other, every, settings),
    }
    groups = {
        "posterior": posterior,
        "sample_stats": tree["sample_stats"].to_dataset(),
        "predictive": _predictions(model, tree, test),
        "weights": _as_dataset(found, "pair"),
    }
    attrs = {k: v for k, v in aligned.attrs.items() if k != schema.WALL_TIME}
    left = alignment.distance_after.mean() / alignment.distance_before.mean()
    return tree_of(groups, attrs | {"spread_left": float(left)})


def hold_against(fitted: xr.DataTree, truth: xr.DataTree, settings: TruthSettings) -> xr.DataTree:
    """Measure how far every fit is from HMC: in weights, both aligned, and in its stored predictions.

    The groups `weights` and `predictive` have one number a fit.
    """
    model = BayesianNetwork.from_description(fitted.attrs[schema.MODEL])
    posterior, reference = (tree["posterior"].to_dataset() for tree in (fitted, truth))
    draws, wanted = _matrix(model, _aligned(posterior, reference, model)), _matrix(model, reference)
    found = {f"{k}": weight_distance(draws[[k]], wanted, settings) for k in range(len(draws))}
    p = truth["predictive"].to_dataset()["probability"].sel(part="all").values
    log_probability = fitted["predictive"].to_dataset()["log_probability"].values
    groups = {
        "posterior": posterior.mean("draw").expand_dims("draw", axis=1),
        "weights": _as_dataset(found, "fit"),
        "predictive": _distances(p, np.exp(log_probability)),
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
        independent_draws(x, autocorrelated=False, max_draws=settings.max_draws)
        for x in (draws, truth)
    )
    return {
        "energy": energy_distance(some, others),
        "mean": float(np.sqrt(np.mean(((mean - true_mean) / true_sd) ** 2))),
        "sd": float(np.sqrt(np.mean(log_ratio**2))),
        "sd_ratio": float(np.exp(np.median(log_ratio))),
    }


def _distances(
    truth: Float[np.ndarray, "obs out"], found: Float[np.ndarray, "fit obs out"]
) -> xr.Dataset:
    """Agreement and halved total variation of averaged predictions."""
    same = np.array([agreement(p, truth) for p in found])
    apart = np.array([total_variation(p, truth, halved=True) for p in found])
    return xr.Dataset({"agreement": ("fit", same), "total_variation": ("fit", apart)})


def _predictions(model: BayesianNetwork, tree: xr.DataTree, test: Dataset) -> xr.Dataset:
    """Class probabilities and scores of all draws and of the halves, (part, ...)."""
    points = Points.of(model, test.x, test.y)
    posterior = tree["posterior"].to_dataset()[list(model.network.shapes)]
    groups = {"all": posterior, **dict(zip(("first", "second"), halves(posterior), strict=True))}
    found = [
        predict_points(model, xr.DataTree.from_dict({"posterior": group}), points)
        for group in groups.values()
    ]
    scores = ("accuracy", "log_score", "single_draw_accuracy")
    variables = {name: ("part", np.array([f.scores[name] for f in found])) for name in scores}
    centre = np.stack([f.centre for f in found])
    apart = _distances(centre[1], centre[2:])
    return xr.Dataset(
        {"probability": (("part", "obs", "class"), centre), **variables, **apart},
        coords={"part": list(groups)},
    )


def _aligned(draws: xr.Dataset, truth: xr.Dataset, model: BayesianNetwork) -> xr.Dataset:
    """Align draws to the mean of HMC's, which are aligned by then, by the same cost."""
    names, symmetry = list(model.network.shapes), (units(model),)
    scales = {name: 1.0 for block in symmetry for name in block.variables}
    found = align(draws[names], symmetry, reference=truth[names], scales=scales, gauge="keep")
    return found.posterior["posterior"].to_dataset()


def _matrix(model: BayesianNetwork, posterior: xr.Dataset) -> Float[np.ndarray, "chain draw param"]:
    """All weights of every draw in a row."""
    first = posterior.transpose("chain", "draw", ...)
    arrays = [np.asarray(first[name].values, dtype=np.float64) for name in model.network.shapes]
    return np.concatenate([a.reshape(*a.shape[:2], -1) for a in arrays], axis=2)


def _as_dataset(found: Mapping[str, Mapping[str, float]], dim: str) -> xr.Dataset:
    names = next(iter(found.values()))
    variables = {name: (dim, np.array([row[name] for row in found.values()])) for name in names}
    return xr.Dataset(variables, coords={dim: list(found)})
