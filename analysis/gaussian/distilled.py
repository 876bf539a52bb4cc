"""Results of a distillation: a diagonal Gaussian over a network's weights, and posteriors drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.card import Card, Shown, Words, number
from onebasin.base.checks import check_count, check_seed
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit
from onebasin.posteriors.view import View

from .common import of_target, parameter_table, prediction_groups, size_of

PURPOSE = 1002
"""Used with a seed: random numbers for the noise of predictions."""


@dataclass(frozen=True, eq=False, repr=False)
class Distilled(Shown):
    """A diagonal Gaussian over a network's weights.

    Attributes
    ----------
    mean, sd : mapping of str to array
        Of each weight and bias, under the variables' names: `W1 (in, hidden1)`, `b1 (hidden1)`, ...
    loss : array (evaluation,)
        Mean energy score (no unit: of probabilities' roots, or of outputs over their standard deviation) over each 100
        iterations; the last may be shorter.
    source : View
        The posterior that was distilled; names of axes, data and attributes come from it.
    """

    mean: Mapping[str, np.ndarray]
    sd: Mapping[str, np.ndarray]
    loss: Float[np.ndarray, " evaluation"]
    source: View

    def _card(self) -> Card:
        first, last = float(self.loss[0]), float(self.loss[-1])
        of = of_target(self.source.attributes)
        lead = (
            f"A Gaussian with a diagonal covariance over {size_of(self.mean):,} weights, trained to predict as the "
            f"posterior{of} does: the energy score of its predictions fell from {number(first)} to {number(last)}. "
            "Compare `.sample(1000)` with the posterior by `ob.compare`."
        )
        return Card("Distilled Gaussian", (Words(lead), parameter_table(self.mean, self.sd)))

    def sample(
        self, num_draws: int, *, seed: int = 0, predictive_mb: float = LIMIT_MB
    ) -> xr.DataTree:
        """Draw a posterior of one chain, of independent draws.

        Parameters
        ----------
        num_draws : int
            Draws.
        seed : int
            Of the draws.
        predictive_mb : float
            Megabytes that log likelihoods and predictions may take, see `inference.nuts`; 0 leaves them out.

        Returns
        -------
        DataTree
            With the groups `posterior`, `distilled` (`mean_W1`, `sd_W1`, ..., `loss`), `log_likelihood` and
            `posterior_predictive`, method `distilled`. Noise that is inferred is no weight: `sigma` is drawn from the
            source's draws of it.

        Raises
        ------
        ValueError
            If `num_draws` or `predictive_mb` is not a positive number, or the seed out of range.
        """
        check_count("num_draws", num_draws)
        check_seed(seed)
        first = self.source.posterior.transpose(*schema.SAMPLE_DIMS, ...)
        draws = weights_of(self.mean, self.sd, num_draws, seed)
        model = self.source.network
        if model is not None and model.infers_noise and "sigma" in self.source.variables:
            there = self.source.values("sigma").reshape(-1)
            rng = np.random.default_rng((seed, PURPOSE))
            draws["sigma"] = rng.choice(there, (1, num_draws))
        variables = {name: (first[name].dims, values) for name, values in draws.items()}
        fit: dict[str, Any] = {"loss": ("evaluation", self.loss)}
        for name in self.mean:
            dims = first[name].dims[2:]
            fit[f"mean_{name}"], fit[f"sd_{name}"] = (dims, self.mean[name]), (dims, self.sd[name])
        groups = {schema.POSTERIOR: xr.Dataset(variables), schema.DISTILLED: xr.Dataset(fit)}
        limit = check_limit(predictive_mb)
        groups |= self.source.data
        groups |= prediction_groups(self.source, draws, seed=seed, limit_mb=limit)
        tree = xr.DataTree.from_dict(groups)
        kept = {n: v for n, v in self.source.attributes.items() if n in schema.OF_A_TARGET}
        tree.attrs = kept | {schema.METHOD: "distilled", schema.SEED: seed}
        return tree


def weights_of(
    mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray], num_draws: int, seed: int
) -> dict[str, Float[np.ndarray, "chain draw ..."]]:
    """Draw weights of independent normals, as one chain."""
    rng = np.random.default_rng(seed)
    return {
        name: (centre + sd[name] * rng.standard_normal((num_draws, *centre.shape)))[None]
        for name, centre in mean.items()
    }
