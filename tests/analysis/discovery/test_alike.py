"""Slots that are tried together: the ratio of each is the one that it has alone."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.discovery.moving import Alike
from onebasin.analysis.discovery.slots import Lens, Slot
from onebasin.analysis.discovery.sorting import Sorting, apply, spread


def test_ratios_are_those_of_each_slot_alone_and_what_they_do_not_tell_is_looked_at() -> None:
    rng = np.random.default_rng(1)
    element = rng.permuted(np.tile(np.arange(3), (60, 1)), axis=1)
    signs = rng.choice([-1.0, 1.0], (60, 3))
    sorting = Sorting(element, signs, np.empty((3, 0)), np.empty((3, 0)), 0.0, 0.0)
    back = np.argsort(element, axis=1)
    sorted_ = np.array([-4.0, 0.5, 2.0]) + rng.normal(size=(60, 3))
    values = {
        "unrelated": rng.normal(size=(60, 3)),
        "moves": np.take_along_axis(sorted_, back, axis=1),
        "turns": np.take_along_axis(signs * sorted_, back, axis=1),
        "wide": rng.normal(size=(60, 2, 3)),
        "far": np.array([1e6, 2e6, 3e6]) + rng.normal(size=(60, 3)),
        "square": rng.normal(size=(60, 3, 3)),
    }
    slots = [Slot(name, (v.ndim - 2,), 3) for name, v in values.items()]
    slots[2] = Slot("turns", (0,), 3, signed=True)
    slots[5] = Slot("square", (0, 1), 3)
    lenses = [Lens.of(slot, values[slot.name]) for slot in slots]
    alike = Alike(lenses, lambda lens: lens(values[lens.slot.name]))
    features = [lens(values[lens.slot.name]) for lens in lenses[:4]]
    masks = [np.full(lens.matrix.shape[1], lens.slot.signed) for lens in lenses]
    alone = [
        spread(apply(f, mask, element, signs)) / spread(f)
        for f, mask in zip(features, masks, strict=False)
    ]
    np.testing.assert_allclose(alike.ratios(sorting)[:4], alone, rtol=1e-5)
    assert max(alone[1:3]) < 0.4 and min(alone[0], alone[3]) > 0.9
    near = [lens.slot.name for lens in alike.near(sorting, 0.5)]
    assert near == ["moves", "turns", "far", "square"]
