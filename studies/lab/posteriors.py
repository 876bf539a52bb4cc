"""Posteriors made of others: trees, halves of chains, distilled Gaussians, draws from the prior, frames in a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment.preparation import prior_scales
from onebasin.analysis.gaussian.distillation import DistillationSettings, distil
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.posteriors import schema

from .frame import Frame, Frames


def tree_of(groups: Mapping[str, xr.Dataset], attrs: Mapping[Any, Any]) -> xr.DataTree:
    """Make a tree of groups and attributes."""
    tree = xr.DataTree.from_dict(dict(groups))
    tree.attrs = dict(attrs)
    return tree


def halves(posterior: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Divide the chains into two halves; the draws where there is one chain."""
    dim = "chain" if posterior.sizes["chain"] > 1 else "draw"
    middle = posterior.sizes[dim] // 2
    return posterior.isel({dim: slice(None, middle)}), posterior.isel({dim: slice(middle, None)})


def posterior_mean(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Mean over all draws of every variable."""
    means = tree[schema.POSTERIOR].to_dataset().mean(schema.SAMPLE_DIMS)
    return {str(name): value.values for name, value in means.items()}


@dataclass(frozen=True)
class Distilling:
    """Settings of a distilled Gaussian, and the number of its draws that predict."""

    distillation: DistillationSettings
    draws: int

    def make(
        self,
        draws: xr.DataTree,
        target: NetworkTarget,
        seed: int,
        start: dict[str, np.ndarray] | None = None,
    ) -> xr.DataTree:
        """Distil a Gaussian from draws of the target, and draw from it."""
        found = distil(draws, target.x, start=start, settings=self.distillation, seed=seed)
        return found.sample(self.draws, seed=seed, predictive_mb=0)


def prior_draws(model: BayesianNetwork, like: xr.Dataset, seed: int) -> xr.Dataset:
    """Draw as often from the prior, whose draws are as far apart as draws can be."""
    rng, scales = np.random.default_rng(seed), prior_scales(model)
    shapes = {name: like[name].shape for name in model.network.shapes}
    draws = {name: scales[name] * rng.standard_normal(shape) for name, shape in shapes.items()}
    return xr.Dataset({name: like[name].copy(data=values) for name, values in draws.items()})


def to_tree(frames: Frames) -> xr.DataTree:
    """Lay out frames as groups that a file can keep, next to an empty posterior; `from_tree` reads them back."""
    texts = {name: ((), json.dumps(frame.rows)) for name, frame in frames.items()}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(), "frames": xr.Dataset(texts)})


def from_tree(tree: xr.DataTree) -> dict[str, Frame]:
    """Read back the frames of `to_tree`."""
    texts = tree["frames"].to_dataset()
    return {str(name): Frame.of(json.loads(str(v.values))) for name, v in texts.items()}
