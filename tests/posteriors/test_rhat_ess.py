"""Tests that diagnostics equal those of arviz_stats for chains of many kinds and lengths."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from onebasin.posteriors import rhat_ess

from ..analysis.conftest import autoregression


def of_many_kinds(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    normal = rng.normal(size=shape)
    return np.stack(
        [
            normal,
            *(autoregression(rng, phi, shape) for phi in (0.5, 0.9, 0.99, -0.6)),
            rng.standard_t(2, size=shape),  # no variance
            np.round(normal),  # ties
            normal + np.arange(shape[0])[:, None],  # chains apart
            1e3 + 1e-8 * normal,
            np.where(normal > 2, 1.0, 0.0) + 1e-3 * normal,  # A rare second mode.
        ]
    )


@pytest.mark.parametrize(
    "shape", [(4, 50), (4, 51), (2, 1000), (1, 200), (3, 7), (4, 4), (2, 5), (4, 5000)]
)
def test_diagnostics_are_those_of_arviz(shape, rng):
    rows = of_many_kinds(rng, shape)
    found = rhat_ess.diagnostics(rows)
    with np.errstate(all="ignore"):
        bulk = array_stats.ess(rows, method="bulk")
        tail = array_stats.ess(rows, method="tail", prob=(0.05, 0.95))
        mean, sd = (array_stats.mcse(rows, method=kind) for kind in ("mean", "sd"))
    if shape[0] > 1:
        np.testing.assert_allclose(found.rhat, array_stats.rhat(rows), rtol=1e-12)
    else:
        assert np.isnan(found.rhat).all()
    np.testing.assert_allclose(found.ess_bulk, bulk, rtol=1e-9)
    np.testing.assert_allclose(found.ess_tail, tail, rtol=1e-9)
    np.testing.assert_allclose(rhat_ess.mcse_mean(rows), mean, rtol=1e-9)
    np.testing.assert_allclose(rhat_ess.mcse_sd(rows), sd, rtol=1e-9)


def test_threads_and_blocks_change_nothing(rng, monkeypatch):
    rows = rng.normal(size=(40, 4, 300))
    alone = rhat_ess.diagnostics(rows)
    monkeypatch.setattr(rhat_ess, "_BLOCK", 2400)
    monkeypatch.setattr(rhat_ess, "_THREADED", 0)
    monkeypatch.setattr(rhat_ess, "available_cores", lambda: 3)
    for one, other in zip(alone, rhat_ess.diagnostics(rows), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(0, 4, 100), (3, 4, 3)])
def test_without_quantities_or_enough_draws_there_are_no_numbers(shape):
    found = rhat_ess.diagnostics(np.ones(shape))
    for array in (*found, rhat_ess.mean_ess(np.ones(shape))):
        assert array.shape == (shape[0],)
        assert np.isnan(array).all()
