"""What no posterior can store is refused by name, and nothing else is."""

import numpy as np
import pytest

from onebasin.posteriors.storable import check_amount, check_values


def check(values, **dims):
    check_values(values, dims=dims, argument="target")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((n, f"a variable {n}, which is the name of an axis of every") for n in ("draw", "chain")),
        *((n, "no file can store") for n in (3, "a/b", "", ".", "..", "a\0", "\udc80")),
        ("a_dim_0", "a variable a_dim_0, which is the name of an axis of a"),
    ],
)
def test_names_that_a_posterior_has_no_place_for(name, words):
    with pytest.raises(ValueError, match=words):
        check({"a": np.zeros(2), name: 0.0})


@pytest.mark.parametrize("value", [(1.0, 2.0), [1.0], {"a": 1.0}, None, "text", object()])
def test_values_that_are_no_array(value):
    with pytest.raises(TypeError, match=r"a variable pair whose value is of type .* its own name"):
        check({"pair": value})


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ({"a": ("draw", "k")}, "none of chain, draw"),
        ({"a": ("k", "k")}, "must differ within a variable"),
        ({"a": ("k", "b")}, "which is the name of a variable too"),
        ({"a": ("k",)}, r"1 axis name\(s\) for a, whose shape is \(2, 3\)"),
        ({"a": ("k", "l"), "b": ("l",)}, "gives a and b the axis l, which has size 3 and 2 there"),
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
        ValueError, match=r"`draws` is 10{12}, which of 4 chain\(s\) takes at least 233 TiB, more"
    ):
        check_amount(4, 10**12)
    check_amount(100, 10_000)
