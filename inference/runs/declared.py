"""The symmetry of a run's target: searched where none is declared, checked before the run and at its draws.

Derived quantities may move along with a symmetry: responsibilities, shares, what a component is computed of. They are
computed at random points and at the same points moved. Where a quantity changes and comes out as one of the ways to
move it says, it belongs to the block; without it, aligned draws would be of parameters alone.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from onebasin.base.errors import OnebasinError, StanError
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.run_log import notice
from onebasin.models.symmetry.blocks import Symmetry, wider_blocks
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.symmetry.group import Group
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.engines import defined_by, density_by
from ..contracts.values import ValueDensity
from ..density.changes import Derived, is_close
from ..density.symmetry import SymmetryError, hold, moving_parts

DERIVED_AT = 4  # At which derived quantities are computed.


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Return blocks that also move the derived quantities that follow; those of random numbers cannot be told."""
    if not density.derived:
        return symmetry
    points = density.points(DERIVED_AT, seed)
    derived = Derived.at(density, points, seed)
    known = {n: v for n, v in derived.values.items() if n not in derived.random}
    shapes = {n: v.shape[1:] for n, v in (points | known).items()}
    found: Symmetry = ()
    for block in symmetry:
        part = moving_parts(Group((block,), shapes), np.random.default_rng(seed), DERIVED_AT)[0]
        changed: list[str] = []
        with suppress(StanError):
            there = density.derived_at(block.act(points, *part), seed)
            changed = [name for name, values in known.items() if not is_close(there[name], values)]
        for name in changed:
            if name in block.variables:
                continue
            for wider in wider_blocks(block, name, shapes, changed):
                own = {n: known[n] for n in wider.variables if n in known}
                moved = wider.act(own, *part)
                if all(is_close(moved[n], there[n]) for n in own):
                    block = wider
                    break
        found += (block,)
    return found


POINTS, DRAWS = 5, 8
"""Random points at which the density is compared before a run, and draws after it."""


@dataclass(frozen=True)
class SymmetryTrial:
    """The state that a run needs to try its target's symmetry twice; made by `begin`."""

    target: Target  # what is inferred
    density: ValueDensity  # its log density, taken and compiled once for both times
    seed: int  # of points and elements
    before: Evidence  # what was found before the run

    def at_draws(self, tree: xr.DataTree) -> Evidence:
        """Try the draws too, which are valid whatever comes of it; what came of both.

        So a symmetry that they contradict is no error here: the evidence says that it is refuted, and by what.
        """
        before = self.before
        try:
            with precision("float64"):
                found = hold(self.target, self.density, points=DRAWS, seed=self.seed, draws=tree)
            return before.joined(found.evidence)
        except SymmetryError as error:
            return replace(before, refuted=error.reason)
        except Exception as error:  # whatever it is, it is no reason to lose draws
            words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            return replace(before, skipped=(*before.skipped, f"trying draws failed ({words})"))

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


@dataclass(frozen=True)
class SearchedSymmetry:
    """The result of a search before a run."""

    target: Target  # with the live symmetry that was found, if any
    trial: SymmetryTrial | None = None  # tries it at the draws
    said: str = ""  # JSON of the result; empty where nothing was searched

    def end(self, tree: xr.DataTree) -> None:
        """Keep the result with a posterior, and try the draws."""
        if self.trial is not None:
            self.trial.end(tree)
        if self.said:
            tree.attrs[schema.SYMMETRY_FOUND] = self.said


def found_in(target: Target, *, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    """Search the symmetry of a target that declares none; an error does not stop the run that follows.

    `say` is called with a line of text before something that takes long. What is found is reported in a notice.
    """
    try:
        return _searched(target, seed, say)
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".:")
        notice(f"symmetries were not searched: {words}")
        return SearchedSymmetry(target)


def _searched(target: Target, seed: int, say: Callable[[str], None]) -> SearchedSymmetry:
    from ..symmetries.find import find_symmetry

    engine = defined_by(target, None)
    found = find_symmetry(target, engine=engine, seed=seed, progress=say)
    others = [b for b in found.blocks if b.status not in ("live", "harmless")]
    if found.words or others or found.open:
        notice(found.sentence)
    if not found.symmetry:
        return SearchedSymmetry(target, said=found.to_json())
    moved = replace(target, symmetry=found.symmetry)
    try:
        trial = begin(moved, engine=engine, seed=seed, progress=False, derived=True)
    except (OnebasinError, ValueError) as error:
        notice(f"the symmetry that was found is not used: {str(error).rstrip('.')}")
        return SearchedSymmetry(target, said=found.to_json())
    assert trial is not None  # there is a symmetry, of no network
    before = {name for block in found.symmetry for name in block.variables}
    along = [n for b in trial.target.symmetry for n in b.variables if n not in before]
    if along:
        notice(f"Moved along: {', '.join(along)}.")
    return SearchedSymmetry(trial.target, trial, found.to_json())
