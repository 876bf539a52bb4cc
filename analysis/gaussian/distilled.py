"""What a distillation gives: a diagonal Gaussian over a network's weights, and posteriors drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models import schema
from onebasin.models.pointwise import LIMIT_MB, check_limit

from ..posterior.view import Posterior, View, as_view
from .predictions import prediction_groups

PURPOSE = 1002
"""Beside a seed: random numbers for the noise of predictions."""


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

    def to_posterior(
        self,
        source: Posterior,
        num_draws: int,
        *,
        seed: int = 0,
        predictive_mb: float = LIMIT_MB,
    ) -> xr.DataTree:
        """Draw a posterior of one chain.

        Parameters
        ----------
        source
            The posterior that was distilled; names of axes, data and attributes come from it.
        num_draws : int
            Draws.
        seed : int
            Of the draws.
        predictive_mb : float
            Megabytes that log likelihoods and predictions may take, see `inference.nuts`; 0 leaves them out. Noise that
            is inferred is no weight, and has the source's draws for them.

        Returns
        -------
        DataTree
            With the groups `posterior`, `distilled` (`mean_W1`, `sd_W1`, ..., `loss`), `log_likelihood` and
            `posterior_predictive`, method `distilled`.
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
        with_noise = draws | _noise(view, num_draws, seed)
        limit = check_limit(predictive_mb)
        groups |= view.data | prediction_groups(view, with_noise, seed=seed, limit_mb=limit)
        tree = xr.DataTree.from_dict(groups)
        kept = {n: v for n, v in view.attributes.items() if n in schema.OF_A_TARGET}
        tree.attrs = kept | {
            schema.METHOD: "distilled",
            schema.SEED: seed,
        }
        return tree


def _noise(source: View, num_draws: int, seed: int) -> dict[str, np.ndarray]:
    """The noise's standard deviation, drawn from those of the source; nothing where it is known or not kept."""
    model = source.network
    if model is None or not model.infers_noise or "sigma" not in source.variables:
        return {}
    there = source.values("sigma").reshape(-1)
    rng = np.random.default_rng((seed, PURPOSE))
    return {"sigma": rng.choice(there, (1, num_draws))}
