"""One module a method; each takes a target and an engine and returns a posterior.

`__init__.pyi` lists the public names; each is loaded when it is first asked for, so that settings can be read without
JAX and without Stan.
"""

from typing import Any

import lazy_loader

_known, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name; those of version 0.3 are found for one release."""
    if name.endswith("Settings") and name not in __all__:
        from .runs.former import former_class

        return former_class(name)
    return _known(name)
