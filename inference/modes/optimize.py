"""The mode of a posterior, by L-BFGS on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method, Running, call, called_as

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class OptimumSearch(Method):
    """Settings of the search for an optimum.

    Parameters
    ----------
    starts : int
        Points from which to search for an optimum; the highest is kept.
    iterations : int
        Most steps of L-BFGS from a starting point.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always has float64.
    """

    starts: Count = 4
    iterations: Count = 2000
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"


@settings
class Optimize(OptimumSearch):
    """Find an optimum; `OptimumSearch` describes the fields that it shares with `Laplace`.

    Parameters
    ----------
    jacobian : bool
        Add the log Jacobian of the constraints, for the mode in the unconstrained space; without
        it, as CmdStan has it, the mode in the variables' own.

    Examples
    --------
    >>> ob.Optimize(jacobian=True).starts
    4
    """

    name: ClassVar[str] = "optimize"
    gives_posterior: ClassVar[bool] = False
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:optimize",
        "stanli": "onebasin.inference.modes.stan:optimize",
        "cmdstan": "onebasin.inference.modes.stan:optimize",
    }

    jacobian: bool = False


@settings
class _OptimizeCall(Running, Optimize):
    """The keywords of `optimize`."""


@called_as(_OptimizeCall)
def optimize(target: Target, **keywords: Any) -> xr.DataTree:
    """Find the highest point of a target's log density: a point estimate, and no posterior.

    Keywords are the fields of `Optimize` and the arguments of `infer`. By SciPy's L-BFGS-B on the NumPyro model, or by
    CmdStan's L-BFGS.

    Parameters
    ----------
    target : Target
        The model conditioned on data.

    Returns
    -------
    DataTree
        One chain with one draw, the optimum; in `sample_stats` its `lp` (1, 1), the log density that was maximised, in
        nats; attribute `converged`, 1 or 0, says whether the optimiser met its criterion there. `diagnose` refuses it:
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
    return call(target, Optimize, keywords)
