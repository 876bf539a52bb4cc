"""Symmetries as words of the command line; how a block is spelt is in `models.symmetry.words`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onebasin.base.errors import StudyError
from onebasin.base.notices import notice

if TYPE_CHECKING:  # brings JAX along, which help texts do without
    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.symmetry.elements import Shapes
    from onebasin.posteriors.view import View

HELP = (
    "Variables whose parts are interchangeable: mu,sigma,theta; by another axis than 0: W1:1,b1,W2; by two axes: "
    "A:0:1,mu; +- before those that may change sign: +-L:1,scale; whole variables that change sign together, of any "
    "lengths: +-theta:,+-a:; 1- before weights that become their complements: mu,sigma,1-theta; components that are "
    "separate parameters, or positions counted from 0: mu1~mu2,sigma1~sigma2,theta and theta[0]~theta[2]. Repeatable, "
    "a block each time."
)


def parse_exchangeable(words: Sequence[str]) -> Symmetry:
    """Read blocks, one a word.

    Parameters
    ----------
    words : sequence of str
        See `models.symmetry.words.read`.

    Returns
    -------
    Symmetry
        A block a word, in the same order.

    Raises
    ------
    StudyError
        If a part cannot be read, or a block names a variable or an axis twice.
    """
    from onebasin.models.symmetry.words import read

    try:
        return tuple(read(word) for word in words)
    except ValueError as error:
        said = str(error).replace("`exchangeable`", "`--exchangeable`", 1)
        raise StudyError(said) from error


def of_view(words: Sequence[str] | None, view: View) -> Symmetry | None:
    """What words mean of a posterior's variables; None without a word."""
    from onebasin.posteriors.schema import SAMPLE_DIMS

    symmetry = parse_exchangeable(words or [])
    names = {name for block in symmetry for name in block.variables} & set(view.posterior)
    sizes = {name: view.posterior[name].sizes for name in names}
    shapes = {n: tuple(s for d, s in s.items() if d not in SAMPLE_DIMS) for n, s in sizes.items()}
    return as_meant(symmetry, shapes) or None


def as_meant(symmetry: Symmetry, shapes: Shapes) -> Symmetry:
    """What blocks mean of variables of these shapes; says so where it is not what was typed.

    Parameters
    ----------
    symmetry : Symmetry
        As the words say.
    shapes : mapping of str to tuple of int
        Of the variables that are known.
    """
    from onebasin.models.symmetry import words

    meant = tuple(words.as_meant(block, shapes) for block in symmetry)
    for block, found in zip(symmetry, meant, strict=True):
        if found != block and any(shapes[name] for name in block.axes):
            lengths = " and ".join(str(shapes[n][0] if shapes[n] else 1) for n in block.axes)
            notice(
                f"--exchangeable {words.spell(block)}: {', '.join(block.axes)} have {lengths} entries, so that they "
                f"change sign as a whole, which is also written {words.spell(found)}"
            )
    return meant
