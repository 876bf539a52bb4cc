"""Reference posteriors that come with the package: long, checked runs of NUTS with one canonical labelling.

The folder `onebasin/truth/references/NAME` contains `NAME.draws.nc` (1,000 nearly independent draws), `NAME.info.json`
(settings and diagnostics), `NAME.summary.json` (moments and quantiles of all 10,000 draws) and `NAME.seeds.json` (a
comparison with a second run with another seed).
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import xarray as xr

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError

from .open import open_tree

FOLDER = Path(__file__).parents[1] / "truth" / "references"


def names() -> tuple[str, ...]:
    """Return the names of all references, in alphabetical order."""
    return tuple(sorted(folder.name for folder in FOLDER.iterdir() if folder.is_dir()))


def references() -> pd.DataFrame:
    """List the reference posteriors that come with the package.

    Returns
    -------
    pandas.DataFrame
        One row per reference, indexed by name, with the numbers of parameters and draws, the symmetry and a title.

    Examples
    --------
    >>> ob.truth.references().loc["mixture-3", "symmetry"]
    'weight,mu,sigma'
    """
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
    """Open a reference posterior, with which you can compare a run of the same model.

    Parameters
    ----------
    name : str
        Name of a reference, as listed by `references()`.

    Returns
    -------
    DataTree
        A posterior with 1,000 nearly independent draws in 10 chains, their log density, and the data.

    Raises
    ------
    ValueError
        If no reference has this name.

    See Also
    --------
    compare : Compare a posterior with a reference, named by `truth`.

    Examples
    --------
    >>> reference = ob.truth.open_reference("eight-schools")
    >>> round(float(reference["posterior"]["mu"].mean()), 1)
    4.3
    """
    known = names()
    if name not in known:
        raise ArgumentError(f"`name` must be one of {', '.join(known)}; got {name!r}.")
    return open_tree([FOLDER / name / f"{name}.draws.nc"])
