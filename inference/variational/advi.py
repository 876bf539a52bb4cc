"""Automatic differentiation variational inference (Kucukelbir et al. 2017) on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.checks import checks_names
from onebasin.base.settings import Count, NonNegative, Positive, Share, settings

from ..contracts.method import Method
from ..runs.keywords import LIMIT_MB, run_by_keywords

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from onebasin.models.target import Target


@settings
class Advi(Method):
    """Fit a Gaussian by automatic differentiation variational inference; `advi` describes the fields."""

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
        """Value of a posterior's attribute `method`."""
        return f"advi-{self.family}"

    @property
    def word(self) -> str:
        """Name of the family in studies."""
        return self.family


@checks_names
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
    engine: str | None = None,
    seed: int = 0,
    start: Any = None,
    adapt_from: Any = None,
    checkpoint: str | Path | None = None,
    client: Any = None,
    predictive_mb: float = LIMIT_MB,
    symmetry: bool = True,
    check_symmetry: bool = True,
    progress: bool | None = None,
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
        Monte Carlo draws per gradient.
    elbo_samples : int
        Monte Carlo draws per ELBO evaluation.
    evaluate_every : int
        Gradient steps between evaluations of the ELBO.
    tolerance : float
        Relative change of the ELBO at which the optimiser stops, as the mean or median over the last evaluations; 0
        for never (NumPyro).
    draws : int
        Draws taken from the fitted approximation.
    learning_rate : float
        Adam's first step size (NumPyro); Stan searches its own.
    schedule : {"exponential", "cosine", "constant"}
        Schedule of the step size: down to a hundredth, to zero along half a cosine, or constant (NumPyro).
    anneal : float
        Share of the iterations over which the weight of the prior's divergence rises from 0 to 1 (NumPyro). Until then
        the stopping rule waits.
    batch_size : int or None
        Observations in each gradient, drawn without replacement in every pass over the data and weighted up to the
        full data; `None` for all. Only for networks on the NumPyro engine. The ELBO always uses all data.
    init : {"random", "he"}
        Initial mean if `start` is not given. "random": uniform within +-2 in the unconstrained
        space. "he": free weights of a network as in He et al. 2015 (NumPyro).
    init_scale : float
        Standard deviation at the start, in every direction (NumPyro); Stan starts at 1.
    trace_parameters : bool
        Whether to record means and standard deviations at every evaluation (NumPyro).
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if the weights are
        good enough; not for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws from the fit, every variable as (1, draw, ...), with `lp` and `log_q` (1, draw) in nats, each
        up to a constant; and the group `variational` with `elbo (evaluation)` in nats at `iteration (evaluation)`, and
        of the NumPyro engine `loc (param)` with `scale (param)` or `scale_tril (param, param_bis)`. Attribute
        `converged` says whether the stopping rule was met within `iterations`.

    Raises
    ------
    TypeError, SymmetryError
        Same as in `infer`.
    ValueError
        Same as in `infer`. Also if `start` does not fit the target, a batch is given for a model that is not a network
        or is larger than the data, or a field does not fit the target, the family or the engine.
    AdviFailed
        If all of Stan's attempts failed.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    symmetrised_vi : for models with interchangeable components.

    References
    ----------
    Kucukelbir, Tran, Ranganath, Gelman and Blei 2017, Automatic differentiation variational inference, JMLR 18(14); the
    stopping rule is from section 2.6.

    Examples
    --------
    >>> fit = ob.advi(target, family="fullrank", iterations=2000, draws=200, seed=1)
    >>> fit["posterior"]["mu"].shape, fit["variational"]["loc"].shape
    ((1, 200, 2), (3,))
    """
    return run_by_keywords(Advi, locals())
