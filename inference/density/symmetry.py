"""Check a declared symmetry on the target's log density, at random points and at draws.

Derived quantities (transformed parameters, generated quantities, deterministic sites) are computed at the original and
the moved points. A quantity that a block names must move as the block says. A quantity that changes but that no block
names is not relabelled when draws are aligned. Quantities that depend on the seed cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.card import Card, Fact, FactList, Shown, Words
from onebasin.base.card import Part as CardPart
from onebasin.base.checks import check_count, check_not_negative, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, InferenceError, StanError
from onebasin.base.files.netcdf import pieces
from onebasin.base.precision import precision
from onebasin.models.symmetry.blocks import Block, Group, Symmetry, equal_modes
from onebasin.models.symmetry.elements import Element, Part, choose, differ, on_arrays
from onebasin.models.symmetry.evidence import Evidence, changes
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..contracts.method import ValueDensity, defined_by, density_by

Arrays = dict[str, np.ndarray]

AGREEMENT = 1e-6  # Largest relative difference that counts as rounding error.
SEEDS = 5  # Number of seeds tried before a quantity counts as deterministic.


@dataclass(frozen=True)
class Derived:
    """Derived quantities at points, arrays (point, ...) by name."""

    density: ValueDensity
    points: Arrays
    values: Arrays  # Empty if they cannot be computed.
    random: tuple[str, ...]  # Names of quantities with random numbers.
    seed: int

    @classmethod
    def at(cls, density: ValueDensity, points: Arrays, seed: int) -> Derived:
        """Compute the derived quantities if the engine can."""
        try:
            values = density.derived_at(points, seed) if density.derived else {}
            again = density.derived_at(points, seed + 1) if values else {}
        except StanError:
            values, again = {}, {}
        random = tuple(n for n in values if not _same(values[n], again[n]))
        return cls(density, points, values, random, seed)

    @property
    def missing(self) -> tuple[str, ...]:
        """The derived quantities that could not be computed."""
        return tuple(name for name in self.density.derived if name not in self.values)

    def misfits(self, moved: Arrays) -> Iterator[tuple[str, float]]:
        """Yield the quantities that differ from those in `moved` at its points, each with its largest difference."""
        try:
            there = self.density.derived_at(moved, self.seed) if self.values else {}
        except StanError:
            return
        for name, found in there.items():
            if name not in self.random and not is_close(found, moved[name]):
                yield name, float(np.nanmax(np.abs(found - moved[name])))

    def is_random(self, name: str) -> bool:
        """Return whether a quantity differs between seeds."""
        seeds = range(self.seed + 2, self.seed + 2 + SEEDS)
        again = (self.density.derived_at(self.points, seed)[name] for seed in seeds)
        return any(not _same(found, self.values[name]) for found in again)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def is_close(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether values of a derived quantity are equal up to rounding."""
    size = np.maximum(np.abs(a), np.abs(b))
    finite = size[np.isfinite(size)]
    slack = AGREEMENT * (finite.max() if finite.size else 0.0)
    return bool(np.allclose(a, b, rtol=0.0, atol=slack, equal_nan=True))


MOST_EXTREMES = 12  # Maximum number of draws added because of extreme values.


def spread_draws(
    tree: Posterior, names: Sequence[str], count: int, moved: Iterable[str]
) -> dict[str, np.ndarray]:
    """Choose evenly spaced draws, and draws with extreme values of `moved` variables: name to array (point, ...)."""
    held = as_view(tree, "draws").posterior
    absent = [name for name in names if name not in held]
    if absent:
        raise ArgumentError(
            f"The target's density needs {', '.join(absent)}; `draws` contains only "
            f"{', '.join(map(str, held.data_vars))}. Give draws of all parameters."
        )
    arrays = {name: held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in names}
    chains, draws = next(iter(arrays.values())).shape[:2]
    total = chains * draws
    chosen = np.linspace(0, total - 1, min(count, total)).round().astype(int).tolist()
    for name in dict.fromkeys(moved):
        if name in arrays and arrays[name].size and len(chosen) < count + MOST_EXTREMES:
            # Find the smallest and the largest value of every draw, chain by chain.
            reach = [
                (flat.min(axis=1), flat.max(axis=1))
                for chain in arrays[name]
                for flat in (rows.values.reshape(len(rows), -1) for rows in pieces(chain))
            ]
            low, high = (np.concatenate(each) for each in zip(*reach, strict=True))
            chosen += [int(high.argmax()), int(low.argmin())]
    places = [divmod(row, draws) for row in dict.fromkeys(chosen)]
    return {n: np.stack([a[place].values for place in places]) for n, a in arrays.items()}


ELEMENTS_A_DRAW = 3  # Elements per draw: a single one may leave the asymmetric entries in place.
TRIES = 20  # Maximum number of random elements tried to find one that moves something.
TOLERANCE = 1e-8  # Nats, in addition to rounding.
DERIVED_AT = 4  # Points at which derived quantities are computed.


