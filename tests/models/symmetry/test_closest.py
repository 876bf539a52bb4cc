"""The element that brings one point closest to another, against elements that are known."""

from __future__ import annotations

import numpy as np
import pytest

from onebasin.models.symmetry.closest import closest
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.words import as_symmetry

BLOCKS = {
    "few": (("mu,s,1-theta",), {"mu": (2,), "s": (2,), "theta": ()}),
    "many": (("mu,s",), {"mu": (12,), "s": (12, 3)}),
    "signs": (("+-W:1,+-b,+-V:0",), {"W": (3, 9), "b": (9,), "V": (9, 2)}),
    "two layers": (("W:1,b,V:0", "V:1,U:0"), {"W": (3, 8), "b": (8,), "V": (8, 7), "U": (7, 2)}),
    "separate": (("a1~a2,b1~b2",), {"a1": (), "a2": (), "b1": (3,), "b2": (3,)}),
    "states": (("A:0:1,mu",), {"A": (4, 4), "mu": (4,)}),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_moved_point_is_brought_back(name: str) -> None:
    words, shapes = BLOCKS[name]
    rng = np.random.default_rng(4)
    point = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    symmetry = as_symmetry(words, shapes)
    group = Group(symmetry, shapes)
    for _ in range(5):
        moved = group.act(group.random(rng), point)
        near = {n: v + 0.01 * rng.normal(size=v.shape) for n, v in moved.items()}
        element = closest(symmetry, near, point, {n: np.ones(s) for n, s in shapes.items()})
        back = group.act(element, near)
        for n in shapes:
            np.testing.assert_allclose(back[n], point[n], atol=0.1)


def test_variables_of_large_scale_decide_no_more_than_others() -> None:
    symmetry = as_symmetry("mu,s", {"mu": (2,), "s": (2,)})
    point = {"mu": np.array([0.0, 1.0]), "s": np.array([1000.0, 1001.0])}
    other = {"mu": np.array([1.0, 0.0]), "s": np.array([1000.0, 1001.0])}
    scale = {"mu": np.full(2, 0.1), "s": np.full(2, 1000.0)}
    assert closest(symmetry, point, other, scale)[0].permutation.tolist() == [1, 0]
    ones = {n: np.ones(2) for n in point}
    same = {**other, "mu": np.array([0.4, 0.6])}
    assert closest(symmetry, point, same, ones)[0].permutation.tolist() == [0, 1]
