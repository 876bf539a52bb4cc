"""`find_symmetry`: the symmetries of a target, read from its program and found from its log density.

Blocks from the program are compared at points and judged like blocks from a search. Around a run, a declared symmetry
is checked, and the symmetry of a target that declares none is searched for (`SymmetryTrial`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.checks import check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, InferenceError, OnebasinError, StanError
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.run_log import notice
from onebasin.models.symmetry.block import AxisPart
from onebasin.models.symmetry.blocks import Group, Symmetry, variables_of, wider_blocks
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..contracts.method import ValueDensity, defined_by, density_by
from ..density.symmetry import Derived, SymmetryError, hold, is_close, moving_parts, spread_draws
from . import stages
from .groups import copies, parts_compete, variables_compete
from .measuring import DOUBTFUL, BudgetedDensity, Generator, SearchedDensity, points_of, searched
from .result import FoundBlock, FoundSymmetry, bounding, listed
from .search import SEARCHED, VERIFIED_AT, Search, random_probes
from .stages import judged

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.reading.read import ReadClass, ReadSymmetry


EVALUATIONS, SECONDS = 100_000, 8.0  # Limits of a search.
DRAWS = 6  # Number of draws of a given posterior at which the log density is compared.
FIRST = ("live", "undecided", "incomplete", "near", "harmless")


@checks_arguments
def find_symmetry(
    target: Target,
    *,
    engine: str | None = None,
    draws: xr.DataTree | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
    progress: Callable[[str], None] | None = None,
) -> FoundSymmetry:
    """Find the symmetries of a target's log density, and say which of them alignment should undo.

    onebasin first reads the program of a model that JAX can trace: the program shows which axes and signs move
    together, for any number of parameters, and why other axes are fixed. After that (for Stan programs, only that) it
    compares the log density on the constrained scale, without the Jacobian, at points before and after a move. Moves
    are permutations of parts along axes of equal length, rotations of parts that have signs, changes of sign of whole
    parameters or of their parts, and complements of numbers in (0, 1). Exchanges of separate parameters, such as `mu1`
    and `mu2`, are not searched: the result names those that may be components, with declarations to try. Points are
    random, near the posterior, and draws if they are given. Agreement at points is evidence; a symmetry that is read
    from the program is proved.

    Parameters
    ----------
    target : Target
        A target with a NumPyro model or a Stan program; its declared symmetry is ignored.
    engine : {"numpyro", "stan"}, optional
        The definition to evaluate; by default the one that the target has, NumPyro if it has both.
    draws : DataTree, optional
        A posterior of the target; the log density is also compared at some of its draws.
    seed : int
        Seed of the random points.
    seconds : float
        Time limit after compiling; the result names the stages that were not reached by then.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    FoundSymmetry
        Its fields are `symmetry`, the blocks to declare; `words`, the same blocks for ``--exchangeable``; `blocks`, all
        symmetries with their evidence, including harmless, undecided and incomplete ones; and `fixed`, the reasons why
        other axes are not interchangeable.

    Raises
    ------
    TypeError
        If `target` is not a Target.
    ValueError
        If the target has no definition for the engine, a parameter is not an array of real numbers, or `seconds` is
        not positive.
    InferenceError
        If no point with a finite log density is found, or the log density of one point varies. `ReadingError`, if the
        log density contradicts the reading, which is a bug in onebasin.
    StanError
        If Stan cannot compile the program, or rejects its data.

    References
    ----------
    Sets of commuting swaps are vectors over GF(2), and those that leave a function unchanged form a subspace (Simon
    1997, SIAM Journal on Computing 26(5)). Alignment uses them as in Stephens (2000), JRSS B 62(4), 795-809.

    Examples
    --------
    >>> import jax
    >>> def mixture(y):
    ...     w = numpyro.sample("w", dist.Dirichlet(jnp.ones(2)))
    ...     mu = numpyro.sample("mu", dist.Normal(0, 5).expand([2]).to_event(1))
    ...     parts = dist.Normal(mu, 1.0).log_prob(jnp.asarray(y)[:, None])
    ...     numpyro.factor("y", jax.nn.logsumexp(jnp.log(w) + parts, axis=1).sum())
    >>> found = ob.find_symmetry(ob.numpyro_model(mixture, {"y": [-2.1, -1.8, 2.0, 2.3]}))
    >>> found.words
    ('w,mu',)
    """
    check_target(target)
    check_seed(seed)
    if not seconds > 0:
        raise ArgumentError(f"`seconds` must be more than 0; got {seconds}.")
    density, noise = searched(target, engine, progress)
    given = None if draws is None else spread_draws(draws, tuple(density.shapes), DRAWS, ())
    return find(density, draws=given, seed=seed, seconds=seconds, noise=noise)


def read_density(density: SearchedDensity) -> ReadSymmetry | None:
    """Read the program of a density; None for Stan programs, which JAX cannot trace."""
    if density.program is None:
        return None
    from onebasin.models.reading.read import read

    with precision("float64"):
        return read(density.program, density.shapes)


def find(
    density: SearchedDensity,
    *,
    draws: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    evaluations: int = EVALUATIONS,
    seconds: float = SECONDS,
    noise: float = 0.0,
) -> FoundSymmetry:
    """Search a density for symmetries, also at draws (point, ...) of the posterior if they are given.

    The result names the stages that the given evaluations and seconds did not reach. `noise` is the relative error of
    the log density beyond rounding.
    """
    if not density.shapes:
        return FoundSymmetry((), (), 0, 0.0)
    program = read_density(density)
    large = program is not None and density.dim > SEARCHED
    # With many parameters, few points are compared, without a time limit.
    measured = BudgetedDensity(density, evaluations, math.inf if large else seconds, noise)
    probes = random_probes(measured, seed, VERIFIED_AT if large else None)
    given = measured.probes(points_of(draws)) if draws else []
    s = Search(measured, probes, [probe for probe in given if probe.known], seed, program=program)
    if program is not None:
        s.stage("what was read", lambda: blocks_read(s, program))
    _search(s)
    blocks = sorted(s.found, key=lambda block: FIRST.index(block.status))
    opened = tuple(dict.fromkeys(s.open))
    fixed, unknown = reasons(s) if program else ({}, ())
    return FoundSymmetry(tuple(blocks), opened, measured.count, measured.spent, fixed, unknown)


def _search(s: Search) -> None:
    """Search for symmetries that reading missed; with many parameters, only for signs of whole variables."""
    if s.large:
        s.stage("signs of whole variables", lambda: stages.whole_variables(s))
        s.open.append(
            f"symmetries that reading cannot find, such as exchanges of separate parameters: "
            f"{s.measured.density.dim:,} parameters are too many"
        )
        return
    for length, axes in s.lengths.items():
        free = [place for place in axes if place not in s.read]
        s.stage(f"axes of length {length}", partial(stages.interchangeable, s, length, free))
    for length, axes in s.lengths.items():
        free = [place for place in axes if place not in s.signs_read]
        s.stage(f"signs of {length} parts", partial(stages.signs, s, length, free))
    s.stage("signs and complements of whole variables", lambda: stages.whole_variables(s))
    s.stage("swaps with changes of sign", lambda: stages.mixed(s))
    for length, axes in s.lengths.items():
        if length in s.spaces:
            s.stage(f"some of {length} parts", partial(stages.partly, s, length, axes))
    s.stage("parts within groups", lambda: stages.by_group(s))
    s.stage("separate parameters", lambda: stages.unsearched(s))
    s.stage("rotations", lambda: stages.rotating(s))
    s.stage("weights broken off a stick", lambda: stages.nearly(s))


SECOND = "A declaration can have only one set of signs, and this is a second one"
PARTLY = (
    "A declaration changes the sign of all components that it moves, but this set changes only some"
)


class ReadingError(InferenceError):
    """A symmetry from the program that the log density contradicts, because of a bug in onebasin."""


def blocks_read(s: Search, found: ReadSymmetry) -> Iterator[FoundBlock]:
    """Yield a block for each class of axes from the program, with one set of signs."""
    from onebasin.models.reading.read import block_of, place_of  # It loads JAX.

    shapes = s.measured.density.shapes
    few = s.at(s.probes[:VERIFIED_AT])
    for each in found.classes:
        own = tuple(
            Generator(name, "swap", place_of(part, shapes[name]), (0, 1))
            for name, parts in each.places.items()
            for part in parts
        )
        moving = listed(own)
        signs, others = _signs(s, each, shapes)
        block = block_of(each, shapes, signs)
        names = block.flipped
        if signs:
            moving += f", with signs of {' and '.join(names)}"
        change = _verified(s, block)
        status = parts_compete(own, few if s.large else s)
        status, why = judged(s, status, copies(own, each.size))
        said = [
            f"Read from the program: every order of the {each.size} parts of {listed(own)} leaves the log density "
            f"unchanged. Compared at {len(few.probes)} points, it changes by up to {change:.2g} nats.",
            why,
        ]
        if signs:
            said.insert(1, f"Each part may change the sign of {' and '.join(names)}.")
        yield FoundBlock(block, moving, each.size, status, tuple(said), "read")
        for more in others:
            at = [g.name for g in more if g.name not in names] or [more[0].name]
            yield FoundBlock(
                None,
                f"signs of parts of {listed(more)}",
                each.size,
                "incomplete",
                (
                    f"Read from the program: each part may change the sign of {listed(more)}.",
                    bounding(SECOND if names else PARTLY, [f"each such part of {at[0]}"]),
                ),
                "read",
            )


def _signs(
    s: Search, each: ReadClass, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[tuple[str, AxisPart], ...], list[tuple[Generator, ...]]]:
    """Choose the set of signs with the fewest variables for a block; return the other sets too."""
    from onebasin.models.reading.read import place_of, signs_fit

    chosen: tuple[tuple[str, AxisPart], ...] = ()
    others = []
    for own in sorted(each.signs, key=len):
        generators = tuple(Generator(n, "negate", place_of(p, shapes[n]), (0,)) for n, p in own)
        if variables_compete(generators, s.at(s.probes[:VERIFIED_AT]) if s.large else s) != "live":
            continue
        if not chosen and signs_fit(each, own):
            chosen = own
        else:
            others.append(generators)
    return chosen, others


def _verified(s: Search, block: Any) -> float:
    """Move points by random elements and return the largest change; raise ReadingError if it is real."""
    rng = np.random.default_rng(s.seed)
    group = Group((block,), s.measured.density.shapes)
    probes = s.probes[:VERIFIED_AT]
    moved = [group.act(group.random(rng), probe.point) for probe in probes]
    changes = [p.change(float(v)) for p, v in zip(probes, s.measured(moved), strict=True)]
    if max(change.ratio for change in changes) > DOUBTFUL:
        raise ReadingError(
            f"onebasin read a symmetry from the program ({block.describe()}), but this symmetry changes the log "
            f"density by {max(change.change for change in changes):.3g} nats. This is a bug in onebasin. Please "
            "report the bug with the model. Meanwhile, use symmetry=False or declare the symmetry."
        )
    return max(change.change for change in changes)


def reasons(s: Search) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the reasons why axes are fixed, by their words, and the operations that onebasin cannot read."""
    program = s.program
    assert program is not None
    moved = {place for found in s.found if found.block is not None for place in found.block.moved}
    said = {}
    for (name, axis), why in program.fixed.items():
        if (name, axis) in moved:
            continue
        what = f"{why.what}, in {why.site}" if why.site else why.what
        if why.site in s.measured.density.shapes:
            what = f"prior of {why.site}: {why.what}"
        said[f"{name}:{axis}"] = what
    return said, program.unknown


