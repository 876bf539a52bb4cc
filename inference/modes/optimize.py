"""The mode of a posterior by L-BFGS, and Laplace's approximation at it, on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.checks import checks_names
from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method
from ..runs.keywords import LIMIT_MB, run_by_keywords

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from onebasin.models.target import Target


@settings
class OptimumSearch(Method):
    """Settings of the search for an optimum; `laplace` describes the fields."""

    starts: Count = 4
    iterations: Count = 2000
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"


@settings
class Optimize(OptimumSearch):
    """Find an optimum; `optimize` describes the fields."""

    name: ClassVar[str] = "optimize"
    gives_posterior: ClassVar[bool] = False
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:optimize",
        "stanli": "onebasin.inference.modes.stan:optimize",
        "cmdstan": "onebasin.inference.modes.stan:optimize",
    }

    jacobian: bool = False


@checks_names
def optimize(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    jacobian: bool = False,
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
    """Find the highest point of a target's log density: a point estimate, and no posterior.

    By SciPy's L-BFGS-B on the NumPyro model, or by CmdStan's L-BFGS.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts, iterations, init_radius, dtype : Any
        As in `laplace`.
    jacobian : bool
        Add the log Jacobian of the constraints, for the mode in the unconstrained space; without
        it, as CmdStan has it, the mode in the variables' own.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        As in `infer`.

    Returns
    -------
    DataTree
        One chain with one draw, the optimum; in `sample_stats` its `lp` (1, 1), the log density that was maximised, in
        nats; attribute `converged`, 1 or 0, says whether the optimiser met its criterion there. `diagnose` rejects it:
        one value has no spread.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        As `infer`.
    InferenceError
        If no optimum is found.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16(5) (L-BFGS-B).

    Examples
    --------
    >>> optimum = ob.optimize(target, seed=1)
    >>> optimum["posterior"]["mu"].shape, optimum.attrs["converged"]
    ((1, 1, 2), 1)
    """
    return run_by_keywords(Optimize, locals())


@settings
class Laplace(OptimumSearch):
    """Fit Laplace's approximation; `laplace` describes the fields."""

    name: ClassVar[str] = "laplace"
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:laplace",
        "stanli": "onebasin.inference.modes.stan:laplace",
        "cmdstan": "onebasin.inference.modes.stan:laplace",
    }
    later: ClassVar = ("weights",)
    for_calibration: ClassVar = {"weights": False}

    draws: Count = 1000
    weights: bool | None = None


@checks_names
def laplace(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    draws: int = 1000,
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
    """Fit a Gaussian in the unconstrained space by the Hessian of the log density at its mode there.

    The Hessian is by JAX, or by CmdStan's `laplace`.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts : int
        Points from which to search for an optimum; the highest is kept.
    iterations : int
        Maximum number of L-BFGS iterations from a starting point.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always has float64.
    draws : int
        Draws taken from the fitted approximation.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if weights are worth
        anything; not of networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        As in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, every variable in its own space as (1, draw, ...), with `lp` and `log_q` (1, draw) in nats,
        of which k-hat is made; attribute `converged` says whether the mode was met. The NumPyro engine adds the group
        `variational` with `loc (param)` and `scale_tril (param, param_bis)`, in the unconstrained space.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        As `infer`.
    InferenceError
        If no optimum is found, or the curvature at it is not that of a peak.

    References
    ----------
    Tierney and Kadane 1986, JASA 81(393). MacKay 1992, Neural Computation 4(3), for networks.

    Examples
    --------
    >>> fit = ob.laplace(target, draws=200, seed=1)
    >>> fit["variational"]["scale_tril"].shape
    (3, 3)
    """
    return run_by_keywords(Laplace, locals())
