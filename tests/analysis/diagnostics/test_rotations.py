"""Declared rotations: judged by what none of them changes, aligned where varimax has a clear optimum."""

import numpy as np

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.models.symmetry.blocks import Exchangeable, Rotation

from .test_diagnose import SHAPE

BLOCK = Rotation({"load": 1, "scores": 1})
SIMPLE = (np.arange(10)[:, None] % 2 == np.arange(2)) * np.linspace(0.5, 1, 10)[:, None]


def turning(rng, loadings, **more):
    """A posterior whose chains wander among rotations; every chain has its own, from which it turns a little."""
    values = {
        "load": loadings + 0.1 * rng.normal(size=(*SHAPE, 10, 2)),
        "scores": rng.normal(size=(*SHAPE, 4, 2)),
    }
    angle = rng.uniform(0, 2 * np.pi, size=(SHAPE[0], 1)) + 0.3 * rng.normal(size=SHAPE)
    turns = np.stack([np.cos(angle), np.sin(angle), -np.sin(angle), np.cos(angle)], axis=-1)
    return {**BLOCK.act(values, turns.reshape(*SHAPE, 2, 2)), **more}


def test_aligned_loadings_may_be_used_after_what_no_rotation_changes(make_mcmc, rng):
    draws = turning(rng, SIMPLE, noise=rng.normal(size=SHAPE))
    found = diagnose(make_mcmc(draws), symmetry="@load:1,scores:1")
    assert found.verdict == "aligned", found
    assert found.judgement.sentence.startswith("`load` and `scores` rotate, but label-free")
    (cause,) = found.judgement.causes
    assert "load load'" in cause.remedy
    assert "varimax chooses their rotation, not the data" in cause.remedy
    names = set(found.aligned.invariants.index)
    assert {"load load'[0,9]", "load scores'[0,3]", "mean(load^2)[9]"} <= names
    assert found.aligned.invariants["rhat"].max() < 1.02


def test_invariants_that_disagree_come_before_aligned_loadings(make_mcmc, rng):
    """One chain has larger loadings: no rotation explains that."""
    larger = np.where(np.arange(SHAPE[0]) == 1, 1.3, 1.0)[:, None, None, None]
    found = diagnose(make_mcmc(turning(rng, larger * SIMPLE)), symmetry=(BLOCK,))
    assert found.verdict == "unusable"
    row = found.judgement.rows[1]
    assert (row.outcome, "Label-free quantities disagree" in row.sentence) == ("failed", True), row


def test_spherical_loadings_leave_what_no_rotation_changes(make_mcmc, rng):
    angle = np.arange(10) * np.pi / 5
    circle = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = diagnose(make_mcmc(turning(rng, circle)), symmetry=(BLOCK,))
    assert found.verdict == "invariant", found
    assert "Varimax has no clear optimum" in found.judgement.sentence
    (cause,) = found.judgement.causes
    assert "declare" not in cause.remedy
    assert found.exchangeable == ()


def test_a_rotation_is_told_where_other_labels_stay(make_mcmc, rng):
    draws = {
        "load": SIMPLE + 0.1 * rng.normal(size=(*SHAPE, 10, 2)),
        "scores": 1 + rng.normal(size=(*SHAPE, 4, 2)),
        "mu": np.array([-2.0, 2.0]) + 0.1 * rng.normal(size=(*SHAPE, 2)),
    }
    row = diagnose(make_mcmc(draws), symmetry=(BLOCK, Exchangeable({"mu": 0}))).judgement.rows[0]
    assert (row.name, row.outcome) == ("labels", "warned")
    assert "rotate" in row.sentence
