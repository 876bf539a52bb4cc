"""Arguments that do not fit a function: the error names the function's own arguments, and what to type."""

import pytest

from onebasin.base.arguments import checks_arguments
from onebasin.base.errors import ArgumentTypeError


@checks_arguments
def scale(values: list[float], *, by: float, digits: int = 3) -> list[float]:
    return [round(by * value, digits) for value in values]


@pytest.mark.parametrize(
    ("given", "named", "sentence"),
    [
        (([1.0],), {"byy": 2.0}, "`byy` is no argument of scale; it takes values, by, digits. Did you mean `by`?"),
        (([1.0],), {}, "scale needs `by`: give it, as `by=...`."),
        ((), {"by": 2.0}, "scale needs `values`: give it, as `values=...`."),
        (([1.0], 2.0), {}, "scale takes values without names; name the others, as `by=...`."),
        (([1.0],), {"values": [1.0], "by": 2.0}, "multiple values for argument 'values'."),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_named(given, named, sentence):
    with pytest.raises(ArgumentTypeError) as error:
        scale(*given, **named)
    assert str(error.value).endswith(sentence)


def test_arguments_that_fit_are_passed_on():
    assert scale([1.0], by=2.0) == [2.0]
