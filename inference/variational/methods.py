"""Automatic differentiation variational inference (Kucukelbir et al. 2017), and symmetrised variational inference.

The latter maximises the ELBO of an approximation averaged over the target's symmetry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from onebasin.base.errors import ArgumentError
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


@settings
class Symmetrised(Method):
    """Settings of `symmetrised_vi`, which describes the fields."""

    name: ClassVar[str] = "symmetrised"
    engines: ClassVar = dict.fromkeys(
        ("numpyro", "stanli", "cmdstan"), "onebasin.inference.variational.engine:fit"
    )
    needs: ClassVar = frozenset({"symmetry"})
    resumes: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True
    by_jax: ClassVar[bool] = True
    apart: ClassVar = ("mutual_information",)
    numpyro_alone: ClassVar = frozenset({"dtype", "anneal"})
    networks_alone: ClassVar = frozenset({"batch_size", "init"})

    mutual_information: Literal["auto", "none", "exact", "fractional", "infonce"] = "auto"
    fits: Count = 1
    steps: Count = 10_000
    learning_rate: Positive = 0.01
    schedule: Literal["constant", "cosine"] = "cosine"
    anneal: Share = 0.0
    batch_size: Count | None = None
    samples: Count = 8
    information_draws: Count = 2
    permutations: Count = 10
    sweeps: Count = 15
    init: Literal["he", "random"] = "he"
    init_scale: Positive = 0.05
    evaluate_every: Count = 500
    elbo_samples: Count = 20
    tolerance: NonNegative = 1e-4
    report_draws: Count = 200
    report_permutations: Count = 50
    draws: Count = 1000
    dtype: Literal["float64", "float32"] = "float64"

    @property
    def amount(self) -> tuple[int, int]:
        """The numbers of chains and draws: one chain per fit."""
        return self.fits, self.draws

    @property
    def label(self) -> str:
        """The value that a posterior records in its attribute `method`."""
        return "symmetrised-vi"

    def check(self, target: Target, engine: str) -> None:
        """Reject batches and annealing if the target cannot use them."""
        from ..training.ensemble import check_batches

        check_batches(target, self.batch_size)
        if self.anneal and engine == "stan":
            raise ArgumentError(
                f"`anneal` is {self.anneal}, but the Stan program {target.name!r} does not separate the prior from the "
                "likelihood. Use anneal=0."
            )


@takes_running
def symmetrised_vi(
    target: Target,
    *,
    mutual_information: Literal["auto", "none", "exact", "fractional", "infonce"] = "auto",
    fits: int = 1,
    steps: int = 10_000,
    learning_rate: float = 0.01,
    schedule: Literal["constant", "cosine"] = "cosine",
    anneal: float = 0.0,
    batch_size: int | None = None,
    samples: int = 8,
    information_draws: int = 2,
    permutations: int = 10,
    sweeps: int = 15,
    init: Any = "he",
    init_scale: float = 0.05,
    evaluate_every: int = 500,
    elbo_samples: int = 20,
    tolerance: float = 0.0001,
    report_draws: int = 200,
    report_permutations: int = 50,
    draws: int = 1000,
    dtype: Literal["float64", "float32"] = "float64",
    **running: Unpack[Running],
) -> xr.DataTree:
    """Fit a Gaussian q whose average over the target's symmetry, q^G, approximates the posterior.

    JAX evaluates a NumPyro model, or a Stan program through its library in this process. The symmetry is
    always checked.

    Parameters
    ----------
    target : Target
        The model conditioned on data, with at least one `ob.Exchangeable` or `ob.Complement` block.
    mutual_information : {"auto", "none", "exact", "fractional", "infonce"}
        Estimator of the mutual information in training. "auto" is "exact" up to 12 components, else "fractional". For
        symmetries that couple components it is "exact" in groups of at most 5,040 elements, else "infonce". "none"
        trains the plain ELBO. "exact" and "fractional" (marginals of fractional messages) need separate components.
        "infonce" is the paper's estimator.
    fits : int
        Number of approximations to train together, each from its own start. Each is one chain of the result. Fit i
        depends only on the seed and i, except that early stopping waits until all fits have converged.
    steps : int
        Maximum number of Adam steps.
    learning_rate : float
        Initial step size of Adam.
    schedule : {"cosine", "constant"}
        Schedule of the step size: it falls to zero along half a cosine, or is constant.
    anneal : float
        Share of the steps over which the weight of the divergence from the prior rises from 0 to 1. The stopping rule
        applies only after that.
    batch_size : int or None
        Number of observations per gradient, by default all; only for networks.
    samples : int
        Number of draws from q per gradient.
    information_draws : int
        Number of draws from q per gradient of the mutual information; a few are enough.
    permutations : int
        Number K of permutations for "infonce", including the identity.
    sweeps : int
        Number of message-passing sweeps for "fractional".
    init : {"he", "random"}
        Start of the means. "he" draws a network's free weights as in He et al. 2015, which keeps training stable.
        "random" is uniform within +-2 in the unconstrained space, and is used for all other models.
    init_scale : float
        Initial standard deviations.
    evaluate_every : int
        Number of steps between evaluations of the traces.
    elbo_samples : int
        Number of draws per evaluation.
    tolerance : float
        Training ends early when, for every fit, the mean or the median relative change of the symmetrised ELBO over
        the last ten evaluations is below this value. With 0 it never ends early.
    report_draws : int
        Number of draws from q for the final estimates.
    report_permutations : int
        Number of permutations of each draw for the final estimates.
    draws : int
        Number of draws in the result per fit.
    dtype : {"float64", "float32"}
        Precision of training and of the draws.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain per fit. `posterior` has draws from q as (chain, draw, ...), all in the basin of q. A draw from q^G is
        such a draw moved by a random group element; both give the same predictions. `sample_stats` has `lp` and
        `log_q`. `variational` has q's parameters and, in nats, the traces `elbo`, `information` and `symmetrised_elbo
        (chain, evaluation)`. The attribute `information_side` says on which side of the true value the traces lie. The
        final numbers are `final_elbo`, `information_lower` and `information_upper`, `symmetrised_elbo_lower` and
        `symmetrised_elbo_upper` (chain), with Monte Carlo errors (`..._mcse`). The true value lies between them up to
        these errors.

    Raises
    ------
    ValueError
        Same as in `infer`. Also if the target has no symmetry, a name is unknown, or the estimator and other fields do
        not fit each other or the target.
    InUse, WriteError
        Same as in `infer`.
    TypeError
        Same as in `infer`. Also if single precision is requested with a Stan program.
    StanError
        If Stan cannot compile the program.
    SymmetryError
        If the log density does not have the declared symmetry.
    InferenceError
        If the ELBO becomes infinite or undefined.

    Notes
    -----
    The ELBO of q^G is that of q plus I, the mutual information between a group element and the draw that it moved. I
    lies between 0 and the logarithm of the group's order.

    References
    ----------
    Gelberg, van der Ouderaa, van der Wilk and Gal 2024, Variational inference failures under model symmetries, theorem
    4.1.

    Examples
    --------
    >>> fit = ob.symmetrised_vi(target, steps=1000, draws=200, seed=1)
    >>> gain = fit["variational"]["information_lower"].item()  # at most log(2) for two components
    >>> bool(0.6 < gain < np.log(2) + 1e-6)
    True
    """
    return run_by_keywords(Symmetrised, locals())
