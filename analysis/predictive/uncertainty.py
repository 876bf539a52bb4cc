"""A prediction's standard deviation in two parts: what is not known of the function, and what the data scatter.

Convention: with w the draws of a posterior, the law of total variance says of a new observation y at an input

    Var[y] = Var_w(E[y | w]) + E_w(Var[y | w]),

the first part epistemic, the second aleatoric. Of a regression E[y | w] is the network's output and Var[y | w] the
draw's noise; of a classifier y is the indicator of a class, E[y | w] = p its probability and Var[y | w] = p (1 - p).
Variances are over the draws that there are (divided by their number), so that the parts add up to that of the
mixture of the draws' distributions exactly. Chains are pooled.

Sources: Depeweg, Hernández-Lobato, Doshi-Velez and Udluft 2018, section 3.1 (the split); Kwon, Won, Kim and Paik 2020
(of classes); Chan, Golub and LeVeque 1983 (variances a piece of draws at a time).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from onebasin.base.card import Card, FactList, Words, number
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.posteriors.draws import checked
from onebasin.posteriors.view import Posterior, View, as_view

from .classification import class_probability_by_draw
from .points import Points, inputs_of, network_of

_AT_ONCE = 2**22
"""Outputs that are computed at a time, draws times points times outputs."""

Values = Float[np.ndarray, "obs out"]


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveUncertainty(Shown):
    """Mean and standard deviations of what a posterior predicts at some points.

    Attributes
    ----------
    mean : array (obs, out)
        Predictive mean in the units of `y`; of a classifier the probability of each class.
    epistemic : array (obs, out)
        Standard deviation over draws of the mean given the draw: what more data could take away.
    aleatoric : array (obs, out)
        Root mean square over draws of the noise's standard deviation: what more data leave.
    num_draws : int
        Draws of all chains.
    """

    mean: Values
    epistemic: Values
    aleatoric: Values
    num_draws: int

    @property
    def total(self) -> Float[np.ndarray, "obs out"]:
        """Standard deviation of a prediction, the root of the sum of both parts' squares."""
        return np.hypot(self.epistemic, self.aleatoric)

    def _card(self) -> Card:
        parts = {"total": self.total, "epistemic": self.epistemic, "aleatoric": self.aleatoric}
        rms = {name: float(np.sqrt(np.mean(sd**2))) for name, sd in parts.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 100 * np.float64(rms["epistemic"]) ** 2 / rms["total"] ** 2
        said = (
            f"The standard deviation of a prediction is {number(rms['total'])} (root mean square over points); "
            f"{number(share)} % of its variance is epistemic, which more data could take away."
        )
        ends = [
            (
                name,
                f"{number(sd.min())} to {number(sd.max())}, root mean square {number(rms[name])}",
            )
            for name, sd in parts.items()
        ]
        facts = FactList.of(*ends, ("draws", f"{self.num_draws:,}"))
        return Card(f"Predictive uncertainty at {len(self.mean):,} points", (Words(said), facts))


def predictive_uncertainty(posterior: Posterior, x: Any = None) -> PredictiveUncertainty:
    """Split a prediction's standard deviation into its epistemic and its aleatoric part.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        Of a network, by any method. Draws are read and run a bounded piece at a time.
    x : array (obs, in), optional
        Inputs, in the units that the network was conditioned on; by default those that it was fitted to.

    Returns
    -------
    PredictiveUncertainty
        `mean`, `epistemic`, `aleatoric` and `total`, each (obs, out), with ``total**2 == epistemic**2 + aleatoric**2``.
        A value that is not finite propagates.

    Raises
    ------
    ValueError
        If the posterior is of no network or lacks a parameter of it, `x` does not fit it, or `x` is not given and was
        not kept.

    See Also
    --------
    onebasin.plot.uncertainty : the same as a figure, along one input.

    References
    ----------
    Depeweg, Hernández-Lobato, Doshi-Velez and Udluft 2018, Decomposition of uncertainty in Bayesian deep learning for
    efficient and risk-sensitive learning, ICML. Kwon, Won, Kim and Paik 2020, Uncertainty quantification using Bayesian
    neural networks in classification, Computational Statistics and Data Analysis 142 (of classes).

    Examples
    --------
    >>> split = ob.networks.predictive_uncertainty(weights, np.linspace(-2, 2, 5)[:, None])
    >>> split.epistemic.shape, np.allclose(split.aleatoric, 0.1)  # the noise is known: 0.1
    ((5, 1), True)
    """
    from onebasin.models.networks.prediction import mean_and_sd, predict

    view = as_view(posterior)
    model = network_of(view)
    x = Points.of(model, inputs_of(view, x), None).x
    names = [*model.network.shapes, *(["sigma"] if model.infers_noise else [])]
    absent = [name for name in names if name not in view.variables]
    if absent:
        raise ArgumentError(
            f"`{view.argument}` lacks {', '.join(absent)} of its network; it holds {', '.join(view.variables)}. Give "
            "draws of all its parameters."
        )
    # Of the draws so far: their number, mean, squared deviations from it, and summed noise.
    count, centre, squares, noise = 0, *np.zeros((3, 1, 1))
    for draws in _pieces(view, names, len(x) * model.network.widths[-1]):
        if model.is_classifier:
            mean = class_probability_by_draw(predict(model, draws, x))
            variance = mean * (1 - mean)
        else:
            function, sd = mean_and_sd(model, draws, x)
            mean, variance = function.astype(np.float64), np.asarray(sd, np.float64) ** 2
        more, own = mean.shape[0] * mean.shape[1], mean.mean(axis=(0, 1))
        apart = own - centre
        squares = squares + np.square(mean - own).sum(axis=(0, 1))
        squares = squares + apart**2 * (count * more / (count + more))
        count += more
        centre = centre + apart * (more / count)
        noise = noise + np.broadcast_to(variance, mean.shape).sum(axis=(0, 1))
    return PredictiveUncertainty(
        mean=centre,
        epistemic=np.sqrt(squares / count),
        aleatoric=np.sqrt(noise / count),
        num_draws=count,
    )


def _pieces(view: View, names: list[str], outputs: int) -> Iterator[dict[str, np.ndarray]]:
    """Draws of all chains at once where they are few, else of one chain, some at a time.

    Pieces are as equal as they can be, since every length is compiled again.
    """
    variables = {name: checked(view.arrays[name], view.argument).variable for name in names}
    chains, draws = view.num_chains, view.num_draws
    most = max(1, _AT_ONCE // outputs)
    together = chains if chains * draws <= most else 1
    length = -(-draws // -(-draws // most))
    for chain in range(0, chains, together):
        for first in range(0, draws, length):
            rows = (slice(chain, chain + together), slice(first, first + length))
            yield {name: variable[rows].values for name, variable in variables.items()}
