"""Sample a posterior mode by mode: run chains in every mode that a search finds, and weight them by bridge sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from onebasin.base.settings import Count, Positive, Probability, Several, settings

from ..contracts.method import Method
from ..mcmc.nuts import Nuts
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

_WHERE = "onebasin.inference.modes.by_mode:sampled"


@settings
class Modes(Method):
    """Settings of `sample_modes`, which describes the fields."""

    name: ClassVar[str] = "modes"
    by_jax: ClassVar[bool] = True
    correlated: ClassVar[bool] = True
    engines: ClassVar = dict.fromkeys(("numpyro", "stanli", "cmdstan"), _WHERE)

    starts: Count = 40
    most: Count = 8
    chains: Several = 4
    warmup: Count = 1000
    draws: Count = 1000
    target_acceptance: Probability = 0.8
    metric: Literal["diag", "dense", "unit"] = "diag"
    max_tree_depth: Count = 10
    init_radius: Positive = 2.0

    def nuts(self, chains: int, *, warmup: int, draws: int) -> Nuts:
        """Return the settings of this number of chains."""
        return Nuts(
            chains=chains,
            warmup=warmup,
            draws=draws,
            target_acceptance=self.target_acceptance,
            metric=self.metric,
            max_tree_depth=self.max_tree_depth,
        )


@takes_running
def sample_modes(
    target: Target,
    *,
    starts: int = 40,
    most: int = 8,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_acceptance: float = 0.8,
    metric: Literal["diag", "dense", "unit"] = "diag",
    max_tree_depth: int = 10,
    init_radius: float = 2.0,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Sample a posterior mode by mode: run chains in every mode found, and weight the modes by bridge sampling.

    Use this for posteriors whose chains settle in different modes and never cross between them. L-BFGS searches for
    optima from many random points. A short chain from each optimum that is distinct modulo the declared symmetry shows
    which optima share a basin. NUTS samples every basin. Bridge sampling estimates the integral of the density over
    each basin and all its copies under the symmetry, with a standard error. Draws are then taken from the basins in
    these proportions. JAX evaluates a NumPyro model, or a Stan program through its library in this process.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts : int
        Number of random points from which to search for optima.
    most : int
        Maximum number of modes to sample. Those with the highest log evidence, estimated by short chains, are sampled;
        the result reports how much lower the others are.
    chains : int
        Number of chains in each mode, and in the resulting posterior.
    warmup : int
        Number of adaptation iterations per chain.
    draws : int
        Number of draws kept per chain.
    target_acceptance : float
        Target for the mean acceptance probability, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        Same as in `nuts`, with the statistic `mode (chain, draw)`, and the group `modes` with one row per mode, the
        largest weight first: `weight` with the 95 % interval `weight_low` to `weight_high`, `log_weight`,
        `log_evidence` and `log_evidence_error` (nats), the number of `starts` that led there, `height` (the highest
        log density), `rhat` within the mode modulo the symmetry, `strays` (the share of its chains' draws that lie in
        other modes) and `divergences`. Its attributes are `known` (whether the weights are known) and `unseen` (the
        probability that another start finds a new mode). `diagnose` judges whether the result may be used.

    Raises
    ------
    TypeError, SymmetryError
        Same as in `infer`.
    InferenceError
        If no starting point with a finite log density or no optimum is found.
    ValueError
        If the symmetry exchanges no coordinates of the unconstrained space.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    find_modes : Find only the optima, in a fraction of the time.
    nuts : Run chains from random points, where the starts determine how often a mode is seen.

    References
    ----------
    Meng and Wong 1996, Statistica Sinica 6 (bridge sampling). Meng and Schilling 2002, JCGS 11(3) (warp III).
    Frühwirth-Schnatter 2004, Econometrics Journal 7(1) (error; permuted labels). Gronau et al. 2017, Journal of
    Mathematical Psychology 81. Good 1953, Biometrika 40 (unseen modes).

    Examples
    --------
    >>> posterior = ob.sample_modes(target, starts=10, warmup=300, draws=300, seed=1)
    >>> posterior["modes"]["weight"].shape, posterior["posterior"]["mu"].shape
    ((1,), (4, 300, 2))
    """
    return run_by_keywords(Modes, locals())
