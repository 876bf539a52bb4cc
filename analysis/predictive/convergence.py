"""Agreement of chains on a network's predictions: R-hat, ESS and Monte Carlo errors, point by point.

Weights of networks have labels, which switch between chains without meaning; outputs have none. So they can be judged
where parameters cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, as_view

from ..summaries.summary import summary
from .points import inputs_of, network_of


def summarise_predictions(posterior: Posterior, x: Any = None) -> pd.DataFrame:
    """Summarise a network's outputs at every input, with R-hat and effective sample sizes.

    No permutation, sign or scaling of hidden units changes an output, so that chains in equal modes agree here, and
    those in unlike ones do not.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        Of a network, with at least 4 draws a chain.
    x : array (obs, in), optional
        Inputs, in the units that the network was conditioned on; by default those that it was fitted to.

    Returns
    -------
    DataFrame
        A row an output, ``f[obs,out]`` (logits of a classifier), and where the network predicts its noise one for its
        standard deviation, ``noise_sd[obs,out]``; columns `mean`, `median`, `sd`, `q5`, `q95`, `mcse_mean`,
        `mcse_sd`, `rhat`, `ess_bulk`, `ess_tail`, in the units of `y`.

    Raises
    ------
    ValueError
        If the posterior is of no network, `x` does not fit it, or `x` is not given and was not kept.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16(2) (R-hat, ESS).

    Examples
    --------
    >>> settings = ob.Nuts(chains=2, warmup=100, draws=50)
    >>> run = ob.infer(network, settings, seed=1)
    >>> table = ob.networks.summarise_predictions(run, np.zeros((3, 1)))
    >>> list(table.index), "rhat" in table
    (['f[0,0]', 'f[1,0]', 'f[2,0]'], True)
    """
    from onebasin.models.networks.prediction import predict, predict_with_noise

    view = as_view(posterior)
    model = network_of(
        view,
        otherwise="summarise generated quantities of your own by `diagnose(posterior, var_names=...)`",
    )
    x = inputs_of(view, x)
    draws = {name: view.values(name) for name in view.variables}
    parts = {"f": predict(model, draws, x)}
    if model.predicts_noise:
        parts["noise_sd"] = predict_with_noise(model, draws, x)[1]
    return summarise_outputs(parts)


def summarise_outputs(parts: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Summarise outputs (chain, draw, obs, out), and what there is one of a draw, under their names and places."""
    names = [
        f"{name}[{','.join(map(str, place))}]" if place else name
        for name, values in parts.items()
        for place in np.ndindex(values.shape[2:])
    ]
    flat = [np.asarray(v, np.float64).reshape(*v.shape[:2], -1) for v in parts.values()]
    return summary(Draws(tuple(names), np.concatenate(flat, axis=-1)))
