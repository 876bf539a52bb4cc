"""A reference posterior as it is kept: information, summary, and some of its draws, in its own folder.

`NAME.info.json` has posteriordb's keys and the additional ones of a posterior modulo a symmetry; `NAME.summary.json`
moments and quantiles with their Monte Carlo errors; `NAME.draws.nc` a thousand draws; `NAME.full.nc`, where the
reference was made and not in the package, all 10,000.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.analysis.compare.reference.known import Known, nothing, without_lp
from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.base.arguments import checks_arguments
from onebasin.base.errors import OnebasinError
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import View, as_view

from .problems import PROBLEMS
from .problems.problem import Invariant

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from onebasin.models.symmetry.blocks import Symmetry

    from .labelling import Labelling

KEPT = Path(__file__).parent / "references"
"""The folder of the package's references."""
FULL = "full.nc"


class ReferenceError(OnebasinError, ValueError):
    """A reference that is not there, or whose files are not what was written."""


def references() -> tuple[str, ...]:
    """Names of the references that come with the package.

    Returns
    -------
    tuple of str
        In alphabetical order; those that do not pass are among them, and `Reference.status` says so.

    Examples
    --------
    >>> "eight-schools" in ob.truth.references()
    True
    """
    if not KEPT.is_dir():
        return ()
    return tuple(sorted(f.name for f in KEPT.iterdir() if (f / f"{f.name}.info.json").is_file()))


@checks_arguments
def open_reference(name: str | Path) -> Reference:
    """Open a reference posterior.

    Parameters
    ----------
    name : str or path
        One of `references()`, or a folder that `onebasin truth make` has written.

    Returns
    -------
    Reference
        Its information, summary and draws, each read when it is first asked for.

    Raises
    ------
    ReferenceError
        If there is none.

    See Also
    --------
    compare : compare posteriors with one of them.

    References
    ----------
    posteriordb, https://github.com/stan-dev/posteriordb, doc/REFERENCE_POSTERIOR_DEFINITION.md.

    Examples
    --------
    >>> reference = ob.truth.open_reference("eight-schools")
    >>> reference.status
    'passes'
    >>> round(float(reference.summary["parameters"].loc["mu", "mean"]), 1)
    4.4
    """
    folder = KEPT / str(name) if str(name) in references() else Path(name)
    found = sorted(folder.glob("*.info.json")) if folder.is_dir() else []
    if len(found) == 1:
        return Reference(folder, found[0].name.removesuffix(".info.json"))
    name = str(name)
    if name in PROBLEMS:
        raise ReferenceError(
            f"`name` is {name!r}, a problem of which the package has no reference: make it by `onebasin truth make "
            f"{name}`."
        )
    near = get_close_matches(name, references(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(references())}"
    raise ReferenceError(f"`name` is {name!r}, which is no reference and no folder of one; {hint}.")


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference posterior; `open_reference` opens one.

    Attributes
    ----------
    folder : Path
        Where its files are.
    name : str
        Of the posterior.
    """

    folder: Path
    name: str

    def file(self, part: str) -> Path:
        """Say where one of its files is.

        Parameters
        ----------
        part : str
            What follows its name: ``info.json``, ``summary.json``, ``draws.nc``, ``check.json``, ``full.nc``.

        Returns
        -------
        Path
            The file, which may be missing.
        """
        return self.folder / f"{self.name}.{part}"

    @cached_property
    def info(self) -> dict[str, Any]:
        """The information, under posteriordb's keys and those of symmetry, labelling, versions and checksums."""
        return dict(self._json("info.json"))

    @cached_property
    def summary(self) -> Mapping[str, pd.DataFrame]:
        """Tables `parameters` (in the canonical labelling) and `invariants`, of moments, quantiles and their errors."""
        import pandas as pd

        said = self._json("summary.json")
        return {
            word: pd.DataFrame(said[word].values(), said[word], said["columns"], float)
            for word in ("parameters", "invariants")
        }

    @cached_property
    def draws(self) -> xr.DataTree:
        """A thousand draws, canonically labelled, as a posterior of this package."""
        return self._tree("draws.nc")

    @cached_property
    def full(self) -> xr.DataTree | None:
        """All draws, canonically labelled and thinned, where they are next to it."""
        return self._tree(FULL) if self.file(FULL).is_file() else None

    @property
    def symmetry(self) -> Symmetry:
        """Modulo what it is canonically labelled; empty without a symmetry."""
        from onebasin.models.symmetry.blocks import from_json

        return from_json(json.dumps(self.info["symmetry"]))

    @property
    def labelling(self) -> Labelling | None:
        """The canonical labelling; None without a symmetry."""
        from .labelling import Labelling

        said = self.info["labelling"]
        return None if said is None else Labelling.from_json(said)

    @property
    def status(self) -> str:
        """`passes`; `invariants pass`, where parameters do not and what no relabelling changes does; or `fails`."""
        return status_of(self.info)

    @property
    def known(self) -> Known:
        """The facts that a run is compared with, and the functions that measure its invariants of any run."""
        symmetry, labelling, tables = self.symmetry, self.labelling, self.summary
        aligned = tables["parameters"]
        problem = PROBLEMS.get(self.info["problem"])
        own: dict[str, Invariant] = dict(problem.invariants) if problem else {}
        return Known(
            name=self.name,
            draws=as_view(self.draws),
            symmetry=symmetry,
            labelling=None if labelling is None else labelling.target,
            parameters=aligned.iloc[:0] if self.status == "invariants pass" else aligned,
            invariants=tables["invariants"],
            measure=lambda run: measured(run, symmetry, own),
            caveat=_CAVEATS.get(self.status, ""),
        )

    def _json(self, part: str) -> Any:
        try:
            return json.loads(self.file(part).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ReferenceError(
                f"`name` has a file {self.file(part)} that cannot be read ({error}); make it again with "
                f"`onebasin truth make {self.name}`."
            ) from None

    def _tree(self, part: str) -> xr.DataTree:
        from onebasin.base.files.netcdf import read_tree

        return read_tree(
            self.file(part), "posterior", error=ReferenceError, writer="onebasin truth make"
        )


def measured(view: View, symmetry: Symmetry, functions: Mapping[str, Invariant]) -> Draws:
    """Compute invariants by these functions, or without any those of the symmetry.

    One of several numbers is named by their places, `f[0]`, `f[1]`, ...
    """
    if not functions:
        return without_lp(invariants(view, symmetry)) if symmetry else nothing(view)
    values = {name: np.asarray(view.values(name), np.float64) for name in view.variables}
    names: list[str] = []
    columns = []
    for name, function in functions.items():
        found = np.asarray(function(values), np.float64)
        flat = found.reshape(*found.shape[:2], -1)
        names += [name] if found.ndim == 2 else [f"{name}[{i}]" for i in range(flat.shape[2])]
        columns.append(flat)
    empty = np.empty((view.num_chains, view.num_draws, 0))
    return Draws(tuple(names), np.concatenate([empty, *columns], axis=-1))


def status_of(info: Mapping[str, Any]) -> str:
    """Return the status that a reference's information gives, in a word."""
    if all(info["checks_made"].values()):
        return "passes"
    return "invariants pass" if all(info["checks_of_invariants"].values()) else "fails"


_CAVEATS = {
    "invariants pass": "Entries under labels do not pass the checks of the reference itself, and are not compared.",
    "fails": "The reference does not pass its own checks: `onebasin truth show` says which.",
}
