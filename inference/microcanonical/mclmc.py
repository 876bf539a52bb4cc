"""Microcanonical Langevin Monte Carlo: chains with a momentum of length one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from onebasin.base.settings import Count, Positive, Probability, WholeNumber, settings

from ..contracts.method import Method, definition_of, found_at
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

    from ..contracts.method import Found, Job

GRADIENTS = 2  # Number of gradients per step of the integrator.
NETWORKS_VARIANCE, OTHERS_VARIANCE = 0.03, 5e-4  # Defaults of `energy_variance`.
_WHERE = "onebasin.inference.microcanonical.dynamics:MclmcRunner"
BIAS = "onebasin.inference.microcanonical.dynamics:record_bias"
"""The function that estimates the bias from the step size."""


@settings
class Mclmc(Method):
    """Settings of microcanonical Langevin Monte Carlo; `mclmc` describes the fields."""

    name: ClassVar[str] = "mclmc"
    resumes: ClassVar[bool] = True
    takes_client: ClassVar[bool] = True
    correlated: ClassVar[bool] = True
    by_jax: ClassVar[bool] = True
    engines: ClassVar = dict.fromkeys(("numpyro", "stanli", "cmdstan"), _WHERE)
    for_calibration: ClassVar = {"chains": 2, "warmup": 2000, "draws": 500}

    chains: Count = 4
    warmup: Count = 5000
    draws: Count = 1000
    thin: Count = 10
    adjusted: bool = False
    energy_variance: Positive | None = None
    target_acceptance: Probability = 0.9
    length: Positive | None = None
    metric: Literal["auto", "diag", "unit"] = "auto"
    start_steps: WholeNumber = 200
    learning_rate: Positive = 5e-3
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"

    def run(self, job: Job[Any]) -> Found:
        """Run the chains, and estimate the bias from their step size."""
        from ..mcmc.chains import sample
        from ..runs.posterior import package_versions

        # The fingerprint of a NumPyro model already contains the versions of JAX.
        jax = ("jax", "jaxlib") if definition_of(job.target, job.engine) == "stan" else ()
        found = sample(job, package_versions("blackjax", *jax), GRADIENTS)
        finish = partial(found_at(BIAS), job.target, self.dtype)
        return found if self.adjusted else replace(found, finish=finish)


@takes_running
def mclmc(
    target: Target,
    *,
    chains: int = 4,
    warmup: int = 5000,
    draws: int = 1000,
    thin: int = 10,
    adjusted: bool = False,
    energy_variance: float | None = None,
    target_acceptance: float = 0.9,
    length: float | None = None,
    metric: Literal["auto", "diag", "unit"] = "auto",
    start_steps: int = 200,
    learning_rate: float = 0.005,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    **running: Unpack[Running],
) -> xr.DataTree:
    """Sample a target's posterior with microcanonical Langevin Monte Carlo in JAX.

    JAX evaluates a NumPyro model, or a Stan program through its library in this process.

    The momentum always has length one and is partially refreshed in every step. A step costs two gradients and is
    never rejected, so a chain moves far per gradient. The step size causes a bias in the draws, which
    `energy_variance` controls and `adjusted` removes.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    chains : int
        Number of independent chains, each with its own start.
    warmup : int
        Number of iterations that tune each chain's step size and metric: integration steps, or transitions if adjusted.
    draws : int
        Number of draws kept per chain.
    thin : int
        Number of iterations per stored draw. An integration step takes two gradients.
    adjusted : bool
        Whether to accept or reject trajectories (Metropolis), which removes the bias from the step size. An unadjusted
        chain keeps every step; its bias falls with `energy_variance`.
    energy_variance : float or None
        Target of the energy variance per parameter and step; smaller values give less bias but slower chains. By
        default 0.03 for networks, where chains must move through many modes, and 0.0005 for other models, where
        variances are then about 1 % too small.
    target_acceptance : float
        Target for the adjusted chain's mean acceptance probability, in (0, 1).
    length : float or None
        Length after which the momentum is forgotten, in units of the metric; for an adjusted trajectory, the mean
        number of steps times the step size. By default half the square root of the number of parameters, or the whole
        square root if adjusted.
    metric : {"auto", "diag", "unit"}
        Whether to scale coordinates by standard deviations estimated in the warmup. "auto" does so except for networks,
        whose standard deviations cannot be estimated in a short warmup.
    start_steps : int
        Number of steps of Adam towards higher density before the warmup. After many steps, chains start in narrow modes
        and stay there.
    learning_rate : float
        Initial step size of Adam, which falls to zero along half a cosine.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space. A network starts like the members
        of an ensemble (`Ensemble.init` "he").
    dtype : {"float64", "float32"}
        Precision of the chains and of their draws.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        The group `posterior` has every variable as (chain, draw, ...). `sample_stats` has `lp` (nats), `step_size`,
        `n_steps` (integration steps since the previous draw), `length` (after which the momentum is forgotten),
        `diverging` (one of these steps was not finite and was not taken) and `energy_variance` (mean squared energy
        error of a step per parameter) or, if adjusted, `acceptance_rate`; each is (chain, draw). For unadjusted chains
        the attribute `stein_identities` has the bias estimated from gradients at the draws, which `diagnose` judges.

    Raises
    ------
    SymmetryError, InUse, WriteError
        Same as in `infer`.
    InferenceError
        If no starting point with a finite log density is found.
    ValueError
        If the target has a single parameter.
    TypeError
        If single precision is requested with a Stan program.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    nuts : Sample without bias, but more slowly for networks.
    diagnose : Check whether the draws may be used.

    References
    ----------
    Robnik, De Luca, Silverstein and Seljak 2023, Microcanonical Hamiltonian Monte Carlo, JMLR 24(311). Robnik,
    Cohn-Gordon and Seljak 2025, arXiv:2503.01707 (adjusted). Sommer et al. 2025, arXiv:2502.06335 (ensembles of
    networks).

    Examples
    --------
    >>> posterior = ob.mclmc(network, chains=2, warmup=2000, draws=200, seed=1)
    >>> posterior["posterior"]["W1"].shape
    (2, 200, 1, 2)
    """
    return run_by_keywords(Mclmc, locals())
