"""The check of a declared symmetry in a run: on the log density before it, and on its draws afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace

import xarray as xr

from onebasin.base.notices import notice
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.engines import density_by
from ..contracts.values import ValueDensity
from ..density.along import with_derived
from ..density.symmetry import evidence_at_draws, hold

POINTS = 5
"""Random points at which the density is compared before a run."""


@dataclass(frozen=True)
class SymmetryTrial:
    """The state that a run needs to try its target's symmetry twice; made by `begin`."""

    target: Target  # what is inferred
    density: ValueDensity  # its log density, taken and compiled once for both times
    seed: int  # of points and elements
    before: Evidence  # what was found before the run

    def at_draws(self, tree: xr.DataTree) -> Evidence:
        """Try the draws too, which are valid whatever comes of it; what came of both."""
        with precision("float64"):
            return evidence_at_draws(
                self.target, tree, self.before, density=self.density, seed=self.seed
            )

    def end(self, tree: xr.DataTree) -> None:
        """Keep with a posterior what came of trying its draws; where they contradict the symmetry, say so."""
        found = self.at_draws(tree)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = found.to_json()
        if not found.holds:
            notice(found.sentence)


def begin(
    target: Target,
    *,
    engine: str,
    seed: int,
    progress: bool | None,
    wanted: bool = True,
    derived: bool = False,
) -> SymmetryTrial | None:
    """Hold a target's declared symmetry against its log density, before a run and in double precision.

    The seed decides points and elements; the run's draws do not depend on what is tried here. With `derived`, derived
    quantities that follow are added to the symmetry. Return None where nothing is to be tried: it is not `wanted`,
    there is no symmetry, or it is that of a network, which its architecture has.
    """
    if not wanted or not target.symmetry or target.is_network:
        return None
    with ProgressBars(progress) as bars, precision("float64"):
        density = density_by(engine, target, bars.say)
        if derived:
            target = replace(target, symmetry=with_derived(target.symmetry, density, seed))
        found = hold(target, density, points=POINTS, seed=seed)
    return SymmetryTrial(target, density, seed, found.evidence)