class SymmetryError(InferenceError):
    """Error about a declared symmetry that the log density or a derived quantity does not have.

    Parameters
    ----------
    message : str
        The message of the error.
    difference : float
        The largest change; see Attributes.
    reason : str
        The message without its advice; by default the whole message.

    Attributes
    ----------
    difference : float
        The largest change of the log density in nats, or of a derived quantity in its unit.
    reason : str
        The message without its advice.

    Examples
    --------
    >>> wrong = ob.numpyro_model(mixture, {"y": y}, symmetry=(ob.Exchangeable({"mu": 0}),))
    >>> try:
    ...     ob.check_symmetry(wrong)  # the weights have to change places too
    ... except ob.errors.SymmetryError as error:
    ...     print(error.difference > 1)
    True
    """

    def __init__(self, message: str, difference: float, reason: str = "") -> None:
        super().__init__(message)
        self.difference = difference
        self.reason = reason or message


@dataclass(frozen=True, repr=False)
class SymmetryCheck(Shown):
    """The result of `check_symmetry`.

    Attributes
    ----------
    differences : tuple of float
        For each block, the largest change of the log density under random elements, in nats; for a `Rescalable` block,
        of the log likelihood. NaN if the change is unknown, because Stan does not separate the likelihood, rounding
        hides a change, or no density is finite.
    points : int
        Number of points tried.
    evidence : Evidence
        The result as in a posterior's attribute `symmetry_evidence`, including quantities that were not checked.
    symmetry : Symmetry
        The blocks that were checked.
    """

    differences: tuple[float, ...]
    points: int
    evidence: Evidence = field(default_factory=Evidence)
    symmetry: Symmetry = ()

    def _card(self) -> Card:
        """Show the answer, one line per block, and whatever could not be checked."""
        if not self.differences:
            nothing = Words("There is nothing to check.")
            return Card("No symmetry is declared", (nothing,))
        parts: list[CardPart] = []
        known = [difference for difference in self.differences if not math.isnan(difference)]
        if known:
            change = f"changes the log density by at most {max(known):.2g} nats, which is rounding error,"
            if not max(known):
                change = "does not change the log density"
            parts.append(Words(f"Moving components as declared {change} {self.evidence.size}."))
        names = [block.describe() for block in self.symmetry] or ["block"] * len(self.differences)
        facts = tuple(
            Fact(name, "not checked", "warn")
            if math.isnan(difference)
            else Fact(name, f"at most {difference:.2g} nats", "good")
            for name, difference in zip(names, self.differences, strict=True)
        )
        parts.append(FactList(facts))
        if derived := self.evidence.derived:
            moved = ", ".join(f"`{name}`" for name in derived)
            parts.append(Words(f"These derived quantities move as declared: {moved}."))
        if self.evidence.sentence:
            parts.append(Words(self.evidence.sentence, small=True))
        if any(map(math.isnan, self.differences)):
            return Card("Not every part of the symmetry could be checked", tuple(parts), "warn")
        return Card("The symmetry holds", tuple(parts), "good")


@checks_arguments
def check_symmetry(
    target: Target,
    *,
    engine: str | None = None,
    points: int = 5,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    draws: xr.DataTree | None = None,
    progress: Callable[[str], None] | None = None,
) -> SymmetryCheck:
    """Check a target's declared symmetry on its log density and its derived quantities.

    Each block is checked separately, with one random element per point (three per draw) that moves something. The
    density is on the constrained scale, without the Jacobian. Derived quantities (transformed parameters, generated
    quantities, deterministic sites) that a block names must move with the parameters as declared. Computations use
    double precision.

    Parameters
    ----------
    target : Target
        A target with a symmetry. A target without a symmetry passes the check.
    engine : "numpyro" or "stan", optional
        The definition to evaluate; by default the one that the target has, NumPyro if it has both.
    points : int
        Number of points, at least 1: uniform within +-2 in the unconstrained space, or spread over `draws`.
    seed : int
        Seed of the random points and elements.
    tolerance : float
        Largest allowed change in nats, in addition to rounding error.
    draws : DataTree, optional
        A posterior of the target. Its draws are used instead of random points: `points` draws, and those where moved
        variables have their largest and smallest values. Blocks that keep only the likelihood are skipped.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    SymmetryCheck
        The measured changes, and the blocks and quantities that could not be checked.

    Raises
    ------
    SymmetryError
        If a block changes the log density, or a derived quantity does not move as declared.
    ValueError
        If a block does not fit the target's variables, `engine` is unknown or `points` is not positive.

    References
    ----------
    The check is the definition itself: p(g theta | y) = p(theta | y) for every element g of the group. Densities are
    on the constrained scale, where permutations, signs and complements have unit Jacobian.

    Examples
    --------
    >>> found = ob.check_symmetry(target, points=3)
    >>> max(found.differences) < 1e-8  # nats
    True
    """
    check_target(target)
    check_count("points", points, most=10**6)
    check_not_negative("tolerance", tolerance)
    check_seed(seed)
    with precision("float64"):
        density = density_by(defined_by(target, engine), target, progress)
        return hold(target, density, points=points, seed=seed, tolerance=tolerance, draws=draws)


