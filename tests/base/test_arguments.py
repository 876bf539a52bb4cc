"""Arguments that do not fit a function: the error names the function's own arguments."""

import pytest

import onebasin as ob
from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentTypeError


@checks_arguments
def scale(values: list[float], *, by: float, digits: int = 3) -> list[float]:
    return [round(by * value, digits) for value in values]


@pytest.mark.parametrize(
    ("given", "named", "name"),
    [
        (([1.0],), {"byy": 2.0}, "byy"),
        (([1.0],), {}, "by"),
        (([1.0], 2.0), {}, "all but values"),
        (([1.0],), {"values": [1.0], "by": 2.0}, "values"),
    ],
)
def test_arguments_that_do_not_fit_are_named(given, named, name):
    with pytest.raises(ArgumentTypeError, match=name):
        scale(*given, **named)


def test_every_public_error_is_caught_by_one_name():
    found = [getattr(ob.errors, name) for name in ob.errors.__all__]
    assert found
    assert all(issubclass(error, ob.OnebasinError) for error in found)
