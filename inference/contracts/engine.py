"""An engine: a value that says what it computes by, and which methods it brings along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import InferenceError

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from .density import ValueDensity


@dataclass(frozen=True)
class Engine:
    """A program that runs methods. Its packages are imported when a method first asks for them.

    Attributes
    ----------
    name : str
        Word of the argument `engine`.
    takes : tuple of str
        Definitions of a target that it runs, the preferred one first: "numpyro", "stan".
    density : str
        Where the class of its log density over values is, ``module:attribute``; empty for that of the definition.
    methods : mapping of str to str
        Methods that it brings along: name to where its implementation is. A method may also list engines itself.
    package : str
        The optional package that it needs, whose version is recorded with each run; empty where there is none.
    """

    name: str
    takes: tuple[str, ...]
    density: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    package: str = ""

    def check(self) -> None:
        """Refuse to go on without the engine's package.

        Raises
        ------
        InferenceError
            If it is not installed.
        """
        if self.package and not _is_installed(self.package):
            raise InferenceError(
                f"`engine` is {self.name!r}, which is not installed; install it with "
                f"`pip install 'onebasin[{self.package}]'`."
            )

    def density_of(
        self, target: Target, progress: Callable[[str], None] | None = None
    ) -> ValueDensity:
        """Return the log density over values of a target that the engine has the definition of."""
        density: ValueDensity = found_at(self.density)(target, progress)
        return density


def found_at(place: str) -> Any:
    """Import what stands at ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # something that is no module stands in its place among the loaded modules
        return False
