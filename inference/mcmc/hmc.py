"""Hamiltonian Monte Carlo with trajectories of a fixed integration time, on either engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Running, call, called_as
from .settings import Chains

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Hmc(Chains):
    """Sample with static HMC; `Chains` describes the fields that it shares with `Nuts`.

    Parameters
    ----------
    trajectory_length : float
        Integration time of every trajectory; steps are trajectory_length / step_size. The default is a quarter of a
        Gaussian's period in the adapted metric, after which its position is independent of the last. NumPyro's and
        CmdStan's own default, 2 pi, is a whole period: a Gaussian is back where it began, and chains hardly move.
    max_steps : int
        Largest number of leapfrog steps of a trajectory, which then ends early (NumPyro). Without a bound, one
        unlucky step size of the warmup can take hours. Stan has no bound.

    Examples
    --------
    >>> ob.Hmc(trajectory_length=3.0).chains
    4
    """

    name: ClassVar[str] = "hmc"
    engines: ClassVar = {name: place for name, place in Chains.engines.items() if name != "stanli"}
    numpyro_alone: ClassVar[frozenset[str]] = frozenset({"dtype", "max_steps"})

    trajectory_length: Positive = math.pi / 2
    max_steps: Count = 10_000


@settings
class _HmcCall(Running, Hmc):
    """The keywords of `hmc`."""

    init: Any = "random"


@called_as(_HmcCall)
def hmc(target: Target, **keywords: Any) -> xr.DataTree:
    """Sample a target's posterior with static HMC: trajectories of a fixed integration time.

    Keywords are the fields of `Hmc` and the arguments of `infer`.

    Parameters
    ----------
    target : Target
        The model conditioned on data.

    Returns
    -------
    DataTree
        As of `nuts`, but for `tree_depth`. CmdStan does not say which transitions of static HMC diverged, so that the
        Stan engine's has no `diverging` either.

    Raises
    ------
    TypeError, ValueError, SymmetryError, InferenceError, InUse, WriteError, StanError
        As `infer`.

    References
    ----------
    Neal 2011, MCMC using Hamiltonian dynamics, section 5.3.2.

    Examples
    --------
    >>> run = ob.hmc(target, chains=2, warmup=100, draws=50, trajectory_length=2.0, seed=1)
    >>> run["sample_stats"]["n_steps"].shape
    (2, 50)
    """
    return call(target, Hmc, keywords)
