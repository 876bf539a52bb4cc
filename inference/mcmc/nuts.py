"""The no-U-turn sampler (Hoffman and Gelman 2014, with multinomial sampling) on any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from onebasin.base.settings import Count, settings

from ..contracts.method import Running, call, called_as
from .settings import Chains

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target


@settings
class Nuts(Chains):
    """Sample with the no-U-turn sampler; `Chains` describes the fields that it shares with `Hmc`.

    Parameters
    ----------
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.

    Examples
    --------
    >>> ob.Nuts(draws=500, target_acceptance=0.95).max_tree_depth
    10
    """

    name: ClassVar[str] = "nuts"

    max_tree_depth: Count = 10


@settings
class _NutsCall(Running, Nuts):
    """The keywords of `nuts`."""

    init: Any = "random"


@called_as(_NutsCall)
def nuts(target: Target, **keywords: Any) -> xr.DataTree:
    """Sample a target's posterior with NUTS.

    Keywords are the fields of `Nuts` and the arguments of `infer`. The engine "nutpie" samples a NumPyro model or a
    Stan program with a metric that it adapts by gradients.

    Parameters
    ----------
    target : Target
        The model conditioned on data.

    Returns
    -------
    DataTree
        Group `posterior` with every variable as (chain, draw, ...), `sample_stats` with `diverging`, `tree_depth`,
        `n_steps`, `acceptance_rate`, `step_size`, `energy` and `lp`, each (chain, draw), `energy` and `lp` in nats; and
        the data, log likelihoods and predictions. Divergences are recorded, not raised. nutpie's `energy` is up to a
        constant of each chain.

    Raises
    ------
    TypeError, ValueError, SymmetryError, InferenceError, InUse, WriteError, StanError
        As `infer`.

    See Also
    --------
    hmc : trajectories of a fixed length.
    diagnose : whether the draws may be used.

    References
    ----------
    Hoffman and Gelman 2014, The no-U-turn sampler, JMLR 15. Betancourt 2017, arXiv:1701.02434, appendix A (multinomial
    sampling, which all engines have). nutpie: https://github.com/pymc-devs/nutpie.

    Examples
    --------
    >>> posterior = ob.nuts(target, chains=2, warmup=300, draws=300, seed=1)
    >>> posterior["posterior"]["mu"].shape
    (2, 300, 2)
    >>> int(posterior["sample_stats"]["diverging"].sum())
    0
    """
    return call(target, Nuts, keywords)
