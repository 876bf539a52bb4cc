"""Symmetries of 26 architectures: what was read is what a person wrote down, and true of the values."""

from pathlib import Path

import jax
import numpy as np
import pytest

pytest.importorskip("flax")
from onebasin.base.precision import precision
from onebasin.models.reading.read import read

from .architectures import ARCHITECTURES, told
from .programs import permuted, signed

RIGHT = dict(
    part.split("\n", 1)
    for part in (Path(__file__).parent / "architectures.txt").read_text().strip().split("\n\n")
)


@pytest.fixture
def double():
    with precision("float64"):
        yield


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_symmetries_of_an_architecture_are_read(name, double):
    made = ARCHITECTURES[name]()
    found = read(made.function, made.shapes)
    assert found.unknown == ()
    assert told(found, made.shapes) == RIGHT[name]
    rng = np.random.default_rng(0)
    values = {n: rng.normal(size=shape) for n, shape in made.shapes.items()}
    total = jax.jit(lambda v: sum(made.function(v).values()))
    here = float(total(values))
    for each in found.classes:
        moved = permuted(values, each.places, rng.permutation(each.size))
        for own in each.signs:
            moved = signed(moved, own, rng.choice([-1.0, 1.0], size=each.size))
        assert float(total(moved)) == pytest.approx(here, rel=1e-10)
    for own in found.flips:
        values = {n: -v if n in own else v for n, v in values.items()}
        assert float(total(values)) == pytest.approx(here, rel=1e-10)
