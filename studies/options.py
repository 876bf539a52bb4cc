"""Options of `onebasin study`, from which every study makes its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onebasin.base.checks import check_seed, choose
from onebasin.base.errors import StudyError

if TYPE_CHECKING:
    from onebasin.inference import Hmc, Nuts

ENGINES = ("numpyro", "stan")
"""Engines of studies, in order. "stan" is CmdStan; the records use this name."""


@dataclass(frozen=True)
class Options:
    """Options of the command line; None means not given."""

    quick: bool = False  # Whether to run a small version.
    full: bool = False  # Whether to run at the paper's size if the default is smaller.
    engine: str | None = None  # Name of an engine, or ``both``.
    seed: int = 0  # Seed of data and samplers.
    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    splits: int | None = None
    dtype: str | None = None  # Precision of the NumPyro engine.
    datasets: int | None = None  # `chains`, `warmup`, `draws`, `splits`, `datasets`: counts.
    parametrisations: tuple[str, ...] | None = None  # Labels of the parametrisations to run.
    problems: tuple[str, ...] | None = None  # Labels of the problems to run.

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.quick and self.full:
            raise StudyError("`--full` cannot be combined with --quick. Omit one of them.")
        if self.engine is not None:
            choose("engine", self.engine, (*ENGINES, "both"))

    def engines(self, default: str) -> tuple[str, ...]:
        """Return the engines to run, in order."""
        word = self.engine or default
        return ENGINES if word == "both" else (word,)

    def sampler[S: (Nuts, Hmc)](self, default: S) -> S:
        """Return the default with the given chains, warmup, draws and precision."""
        given = {name: getattr(self, name) for name in ("chains", "warmup", "draws", "dtype")}
        return replace(default, **{n: v for n, v in given.items() if v is not None})

    def labels(
        self, name: str, known: Mapping[str, Any], default: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the labels of the `parametrisations` or `problems` to run, in the given order; reject unknown ones."""
        given = getattr(self, name)
        chosen = default if given is None else [choose(name, label, known) for label in given]
        return tuple(dict.fromkeys(chosen))

    def refuse(self, study: str, *names: str) -> None:
        """Raise `StudyError` if an option in `names`, which the study does not have, was given."""
        for name in names:
            given = getattr(self, name)
            if given is not None and given is not False:  # A value of 0 counts as given.
                raise StudyError(f"`--{name}` does not apply to study {study}. Omit `--{name}`.")
