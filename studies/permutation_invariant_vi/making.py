"""Making the cells, and measuring them: fits with their predictions, HMC's draws aligned, and fits compared with them.

Convention of what a classifier's fit keeps in addition to `inference.symmetrised_vi`'s groups: `predictive` has class
probabilities averaged over the draws of each fit, as logarithms, (chain, obs, class), and the accuracy of every
draw; `centre` and `spread` have the means and standard deviations of q under the variables' names, (chain, ...).
Draws are thinned once predictions are made; data are those of the study, and not kept.
"""

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.predictive.scores import class_log_probability
from onebasin.base.errors import InferenceError
from onebasin.models import BayesianNetwork, predict
from onebasin.models.data import Dataset
from onebasin.posteriors import schema
from onebasin.truth.problems.images import image_split

from ..lab import Cell, CellFailed, Context, Frames, Outcomes, frame_of, rows_of, select
from ..lab.run import sample
from ..networks import from_tree, to_tree, tree_of
from . import design
from .classifiers.measures import hold_against, make_truth
from .classifiers.measures import measure as measure_classifiers
from .design import INTERPOLATION, FitSettings
from .two_modes import measures as interpolation
from .two_weights import measures as quadrature
from .two_weights.design import METHODS
from .two_weights.measures import score_fits


def make(config: design.InvariantConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make a cell's posterior."""
    if cell.key in (INTERPOLATION, design.QUADRATURE):
        run = interpolation.run if cell.key == INTERPOLATION else quadrature.run
        return to_tree(run(cell.settings))
    if isinstance(cell.settings, FitSettings):
        how: Any = cell.settings.mutual_information
        method = replace(cell.settings.vi, mutual_information=how)
        try:
            fitted = sample(cell, context, method, engine=None)  # whichever has a definition
        except InferenceError as error:  # an ELBO that became infinite or undefined
            raise CellFailed(str(error)) from error
        if not cell.problem.startswith("width-"):
            return fitted
        return with_predictions(fitted, cell, image_split(config.images, cell.seed).test)
    if isinstance(cell.settings, design.TruthSettings):
        first, *others = context.inputs
        if cell.method != "truth":
            return hold_against(first, others[0], cell.settings)
        return make_truth(first, cell.settings, image_split(config.images, cell.seed).test)
    return sample(cell, context)


def with_predictions(tree: xr.DataTree, cell: Cell, test: Dataset) -> xr.DataTree:
    """Add predictions at the test images, means and standard deviations; thin the draws."""
    settings: FitSettings = cell.settings
    model = BayesianNetwork.from_description(tree.attrs[schema.MODEL])
    posterior = tree["posterior"].to_dataset()
    kept = slice(None, settings.kept)
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
        "posterior": posterior.isel(draw=kept),
        "sample_stats": tree["sample_stats"].to_dataset().isel(draw=kept),
        "variational": tree["variational"].to_dataset(),
        "predictive": xr.Dataset(variables),
        **moments(model, tree),
    }
    return tree_of(groups, tree.attrs)


def moments(model: BayesianNetwork, tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Means and standard deviations of a mean-field q, variable by variable; weights are their own coordinates."""
    group = tree["variational"].to_dataset()
    return {
        "centre": _by_variable(model, group["loc"].values),
        "spread": _by_variable(model, group["scale"].values),
    }


def _by_variable(model: BayesianNetwork, vectors: Float[np.ndarray, "chain param"]) -> xr.Dataset:
    """Variables stand in a vector in the order of their names."""
    shapes, dims = sorted(model.network.shapes.items()), model.network.dims
    ends = np.cumsum([math.prod(shape) for _, shape in shapes])
    parts = zip(shapes, np.split(vectors, ends[:-1], axis=1), strict=True)
    return xr.Dataset(
        {n: (("chain", *dims[n]), part.reshape(-1, *shape)) for (n, shape), part in parts}
    )


def measures(config: design.InvariantConfig, outcomes: Outcomes) -> Frames:
    """Fill the frames.

    Next to those of the parts there are `two_weights`, one row of that part's settings, and `weight_fits`, a row an
    alpha and method: see `two_weights.measures.score_fits`.
    """
    frames: dict[str, Any] = {"two_weights": frame_of([asdict(config.two_weights)])}
    for cell in outcomes:
        if cell.key in (INTERPOLATION, design.QUADRATURE):
            frames |= from_tree(outcomes.tree(cell))
    settings, rows = config.two_weights, []
    for case in rows_of(select("cases", noise=settings.noise), frames):
        for method in METHODS:
            tree = outcomes.find(design.alpha_problem(case["alpha"]), method)
            if tree is not None:
                rows.append(score_fits(settings, case, method, tree))
    frames["weight_fits"] = frame_of(rows)
    within = next((row["vanishing"] / row["sigma"] for row in rows_of("thresholds", frames)), None)
    return {**frames, **measure_classifiers(config, outcomes, within=within)}
