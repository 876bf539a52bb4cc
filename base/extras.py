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
"""The package by which each extra's feature is known to work; `data` and `cmdstan` have checks of their own."""


def is_installed(package: str) -> bool:
    """Check whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except (
        ValueError
    ):  # something that is not a module stands in its place among the loaded modules
        return False


def lacks(what: str, extra: str) -> str:
    """Say that something cannot work without an extra, and how to install that."""
    package = EXTRAS[extra]
    return (
        f"{what} needs the package {package}, which is not installed: "
        f"run `pip install 'onebasin[{extra}]'`."
    )
