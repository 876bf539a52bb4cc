"""What a method is given to do, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .method import Method

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.pointwise import Values
    from onebasin.models.target import Target

    from .progress import ProgressBars


@dataclass(frozen=True)
class Job[M: Method]:
    """One run of a method; made once by `run`, and handed down.

    Attributes
    ----------
    target : Target
        The model conditioned on data.
    method : Method
        The settings.
    engine : str
        Who runs it.
    seed : int
        Of everything that is random.
    bars : ProgressBars
        Where progress is shown.
    implementation : Any
        The engine's part of the method, where it has one.
    start : mapping or None
        Value of every variable at which a fit starts.
    checkpoint : Path or None
        A folder in which what is done is kept as it goes.
    folder : Path or None
        For the engine's own files; the caller removes it.
    """

    target: Target
    method: M
    engine: str
    seed: int
    bars: ProgressBars
    implementation: Any = None
    start: Mapping[str, Any] | None = None
    checkpoint: Path | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Found:
    """The result of a method's own work.

    Attributes
    ----------
    draws : mapping
        Variable name to array (chain, draw, ...), in memory or on disk.
    stats : mapping
        Statistic name to array (chain, draw), likewise.
    attributes : mapping
        What the posterior says of this method, besides what it says of every one.
    groups : mapping of str to Dataset
        More groups of the posterior: `variational`, `modes`, `training`.
    filed : DataTree or None
        What holds the arrays that are on disk; it is closed with the posterior.
    folder : Path or None
        In which more can be laid down.
    finish : callable or None
        Called with the whole posterior, to add what follows from its draws.
    """

    draws: Mapping[str, Values]
    stats: Mapping[str, Values]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, xr.Dataset] = field(default_factory=dict)
    filed: xr.DataTree | None = None
    folder: Path | None = None
    finish: Callable[[xr.DataTree], None] | None = None
