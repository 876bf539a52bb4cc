"""What `onebasin sample --method optimize` shows: the optimum, which is no posterior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onebasin.posteriors import schema

from . import console

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 20
"""Scalars in the table; the file has all."""


def write_optimum(file: Path, tree: xr.DataTree, *, json: bool) -> None:
    """Write the optimum, its log density and whether the optimiser was content."""
    optimum = {str(n): v.values[0, 0] for n, v in tree[schema.POSTERIOR].data_vars.items()}
    height = float(tree[schema.SAMPLE_STATS].data_vars[schema.LP].values[0, 0])
    converged = bool(tree.attrs[schema.CONVERGED])
    if json:
        values = {name: np.asarray(value).tolist() for name, value in optimum.items()}
        found = {"converged": converged, "log_density": height, "optimum": values}
        console.write_json({"file": str(file), "method": tree.attrs[schema.METHOD], **found})
        return
    _write_table(optimum)
    if converged:
        console.write_remark(f"the optimiser converged; the log density is {height:.6g}", "good")
    else:
        console.write_remark(
            f"the optimiser stopped before its criterion was met, at a log density of {height:.6g}: raise "
            "--iterations or --starts",
            "warn",
        )
    console.write_remark(
        "this is one value and no posterior: nothing can be diagnosed; --method nuts or laplace says how "
        "far to trust it",
        "warn",
    )


def _write_table(optimum: dict[str, np.ndarray]) -> None:
    from onebasin.base.table import Table

    rows = [
        (name if not place else f"{name}[{', '.join(map(str, place))}]", float(value[place]))
        for name, value in optimum.items()
        for place in np.ndindex(np.shape(value))
    ]
    caption = f"{SHOWN} of {len(rows)} values" if len(rows) > SHOWN else ""
    console.write_table(Table(("parameter", "optimum"), tuple(rows[:SHOWN]), caption=caption))
