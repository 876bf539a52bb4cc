"""A reference from beginning to end: made, written, and checked by code that shares no line with what made it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from onebasin.base.files.atomic import replacing
from onebasin.base.files.cache import make_user_cache, user_cache
from onebasin.models.symmetry.blocks import equal_modes

from . import checker
from .labelling import Labelling
from .making import made
from .order import Order
from .reference import Reference, open_reference, references
from .writing import write

CACHE = "truth"


def place_of(name: str, seed: int, *, make: bool = False) -> Path:
    """Where a reference is made if nothing else is said: a folder of the user's cache."""
    top = make_user_cache(CACHE) if make else user_cache(CACHE)
    return top / f"{name}-seed{seed}"


def kept_labelling(order: Order) -> Labelling | None:
    """The canonical labelling of the package's reference of a problem, where there is one of the same symmetry."""
    if not order.problem or order.name not in references():
        return None
    reference = open_reference(order.name)
    same = reference.symmetry == equal_modes(order.target.symmetry)
    return reference.labelling if same else None


def produce(
    order: Order,
    folder: Path,
    *,
    labelling: Labelling | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Reference, checker.Verdict]:
    """Make a reference in a folder, and check it.

    Parameters
    ----------
    order : Order
        What to make.
    folder : Path
        Made where it does not exist; what is kept there of an earlier run of the same order is gone on with.
    labelling : Labelling, optional
        The canonical labelling; fitted to the first half of the chains if not given.
    progress : bool
        Whether to show bars.
    say : callable
        Called with a line of text before what takes long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = made(order, folder, labelling=labelling, progress=progress, say=say)
    say("writing, and checking what is written")
    reference = write(found, folder)
    return reference, recorded_check(reference)


def recorded_check(reference: Reference) -> checker.Verdict:
    """Check a reference that has all its draws beside it, and write what came of it."""
    verdict = checker.check(reference.folder, reference.name)
    text = json.dumps(verdict.to_dict(), indent=1)
    with replacing(reference.file("check.json")) as part:
        part.write_text(text + "\n", encoding="utf-8")
    return verdict
