"""Hamiltonian Monte Carlo with trajectories of a fixed integration time, on either engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.checks import checks_names
from onebasin.base.settings import Count, Positive, settings

from ..runs.keywords import LIMIT_MB, run_by_keywords
from .settings import Chains

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from onebasin.models.target import Target


@settings
class Hmc(Chains):
    """Sample with static HMC; `hmc` describes the fields.

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


@checks_names
def hmc(
    target: Target,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_acceptance: float = 0.8,
    metric: Literal["diag", "dense", "unit"] = "diag",
    init_radius: float = 2.0,
    init: Any = "random",
    init_starts: int = 10,
    thin: int = 1,
    threads_per_chain: int = 1,
    adapt: bool = True,
    save_warmup: bool = False,
    dtype: Literal["float64", "float32"] = "float64",
    trajectory_length: float = math.pi / 2,
    max_steps: int = 10_000,
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
    """Sample a target's posterior with static HMC: trajectories of a fixed integration time.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    chains, warmup, draws, target_acceptance, metric, init_radius, init, init_starts, thin : Any
        As in `nuts`.
    threads_per_chain, adapt, save_warmup, dtype : Any
        As in `nuts`.
    trajectory_length : float
        Integration time of every trajectory; steps are trajectory_length / step_size. The default is a quarter of a
        Gaussian's period in the adapted metric, after which its position is independent of the last. NumPyro's and
        CmdStan's own default, 2 pi, is a whole period: a Gaussian is back where it began, and chains hardly move.
    max_steps : int
        Largest number of leapfrog steps of a trajectory, which then ends early (NumPyro). Without a bound, one
        unlucky step size of the warmup can take hours. Stan has no bound.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        As in `infer`.

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
    return run_by_keywords(Hmc, locals())
