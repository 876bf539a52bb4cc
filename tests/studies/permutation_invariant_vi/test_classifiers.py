"""Tests of classifiers of growing width: comparisons, nearest permuted copies and bounds, distances from HMC."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import xarray as xr

from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.studies.lab.study import frame_of
from onebasin.studies.options import Options
from onebasin.studies.permutation_invariant_vi import design
from onebasin.studies.permutation_invariant_vi.classifiers import moments, nearest
from onebasin.studies.permutation_invariant_vi.design import configure
from onebasin.studies.permutation_invariant_vi.tables import TABLES

METHODS = design.methods(replace(configure(Options()), infonce=(2, 10)), 8)


def fits_of(width, name, *, symmetrised, accuracy=0.9):
    method = next(m for m in METHODS if m.name == name)
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05])
    ramp = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # Seeds differ more than methods.
    values = symmetrised + ramp + (noise if name != "mfvi" else 0.0)
    return {
        "width": width,
        "method": name,
        "label": method.label,
        "kind": method.kind,
        "log_order": math.lgamma(width + 1),
        "lower": np.full(5, 1.0),
        "symmetrised": values,
        "accuracy": accuracy + 0.01 * ramp + 1e-4 * noise,
        "log_score": np.full(5, -0.2),
    }


def width_results(gains, infonce=0.0, accuracy=0.9):
    rows = []
    for width, more in gains.items():
        rows += [
            fits_of(width, "mfvi", symmetrised=-100.0),
            fits_of(width, "infonce-2", symmetrised=-101.0 + infonce),
            fits_of(width, "infonce-10", symmetrised=-100.0 + infonce),
            fits_of(width, "recommended", symmetrised=-100.0 + more, accuracy=accuracy),
        ]
    return {"fits": frame_of(rows)}


def test_comparisons_are_paired_and_infonce_is_at_its_best_k():
    frames = width_results({8: 0.5, 16: 3.0})
    rows = [row for table in TABLES for row in table.rows(frames)]
    found = {(row["of"], row["measure"]): row for row in rows}
    ours = found["mfvi to recommended, width 8", "symmetrised ELBO, nats"]
    assert ours["here"] == pytest.approx(0.5)
    assert ours["high"] - ours["low"] < 0.25  # Unpaired, it would be about 5.
    best = found["InfoNCE at its best K to recommended, width 8", "symmetrised ELBO, nats"]
    assert best["here"] == pytest.approx(0.5)  # With K = 2, it would be 1.5.


BLOCK = Exchangeable({"W1": 1, "b1": 0, "W2": 0})
MODEL = BayesianNetwork(Network(3, (4,), 2, "relu"), Categorical())


def random_values(rng, model, count, sd=1.0):
    return {n: sd * rng.standard_normal((count, *s)) for n, s in model.network.shapes.items()}


def test_the_nearest_copy_is_one_transposition_away(rng):
    values = random_values(rng, MODEL, 20)
    found = nearest(values, BLOCK)["distance"]
    for network in range(20):
        one = {name: value[network] for name, value in values.items()}
        norm = np.sqrt(sum((v**2).sum() for v in one.values()))
        distances = {}
        for order in permutations(range(4)):
            moved = {
                "W1": one["W1"][:, order],
                "b1": one["b1"][list(order)],
                "W2": one["W2"][list(order)],
            }
            squares = sum(((moved[name] - one[name]) ** 2).sum() for name in moved)
            distances[order] = np.sqrt(squares) / norm
        del distances[tuple(range(4))]
        assert found[network] == pytest.approx(min(distances.values()), rel=1e-12)
        best = min(distances, key=distances.get)
        assert sum(place != unit for place, unit in enumerate(best)) == 2


def test_the_separation_is_that_of_two_modes_in_their_own_standard_deviations(rng):
    """The separation of N(-a, S) and N(a, S) is sqrt(a' S^-1 a), computed here from the whole vectors."""
    values, sd = random_values(rng, MODEL, 1), random_values(rng, MODEL, 1)
    sd = {name: np.exp(0.3 * value) for name, value in sd.items()}
    flat = {n: v[0] for n, v in values.items()}
    least = np.inf
    for i in range(4):
        for j in range(i):
            order = np.arange(4)
            order[[i, j]] = j, i
            total = 0.0
            for name, axis in BLOCK.axes.items():
                half = (flat[name] - np.take(flat[name], order, axis)) / 2
                variance = (sd[name][0] ** 2 + np.take(sd[name][0], order, axis) ** 2) / 2
                total += (half**2 / variance).sum()
            least = min(least, math.sqrt(total))
    found = nearest(values, BLOCK, sd=sd)
    assert found["separation"][0] == pytest.approx(least, rel=1e-12)


def test_moments_of_q_are_laid_out_by_variable(rng):
    shapes = MODEL.network.shapes
    size = sum(int(np.prod(s)) for s in shapes.values())
    loc = np.arange(2 * size, dtype=float).reshape(2, size)
    variational = xr.Dataset({"loc": (("chain", "param"), loc), "scale": (("chain", "param"), loc)})
    found = moments(MODEL, xr.DataTree.from_dict({"variational": variational}))["centre"]
    assert found["W1"].values[0].ravel().tolist() == list(range(12))
    assert found["W2"].values[0].ravel().tolist() == list(range(12, 20))
    assert found["b1"].values[1].tolist() == [size + 20.0, size + 21, size + 22, size + 23]
