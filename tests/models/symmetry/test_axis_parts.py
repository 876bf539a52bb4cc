"""Components along parts of an axis, closest elements, and varimax."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import onebasin as ob
from onebasin.models.symmetry.block import Block
from onebasin.models.symmetry.blocks import (
    Group,
    Rotation,
    as_symmetry,
    from_json,
    in_shell,
    read,
    spell,
    to_json,
)
from onebasin.models.symmetry.closest import canonical, closest, plain_view
from onebasin.models.symmetry.elements import Permuted, Rotated, in_order
from onebasin.models.symmetry.exchangeable import Exchangeable
from onebasin.models.symmetry.rotation import criterion, nearest_rotation, refine, varimax

Part, Move = ob.networks.AxisPart, ob.Exchangeable
CASES = {
    "a factor": ((Move({"k": Part.factor(0, (2, 2, 3), 2), "c": 1}),), {"k": (12, 2), "c": (5, 3)}),
    "the first factor": (
        (Move({"k": Part.factor(0, (3, 4), 0), "c": 0}),),
        {"k": (12,), "c": (3,)},
    ),
    "a slice": ((Move({"k": Part.between(1, 1, 4), "b": 0}),), {"k": (2, 5), "b": (3,)}),
    "repeated with gaps": ((Move({"k": Part(0, 1, 2, 2, 2, 5)}),), {"k": (11,)}),
    "twice in one axis": (
        (Move({"k": (Part.between(0, 0, 3), Part.between(0, 4, 7)), "b": 0}),),
        {"k": (8, 2), "b": (3,)},
    ),
    "two factors of one axis": (
        (
            Move({"k": Part.factor(1, (2, 3, 2), 0), "o": 0}),
            Move({"k": Part.factor(1, (2, 3, 2), 1), "u": 0}, flips=("k",)),
        ),
        {"k": (2, 12), "o": (2,), "u": (3,)},
    ),
    "a square and parts of it": (
        (
            Move({"A": (0, Part.factor(1, (3, 3), 1)), "h": 0}),
            Move({"A": Part.factor(1, (3, 3), 0), "g": 0}),
        ),
        {"A": (3, 9), "h": (3,), "g": (3,)},
    ),
    "a slice and the other axis": (
        (Move({"k": Part.between(0, 1, 3)}), Move({"k": 1, "b": 0}, flips=True)),
        {"k": (4, 3), "b": (3,)},
    ),
    "both slices of a concatenation": (
        (Move({"k": Part.between(0, 0, 2), "x": 0}), Move({"k": Part.between(0, 2, 5), "y": 0})),
        {"k": (6, 2), "x": (2,), "y": (3,)},
    ),
}
every_case = pytest.mark.parametrize("case", CASES)


def values_of(group, rng, lead=()):
    return {name: rng.uniform(size=(*lead, *shape)) for name, shape in group.shapes.items()}


def entries(place, shape, order):
    """The entries of a variable after one place is permuted, from the definition of a part."""
    ids = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), place.axis, 0)
    out = ids.copy()
    for r in range(place.repeats):
        for i in range(place.count):
            for j in range(place.stride):
                to, at = (
                    place.start + r * place.period + c * place.stride + j for c in (i, order[i])
                )
                out[to] = ids[at]
    return np.moveaxis(out, 0, place.axis)


@every_case
def test_elements_compose_and_invert_and_move_what_the_definition_says(case, rng):
    group = Group(*CASES[case])
    values = values_of(group, rng, (6,))
    first, then = group.random(rng, (6,)), group.random(rng, (6,))
    once, twice = group.act(first, values), group.act(group.compose(first, then), values)
    assert all(np.array_equal(v, twice[n]) for n, v in group.act(then, once).items())
    back = group.act(group.inverse(first), once)
    assert all(np.array_equal(v, back[n]) for n, v in values.items())
    block: Block = group.symmetry[0]
    name, (place, *_) = next(
        (n, tuple(p for p in (ps if isinstance(ps, tuple) else (ps,)) if isinstance(p, Part)))
        for n, ps in block.axes.items()
    )
    order = rng.permutation(place.count)
    alone = Move({name: place}).act({name: values[name][0]}, order)[name]
    expected = values[name][0].ravel()[entries(place, group.shapes[name], order)]
    np.testing.assert_array_equal(alone, expected)


@every_case
def test_the_plain_view_moves_as_the_blocks_do(case, rng):
    group = Group(*CASES[case])
    view, values, element = (
        plain_view(*CASES[case]),
        values_of(group, rng, (4,)),
        group.random(rng, (4,)),
    )
    moved = view.stack(values, 1)
    assert all(isinstance(p, int | tuple) for b in view.blocks for p in b.axes.values())
    for block, part in zip(view.blocks, element, strict=True):
        moved = block.act(moved, *part)
    expected = group.act(element, values)
    found = view.unstack(moved, 1)
    assert found.keys() == values.keys()
    assert all(np.array_equal(found[n], expected[n]) for n in values)


@every_case
def test_words_and_json_keep_every_block(case):
    symmetry = CASES[case][0]
    assert from_json(to_json(symmetry)) == symmetry
    words = [spell(block) for block in symmetry]
    assert tuple(map(read, words)) == symmetry
    assert all(in_shell(word) == f"'{word}'" for word in words if "[" in word)


def test_entries_are_those_that_some_element_moves(rng):
    for symmetry, shapes in CASES.values():
        for block in symmetry:
            values = values_of(Group(symmetry, shapes), rng)
            changed = {n: np.zeros(shapes[n], bool) for n in block.variables}
            for _ in range(40):
                moved = block.act(values, *block.random(rng, (), block.size(shapes)))
                changed = {n: mark | (moved[n] != values[n]) for n, mark in changed.items()}
            marks = block.entries(shapes)
            assert all(np.array_equal(marks[n], changed[n]) for n in marks)


def test_a_part_that_is_the_whole_axis_is_the_axis():
    (block,) = ob.models.symmetry.blocks.as_symmetry(
        (Move({"k": Part.between(0, 0, 4)}),), {"k": (4,)}
    )
    assert block == Move({"k": 0})


@pytest.mark.parametrize(
    ("symmetry", "message"),
    [
        (
            (Move({"k": Part.between(0, 4, 9)}),),
            r"moves the part 0\[4:9\] of k, but the shape of k is \(8, 8\)",
        ),
        ((Move({"k": Part.between(2, 0, 2)}),), r"moves the part 2\[0:2\] of k"),
        (
            (Move({"k": (Part.between(0, 0, 3), Part.between(0, 2, 5))}),),
            "positions of axis 0 of k twice",
        ),
        ((Move({"k": (0, Part.between(0, 0, 2))}),), "positions of axis 0 of k twice"),
        (
            (Move({"k": 0}), Move({"k": Part.between(0, 0, 2)})),
            r"axis 0 of k and the part 0\[0:2\] of k, which",
        ),
        (
            (Move({"k": Part.between(0, 0, 4)}), Move({"k": Part.between(0, 2, 6)})),
            "two blocks that move",
        ),
        (
            (Move({"k": Part.factor(0, (2, 4), 1)}), Move({"k": Part.factor(0, (4, 2), 0)})),
            "which overlap",
        ),
        (
            (Move({"k": Part.between(0, 0, 3), "b": 0}),),
            r"the part 0\[0:3\] of k has length 3, axis 0 of b has length 8",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(symmetry, message):
    with pytest.raises(ValueError, match=message):
        Group(symmetry, {"k": (8, 8), "b": (8,)})


@pytest.mark.parametrize(
    "word", ["k:0[2,2]", "k:0[4:]", "k:0[*2,*3]", "k:0[start=1]", "k:0[0:0]", "k[0:2]x:1"]
)
def test_words_that_are_no_part_are_refused(word):
    with pytest.raises(ValueError, match=r"`exchangeable` (names|has|contains)|`count` must be"):
        ob.models.Group((read(word),), {"k": (4,)}) and pytest.fail(word)


def test_the_closest_element_is_found_among_all(rng):
    for case in (
        "a factor",
        "two factors of one axis",
        "both slices of a concatenation",
        "a square and parts of it",
    ):
        group = Group(*CASES[case])
        values = values_of(group, rng)
        element = group.random(rng)
        moved = group.act(element, values)
        found = closest(group.symmetry, moved, values, dict.fromkeys(values, 1.0))
        assert all(np.allclose(v, values[n]) for n, v in group.act(found, moved).items())


def test_the_canonical_labelling_is_the_same_for_every_copy(rng):
    group = Group(*CASES["a factor"])
    values = values_of(group, rng)
    orders = [np.array(order) for order in permutations(range(3))]
    copies = [group.act((Permuted(order),), values) for order in orders]
    draws = {name: np.stack([copy[name] for copy in copies]) for name in values}
    labelled = canonical(group.symmetry, draws)
    assert all(np.array_equal(v, np.broadcast_to(v[:1], v.shape)) for v in labelled.values())


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


def rotations(rng, count, size):
    return Rotation({"any": 0}).random(rng, (count,), size).matrix


def simple(rng, size, rows, noise=0.1):
    """Loadings (component, row), each row large on one component."""
    own = np.arange(rows) % size == np.arange(size)[:, None]
    return own * rng.uniform(0.5, 1, rows) + noise * rng.normal(size=(size, rows))


def test_two_components_are_turned_to_the_best_of_all_angles(rng):
    loadings = rng.normal(size=(20, 2, 7))
    angles = np.linspace(0, np.pi / 2, 2001)
    turns = np.array([[np.cos(angles), np.sin(angles)], [-np.sin(angles), np.cos(angles)]])
    every = np.stack([criterion(turn @ loadings) for turn in np.moveaxis(turns, 2, 0)])
    found = criterion(varimax(loadings) @ loadings)
    assert (found >= every.max(axis=0)).all()
    np.testing.assert_allclose(found, every.max(axis=0), rtol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 6, 15])
def test_climbing_from_starts_finds_what_turning_pairs_finds(size, rng):
    mean = simple(rng, size, 6 * size)
    draws = mean + 0.1 * rng.normal(size=(30, *mean.shape))
    like = varimax(mean[None])[0] @ mean
    came = rotations(rng, 30, size) @ draws
    start, expected = nearest_rotation(like @ np.swapaxes(came, 1, 2)), varimax(draws) @ draws
    turns = refine(came, start)
    np.testing.assert_allclose(criterion(turns @ came), criterion(expected), rtol=1e-9)
    np.testing.assert_allclose(turns @ came, expected, atol=1e-4)


def test_the_labelling_of_one_draw_does_not_depend_on_its_rotation(rng):
    block = Rotation({"L": 1, "scores": 1})
    values = {"L": simple(rng, 3, 12).T[None].repeat(9, 0), "scores": rng.normal(size=(9, 4, 3))}
    turned = block.act(values, rotations(rng, 9, 3))
    one, other = canonical((block,), values), canonical((block,), turned)
    for name in values:
        np.testing.assert_allclose(other[name], one[name], atol=1e-7)


def test_a_rotation_and_then_an_order_with_signs_is_a_rotation(rng):
    turns, block = Rotated(rotations(rng, 6, 4)), Rotation({"L": 1})
    order = Exchangeable(block.axes, flips=True)
    values, part = {"L": rng.normal(size=(6, 5, 4))}, order.random(rng, (6,), 4)
    expected = order.act(block.act(values, *turns), *part)["L"]
    np.testing.assert_allclose(block.act(values, *in_order(turns, part))["L"], expected, 1e-12)
