"""What is true of a simulated posterior, and whether a diagnosis says so."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .simulation import Posterior


@dataclass(frozen=True)
class Truth:
    """What a diagnosis may say.

    Attributes
    ----------
    answers
        The right answer, or those that draws alone do not decide between.
    causes
        The right first cause, or those that are as good; empty where there is none to name.
    words
        Variables that move together, each block a text such as ``mu,sigma,theta``; None where that is not asked.
    silent
        Of those, the ones that may be missing, because their parts are alike.
    """

    answers: tuple[str, ...]
    causes: tuple[str, ...] = ()
    words: tuple[str, ...] | None = ()
    silent: tuple[str, ...] = ()


USABLE = Truth(("usable",))


def aligned(*words: str, silent: Sequence[str] = (), or_: Sequence[str] = ()) -> Truth:
    """Usable after alignment by these words."""
    return Truth(("aligned", *or_), ("labels",), words, tuple(silent))


def unusable(*causes: str) -> Truth:
    """Not usable, and the first cause is one of these."""
    return Truth(("unusable",), causes, None)


@dataclass(frozen=True)
class Family:
    """Posteriors of one kind.

    Attributes
    ----------
    name, group
        What it is.
    simulate
        From a generator to a posterior.
    truth
        What is true of all of them.
    """

    name: str
    group: str
    simulate: Callable[[np.random.Generator], Posterior]
    truth: Truth

    def draw(self, seed: int) -> Posterior:
        """The posterior of a seed."""
        return self.simulate(np.random.default_rng([seed, zlib.crc32(self.name.encode())]))


def wrong(truth: Truth, said: Mapping[str, Any]) -> list[str]:
    """What is wrong with a diagnosis's JSON: any of ``verdict``, ``cause``, ``words``."""
    found = []
    answer, causes = said["verdict"], list(said["causes"])
    if answer not in truth.answers:
        found.append("verdict")
    # An answer that needs no cause needs none here; where several answers are right, so is naming none.
    expected = truth.causes if answer != "usable" else ()
    if (causes[:1] or [None])[0] not in (expected or (None,)):
        found.append("cause")
    if answer in ("aligned", "usable") and truth.words is not None:
        wanted = truth.words if answer == "aligned" else ()
        if not agree(wanted, said["exchangeable"], truth.silent):
            found.append("words")
    return found


def agree(wanted: Sequence[str], said: Sequence[str], silent: Sequence[str] = ()) -> bool:
    """Tell whether blocks are those wanted, but for members that may be missing."""
    ours = {_members(block) for block in wanted}
    theirs = [_members(block) for block in said]
    quiet = _members(",".join(silent)) if silent else frozenset()
    matched = [block for block in ours if any(block - quiet <= t <= block for t in theirs)]
    return len(matched) == len(ours) == len(theirs)


def _members(block: str) -> frozenset[str]:
    """Members of a block; `mu` and `mu:0` are the same."""
    words = block.replace(" ", "").split(",")
    return frozenset(word if ":" in word or word[:2] == "1-" else f"{word}:0" for word in words)
