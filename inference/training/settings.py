"""Settings of training."""

from __future__ import annotations

from typing import Literal

from onebasin.base.settings import Count, Positive, settings


@settings
class Train:
    """Train networks by minibatch Adam on the log density.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    batch_size : int or None
        Observations in each gradient; `None` for all. Every epoch takes the observations in a new order and leaves out
        the rest that fills no batch.
    learning_rate : float
        Adam's first step size.
    schedule : {"cosine", "constant"}
        Whether the step size falls to zero along half a cosine over all steps, or stays.
    objective : {"posterior", "likelihood"}
        What is maximised: the posterior density in the unconstrained space (the prior acts as weight decay, and a
        constrained parameter's Jacobian counts), or the likelihood alone.
    dtype : {"float64", "float32"}
        Precision.

    Examples
    --------
    >>> ob.networks.Train(epochs=200, batch_size=32).schedule
    'cosine'
    """

    epochs: Count = 1000
    batch_size: Count | None = None
    learning_rate: Positive = 0.01
    schedule: Literal["constant", "cosine"] = "cosine"
    objective: Literal["posterior", "likelihood"] = "posterior"
    dtype: Literal["float64", "float32"] = "float64"
