"""`find_symmetry`: the symmetries of a target, found from its log density."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.checks import check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.target import check_target

from ..density.symmetry import spread_draws
from . import separate, stages
from .measuring import BudgetedDensity, SearchedDensity, points_of, searched
from .result import FoundSymmetry
from .search import SEARCHED, VERIFIED_AT, Search, random_probes

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.reading.read import ReadSymmetry
    from onebasin.models.target import Target

EVALUATIONS, SECONDS = 100_000, 8.0  # Limits of a search.
DRAWS = 6  # Draws of a given posterior at which the log density is compared.
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

    onebasin first reads the program of a model that JAX can trace: it shows which axes and signs move together, for
    any number of parameters, and why others stay. After that (for Stan programs, only that) it compares the log
    density on the constrained scale, without the Jacobian, at points before and after a move. Moves are permutations
    of parts along axes of equal length, rotations of parts that have signs, changes of sign of whole parameters or of
    their parts, and complements of numbers in (0, 1). Points are random, near the posterior, and draws if they are
    given. Agreement at points is evidence; a reading is proof.

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
        Time limit after compiling; the result names what was not searched by then.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    FoundSymmetry
        Its fields: `symmetry`, the blocks to declare; `words`, the same for ``--exchangeable``; `blocks`, all that was
        read or found, with the evidence, including harmless, undecided and incomplete ones; and `fixed`, the reasons
        why other axes stay.

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
        raise ArgumentError(f"`seconds` is {seconds}; it has to be more than 0.")
    density, noise = searched(target, engine, progress)
    given = None if draws is None else spread_draws(draws, tuple(density.shapes), DRAWS, ())
    return find(density, draws=given, seed=seed, seconds=seconds, noise=noise)


def read_density(density: SearchedDensity) -> ReadSymmetry | None:
    """Read the program of a density; None if it has none, as Stan's have not, which need no JAX."""
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
    """Search a density for symmetries, with draws (point, ...) of the posterior if there are some.

    It takes at most the given number of evaluations and seconds, and says what is not searched then. `noise` is the
    relative error of the log density beyond rounding.
    """
    if not density.shapes:
        return FoundSymmetry((), (), 0, 0.0)
    program = read_density(density)
    large = program is not None and density.dim > SEARCHED
    # What was read of many parameters is compared at few points, however long they take.
    measured = BudgetedDensity(density, evaluations, math.inf if large else seconds, noise)
    probes = random_probes(measured, seed, VERIFIED_AT if large else None)
    given = measured.probes(points_of(draws)) if draws else []
    s = Search(measured, probes, [probe for probe in given if probe.known], seed, program=program)
    if program is not None:
        from .read import blocks_read, reasons

        s.stage("what was read", lambda: blocks_read(s, program))
    stages_of = _all_stages if not s.large else _large_stages
    stages_of(s)
    blocks = sorted(s.found, key=lambda block: FIRST.index(block.status))
    opened = tuple(dict.fromkeys(s.open))
    fixed, unknown = reasons(s) if program else ({}, ())
    return FoundSymmetry(tuple(blocks), opened, measured.count, measured.spent, fixed, unknown)


def _large_stages(s: Search) -> None:
    """Look for signs of whole variables besides what was read, of many parameters."""
    s.stage("signs of whole variables", lambda: stages.whole_variables(s))
    s.open.append(
        f"what reading does not see, such as separate parameters that are the same quantity of several parts: "
        f"{s.measured.density.dim:,} parameters are too many"
    )


def _all_stages(s: Search) -> None:
    """Everything that is searched for besides what was read."""
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
    s.stage("parameters declared one by one", lambda: separate.exchanged(s))
    s.stage("rotations", lambda: stages.rotating(s))
    s.stage("weights broken off a stick", lambda: stages.nearly(s))
