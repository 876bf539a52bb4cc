"""What is true of a simulated posterior, and whether a diagnosis says so."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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


def wrong(truth: Truth, said: Mapping[str, object], values: Mapping[str, np.ndarray]) -> list[str]:
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
        lengths = {name: value.shape[2:] for name, value in values.items()}
        if not _agree(wanted, said["exchangeable"], truth.silent, lengths):
            found.append("words")
    return found


def _agree(wanted: Sequence[str], said: object, silent: Sequence[str], shapes: Mapping) -> bool:
    ours = {frozenset(_members(block, shapes)) for block in wanted}
    theirs = [frozenset(_members(block, shapes)) for block in said]  # type: ignore[attr-defined]
    quiet = set(_members(",".join(silent), shapes)) if silent else set()
    matched = [block for block in ours if any(block - quiet <= t <= block for t in theirs)]
    return len(matched) == len(ours) == len(theirs)


def _members(block: str, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Members of a block, `mu` spelt as `mu:0`."""
    found = []
    for word in block.replace(" ", "").split(","):
        name = word.removeprefix("+-").removeprefix("1-").split(":")[0]
        plain = ":" not in word and len(shapes.get(name, ())) == 1
        found.append(f"{word}:0" if plain else word)
    return found
