"""Variational inference on fixed draws: deterministic ADVI (Giordano, Ingram and Broderick 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Dadvi(Method):
    """Settings of `dadvi`, which describes the fields."""

    name: ClassVar[str] = "dadvi"
    by_jax: ClassVar[bool] = True
    for_calibration: ClassVar = {"weights": False}
    engines: ClassVar = dict.fromkeys(
        ("numpyro", "stanli", "cmdstan"), "onebasin.inference.fits.approximate:fit_fixed_draws"
    )

    family: Literal["auto", "fullrank", "meanfield"] = "auto"
    fixed_draws: Count | None = None
    starts: Count = 16
    iterations: Count = 60
    init_radius: Positive = 2.0
    draws: Count = 1000
    weights: bool | None = None


@takes_running
def dadvi(
    target: Target,
    *,
    family: Literal["auto", "fullrank", "meanfield"] = "auto",
    fixed_draws: int | None = None,
    starts: int = 16,
    iterations: int = 60,
    init_radius: float = 2.0,
    draws: int = 1000,
    weights: bool | None = None,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space by maximising the ELBO on fixed draws.

    The objective has no noise, so L-BFGS maximises it, in coordinates whitened by the curvature at an optimum. A fit
    takes 5 to 20 iterations, and its result depends on the seed only through the fixed draws. JAX evaluates a NumPyro
    model, or a Stan program through its library in this process.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    family : {"auto", "fullrank", "meanfield"}
        "fullrank" fits a full covariance. "meanfield" fits independent coordinates, and computes the covariance from
        the linear response of the fit. "auto" is "fullrank" up to 200 parameters, else "meanfield".
    fixed_draws : int or None
        Number of standard normal draws in the ELBO; they are antithetic, so an odd number is rounded up. By default 60
        or, in full rank, 4 per parameter if that is more.
    starts : int
        Number of random points from which to search for optima. The Gaussian with the highest ELBO is used.
    iterations : int
        Maximum number of evaluations of the ELBO for each Gaussian.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space; every second one within three times
        that radius.
    draws : int
        Number of draws from the fitted Gaussian.
    weights : bool or None
        Whether to correct the approximation with importance weights and resample the draws. By default it is corrected
        if the weights are good enough, but never for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, with every variable as (1, draw, ...), and `lp` and `log_q` (1, draw) in nats. The group
        `variational` has `loc (param)` and `scale_tril (param, param_bis)` (above 2,000 parameters `scale (param)`) in
        the unconstrained space, and `elbo (evaluation)` in nats. The attribute `converged` is true if the optimiser
        met its criterion. With `weights`, draws are resampled: `variational` also has `log_ratio` and `log_weight
        (sample)`, the group `weighted` has the weighted draws, and `drift` shows how short chains move from them.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        Same as in `infer`.
    InferenceError
        If no starting point with a finite log density or no Gaussian with a finite ELBO is found.

    References
    ----------
    Giordano, Ingram and Broderick 2024, Black box variational inference with a deterministic objective, JMLR 25.

    See Also
    --------
    advi : Variational inference with stochastic gradients, and Stan's algorithm.

    Examples
    --------
    >>> fit = ob.dadvi(target, draws=200, seed=1)
    >>> fit["posterior"]["mu"].shape, fit["variational"]["scale_tril"].shape
    ((1, 200, 2), (3, 3))
    """
    return run_by_keywords(Dadvi, locals())
