"""Packages that only some features need: the extras of `pip install 'onebasin[...]'`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

EXTRAS: Mapping[str, str] = {
    "cluster": "distributed",
    "mclmc": "blackjax",
    "notebook": "ipywidgets",
    "nutpie": "nutpie",
    "parquet": "pyarrow",
    "pymc": "pymc",
    "sklearn": "sklearn",
    "zarr": "zarr",
}
"""For each extra, the package whose presence shows that it is installed; `data` and `cmdstan` are checked elsewhere."""


def is_installed(package: str) -> bool:
    """Check whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # `sys.modules` has another object of this name.
        return False


def lacks(what: str, extra: str) -> str:
    """Return the message that a feature needs an extra, with the command to install it."""
    package = EXTRAS[extra]
    return (
        f"{what} needs the package {package}, which is not installed: "
        f"run `pip install 'onebasin[{extra}]'`."
    )
