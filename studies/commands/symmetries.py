"""Symmetries as words of the command line; how a block is spelt is in `models.symmetry.words`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import StudyError

if TYPE_CHECKING:  # brings JAX along, which help texts do without
    from onebasin.models.symmetry.blocks import Symmetry

HELP = (
    "Variables whose parts are interchangeable: mu,sigma,theta; by another axis than 0: W1:1,b1,W2; by two axes: "
    "A:0:1,mu; +- before those that may change sign: +-L:1,scale; whole variables that change sign together, of any "
    "lengths: +-theta:,+-a:; 1- before weights that become their complements: mu,sigma,1-theta. Repeatable, a block "
    "each time."
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
