"""The engines: all that a method asks of NumPyro, of Stan or of nutpie, behind one contract.

An engine's packages are imported when a method first asks for them: who samples with NumPyro needs no Stan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from onebasin.base.checks import choose

from ..definition import NUTPIE, definition_of

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from ..density.density import ValueDensity
    from ..mcmc.chains import ChainsRequest, RunChain
    from ..mcmc.settings import HmcSettings, NutsSettings
    from ..modes.request import Approximation, ModeRequest
    from ..modes.settings import LaplaceSettings, OptimizeSettings, PathfinderSettings
    from ..variational.fit import FitRequest, VariationalFit


@runtime_checkable
class Engine(Protocol):
    """What every engine does, or refuses."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """Take the target's log density over values; `progress` is told of what takes long."""

    def chains(self, request: ChainsRequest[NutsSettings | HmcSettings]) -> RunChain:
        """Compile what the chains of a request share, and return what runs one."""

    def fit(self, request: FitRequest) -> VariationalFit:
        """Fit ADVI's approximation."""

    def optimize(self, request: ModeRequest[OptimizeSettings]) -> Approximation:
        """Find the highest point of the log density."""

    def laplace(self, request: ModeRequest[LaplaceSettings]) -> Approximation:
        """Fit a Gaussian with the mode and the curvature there."""

    def pathfinder(self, request: ModeRequest[PathfinderSettings]) -> Approximation:
        """Fit Gaussians along the ways to optima."""


class NumPyroEngine:
    """Everything in this process, by JAX."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """See `Engine`."""
        from ..density.values import NumpyroValues

        return NumpyroValues(target)

    def chains(self, request: ChainsRequest[NutsSettings | HmcSettings]) -> RunChain:
        """See `Engine`."""
        from ..mcmc.numpyro import ChainRunner

        return ChainRunner(request)

    def fit(self, request: FitRequest) -> VariationalFit:
        """See `Engine`."""
        from ..variational.numpyro import fit

        return fit(request)

    def optimize(self, request: ModeRequest[OptimizeSettings]) -> Approximation:
        """See `Engine`."""
        from ..modes.numpyro import optimize

        return optimize(request)

    def laplace(self, request: ModeRequest[LaplaceSettings]) -> Approximation:
        """See `Engine`."""
        from ..modes.numpyro import laplace

        return laplace(request)

    def pathfinder(self, request: ModeRequest[PathfinderSettings]) -> Approximation:
        """See `Engine`."""
        raise ValueError(
            "`engine` is 'numpyro', which has no Pathfinder; use engine='stan' with a Stan program, or `laplace`."
        )


class StanEngine:
    """CmdStan's executables, a process a run."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """See `Engine`."""
        from ..density.stan import StanDensity

        return StanDensity(target, progress)

    def chains(self, request: ChainsRequest[NutsSettings | HmcSettings]) -> RunChain:
        """See `Engine`."""
        from ..mcmc.stan import ChainRunner

        return ChainRunner(request)

    def fit(self, request: FitRequest) -> VariationalFit:
        """See `Engine`."""
        from ..variational.stan import fit

        return fit(request)

    def optimize(self, request: ModeRequest[OptimizeSettings]) -> Approximation:
        """See `Engine`."""
        from ..modes.stan import optimize

        return optimize(request)

    def laplace(self, request: ModeRequest[LaplaceSettings]) -> Approximation:
        """See `Engine`."""
        from ..modes.stan import laplace

        return laplace(request)

    def pathfinder(self, request: ModeRequest[PathfinderSettings]) -> Approximation:
        """See `Engine`."""
        from ..modes.stan import pathfinder

        return pathfinder(request)


class NutpieEngine:
    """NUTS of the package nutpie, on a target's Stan program or NumPyro model."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """See `Engine`."""
        return _TABLE[definition_of(target, NUTPIE)].density(target, progress)

    def chains(self, request: ChainsRequest[NutsSettings | HmcSettings]) -> RunChain:
        """See `Engine`."""
        from ..mcmc.nutpie import ChainRunner

        return ChainRunner(request)

    def fit(self, request: FitRequest) -> VariationalFit:
        """See `Engine`."""
        raise _samples_alone()

    def optimize(self, request: ModeRequest[OptimizeSettings]) -> Approximation:
        """See `Engine`."""
        raise _samples_alone()

    def laplace(self, request: ModeRequest[LaplaceSettings]) -> Approximation:
        """See `Engine`."""
        raise _samples_alone()

    def pathfinder(self, request: ModeRequest[PathfinderSettings]) -> Approximation:
        """See `Engine`."""
        raise _samples_alone()


def _samples_alone() -> ValueError:
    return ValueError(
        "`engine` is 'nutpie', which has NUTS alone; use `nuts`, or engine='numpyro' or 'stan'."
    )


_TABLE: dict[str, Engine] = {
    "numpyro": NumPyroEngine(),
    "stan": StanEngine(),
    NUTPIE: NutpieEngine(),
}

ENGINES = tuple(_TABLE)


def engine_named(name: str) -> Engine:
    """Find an engine by its name.

    Raises
    ------
    ValueError
        If there is no such engine.
    InferenceError
        If it is nutpie, and that is not installed.
    """
    engine = _TABLE[choose("engine", name, ENGINES)]
    if name == NUTPIE:
        from ..mcmc.nutpie_settings import check_installed

        check_installed()
    return engine
