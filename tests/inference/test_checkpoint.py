"""Checkpoints: arrays come back for the run that wrote them, and for no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onebasin.inference import checkpoint


def test_arrays_come_back_for_their_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "state.npz"
    assert checkpoint.read(path, "this run") is None
    arrays = {"draws/a b": np.arange(3.0), "stats/diverging": np.array([True, False])}
    checkpoint.write(path, "this run", arrays)
    found = checkpoint.read(path, "this run")
    assert found is not None
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype
    assert checkpoint.read(path, "another run") is None
    assert [p.name for p in path.parent.iterdir()] == ["state.npz"]
