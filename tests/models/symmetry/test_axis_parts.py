"""Components along a part of an axis: factors of merged axes, slices of concatenated ones, and both."""

from itertools import permutations

import numpy as np
import pytest

import onebasin as ob
from onebasin.models.symmetry.block import Block
from onebasin.models.symmetry.blocks import from_json, to_json
from onebasin.models.symmetry.closest import canonical, closest, plain_view
from onebasin.models.symmetry.elements import Permuted
from onebasin.models.symmetry.group import Group
from onebasin.models.symmetry.words import in_shell, read, spell

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
    (block,) = ob.models.symmetry.words.as_symmetry(
        (Move({"k": Part.between(0, 0, 4)}),), {"k": (4,)}
    )
    assert block == Move({"k": 0})


@pytest.mark.parametrize(
    ("symmetry", "message"),
    [
        (
            (Move({"k": Part.between(0, 4, 9)}),),
            r"moves the part 0\[4:9\] of k, which has the shape \(8, 8\)",
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
            r"the part 0\[0:3\] of k has 3, axis 0 of b has 8",
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
    with pytest.raises(ValueError, match=r"`exchangeable` (names|has)|`count` must be"):
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
