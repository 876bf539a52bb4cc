"""Transpositions are counted as the shortest product of exchanges, found here by search."""

import numpy as np
import pytest

from onebasin.analysis.alignment.networks import count_transpositions, swapped, transpositions_of
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.models.symmetry.elements import Scaled
from onebasin.models.symmetry.group import Group

from ...each import each


def distances(size: int) -> dict[tuple[int, ...], int]:
    """Breadth first search from the identity, one exchange of two places a step."""
    found = {tuple(range(size)): 0}
    frontier = list(found)
    while frontier:
        reached = []
        for order in frontier:
            for i in range(size):
                for j in range(i):
                    exchanged = list(order)
                    exchanged[i], exchanged[j] = order[j], order[i]
                    if tuple(exchanged) not in found:
                        found[tuple(exchanged)] = found[order] + 1
                        reached.append(tuple(exchanged))
        frontier = reached
    return found


@each("size", [1, 2, 6])
def test_count_is_the_shortest_product(size):
    known = distances(size)
    counted = count_transpositions(np.array(list(known)))
    assert counted.tolist() == list(known.values())


@each("size", [7, 8, 9, 513])
def test_long_cycles_and_the_identity(size, rng):
    around = np.roll(np.arange(size), 1)
    assert count_transpositions(around) == size - 1
    assert count_transpositions(np.argsort(around)) == size - 1
    assert count_transpositions(np.arange(size)) == 0
    relabel = rng.permutation(size)
    conjugate = relabel[around][np.argsort(relabel)]
    assert count_transpositions(conjugate) == size - 1


def test_leading_axes_are_kept_and_blocks_added(rng):
    blocks = (Exchangeable({"W1": 1, "W2": 0}), Exchangeable({"W2": 1, "W3": 0}))
    group = Group(blocks, {"W1": (2, 5), "W2": (5, 7), "W3": (7, 1)})
    element = group.random(rng, (3, 4))
    counts = transpositions_of(element)
    assert [layer.shape for layer in counts.layers] == [(3, 4), (3, 4)]
    one = [count_transpositions(part.permutation[2, 1]) for part in element]
    assert counts.total[2, 1] == sum(one)
    inverse = transpositions_of(group.inverse(element))
    np.testing.assert_array_equal(inverse.total, counts.total)


def test_what_has_no_permutation_is_refused():
    with pytest.raises(ValueError, match="`element` has no permutation"):
        transpositions_of((Scaled(np.ones(3)),))


@each("size", [2, 5, 16])
def test_swapped_takes_as_many_transpositions_as_asked(size, rng):
    for num in range(size):
        found = np.stack([swapped(rng, size, num) for _ in range(20)])
        np.testing.assert_array_equal(count_transpositions(found), num)
