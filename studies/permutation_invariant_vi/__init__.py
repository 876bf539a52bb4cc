"""A Gaussian averaged over a network's permutations, trained through the ELBO of the average.

The study repeats Figures 3 to 5 and Tables 1 to 3 of Gelberg, van der Ouderaa, van der Wilk and Gal 2024, "Variational
inference failures under model symmetries: permutation invariant posteriors for Bayesian neural networks". It estimates
the mutual information by the permanent and by the paper's InfoNCE, and uses HMC as the reference.

With `--full`, the classifiers have the paper's widths and are fitted to all of MNIST. By default they are fitted to
2,000 images averaged to 14 x 14 pixels; with `--quick`, to 500 digits.
"""

from dataclasses import replace
from typing import Any

import xarray as xr

from onebasin.truth.problems.networks import image_split

from ..lab.run import sample
from ..lab.study import Cell, Context, Frames, Outcomes, Study, frame_of, rows_of, select
from ..networks import from_tree, to_tree
from . import classifiers, design, two_modes, two_weights
from .design import INTERPOLATION, FitSettings, cells, configure, target
from .figures import draw_figures
from .tables import TABLES


def make(config: design.InvariantConfig, cell: Cell, context: Context) -> xr.DataTree:
    """Make the posterior of a cell."""
    if cell.key in (INTERPOLATION, design.QUADRATURE):
        part = two_modes if cell.key == INTERPOLATION else two_weights
        return to_tree(part.run(cell.settings))
    if isinstance(cell.settings, FitSettings):
        how: Any = cell.settings.mutual_information
        method = replace(cell.settings.vi, mutual_information=how)
        fitted = sample(cell, context, method, engine=None)  # Use the engine with a definition.
        if not cell.problem.startswith("width-"):
            return fitted
        test = image_split(config.images, cell.seed).test
        return classifiers.with_predictions(fitted, cell.settings.kept, test)
    if isinstance(cell.settings, design.TruthSettings):
        first, *others = context.inputs
        if cell.method != "truth":
            return classifiers.hold_against(first, others[0], cell.settings)
        return classifiers.make_truth(
            first, cell.settings, image_split(config.images, cell.seed).test
        )
    return sample(cell, context)


def measures(config: design.InvariantConfig, outcomes: Outcomes) -> Frames:
    """Collect the frames of all parts; `weight_fits` has one row per alpha and method (`two_weights.score_fits`)."""
    frames: dict[str, Any] = {}
    for cell in outcomes:
        if cell.key in (INTERPOLATION, design.QUADRATURE):
            frames |= from_tree(outcomes.tree(cell))
    settings, rows = config.two_weights, []
    for case in rows_of(select("cases", noise=settings.noise), frames):
        for method in two_weights.METHODS:
            tree = outcomes.find(design.alpha_problem(case["alpha"]), method)
            if tree is not None:
                rows.append(two_weights.score_fits(settings, case, method, tree))
    frames["weight_fits"] = frame_of(rows)
    return {**frames, **classifiers.measure(config, outcomes)}


STUDY = Study(configure, cells, target, measures, TABLES, draw_figures, make)
