"""Factors that rotate: varimax of every draw, then the best of all orders and signs; refused where it is not clear."""

from itertools import islice, product

import numpy as np
import pytest

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.features import UnclearRotation
from onebasin.models.symmetry.blocks import Exchangeable, Group, Rotation

from ..conftest import dataset

LEAD = (2, 60)
BLOCK = Rotation({"load": 1, "scores": 1})


def factors(rng, size, *, noise=0.15, rows=6, lead=LEAD):
    """Draws of loadings of simple structure, with scores that give all fitted values, in the rotation of simulation."""
    simple = (np.arange(rows * size)[:, None] % size == np.arange(size)) * rng.uniform(
        0.5, 1, (rows * size, 1)
    )
    load = simple + noise * rng.normal(size=(*lead, rows * size, size))
    return {"load": load, "scores": rng.normal(size=(*lead, 9, size))}


def rotated(values, rng):
    group = Group((BLOCK,), {name: v.shape[2:] for name, v in values.items()})
    return group.act(group.random(rng, LEAD), values)


def aligned(values, **options):
    found = align(dataset(values), (BLOCK,), threads=1, **options)
    return found, {name: found.posterior["posterior"][name].values for name in values}


@pytest.mark.parametrize("size", [3, 5])
def test_no_order_with_signs_is_closer_to_the_reference(size, rng):
    """Exhaustive search of all 2^k k! elements, 3,840 of five factors."""
    found, moved = aligned(rotated(factors(rng, size), rng), reference="mean")
    mean, scales = found.reference, found.rule.scales
    few = {name: values[0, ::20] for name, values in moved.items()}
    part = Exchangeable(BLOCK.axes, flips=True)
    best = np.full(3, np.inf)
    elements = iter(part.elements(size))
    while some := list(islice(elements, 5000)):
        order, signs = (np.stack(each) for each in zip(*some, strict=True))
        for draw in range(3):
            shape = (len(some),)
            wide = {n: np.broadcast_to(v[draw], shape + v[draw].shape) for n, v in few.items()}
            tried = part.act(wide, order, signs)
            distance = sum(np.square((tried[n] - mean[n]) / scales[n]).sum((1, 2)) for n in few)
            best[draw] = min(best[draw], distance.min())
    np.testing.assert_allclose(found.distance_after[0, ::20], best, rtol=1e-9)


def test_what_no_rotation_changes_stays_and_loadings_become_those_simulated(rng):
    values = factors(rng, 3)
    found, moved = aligned(rotated(values, rng))
    for first, second in (("load", "load"), ("scores", "load")):
        one, other = (v[first] @ np.swapaxes(v[second], 2, 3) for v in (moved, values))
        np.testing.assert_allclose(one, other, atol=1e-12)
    mean, simulated = moved["load"].mean(axis=(0, 1)), values["load"].mean(axis=(0, 1))
    cosines = np.abs(mean.T @ simulated) / np.linalg.norm(mean, axis=0)[:, None]
    found_lengths, lengths = sorted(cosines.max(axis=1)), sorted(np.linalg.norm(simulated, axis=0))
    np.testing.assert_allclose(found_lengths, lengths, rtol=1e-3)
    # Varimax is of one draw: unlike Procrustes, it keeps what the draws do not know of the rotation.
    turning = values["load"] - values["load"].mean(axis=(0, 1))
    assert moved["load"].std(axis=(0, 1)).mean() > 0.95 * turning.std(axis=(0, 1)).mean()
    assert found.converged
    assert found.relabelled.all()
    assert "varimax optimum of load" in found.text


@pytest.mark.parametrize("size", [2, 3])
def test_nearly_spherical_loadings_are_refused(size, rng):
    """The rows are the points of a polygon of 12, or of an icosahedron: varimax is the same for every rotation."""
    angle, golden = np.arange(12) * np.pi / 6, (1 + 5**0.5) / 2
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if size == 3:
        plane = np.array([(0, a, b * golden) for a, b in product((-1, 1), repeat=2)])
        points = np.concatenate([np.roll(plane, turn, axis=1) for turn in range(3)])
    load = points + 0.1 * rng.normal(size=(*LEAD, 12, size))
    values = rotated({"load": load, "scores": rng.normal(size=(*LEAD, 9, size))}, rng)
    with pytest.raises(UnclearRotation, match="Varimax has no clear optimum"):
        aligned(values)
