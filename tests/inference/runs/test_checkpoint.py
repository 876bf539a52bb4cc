"""Checkpoints: arrays come back for the run that wrote them, and for no other."""

import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.inference.runs import checkpoint


def test_arrays_come_back_for_their_run_alone(tmp_path):
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


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("spoil", [flip, lambda content: b"", lambda content: content[:-60]])
def test_damaged_file_is_not_taken_and_said_in_a_line(spoil, tmp_path, caplog):
    path = tmp_path / "state.npz"
    arrays = {"draws/a": np.arange(300.0)}
    checkpoint.write(path, "this run", arrays)
    path.write_bytes(spoil(path.read_bytes()))
    assert checkpoint.read(path, "this run") is None
    assert caplog.text.count(str(path)) == 1
    checkpoint.write(path, "this run", arrays)
    assert checkpoint.read(path, "this run") is not None
    assert len(caplog.messages) == 1


def test_training_goes_on_from_a_whole_state_and_starts_again_from_a_damaged_one(tmp_path, caplog):
    start = ({"w": jnp.zeros(4)}, [])

    def keeper() -> checkpoint.Keeper:
        return checkpoint.keeper_in(str(tmp_path), lambda: "this run")

    first = keeper()
    first.save(({"w": jnp.ones(4)}, [np.ones(2)]))
    assert not first.path.exists()  # it is written now and then, not every time
    first.seconds = 0.0
    first.save(({"w": jnp.arange(4.0)}, [np.ones(2)]))
    np.testing.assert_array_equal(keeper().load(start)[0]["w"], np.arange(4.0))
    path = tmp_path / "state.npz"
    path.write_bytes(flip(path.read_bytes()))
    assert keeper().load(start) is start
    assert len(caplog.messages) == 1
    assert checkpoint.keeper_in(tmp_path, lambda: None).path is None
