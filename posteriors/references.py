"""Reference posteriors that come with the package: long, checked runs of NUTS, in one canonical labelling.

The folder `onebasin/truth/references/NAME` has `NAME.draws.nc` with 1,000 nearly independent draws, `NAME.info.json`
with settings and diagnostics, `NAME.summary.json` with moments and quantiles of all 10,000 draws, and
`NAME.seeds.json` with a comparison to a run with a different seed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError

from .open import open_tree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FOLDER = Path(__file__).parents[1] / "truth" / "references"


def names() -> tuple[str, ...]:
    """Return the names of all references, in alphabetical order."""
    return tuple(sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir()))


def references() -> pd.DataFrame:
    """List the reference posteriors that come with the package.

    Returns
    -------
    pandas.DataFrame
        One row per reference, by name: the numbers of parameters and draws, the symmetry, and a title.

    Examples
    --------
    >>> ob.truth.references().loc["mixture-3", "symmetry"]
    'weight,mu,sigma'
    """
    import pandas as pd

    rows = {}
    for name in names():
        info = json.loads((FOLDER / name / f"{name}.info.json").read_text(encoding="utf-8"))
        rows[name] = {
            "parameters": len(info["diagnostics"]["diagnostic_information"]["names"]),
            "draws": 1000,
            "symmetry": " ".join(info["symmetry_in_words"]),
            "title": info["title"],
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("name")


@checks_arguments
def open_reference(name: str) -> xr.DataTree:
    """Open a reference posterior: draws to compare a run of the same model with.

    Parameters
    ----------
    name : str
        A name of `references()`.

    Returns
    -------
    DataTree
        A posterior like any other: 1,000 nearly independent draws in 10 chains, with their log density and the data.

    Raises
    ------
    ValueError
        If there is no reference of this name.

    See Also
    --------
    compare : its argument `truth` takes such a name.

    Examples
    --------
    >>> reference = ob.truth.open_reference("eight-schools")
    >>> round(float(reference["posterior"]["mu"].mean()), 1)
    4.3
    """
    known = names()
    if name not in known:
        raise ArgumentError(f"`name` is {name!r}; the references are {', '.join(known)}.")
    return open_tree([FOLDER / name / f"{name}.draws.nc"])