DERIVED_AT = 4  # Number of points at which derived quantities are computed.


def with_derived(symmetry: Symmetry, density: ValueDensity, seed: int) -> Symmetry:
    """Add derived quantities that move with the components to the blocks; random quantities cannot be tested."""
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


POINTS, AT_DRAWS = 5, 8
"""Number of random points at which the symmetry is checked before a run, and of draws after the run."""


@dataclass(frozen=True)
class SymmetryTrial:
    """A check of the target's symmetry, declared or found, begun before a run and continued at its draws."""

    target: Target
    density: ValueDensity | None = None
    """Log density, compiled once for both checks; None if there is nothing to check."""
    seed: int = 0  # Seed of points and group elements.
    before: Evidence = field(default_factory=Evidence)  # Result before the run.
    said: str = ""  # JSON of the result of a search; empty if there was none or it failed.

    def at_draws(self, tree: xr.DataTree) -> Evidence:
        """Check the symmetry at the draws as well, and return the combined evidence.

        The draws are valid in any case, so a contradiction is not an error: the evidence records why it is refuted.
        """
        before, density = self.before, self.density
        assert density is not None, "there is a symmetry to check"
        try:
            with precision("float64"):
                found = hold(self.target, density, points=AT_DRAWS, seed=self.seed, draws=tree)
            return before.joined(found.evidence)
        except SymmetryError as error:
            return replace(before, refuted=error.reason)
        except Exception as error:  # An error here must not lose the draws.
            words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            failed = f"the check at draws failed ({words})"
            return replace(before, skipped=(*before.skipped, failed))

    def end(self, tree: xr.DataTree) -> None:
        """Record the check and the search in a posterior, and report a contradiction in a notice."""
        if self.density is not None:
            found = self.at_draws(tree)
            tree.attrs[schema.SYMMETRY_EVIDENCE] = found.to_json()
            if not found.holds:
                notice(found.sentence)
        if self.said:
            tree.attrs[schema.SYMMETRY_FOUND] = self.said


