"""Deep ensembles (Lakshminarayanan et al. 2017) of maximum a posteriori networks, trained in parallel.

Unlike in the paper, the networks maximise the model's posterior density (its prior is the weight decay), without
adversarial training; the variance is predicted only if the network's likelihood says so. `objective="likelihood"` drops
the prior.

Members are returned as the draws of a single chain. They are optima, not a sample of the posterior: their spread is
that of the optima that training finds, and R-hat and ESS do not apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from onebasin.base.errors import ArgumentError
from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Train:
    """Settings of minibatch Adam on the log density; `ensemble` describes the fields."""

    epochs: Count = 1000
    batch_size: Count | None = None
    learning_rate: Positive = 0.01
    schedule: Literal["constant", "cosine"] = "cosine"
    objective: Literal["posterior", "likelihood"] = "posterior"
    dtype: Literal["float64", "float32"] = "float64"


def check_batches(target: Target, batch_size: int | None) -> None:
    """Reject batches for a target that is not a network, and batches larger than the data."""
    if batch_size is None:
        return
    if not target.is_network:
        raise ArgumentError(
            f"`batch_size` is {batch_size}, but onebasin supports batches only for networks. The target "
            f"{target.name!r} is not a network. Use batch_size=None."
        )
    if batch_size > (num_obs := target.num_obs):
        raise ArgumentError(
            f"`batch_size` must not exceed the number of observations ({num_obs}); got {batch_size}. Use a smaller "
            "size, or None for all observations."
        )


@settings
class Ensemble(Train, Method):
    """Settings of `ensemble`, which describes the fields."""

    name: ClassVar[str] = "ensemble"
    gives_posterior: ClassVar[bool] = False
    engines: ClassVar = {"numpyro": "onebasin.inference.training.train:trained"}
    needs: ClassVar = frozenset({"network"})
    resumes: ClassVar[bool] = True

    members: Count = 10
    init: Literal["he", "prior"] = "he"

    @property
    def amount(self) -> tuple[int, int]:
        """The numbers of chains and draws: one chain, whose draws are the members."""
        return 1, self.members

    def check(self, target: Target, engine: str) -> None:
        """Reject targets that are not networks, and batches larger than the data."""
        if not target.is_network:
            raise ArgumentError(
                f"`target` must be a network with data, but {target.name!r} is not. Give the result of "
                "`BayesianNetwork.condition(x, y)`."
            )
        check_batches(target, self.batch_size)


@takes_running
def ensemble(
    target: Target,
    *,
    epochs: int = 1000,
    batch_size: int | None = None,
    learning_rate: float = 0.01,
    schedule: Literal["constant", "cosine"] = "cosine",
    objective: Literal["posterior", "likelihood"] = "posterior",
    dtype: Literal["float64", "float32"] = "float64",
    members: int = 10,
    init: Literal["he", "prior"] = "he",
    **running: Unpack[Running],
) -> xr.DataTree:
    """Train a deep ensemble of a network on the NumPyro engine.

    Each member depends only on the seed and its own number.

    Parameters
    ----------
    target : NetworkTarget
        Network and data: `BayesianNetwork.condition(x, y)`.
    epochs : int
        Number of passes over the data.
    batch_size : int or None
        Number of observations per gradient; by default all. Every epoch uses the observations in a new order and drops
        an incomplete last batch.
    learning_rate : float
        Initial step size of Adam.
    schedule : {"cosine", "constant"}
        Whether the step size falls to zero along half a cosine over all steps, or stays constant.
    objective : {"posterior", "likelihood"}
        What to maximise: the posterior density in the unconstrained space (the prior acts as weight decay, and the
        Jacobian of constrained parameters is included), or only the likelihood.
    dtype : {"float64", "float32"}
        Precision of training and of the members.
    members : int
        Number of networks, each trained from its own start.
    init : {"he", "prior"}
        Start of training. "he": free weights ~ N(0, 2 / inputs of the unit) (He et al. 2015), free biases zero, the
        noise at the scale of its prior, and constrained parameters drawn from their prior. "prior": everything drawn
        from the prior. N(0, 1) weights on many inputs saturate a wide network, so "prior" then trains slowly.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain whose draws are the members, `W1 (1, member, in, hidden1)` and so on. `lp` is their log posterior
        density in the unconstrained space (nats), and the group `training` has `loss (member, epoch)`. Members are
        optima, not a sample of the posterior, so R-hat and ESS do not apply to them.

    Raises
    ------
    TypeError, InferenceError, InUse, WriteError
        Same as in `infer`.
    ValueError
        Same as in `infer`. Also if the target is not a network or the batch is larger than the data.

    Notes
    -----
    Members maximise the posterior density of the model, so its prior is the weight decay. Adversarial training, which
    the original method includes, is omitted. The variance is predicted only if the network's likelihood says so.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell 2017, Simple and scalable predictive uncertainty estimation using deep
    ensembles, NeurIPS 30. He, Zhang, Ren and Sun 2015, arXiv:1502.01852, equation 10 (``init="he"``).

    Examples
    --------
    >>> members = ob.networks.ensemble(network, members=4, epochs=200, seed=1)
    >>> members["posterior"]["W1"].shape, members["training"]["loss"].shape
    ((1, 4, 1, 2), (4, 200))
    """
    return run_by_keywords(Ensemble, locals())
