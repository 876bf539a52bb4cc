"""The result of a search for a target's symmetries, with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from onebasin.base.card import Card, Fact, FactList, Part, Words
from onebasin.base.showing import Shown
from onebasin.base.table import Flag
from onebasin.models.symmetry.block import Block
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.words import in_shell, spell

Status = Literal["live", "harmless", "near", "undecided", "incomplete"]

MEANING: dict[Status, tuple[str, Flag]] = {
    "live": ("makes copies of every mode; used", "good"),
    "harmless": ("no copies of modes; not used", ""),
    "near": ("nearly a symmetry; not used", "warn"),
    "undecided": ("not decided; not used", "warn"),
    "incomplete": ("a part of a symmetry; not used", "warn"),
}


@dataclass(frozen=True, repr=False)
class FoundBlock(Shown):
    """One symmetry that was found.

    Attributes
    ----------
    block : Block or None
        As a symmetry is declared; None where no block says it.
    moves : str
        What moves, in words.
    parts : int
        How many parts; 1 where whole variables move.
    status : {"live", "harmless", "near", "undecided", "incomplete"}
        "live": it makes copies of every mode, which alignment undoes. "harmless": nothing sets the parts against one
        another, so that there is one mode. "near": a prior breaks it, by `breaks` nats. "undecided": changes are above
        rounding but tiny, or nothing tells whether it is live. "incomplete": some of the parts alone, or together with
        what no block says. Only what is live is used.
    evidence : tuple of str
        Sentences.
    breaks : float
        How many nats break it: 0 of an exact symmetry.
    """

    block: Block[Any] | None
    moves: str
    parts: int
    status: Status
    evidence: tuple[str, ...]
    breaks: float = 0.0

    @property
    def word(self) -> str:
        """The declaration for ``--exchangeable``; empty where no block says it."""
        return "" if self.block is None else spell(self.block)

    @property
    def title(self) -> str:
        """The word, or what moves."""
        return self.word or self.moves

    @property
    def meaning(self) -> str:
        """The status in words."""
        return MEANING[self.status][0]

    @property
    def flag(self) -> Flag:
        """Tell whether it is good news."""
        return MEANING[self.status][1]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        own = {k: v for k, v in asdict(self).items() if k != "block"}
        return {"exchangeable": self.word or None, **own, "evidence": list(self.evidence)}

    def _card(self) -> Card:
        parts = tuple(Words(sentence) for sentence in self.evidence)
        return Card(f"{self.title}: {self.meaning}", parts, self.flag)


@dataclass(frozen=True, repr=False)
class FoundSymmetry(Shown):
    """The symmetries that `find_symmetry` found.

    Attributes
    ----------
    blocks : tuple of FoundBlock
        Live ones first.
    open : tuple of str
        What was not searched, and why; empty where all was.
    evaluations : int
        Points at which the log density was evaluated.
    seconds : float
        How long it took, without compiling.
    """

    blocks: tuple[FoundBlock, ...]
    open: tuple[str, ...]
    evaluations: int
    seconds: float

    @property
    def symmetry(self) -> Symmetry:
        """The live blocks, as a target declares them."""
        return tuple(b.block for b in self.blocks if b.status == "live" and b.block is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """Declarations for ``--exchangeable``, one a live block."""
        return tuple(spell(block) for block in self.symmetry)

    @property
    def sentence(self) -> str:
        """The answer in a line."""
        others = [b for b in self.blocks if b.status not in ("live", "harmless")]
        more = (
            f" Not used: {'; '.join(f'{b.title} ({b.status})' for b in others)}." if others else ""
        )
        cut = f" Not searched: {'; '.join(self.open)}." if self.open else ""
        if not self.words:
            return f"No live symmetry was found.{more}{cut}"
        return f"Found: {' and '.join(self.words)}.{more}{cut}"

    def to_json(self) -> str:
        """Write it as JSON."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "exchangeable": list(self.words),
            "blocks": [block.to_dict() for block in self.blocks],
            "open": list(self.open),
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 3),
        }

    @property
    def title(self) -> str:
        """The words to declare, or that there are none."""
        if self.words:
            said = " ".join(f"--exchangeable {in_shell(word)}" for word in self.words)
            return f"Symmetry: {said}"
        return "No symmetry to align by was found" if self.blocks else "No symmetry was found"

    @property
    def effort(self) -> str:
        """The cost of the search, and its worth."""
        return f"{self.evaluations:,} evaluations, {self.seconds:.2g} s. Agreement at points is evidence, not proof."

    def _card(self) -> Card:
        return Card(self.title, tuple(self._said()), "warn" if self.open else "good")

    def _said(self) -> Iterator[Part]:
        for block in self.blocks:
            yield FactList((Fact(block.title, block.meaning, block.flag),))
            yield Words(" ".join(block.evidence))
        if self.open:
            yield Words(f"Not searched: {'; '.join(self.open)}.", flag="warn")
        yield Words(self.effort, small=True)
