"""The engines: all that a method asks of NumPyro or of Stan, behind one contract.

An engine's packages are imported when a method first asks for them: who samples with NumPyro needs no Stan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from onebasin.models.checks import choose

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from .density.base import ValueDensity
    from .mcmc.chains import ChainsRequest, RunChain
    from .variational.fit import FitRequest, VariationalFit


@runtime_checkable
class Engine(Protocol):
    """What both engines do."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """Take the target's log density over values; `progress` is told of what takes long."""

    def chains(self, request: ChainsRequest) -> RunChain:
        """Compile what the chains of a request share, and return what runs one."""

    def fit(self, request: FitRequest) -> VariationalFit:
        """Fit ADVI's approximation."""


class NumPyroEngine:
    """Everything in this process, by JAX."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """See `Engine`."""
        from .density.values import NumpyroValues

        return NumpyroValues(target)

    def chains(self, request: ChainsRequest) -> RunChain:
        """See `Engine`."""
        from .mcmc.numpyro import ChainRunner

        return ChainRunner(request)

    def fit(self, request: FitRequest) -> VariationalFit:
        """See `Engine`."""
        from .variational.numpyro import fit

        return fit(request)


class StanEngine:
    """CmdStan's executables, a process a run."""

    def density(self, target: Target, progress: Callable[[str], None] | None) -> ValueDensity:
        """See `Engine`."""
        from .density.stan import StanDensity

        return StanDensity(target, progress)

    def chains(self, request: ChainsRequest) -> RunChain:
        """See `Engine`."""
        from .mcmc.stan import ChainRunner

        return ChainRunner(request)

    def fit(self, request: FitRequest) -> VariationalFit:
        """See `Engine`."""
        from .variational.stan import fit

        return fit(request)


_TABLE: dict[str, Engine] = {"numpyro": NumPyroEngine(), "stan": StanEngine()}

ENGINES = tuple(_TABLE)


def engine_named(name: str) -> Engine:
    """Find an engine by its name.

    Raises
    ------
    ValueError
        If there is no such engine.
    """
    return _TABLE[choose("engine", name, ENGINES)]
