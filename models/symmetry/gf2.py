"""Linear algebra over GF(2); vectors are integers with one bit per entry."""

from collections.abc import Callable, Iterable, Sequence

MOST_SPANNED = 16  # Maximum dimension of a space whose elements are all used.


def parity(vector: int) -> int:
    """Check whether an odd number of bits is set."""
    return vector.bit_count() & 1


def bits(vector: int) -> list[int]:
    """Return the positions of the bits that are set."""
    return [place for place in range(vector.bit_length()) if vector >> place & 1]


def reduce(vector: int, echelon: Sequence[int]) -> int:
    """Return the remainder of a vector modulo a basis in echelon form; 0 if it lies in its span."""
    for row in echelon:
        vector = min(vector, vector ^ row)
    return vector


def echelon(vectors: Iterable[int]) -> list[int]:
    """Return a basis of the span in which all vectors have different leading bits, the highest first."""
    rows: list[int] = []
    for vector in vectors:
        left = reduce(vector, rows)
        if left:
            rows = sorted((*rows, left), reverse=True)
    return rows


def span(basis: Sequence[int]) -> list[int]:
    """Return every element of the space that a basis spans, 0 first."""
    found = [0]
    for vector in basis:
        found += [each ^ vector for each in found]
    return found


def orthogonal(vectors: Iterable[int], size: int) -> list[int]:
    """Return a basis of all vectors that have an even overlap with every given one."""
    space = [1 << place for place in range(size)]
    for vector in vectors:
        space = kept_by(space, vector)
    return space


def kept_by(space: Sequence[int], check: int) -> list[int]:
    """Return a basis of the elements of a space that have an even overlap with a vector."""
    even = [vector for vector in space if not parity(vector & check)]
    odd = [vector for vector in space if parity(vector & check)]
    return even + [odd[0] ^ vector for vector in odd[1:]]


def least_basis(basis: Sequence[int], weight: Callable[[int], float]) -> list[int]:
    """Return the basis of least total weight, chosen greedily from all elements, as in a matroid.

    Above `MOST_SPANNED` dimensions, it is chosen only from the given vectors and sums of two.
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
