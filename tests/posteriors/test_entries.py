"""Names of columns and the arrays that they are entries of."""

import numpy as np
import pytest

from onebasin.posteriors.storable import entry_names, gather, split


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mu", ("mu", ())),
        ("theta.3", ("theta", (3,))),
        ("L.2.1", ("L", (2, 1))),
        ("theta[12]", ("theta", (12,))),
        ("L[2,1]", ("L", (2, 1))),
        ("t:1", ("t:1", ())),
        ("t:2.4", ("t:2", (4,))),
        ("t.3:2.4", ("t:2", (3, 4))),
        ("t:1:2", ("t:1:2", ())),
        ("z.1.real", ("z.1.real", ())),
        ("x[a]", ("x[a]", ())),
        ("0.5", ("0.5", ())),
        ("[1]", ("[1]", ())),
    ],
)
def test_a_name_is_a_variable_and_a_place_in_it(name, found):
    assert split(name) == found


def test_columns_in_stans_order_become_arrays_in_ours():
    found = gather(["mu", "L.1.1", "L.2.1", "L.1.2", "L.2.2", "L.1.3", "L.2.3"])
    assert list(found) == ["mu", "L"]
    table = np.arange(14.0).reshape(2, 7)
    np.testing.assert_array_equal(found["L"].take(table)[0], [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_array_equal(found["mu"].take(table), [0, 7])


def test_an_array_of_tuples_is_an_array_for_each_part():
    found = gather(["t.1:1", "t.1:2.1", "t.2:1", "t.2:2.1"])
    assert {name: entries.shape for name, entries in found.items()} == {"t:1": (2,), "t:2": (2, 1)}


def test_places_that_leave_gaps_stay_scalars():
    found = gather(["a[2]", "b[1]", "b[3]", "c.1", "c", "d.0", "d.1"])
    assert set(found) == {"a[2]", "b[1]", "b[3]", "c.1", "c", "d.0", "d.1"}
    assert all(entries.shape == () for entries in found.values())


def test_names_that_are_written_are_read():
    names = [*entry_names("L", (2, 3)), *entry_names("mu", ())]
    found = gather(names)
    assert found["L"].shape == (2, 3)
    assert found["L"].columns.tolist() == list(range(6))
    assert found["mu"].shape == ()
