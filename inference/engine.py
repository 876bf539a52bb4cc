"""The engines: what each can do with a target, and the one table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from onebasin.models.checks import choose
from onebasin.models.target import Target

from .progress import ProgressBars

if TYPE_CHECKING:
    from .density.base import ValueDensity
    from .mcmc.chains import RunChain
    from .mcmc.settings import HmcSettings, NutsSettings
    from .variational.fit import VariationalFit
    from .variational.settings import AdviSettings


@runtime_checkable
class Engine(Protocol):
    """What every engine can do with a target that has a definition for it."""

    def density(
        self, target: Target, progress: Callable[[str], None] | None = None
    ) -> ValueDensity:
        """The target's log density over values."""

    def chains(
        self,
        target: Target,
        settings: NutsSettings | HmcSettings,
        seed: int,
        bars: ProgressBars,
        folder: Path,
    ) -> RunChain:
        """Compile what chains share; returns what runs one. Files may lie in `folder`."""

    def variational(
        self,
        target: Target,
        family: str,
        settings: AdviSettings,
        start: Mapping[str, Any] | None,
        seed: int,
        bars: ProgressBars,
    ) -> VariationalFit:
        """Fit a Gaussian; `inference.advi` says what the arguments mean."""


class _Numpyro:
    def density(
        self, target: Target, progress: Callable[[str], None] | None = None
    ) -> ValueDensity:
        from .density.values import NumpyroValues

        return NumpyroValues(target)

    def chains(
        self,
        target: Target,
        settings: NutsSettings | HmcSettings,
        seed: int,
        bars: ProgressBars,
        folder: Path,
    ) -> RunChain:
        from .mcmc.numpyro import ChainRunner

        return ChainRunner(target, settings, seed, bars).run

    def variational(
        self,
        target: Target,
        family: str,
        settings: AdviSettings,
        start: Mapping[str, Any] | None,
        seed: int,
        bars: ProgressBars,
    ) -> VariationalFit:
        from .variational.numpyro import fit

        return fit(target, family, settings, start, seed, bars)


class _Stan:
    def density(
        self, target: Target, progress: Callable[[str], None] | None = None
    ) -> ValueDensity:
        from .density.stan import StanDensity

        return StanDensity(target, progress)

    def chains(
        self,
        target: Target,
        settings: NutsSettings | HmcSettings,
        seed: int,
        bars: ProgressBars,
        folder: Path,
    ) -> RunChain:
        from .mcmc.stan import ChainRunner

        return ChainRunner(target, settings, seed, bars, folder).run

    def variational(
        self,
        target: Target,
        family: str,
        settings: AdviSettings,
        start: Mapping[str, Any] | None,
        seed: int,
        bars: ProgressBars,
    ) -> VariationalFit:
        from .variational.stan import fit

        return fit(target, family, settings, start, seed, bars)


ENGINES: Mapping[str, Engine] = {"numpyro": _Numpyro(), "stan": _Stan()}


def engine_of(name: str) -> Engine:
    """The engine of this name.

    Raises
    ------
    ValueError
        If there is none.
    """
    return ENGINES[choose("engine", name, ENGINES)]