def hold(
    target: Target,
    density: ValueDensity,
    *,
    points: int,
    seed: int,
    tolerance: float = TOLERANCE,
    draws: xr.DataTree | None = None,
) -> SymmetryCheck:
    """Check the symmetry on a given density; `check_symmetry` describes the arguments."""
    blocks = target.symmetry if draws is None else equal_modes(target.symmetry)
    if not blocks:
        return SymmetryCheck((), points)
    at = "random points" if draws is None else "draws"
    if draws is None:
        values = density.points(points, seed)
    else:
        moved = [name for block in blocks for name in block.variables]
        values = spread_draws(draws, density.names, points, moved)
    count, times = len(next(iter(values.values()))), 1 if draws is None else ELEMENTS_A_DRAW
    derived = Derived.at(density, {n: v[:DERIVED_AT] for n, v in values.items()}, seed)
    symmetry: Symmetry = ()
    for block in blocks:
        if all(name in density.derived for name in block.variables):
            raise ArgumentError(
                f"`symmetry` moves only quantities that are computed from parameters ({', '.join(block.variables)}). "
                f"Also declare how the parameters move ({', '.join(values)})."
            )
        # Leave out quantities that could not be computed.
        rest = block.restricted(name for name in block.variables if name not in derived.missing)
        symmetry += (rest or block,)
    group = Group(symmetry, {n: v.shape[1:] for n, v in (values | derived.values).items()})
    parts = moving_parts(group, np.random.default_rng(seed), count * times)
    before = cache(lambda measure: measure(values))  # The same for every block.
    tiled = {name: np.concatenate([value] * times) for name, value in values.items()}
    differences = []
    skipped = f"{', '.join(derived.missing)} could not be computed at these points"
    evidence = Evidence(random=derived.random, skipped=(skipped,) if derived.missing else ())
    for block, part in zip(symmetry, parts, strict=True):
        measure: Any = density.log_density if block.keeps_density else density.log_likelihood
        if (here := before(measure)) is None:
            differences.append(float("nan"))
            continue
        there = measure(block.act(dict(tiled), *part))
        found = changes(measure, tiled, np.tile(here, times), there, tolerance)
        if found.real.any():
            what = "density" if block.keeps_density else "likelihood"
            moving = f"moving {', '.join(block.variables)} as declared"
            by = f"{found.largest:.3g} nats"
            if np.isinf(found.largest):
                moving, by = f"{moving} moves points out of the support or", f"{found.largest}"
            change = f"{moving} changes the log {what} by {by} at {at}"
            raise SymmetryError(
                f"The declared symmetry of {target.name!r} does not hold: {change}. Declare all variables that move "
                "together, or remove this block.",
                found.largest,
                change,
            )
        differences.append(found.largest)
        if block.keeps_density:
            evidence = evidence.joined(_of_derived(target, block, derived, part, at))
    unresolved = tuple(
        ", ".join(block.variables)
        for block, difference in zip(symmetry, differences, strict=True)
        if block.keeps_density and np.isnan(difference)
    )
    points, drawn = (count, 0) if draws is None else (0, count)
    evidence = replace(evidence, unresolved=unresolved, points=points, draws=drawn)
    return SymmetryCheck(tuple(differences), count, evidence, symmetry)


def moving_parts(group: Group, rng: np.random.Generator, count: int) -> Element:
    """Draw a random element for each point, avoiding elements that move nothing."""
    tries = [group.random(rng, (count,)) for _ in range(TRIES)]
    still = group.identity((count,))
    chosen = list(tries[0])
    for place, part in enumerate(still):
        for more in tries[1:]:
            moves = differ((chosen[place],), (part,))
            if moves.all():
                break
            chosen[place] = choose(moves, chosen[place], more[place])
    return tuple(chosen)


def _of_derived(target: Target, block: Block, derived: Derived, part: Part, at: str) -> Evidence:
    """Compare derived quantities at moved points with those moved by the block."""
    tried = len(next(iter(derived.points.values())))
    few = on_arrays(part, lambda array: array[:tried])
    moved = block.act(derived.points | derived.values, *few)
    random, left = [], []
    for name, difference in derived.misfits(moved):
        if derived.is_random(name):
            random.append(name)
        elif name in block.variables:
            others = ", ".join(n for n in block.variables if n != name)
            change = f"{name} does not move with {others} as declared: it is off by {difference:.3g} at {at}"
            raise SymmetryError(
                f"The declared symmetry of {target.name!r} does not hold: {change}. Declare the axis along which "
                "this quantity has one entry per component, or remove the quantity from the symmetry.",
                difference,
                change,
            )
        elif not any(name in other.variables for other in target.symmetry):
            left.append(name)
    compared = [n for n in block.variables if n in derived.values and n not in derived.random]
    agreed = tuple(name for name in compared if name not in random)
    return Evidence(random=tuple(random), left_behind=tuple(left), derived=agreed)
