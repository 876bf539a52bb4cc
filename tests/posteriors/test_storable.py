"""Tests of gathering columns in arrays, and of names that a posterior can store."""

import numpy as np
import pytest

from onebasin.posteriors.storable import check_amount, check_values, gather, split

PLACES = {
    **{name: (name, ()) for name in ("mu", "t:1", "t:1:2", "z.1.real", "x[a]", "0.5", "[1]")},
    **{"theta.3": ("theta", (3,)), "L.2.1": ("L", (2, 1)), "theta[12]": ("theta", (12,))},
    **{"L[2,1]": ("L", (2, 1)), "t:2.4": ("t:2", (4,)), "t.3:2.4": ("t:2", (3, 4))},
}


def test_a_name_is_a_variable_and_a_place_in_it():
    assert {name: split(name) for name in PLACES} == PLACES


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


def check(values, **dims):
    check_values(values, dims=dims, argument="target")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(
            (n, f"a variable named {n!r}, which is the name of an axis in every")
            for n in ("draw", "chain")
        ),
        *((n, "no file can store") for n in (3, "a/b", "", ".", "..", "a\0", "\udc80")),
        ("a_dim_0", "a variable a_dim_0, and an axis of a has the same name"),
    ],
)
def test_names_that_a_posterior_has_no_place_for(name, words):
    with pytest.raises(ValueError, match=words):
        check({"a": np.zeros(2), name: 0.0})


@pytest.mark.parametrize("value", [(1.0, 2.0), [1.0], {"a": 1.0}, None, "text", object()])
def test_values_that_are_no_array(value):
    with pytest.raises(TypeError, match=r"variable pair of `.*` must be one array.* its own name"):
        check({"pair": value})


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ({"a": ("draw", "k")}, "other than chain or draw"),
        ({"a": ("k", "k")}, "Give each axis of a variable a different name"),
        ({"a": ("k", "b")}, "which is also the name of a variable"),
        ({"a": ("k",)}, r"1 name\(s\) for the axes of a, whose shape is \(2, 3\)"),
        (
            {"a": ("k", "l"), "b": ("l",)},
            "axes of a and b the same name, l, but their sizes are 3 and 2",
        ),
        ({"absent": ("k",)}, "`dims` names axes of absent"),
    ],
)
def test_names_of_axes_that_do_not_fit(dims, words):
    with pytest.raises(ValueError, match=words):
        check({"a": np.zeros((2, 3)), "b": np.zeros(2)}, **dims)


def test_all_else_is_taken():
    names = ("lp", "posterior", "_x", "a.b", "x y", "é", "theta_dim_9", "...a")
    check({name: np.zeros((2, 3), np.float32) for name in names} | {"n": 3, "flag": np.bool_(True)})
    check({"a": np.zeros((2, 3)), "b": np.zeros(3)}, a=("k", "l"), b=("l",))


def test_more_draws_than_memory_are_refused():
    with pytest.raises(
        ValueError, match=r"4 chain\(s\) of 10{12} draws need at least 233 TiB of memory, but"
    ):
        check_amount(4, 10**12)
    check_amount(100, 10_000)
