"""Inference for models whose parts are interchangeable: `import onebasin as ob`.

`__init__.pyi` beside this file lists the public names; each is loaded with the room that defines it when it is first
asked for, so that the import itself costs nothing. What the rooms (`onebasin.models`, `.stan`, `.inference`,
`.analysis`, `.studies`) hold besides may change.
"""

from functools import cache
from typing import Any

import lazy_loader

_known, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name; those of version 0.3 are found for one release."""
    if name.endswith("Settings") and name not in __all__:
        from .inference.runs.former import former_class

        return former_class(name)
    if name.startswith("plot_"):
        return _former_plot(name)
    return _known(name)


@cache
def _former_plot(name: str) -> Any:
    from . import plot
    from .base.notices import notice

    new = name.removeprefix("plot_")
    found = getattr(plot, new)
    notice(f"`{name}` is now `plot.{new}`; the old name goes with version 0.5")
    return found