def begin_trial(
    target: Target,
    *,
    engine: str,
    seed: int,
    progress: bool | None,
    wanted: bool = True,
    derived: bool = False,
) -> SymmetryTrial | None:
    """Check a target's declared symmetry on its log density, before a run and in double precision.

    The run's draws do not depend on the check. With `derived`, derived quantities that move with the components are
    added to the symmetry. Return None if the check is not `wanted`, no symmetry is declared, or the target is a
    network, whose architecture implies its symmetry.
    """
    if not wanted or not target.symmetry or target.is_network:
        return None
    with ProgressBars(progress) as bars, precision("float64"):
        density = density_by(engine, target, bars.say)
        if derived:
            target = replace(target, symmetry=with_derived(target.symmetry, density, seed))
        found = hold(target, density, points=POINTS, seed=seed)
    return SymmetryTrial(target, density, seed, found.evidence)


def found_in(target: Target, *, seed: int, say: Callable[[str], None]) -> SymmetryTrial:
    """Search for the symmetry of a target that declares none, and report it in a notice; errors do not stop the run.

    `say` is called with a line of text before a long computation.
    """
    try:
        return _searched(target, seed, say)
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".:")
        notice(f"the search for symmetries failed: {words}")
        return SymmetryTrial(target)


def _searched(target: Target, seed: int, say: Callable[[str], None]) -> SymmetryTrial:
    engine = defined_by(target, None)
    found = find_symmetry(target, engine=engine, seed=seed, progress=say)
    others = [b for b in found.blocks if b.status not in ("live", "harmless")]
    if found.words or others or found.open:
        notice(found.sentence)
    unused = SymmetryTrial(target, said=found.to_json())
    if not found.symmetry:
        return unused
    moved = replace(target, symmetry=found.symmetry)
    try:
        trial = begin_trial(moved, engine=engine, seed=seed, progress=False, derived=True)
    except (OnebasinError, ValueError) as error:
        notice(f"the symmetry that was found is not used: {str(error).rstrip('.')}")
        return unused
    assert trial is not None, "the target has a symmetry and is not a network"
    before = {*variables_of(found.symmetry)}
    along = [n for b in trial.target.symmetry for n in b.variables if n not in before]
    if along:
        notice(f"Derived quantities that move with the components: {', '.join(along)}.")
    return replace(trial, said=unused.said)
