"""From the command line's words to an order: a problem of ours by its name, or anybody's program or model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from onebasin.base.errors import StudyError
from onebasin.inference.contracts.engines import engine_for
from onebasin.models.numpyro_file import model_file_in
from onebasin.models.target import Target
from onebasin.truth.making import LEAST_THIN, MOST_THIN, Order, order_of_problem
from onebasin.truth.problems import PROBLEMS

from . import finding
from .sampling import opened
from .symmetries import parse_exchangeable

Say = Callable[[str], None]


@dataclass(frozen=True)
class Given:
    """What was typed; None is what was not.

    Attributes
    ----------
    what : str
        A problem's name, a Stan program, or ``MODEL.py:NAME``.
    data : Path or None
        Its data, where it is no problem of ours.
    name, engine : str or None
        As typed.
    seed, thin, max_thin : int
        As typed.
    exchangeable : tuple of str
        Words of the symmetry.
    settings : mapping
        Fields of `Nuts`.
    """

    what: str
    data: Path | None = None
    name: str | None = None
    seed: int = 1
    exchangeable: tuple[str, ...] = ()
    engine: str | None = None
    thin: int = LEAST_THIN
    max_thin: int = MOST_THIN
    settings: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def ordered(given: Given, *, say: Say) -> Iterator[Order]:
    """Give the order; a model's file can be run meanwhile.

    Raises
    ------
    StudyError
        If it is no problem, no program and no model, or options do not go together.
    """
    if given.what in PROBLEMS:
        if given.data is not None or given.exchangeable:
            raise StudyError(
                f"`NAME` is {given.what}, which has its data and its symmetry; leave DATA.json and --exchangeable out."
            )
        yield _as_asked(order_of_problem(given.what), given)
        return
    _check_file(given.what)
    program = Path(given.what)
    declared = parse_exchangeable(given.exchangeable)
    with opened(program, given.data, symmetry=declared) as target:
        yield _as_asked(_of_target(given, target, bool(declared), say), given)


def _check_file(what: str) -> None:
    """Refuse what is no file; a word that is near a problem's name is taken for a mistyped one."""
    if what.endswith(".stan") or model_file_in(what) is not None:
        return
    near = get_close_matches(what, PROBLEMS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the problems are {', '.join(PROBLEMS)}"
    raise StudyError(
        f"`NAME` is {what}, which is no problem, no PROGRAM.stan and no MODEL.py:NAME; {hint}."
    )


def _of_target(given: Given, target: Target, declared: bool, say: Say) -> Order:
    if not declared:
        found = finding.found_in(target, seed=given.seed, say=say)
        if found.remark:
            say(found.remark)
        target = found.target
    name = given.name or target.name
    return Order(name, f"{target.name}, of {given.what}", target, engine=engine_for(target, None))


def _as_asked(order: Order, given: Given) -> Order:
    asked = {name: value for name, value in given.settings.items() if value is not None}
    return replace(
        order,
        name=given.name or order.name,
        settings=replace(order.settings, **asked),
        seed=given.seed,
        thin=given.thin,
        max_thin=given.max_thin,
        engine=given.engine or order.engine,
    )
