"""The result of a search for a target's symmetries: the blocks, and sentences on the evidence for each."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from onebasin.base.card import Card, Fact, FactList, Part, Shown, Words
from onebasin.base.table import Flag
from onebasin.models.symmetry.block import Axes, Block
from onebasin.models.symmetry.blocks import (
    Complement,
    Counterparts,
    Exchangeable,
    Flip,
    Symmetry,
    in_shell,
    spell,
)

from .measuring import Compared, Generator, Generators, LargestChange, Probes, by_name

OF_STATUS = {
    "live": "Swapping the components gives distinct modes of equal height.",
    "harmless": "The components are independent given all other parameters, so there is one mode and nothing to align.",
    "undecided": "onebasin could not tell whether swapping the components gives distinct modes.",
}
ONE_MODE = "The move leaves the maximum of the density unchanged, so there is one mode and nothing to align."


def exchangeable(
    generators: Generators, order: Iterable[str]
) -> Exchangeable | Counterparts | None:
    """Convert swaps of parts, with complements and changes of sign of whole variables, to a block."""
    axes: dict[str, Axes] = {}
    for name in order:
        own = [
            g.axis for g in generators if g.name == name and g.kind == "swap" and g.axis is not None
        ]
        own.sort(key=lambda p: (p, 0) if isinstance(p, int) else (p.axis, p.start))
        if own:
            axes[name] = tuple(own) if len(own) > 1 else own[0]
    turned = {g.name: g.kind for g in generators if g.axis is None}
    if not axes or set(axes) & set(turned):
        return None
    complements = tuple(name for name in order if turned.get(name) == "complement")
    signs = tuple((name, f"-{name}") for name in order if turned.get(name) == "negate")
    return (
        Counterparts(signs, axes, complements=complements)
        if signs
        else Exchangeable(axes, complements=complements)
    )


def whole(generators: Generators, order: Iterable[str]) -> Block[Any] | None:
    """Convert changes of sign and complements of whole variables to a block; None if parts move too."""
    if any(g.axis is not None for g in generators):
        return None
    negated = {g.name for g in generators if g.kind == "negate"}
    turned = {g.name for g in generators if g.kind == "complement"}
    if negated & turned:
        return None
    flipped = tuple(name for name in order if name in negated)
    complements = tuple(name for name in order if name in turned)
    return Flip(flipped, complements) if flipped else Complement(complements)


def listed(generators: Generators) -> str:
    """List the variables that move: ``mu:0, sigma:0 and 1-theta``."""
    texts = []
    for name, own in by_name(generators).items():
        places = (g.axis if isinstance(g.axis, int | None) else g.axis.word for g in own)
        axes = "".join(f":{place}" for place in places if place is not None)
        sign = "+-" * any(g.kind == "negate" for g in own)
        turned = "1-" * any(g.kind == "complement" for g in own)
        texts.append(f"{turned}{sign}{name}{axes}")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def positions(generator: Generator, places: Sequence[int], ndim: int) -> tuple[str, ...]:
    """Name places along the axis of a generator, for a variable with `ndim` axes: ``theta[2]``, ``A[:,2]``."""
    index = [":"] * ndim
    names = []
    for place in places:
        assert isinstance(generator.axis, int)
        index[generator.axis] = str(place)
        names.append(f"{generator.name}[{','.join(index)}]")
    return tuple(names)


def unchanged(what: str, tried: LargestChange, random: Probes, near: Probes) -> str:
    """Report the number of points without a change, and the largest change compared with rounding."""
    most = f"{tried.change:.2g} nats; rounding alone could change it by {tried.slack:.1g}"
    if not tried.holds:  # It held at random points; otherwise it would not be reported.
        return (
            f"{what} leaves the log density unchanged at {len(random)} random points, but not near the posterior: "
            f"it changes by {most}."
        )
    where = f"{len(random)} random" + (f", {len(near)} near the posterior" if near else "")
    return (
        f"{what} leaves the log density unchanged at {len(random) + len(near)} points ({where}); at the worst one, "
        f"it changes by {most}."
    )


def alone(generators: Generators, compared: Compared) -> str:
    """Report the change if only one of several variables moves; empty for a single variable."""
    each = by_name(generators).values()
    if len(each) < 2:
        return ""
    change = np.abs(np.array([compared.moved(own) for own in each]) - compared.values)
    finite = change[np.isfinite(change)]
    if not finite.size:
        return "Moving only one of them leaves the support."
    return (
        f"Moving only one of them changes it by {finite.min():.2g} to {finite.max():.2g} nats "
        f"(median {np.median(finite):.2g})."
    )


def bounding(why: str, places: Iterable[str]) -> str:
    """Report that alignment does not undo a change of sign, and name the bound that removes it."""
    return (
        f"{why}, so alignment does not undo it, and copies of one mode may look like several modes. "
        f"Bounding one number of {' or '.join(dict.fromkeys(places))} to be positive leaves one copy."
    )


def of_parts(orbits: Sequence[Sequence[int]], most: int = 4) -> str:
    """Name sets of parts: ``parts {0, 1} and {2, 3}``."""
    shown = [f"{{{', '.join(map(str, o[:8]))}{', ...' * (len(o) > 8)}}}" for o in orbits]
    more = f" and {len(orbits) - most} more sets" if len(orbits) > most else ""
    return f"parts {' and '.join(shown[:most])}{more}"


Source = Literal["read", "found"]
Status = Literal["live", "harmless", "undecided", "incomplete", "near"]

LONG = 40  # Maximum number of characters of a block with its meaning on the same line.
LISTED = 6  # Maximum number of axes named per reason.
MEANING: dict[Status, tuple[str, Flag]] = {
    "live": ("makes copies of every mode; used for alignment", "good"),
    "harmless": ("no copies of modes; not used", ""),
    "undecided": ("not decided; not used", "warn"),
    "incomplete": ("part of a symmetry; not used", "warn"),
    "near": ("components that are only nearly exchangeable; not used", "warn"),
}


@dataclass(frozen=True, repr=False)
class FoundBlock(Shown):
    """A symmetry from the program or from the search.

    Attributes
    ----------
    block : Block or None
        The block to declare; None if no block can express it.
    moves : str
        The variables that move, in words.
    parts : int
        Number of parts; 1 if whole variables move.
    status : {"live", "harmless", "undecided", "incomplete", "near"}
        "live": it makes copies of every mode, which alignment undoes. "harmless": the parts are independent, or the
        maximum is unchanged, so there is one mode. "undecided": changes are small but above rounding, or no test is
        conclusive. "incomplete": it moves only some of the parts, or no block can express it. "near": weights are
        stick-breaking weights, and exchanging components hardly changes the density. Only live blocks are used.
    evidence : tuple of str
        Sentences on the tests.
    source : {"read", "found"}
        "read": derived from the program, which proves it. "found": the log density agrees at points.
    """

    block: Block[Any] | None
    moves: str
    parts: int
    status: Status
    evidence: tuple[str, ...]
    source: Source = "found"

    @property
    def word(self) -> str:
        """The declaration for ``--exchangeable``; empty without a block."""
        return "" if self.block is None else spell(self.block)

    @property
    def title(self) -> str:
        """The declaration, or the variables that move."""
        return self.word or self.moves

    @property
    def meaning(self) -> str:
        """The status in words."""
        return MEANING[self.status][0]

    @property
    def flag(self) -> Flag:
        """The colour of the status."""
        return MEANING[self.status][1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
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
        The symmetries, live ones first.
    open : tuple of str
        Parts of the search that were left out, with reasons.
    evaluations : int
        Points at which the log density was evaluated.
    seconds : float
        Duration in seconds, not counting compilation.
    fixed : mapping of str to str
        Axes that are fixed according to the program, as words such as ``W1:0``, with reasons. A search may still find
        symmetries of them.
    unknown : tuple of str
        Operations of the program that onebasin cannot read; it assumes that they fix the axes that they touch.
    """

    blocks: tuple[FoundBlock, ...]
    open: tuple[str, ...]
    evaluations: int
    seconds: float
    fixed: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def symmetry(self) -> Symmetry:
        """The live blocks, as a target declares them."""
        return tuple(b.block for b in self.blocks if b.status == "live" and b.block is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """Declarations for ``--exchangeable``, one per live block."""
        return tuple(spell(block) for block in self.symmetry)

    @property
    def sentence(self) -> str:
        """The result in one line."""
        others = [b for b in self.blocks if b.status not in ("live", "harmless")]
        named = "; ".join(f"{b.title} ({b.status})" for b in others)
        more = f" Not used: {named}." if others else ""
        cut = f" Not searched: {'; '.join(self.open)}." if self.open else ""
        if not self.words:
            return f"No live symmetry was found.{more}{cut}"
        return f"Found: {' and '.join(self.words)}.{more}{cut}"

    def to_json(self) -> str:
        """Return JSON text."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "exchangeable": list(self.words),
            "blocks": [block.to_dict() for block in self.blocks],
            "open": list(self.open),
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 3),
            "fixed": dict(self.fixed),
            "unknown": list(self.unknown),
        }

    @property
    def title(self) -> str:
        """The declarations, or a statement that no symmetry was found."""
        if self.words:
            said = " ".join(f"--exchangeable {in_shell(word)}" for word in self.words)
            return f"Symmetry: {said}"
        usable = " that alignment could use" if self.blocks else ""
        return f"No symmetry was found{usable}"

    @property
    def effort(self) -> str:
        """The cost of the search, and the strength of its evidence."""
        spent = f"{self.evaluations:,} evaluations, {self.seconds:.2g} s."
        if all(block.source == "read" for block in self.blocks) and self.blocks:
            return spent
        return f"{spent} Agreement at points is evidence, not a proof."

    def _card(self) -> Card:
        return Card(self.title, tuple(self._said()), "warn" if self.open else "good")

    @property
    def asides(self) -> tuple[str, ...]:
        """Sentences on operations that onebasin cannot read, and on fixed axes."""
        found = []
        if self.unknown:
            named = ", ".join(self.unknown)
            found.append(
                f"onebasin cannot read {named} and assumes that they fix the axes that they touch."
            )
        if self.fixed:
            found.append(f"Other axes are not interchangeable: {'; '.join(self._reasons())}.")
        return tuple(found)

    def _reasons(self) -> Iterator[str]:
        """Yield the reasons why axes are fixed, with their axes."""
        places: dict[str, list[str]] = {}
        for place, why in self.fixed.items():
            places.setdefault(why, []).append(place)
        for why, own in places.items():
            more = f" and {len(own) - LISTED} more" if len(own) > LISTED else ""
            yield f"{', '.join(own[:LISTED])}{more} ({why})"

    def _said(self) -> Iterator[Part]:
        for block in self.blocks:
            if len(block.title) > LONG:
                yield Words(f"{block.title}: {block.meaning}", flag=block.flag)
            else:
                yield FactList((Fact(block.title, block.meaning, block.flag),))
            yield Words(" ".join(block.evidence))
        if self.open:
            yield Words(f"Not searched: {'; '.join(self.open)}.", flag="warn")
        for sentence in self.asides:
            yield Words(sentence, small=True)
        yield Words(self.effort, small=True)
