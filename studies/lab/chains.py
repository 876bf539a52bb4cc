"""Parts of a posterior's draws."""

from __future__ import annotations

import xarray as xr


def halves(posterior: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Divide the chains into two halves; the draws where there is one chain."""
    dim = "chain" if posterior.sizes["chain"] > 1 else "draw"
    middle = posterior.sizes[dim] // 2
    return posterior.isel({dim: slice(None, middle)}), posterior.isel({dim: slice(middle, None)})
