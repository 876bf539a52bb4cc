"""How numbers are written."""

import numpy as np
import pytest

from onebasin.base.table import format_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (1.234567, "1.23"),
        (-1.234567, "−1.23"),
        (0.0123456, "0.0123"),
        (9.996, "10.0"),
        (123.456, "123"),
        (12_345.6, "12\u202f346"),
        (1_234_567.0, "1.23·10⁶"),
        (0.0000123, "1.23·10⁻⁵"),
        (7, "7"),
        (1_234_567, "1\u202f234\u202f567"),
        (np.int64(-4000), "−4\u202f000"),
        (float("nan"), "–"),
        (None, "–"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
    ],
)
def test_format_number_writes_three_digits(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(1.0004, 3, "1.000"), (399.6, 0, "400"), (0.0, 2, "0.00"), (2e6, 0, "2.00·10⁶")],
)
def test_format_number_writes_fixed_decimals(value, decimals, text):
    assert format_number(value, decimals=decimals) == text
