"""Settings that ADVI and symmetrised variational inference have in common."""

from __future__ import annotations

from typing import ClassVar

from onebasin.base.settings import settings

from ..contracts.method import Method


@settings
class Variational(Method):
    """A method that fits Gaussians; the engine takes what it needs from these, whatever a field is called."""

    takes_start: ClassVar[bool] = True
    records_parameters: ClassVar[bool] = False

    @property
    def most_steps(self) -> int:
        """Most steps of the optimiser."""
        raise NotImplementedError

    @property
    def draws_a_step(self) -> int:
        """Draws from q of each gradient."""
        raise NotImplementedError
