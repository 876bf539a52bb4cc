"""What a distillation gives: a diagonal Gaussian over a network's weights, and posteriors drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models import schema

from ..posterior.view import Posterior, as_view


@dataclass(frozen=True, eq=False)
class Distilled:
    """A diagonal Gaussian over a network's weights.

    Attributes
    ----------
    mean, sd : mapping of str to array
        Of each weight and bias, under the variables' names.
    loss : array (evaluation,)
        Mean energy score over each 100 iterations; the last may be shorter.
    """

    mean: Mapping[str, np.ndarray]
    sd: Mapping[str, np.ndarray]
    loss: Float[np.ndarray, " evaluation"]

    def sample(
        self, num_draws: int, *, seed: int = 0
    ) -> dict[str, Float[np.ndarray, "chain draw ..."]]:
        """Draw weights, one chain of `num_draws`."""
        rng = np.random.default_rng(seed)
        return {
            name: (mean + self.sd[name] * rng.standard_normal((num_draws, *mean.shape)))[None]
            for name, mean in self.mean.items()
        }

    def to_posterior(self, source: Posterior, num_draws: int, *, seed: int = 0) -> xr.DataTree:
        """Draw a posterior of one chain.

        Parameters
        ----------
        source
            The posterior that was distilled; names of axes, data and attributes come from it.
        num_draws : int
            Draws.
        seed : int
            Of the draws.

        Returns
        -------
        DataTree
            With the groups `posterior` and `distilled` (`mean_W1`, `sd_W1`, ..., `loss`), method
            `distilled`.
        """
        view = as_view(source, "source")
        first = view.posterior.transpose(*schema.SAMPLE_DIMS, ...)
        draws = self.sample(num_draws, seed=seed)
        variables = {name: (first[name].dims, values) for name, values in draws.items()}
        fit: dict[str, Any] = {"loss": ("evaluation", self.loss)}
        for name, (dims, _) in variables.items():
            fit[f"mean_{name}"] = (dims[2:], self.mean[name])
            fit[f"sd_{name}"] = (dims[2:], self.sd[name])
        groups = {schema.POSTERIOR: xr.Dataset(variables), schema.DISTILLED: xr.Dataset(fit)}
        tree = xr.DataTree.from_dict(groups | view.data)
        kept = {n: v for n, v in view.attributes.items() if n in schema.OF_A_TARGET}
        tree.attrs = kept | {
            schema.METHOD: "distilled",
            schema.SEED: seed,
            schema.CREATED_AT: schema.now(),
        }
        return tree
