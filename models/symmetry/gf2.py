"""Linear algebra over GF(2), of vectors that are integers: an entry a bit."""

from collections.abc import Callable, Iterable, Sequence

MOST_SPANNED = 16  # Dimensions up to which all elements of a space are looked at.


def parity(vector: int) -> int:
    """Check whether an odd number of bits is set."""
    return vector.bit_count() & 1


def bits(vector: int) -> list[int]:
    """Places of the bits that are set."""
    return [place for place in range(vector.bit_length()) if vector >> place & 1]


def reduce(vector: int, echelon: Sequence[int]) -> int:
    """The remainder of a vector modulo a basis in echelon form; 0 if it lies in its span."""
    for row in echelon:
        vector = min(vector, vector ^ row)
    return vector


def echelon(vectors: Iterable[int]) -> list[int]:
    """A basis of the span, in which every vector has a leading bit of its own; the highest first."""
    rows: list[int] = []
    for vector in vectors:
        left = reduce(vector, rows)
        if left:
            rows = sorted((*rows, left), reverse=True)
    return rows


def span(basis: Sequence[int]) -> list[int]:
    """Every element of the space that a basis spans, 0 first."""
    found = [0]
    for vector in basis:
        found += [each ^ vector for each in found]
    return found


def orthogonal(vectors: Iterable[int], size: int) -> list[int]:
    """A basis of what has an even overlap with every vector."""
    space = [1 << place for place in range(size)]
    for vector in vectors:
        space = kept_by(space, vector)
    return space


def kept_by(space: Sequence[int], check: int) -> list[int]:
    """A basis of those elements of a space that have an even overlap with one vector."""
    even = [vector for vector in space if not parity(vector & check)]
    odd = [vector for vector in space if parity(vector & check)]
    return even + [odd[0] ^ vector for vector in odd[1:]]


def least_basis(basis: Sequence[int], weight: Callable[[int], float]) -> list[int]:
    """A basis of the same space whose vectors weigh least: the greedy one of all elements, as in a matroid.

    Beyond `MOST_SPANNED` dimensions, of the sums of two alone.
    """
    rows = echelon(basis)
    if len(rows) <= MOST_SPANNED:
        elements = span(rows)[1:]
    else:
        elements = [*rows, *(a ^ b for place, a in enumerate(rows) for b in rows[:place])]
    chosen: list[int] = []
    kept: list[int] = []
    for element in sorted(elements, key=lambda each: (weight(each), each)):
        left = reduce(element, kept)
        if left:
            kept = sorted((*kept, left), reverse=True)
            chosen.append(element)
        if len(chosen) == len(rows):
            break
    return chosen
