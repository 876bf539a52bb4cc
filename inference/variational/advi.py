"""Automatic differentiation variational inference (Kucukelbir et al. 2017) on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from onebasin.base.settings import Count, NonNegative, Positive, Share, settings

from ..contracts.method import Method
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Advi(Method):
    """Settings of automatic differentiation variational inference; `advi` describes the fields."""

    name: ClassVar[str] = "advi"
    engines: ClassVar = {
        "numpyro": "onebasin.inference.variational.engine:fit",
        "stanli": "onebasin.inference.variational.stan:fit",
        "cmdstan": "onebasin.inference.variational.stan:fit",
    }
    takes_start: ClassVar[bool] = True
    apart: ClassVar = ("family",)
    later: ClassVar = ("weights",)
    for_calibration: ClassVar = {"weights": False}
    numpyro_alone: ClassVar = frozenset(
        {"dtype", "init_scale", "learning_rate", "schedule", "anneal"}
    )
    networks_alone: ClassVar = frozenset({"batch_size", "init", "trace_parameters"})

    family: Literal["meanfield", "fullrank"] = "meanfield"
    iterations: Count = 10_000
    gradient_samples: Count = 10
    elbo_samples: Count = 100
    evaluate_every: Count = 100
    tolerance: NonNegative = 0.001
    draws: Count = 1000
    learning_rate: Positive = 0.02
    schedule: Literal["exponential", "cosine", "constant"] = "exponential"
    anneal: Share = 0.0
    batch_size: Count | None = None
    init: Literal["random", "he"] = "random"
    init_scale: Positive = 0.1
    trace_parameters: bool = False
    dtype: Literal["float64", "float32"] = "float64"
    weights: bool | None = None

    @property
    def label(self) -> str:
        """The value that a posterior records in its attribute `method`."""
        return f"advi-{self.family}"

    @property
    def word(self) -> str:
        """The name of the family in studies."""
        return self.family


@takes_running
def advi(
    target: Target,
    *,
    family: Literal["meanfield", "fullrank"] = "meanfield",
    iterations: int = 10_000,
    gradient_samples: int = 10,
    elbo_samples: int = 100,
    evaluate_every: int = 100,
    tolerance: float = 0.001,
    draws: int = 1000,
    learning_rate: float = 0.02,
    schedule: Literal["exponential", "cosine", "constant"] = "exponential",
    anneal: float = 0.0,
    batch_size: int | None = None,
    init: Any = "random",
    init_scale: float = 0.1,
    trace_parameters: bool = False,
    dtype: Literal["float64", "float32"] = "float64",
    weights: bool | None = None,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space by maximising the ELBO.

    The NumPyro engine uses onebasin's Gaussian families with Adam; the Stan engines use Stan's algorithm.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    family : {"meanfield", "fullrank"}
        Diagonal or full covariance.
    iterations : int
        Maximum number of gradient steps.
    gradient_samples : int
        Number of Monte Carlo draws per gradient.
    elbo_samples : int
        Number of Monte Carlo draws per ELBO evaluation.
    evaluate_every : int
        Number of gradient steps between evaluations of the ELBO.
    tolerance : float
        The optimiser stops when the mean or median relative change of the ELBO over the last evaluations is below this
        value; 0 for never (NumPyro).
    draws : int
        Number of draws from the fitted approximation.
    learning_rate : float
        Initial step size of Adam (NumPyro); Stan searches for its own step size.
    schedule : {"exponential", "cosine", "constant"}
        Schedule of the step size (NumPyro): it falls to a hundredth, falls to zero along half a cosine, or is constant.
    anneal : float
        Share of the iterations over which the weight of the divergence from the prior rises from 0 to 1 (NumPyro). The
        stopping rule applies only after that.
    batch_size : int or None
        Number of observations per gradient; by default all. Batches are drawn without replacement in every pass, and
        their likelihood is scaled up to all data. Only for networks on the NumPyro engine. The ELBO always uses all
        data.
    init : {"random", "he"}
        Initial mean if `start` is not given. "random" is uniform within +-2 in the unconstrained space. "he" draws the
        free weights of a network as in He et al. 2015 (NumPyro).
    init_scale : float
        Initial standard deviation in every direction (NumPyro); Stan starts at 1.
    trace_parameters : bool
        Whether to record means and standard deviations at every evaluation (NumPyro).
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine.
    weights : bool or None
        Whether to correct the approximation with importance weights and resample the draws. By default it is corrected
        if the weights are good enough, but never for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws from the fit, with every variable as (1, draw, ...), and `lp` and `log_q` (1, draw) in nats,
        each up to a constant. The group `variational` has `elbo (evaluation)` in nats at `iteration (evaluation)`.
        With the NumPyro engine it also has `loc (param)` and `scale (param)` or `scale_tril (param, param_bis)`. The
        attribute `converged` is true if the stopping rule was met within `iterations`.

    Raises
    ------
    TypeError, SymmetryError
        Same as in `infer`.
    ValueError
        Same as in `infer`. Also if `start` does not fit the target, `batch_size` is given for a model that is not a
        network or exceeds the data, or a field does not fit the target, the family or the engine.
    AdviFailed
        If all attempts with Stan's algorithm fail.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    symmetrised_vi : Variational inference for models with interchangeable components.

    References
    ----------
    Kucukelbir, Tran, Ranganath, Gelman and Blei 2017, Automatic differentiation variational inference, JMLR 18(14),
    whose section 2.6 has the stopping rule.

    Examples
    --------
    >>> fit = ob.advi(target, family="fullrank", iterations=2000, draws=200, seed=1)
    >>> fit["posterior"]["mu"].shape, fit["variational"]["loc"].shape
    ((1, 200, 2), (3,))
    """
    return run_by_keywords(Advi, locals())
