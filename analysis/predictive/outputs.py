"""A network's outputs over the draws of its posterior."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, cast

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.base.notices import notice
from onebasin.posteriors.view import Posterior, as_view


@cache
def _say_former() -> None:
    notice(
        "`predict(model, draws, x)` is now `predict(posterior, x)`, and `networks.predict(model, draws, x)` for draws "
        "that do not say which network they are of; the old order goes with version 0.5"
    )


def _taking_former_order[F: Callable[..., Any]](function: F) -> F:
    """Let a call in version 0.3's order, which begins with the model, through to `networks.predict`."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        first = given[0] if given else named.get("model")
        of_network = hasattr(first, "network") and hasattr(first, "condition")
        if not of_network and len(given) < 3 and "draws" not in named:
            return function(*given, **named)
        from onebasin.models.networks.prediction import predict as of_model

        _say_former()
        return of_model(*given, **named)

    return cast(F, call)


@_taking_former_order
def predict(
    posterior: Posterior, x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs out"]:
    """Run a network over all draws of its posterior.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        A posterior of a network, in any form that `ob.diagnose` takes.
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    batch_size : int
        Draws that are run at a time; bounds the memory.

    Returns
    -------
    array (chain, draw, obs, out)
        Outputs: means for regression, in the units of `y`; logits for classification. Without observation noise, whose
        size is what `ob.networks.predict_with_noise` gives too.

    Raises
    ------
    ValueError
        If the posterior is not of a network, `x` does not fit the network or is not finite, or `batch_size` is not a
        positive whole number.

    Examples
    --------
    >>> ob.predict(weights, np.zeros((5, 1))).shape
    (4, 300, 5, 1)
    """
    view = as_view(posterior)
    if view.network is None:
        raise ArgumentError(
            "`posterior` is not of a network (its attribute `model` is empty): give a network's posterior, or use "
            "`ob.networks.predict(model, draws, x)`."
        )
    from onebasin.models.networks.prediction import predict as of_model  # here: it loads JAX

    draws = {name: view.posterior[name] for name in view.variables}
    return of_model(view.network, draws, x, batch_size=batch_size)
