"""Correct verdicts of simulated posteriors, and their comparison with a diagnosis."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .simulation import Posterior


@dataclass(frozen=True)
class Truth:
    """The correct results of a diagnosis.

    Attributes
    ----------
    answers
        Correct verdicts; several if the draws cannot decide between them.
    causes
        Acceptable first causes; empty if there is no cause.
    words
        Declarations of the blocks, such as ``mu,sigma,theta``; None if they are not checked.
    silent
        Variables of the blocks that may be missing, because their components are the same.
    """

    answers: tuple[str, ...]
    causes: tuple[str, ...] = ()
    words: tuple[str, ...] | None = ()
    silent: tuple[str, ...] = ()


USABLE = Truth(("usable",))


def aligned(*words: str, silent: Sequence[str] = (), or_: Sequence[str] = ()) -> Truth:
    """Make the truth of a posterior that is usable after alignment with these blocks."""
    return Truth(("aligned", *or_), ("labels",), words, tuple(silent))


def unusable(*causes: str) -> Truth:
    """Make the truth of an unusable posterior with one of these first causes."""
    return Truth(("unusable",), causes, None)


@dataclass(frozen=True)
class Family:
    """A family of simulated posteriors.

    Attributes
    ----------
    name, group
        Name of the family, and of its group.
    simulate
        Function that simulates a posterior with a random generator.
    truth
        The correct verdict for all posteriors of the family.
    """

    name: str
    group: str
    simulate: Callable[[np.random.Generator], Posterior]
    truth: Truth

    def draw(self, seed: int) -> Posterior:
        """Return the posterior for a seed."""
        return self.simulate(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))


def wrong(truth: Truth, said: Mapping[str, Any]) -> list[str]:
    """Return the errors in the JSON of a diagnosis: any of ``verdict``, ``cause``, ``words``."""
    found = []
    answer, causes = said["verdict"], list(said["causes"])
    if answer not in truth.answers:
        found.append("verdict")
    # A usable posterior needs no cause.
    expected = truth.causes if answer != "usable" else ()
    if (causes[:1] or [None])[0] not in (expected or (None,)):
        found.append("cause")
    if answer in ("aligned", "usable") and truth.words is not None:
        wanted = truth.words if answer == "aligned" else ()
        if not agree(wanted, said["exchangeable"], truth.silent):
            found.append("words")
    return found


def agree(wanted: Sequence[str], said: Sequence[str], silent: Sequence[str] = ()) -> bool:
    """Return whether the reported blocks are the expected ones, except for members that may be missing."""
    ours = {_members(block) for block in wanted}
    theirs = [_members(block) for block in said]
    quiet = _members(",".join(silent)) if silent else frozenset()
    matched = [block for block in ours if any(block - quiet <= t <= block for t in theirs)]
    return len(matched) == len(ours) == len(theirs)


def _members(block: str) -> frozenset[str]:
    """Return the members of a block; `mu` and `mu:0` are the same."""
    words = block.replace(" ", "").split(",")
    return frozenset(word if ":" in word or word[:2] == "1-" else f"{word}:0" for word in words)
