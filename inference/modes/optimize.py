"""The mode of a posterior, by L-BFGS on either engine."""

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
    """Find an optimum; `optimize` describes the fields.

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
    return run_by_keywords(Optimize, locals())
