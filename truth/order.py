"""What is to be made a reference of: a problem of ours, or anybody's program or model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from onebasin.base.errors import StudyError, check_seed
from onebasin.inference import Nuts
from onebasin.models.target import Target

from .problems import PROBLEMS
from .problems.problem import RECIPE, Invariant

LEAST_THIN, MOST_THIN = 10, 40
DRAWS = 1000
"""Draws kept of each of ten chains, 10,000 in all."""


@dataclass(frozen=True, eq=False)
class Order:
    """A posterior, and how its reference is sampled.

    Attributes
    ----------
    name, title : str
        Of the posterior.
    target : Target
        With its symmetry.
    problem : str
        Which of `PROBLEMS` it is; empty for somebody's own.
    settings : Nuts
        Chains, warmup, adaptation; `draws` are those kept of a chain after thinning.
    thin, max_thin : int
        Every how many-th draw is kept; doubled up to the second while the kept ones depend on one another.
    seed : int
        Of the chains.
    engine : str
        Whose definition is sampled.
    invariants : mapping
        Functions of draws that no relabelling changes; empty for what holds for any symmetry.
    references, keywords : tuple of str
        As posteriordb has them.
    quotient_of : Target or None
        What is sampled instead, where the posterior is one copy of that one's; see `quotient`.
    """

    name: str
    title: str
    target: Target
    problem: str = ""
    settings: Nuts = field(default_factory=lambda: replace(RECIPE, draws=DRAWS))
    thin: int = LEAST_THIN
    max_thin: int = MOST_THIN
    seed: int = 1
    engine: str = "numpyro"
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    quotient_of: Target | None = None

    @property
    def sampled(self) -> Target:
        """What chains are run on."""
        return self.quotient_of or self.target

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        check_seed(self.seed)
        if not 1 <= self.thin <= self.max_thin:
            raise StudyError(
                f"`--thin` is {self.thin} and `--max-thin` {self.max_thin}; give whole numbers from 1, the second not "
                "below the first."
            )


def order_of_problem(name: str) -> Order:
    """Give the order for one of our problems."""
    problem = PROBLEMS[name]
    target = problem.target()
    cover = PROBLEMS[problem.quotient_of] if problem.quotient_of else None
    return Order(
        name,
        problem.title,
        target,
        problem=name,
        settings=replace((cover or problem).settings, draws=DRAWS),
        engine=target.engines[0],
        invariants=problem.invariants,
        references=problem.references,
        keywords=problem.keywords,
        quotient_of=cover.target() if cover else None,
    )
