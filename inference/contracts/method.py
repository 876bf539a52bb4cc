"""A method of inference: frozen settings with a name, its requirements and its engines.

A new method is a class made of `Method` in a file of its own, and a line in `methods.METHODS`; the command line,
calibration and the documentation read it there. Its `run` turns a `Job` into a `Found`. A function of
the same name, such as `nuts`, has its fields and the arguments of `infer` as arguments, and describes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from onebasin.base.settings import settings

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.base.progress import ProgressBars
    from onebasin.models.target import Target
    from onebasin.posteriors.pointwise import Values


@settings
class Method:
    """Settings of a method, and all that is known of it before it runs."""

    name: ClassVar[str]  # the word by which `infer`, the command line and `calibrate` know it
    # Where its implementation on each engine is, ``module:attribute``; see also `Engine.methods`.
    engines: ClassVar[Mapping[str, str]] = {}
    # What it needs of a target: "network", or "symmetry", which is then always checked.
    needs: ClassVar[frozenset[str]] = frozenset()
    resumes: ClassVar[bool] = False  # takes a `checkpoint`
    takes_start: ClassVar[bool] = False  # takes initial values
    takes_adaptation: ClassVar[bool] = False  # takes step size and metric of an earlier run
    takes_client: ClassVar[bool] = False  # divides its work among workers; else one has all of it
    correlated: ClassVar[bool] = False  # chains are autocorrelated; draws of a fit are independent
    gives_posterior: ClassVar[bool] = True  # draws approximate the posterior: no point estimates
    by_jax: ClassVar[bool] = False  # moves by JAX on either definition, NumPyro's where both are
    stan_by_jax: ClassVar[bool] = False  # its NumPyro engine also takes a Stan program alone
    # Fields that a posterior records as attributes of their own, or in the name of the method.
    apart: ClassVar[tuple[str, ...]] = ()
    # Fields recorded only where they differ from their defaults: they came after records were made.
    later: ClassVar[tuple[str, ...]] = ()
    numpyro_alone: ClassVar[frozenset[str]] = frozenset({"dtype"})  # Stan has no use for them
    networks_alone: ClassVar[frozenset[str]] = frozenset()  # fields that are for networks
    for_calibration: ClassVar[Mapping[str, Any]] = {}  # defaults for hundreds of simulations

    @property
    def amount(self) -> tuple[int, int]:
        """Chains, and draws of each."""
        return getattr(self, "chains", 1), getattr(self, "draws", 1)

    @property
    def keeps(self) -> bool:
        """Tell whether a run with these settings takes a `checkpoint`."""
        return self.resumes

    @property
    def label(self) -> str:
        """The value of a posterior's attribute `method`."""
        return self.name

    @property
    def word(self) -> str:
        """The method's name in studies, with what distinguishes it there."""
        return self.name

    def recorded(self) -> dict[str, Any]:
        """The fields that a posterior records as its settings."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in self.apart
            and (field.name not in self.later or getattr(self, field.name) != field.default)
        }

    def check(self, target: Target, engine: str) -> None:
        """Reject a target or an engine that the method is not for, before any work."""

    def run(self, job: Job[Any]) -> Found:
        """Do the method's own work; by default all of it is the engine's implementation."""
        found: Found = job.implementation(job)
        return found


def weighs(method: Method, *, is_network: bool) -> bool:
    """Tell whether a fit is corrected by importance weights: if it is asked for, and by default but for networks."""
    weights = getattr(method, "weights", False)
    return bool(weights) or (weights is None and not is_network)


@dataclass(frozen=True)
class Job[M: Method]:
    """One run of a method; made once by `run`, and handed down."""

    target: Target  # the model conditioned on data
    method: M  # the settings
    engine: str  # who runs it
    seed: int  # of everything that is random
    bars: ProgressBars  # where progress is shown
    implementation: Any = None  # the engine's part of the method, where it has one
    start: Any = None  # initial values: of chains as the user gave them, of a fit a mapping
    checkpoint: Path | None = None  # in which what is done is kept as it goes
    folder: Path | None = None  # for the engine's own files; the caller removes it
    given: Any = None  # starts, metric and step size of chains, where they are given (`mcmc.given`)
    # The earlier run of which chains take step size and metric, as the user gave it.
    adapt_from: Any = None
    client: Any = None  # the cluster whose workers do the work, or the address of its scheduler


@dataclass(frozen=True)
class Found:
    """The result of a method's own work."""

    draws: Mapping[str, Values]  # variable name to array (chain, draw, ...), in memory or on disk
    stats: Mapping[str, Values]  # statistic name to array (chain, draw), likewise
    # What the posterior says of this method, besides what it says of every one.
    attributes: Mapping[str, Any] = field(default_factory=dict)
    # More groups of the posterior: `variational`, `modes`, `training`.
    groups: Mapping[str, xr.Dataset] = field(default_factory=dict)
    # What holds the arrays that are on disk; it is closed with the posterior.
    filed: xr.DataTree | None = None
    folder: Path | None = None  # in which more can be laid down
    proposals: Any = None  # density and Gaussians from which importance weights may start
    # Called with the whole posterior, to add what follows from its draws.
    finish: Callable[[xr.DataTree], None] | None = None
    warmup: Found | None = None  # draws and statistics of the warmup, where they are kept


def one_chain(
    draws: Mapping[str, Any],
    stats: Mapping[str, Any],
    variational: xr.Dataset | None = None,
    *,
    converged: bool,
) -> Found:
    """Put the result of a fit together, as one chain of draws.

    Draws are arrays (draw, ...) by variable, one of an optimum; statistics are ``lp`` and, but for an optimum,
    ``log_q``. `variational` has the approximation's parameters and traces, or importance ratios of draws that were
    resampled; `converged` says whether an optimiser came to the end that it sought.
    """
    import numpy as np

    def chain(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.asarray(value)[None] for name, value in values.items()}

    groups = {} if variational is None else {"variational": variational}
    return Found(chain(draws), chain(stats), {"converged": int(converged)}, groups)


def as_dict(value: Any) -> Any:
    """Like `dataclasses.asdict`, but a method's fields that it records apart are left out where they have the default.

    So a study's settings and their hashes are those of times when these fields were arguments.
    """
    if is_dataclass(value) and not isinstance(value, type):
        apart = (*value.apart, *value.later) if isinstance(value, Method) else ()
        return {
            f.name: as_dict(getattr(value, f.name))
            for f in fields(value)
            if f.name not in apart or getattr(value, f.name) != f.default
        }
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(as_dict(each) for each in value)
    if isinstance(value, dict):
        return {key: as_dict(each) for key, each in value.items()}
    return value
