"""Classifiers of growing width: comparisons."""

import math
from dataclasses import replace

import numpy as np
import pytest

from onebasin.studies.lab import frame_of
from onebasin.studies.lab.study import Options
from onebasin.studies.permutation_invariant_vi import design
from onebasin.studies.permutation_invariant_vi.design import configure
from onebasin.studies.permutation_invariant_vi.tables import TABLES

METHODS = design.methods(replace(configure(Options()), infonce=(2, 10)), 8)


def fits_of(width, name, *, symmetrised, accuracy=0.9):
    method = next(m for m in METHODS if m.name == name)
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05])
    ramp = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # seeds differ by more than methods do
    values = symmetrised + ramp + (noise if name != "mfvi" else 0.0)
    return dict(
        width=width, method=name, label=method.label, kind=method.kind, permutations=method.permutations,
        chosen="none", log_order=math.lgamma(width + 1), seconds=1.0,
        elbo=values - 1.0, elbo_mcse=np.full(5, 0.1), lower=np.full(5, 1.0), upper=np.full(5, 1.1),
        lower_mcse=np.full(5, 0.01), symmetrised=values, symmetrised_upper=values + 0.1,
        accuracy=accuracy + 0.01 * ramp + 1e-4 * noise, log_score=np.full(5, -0.2),
        draw_accuracy=np.full(5, 0.8),
    )  # fmt: skip


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
    assert ours["high"] - ours["low"] < 0.25  # unpaired, it would be about 5
    best = found["InfoNCE at its best K to recommended, width 8", "symmetrised ELBO, nats"]
    assert best["here"] == pytest.approx(0.5)  # by K = 2 it would be 1.5
