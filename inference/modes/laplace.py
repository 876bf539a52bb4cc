"""Laplace's approximation: a Gaussian at the mode, with the curvature there, on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from onebasin.base.settings import Count, settings

from ..contracts.method import Running, call, called_as
from .optimize import OptimumSearch

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Laplace(OptimumSearch):
    """Fit Laplace's approximation; `OptimumSearch` describes the fields that it shares with `Optimize`.

    Parameters
    ----------
    draws : int
        Draws taken from the fitted approximation.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if weights are worth
        anything; not of networks.

    Examples
    --------
    >>> ob.Laplace(draws=4000).iterations
    2000
    """

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


@settings
class _LaplaceCall(Running, Laplace):
    """The keywords of `laplace`."""


@called_as(_LaplaceCall)
def laplace(target: Target, **keywords: Any) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space by the Hessian of the log density at its mode there.

    Keywords are the fields of `Laplace` and the arguments of `infer`. The Hessian is by JAX, or by CmdStan's `laplace`.

    Parameters
    ----------
    target : Target
        The model conditioned on data.

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
    return call(target, Laplace, keywords)
