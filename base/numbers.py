"""Numbers as a reader wants them: few digits, grouped thousands, a real minus sign."""

import math
from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np

Number = int | float | np.integer | np.floating
EMPTY = "–"
MOST = 12
"""Decimals at most, however close a number lies to its limit."""
_GROUP = "\u202f"  # narrow no-break space
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(value: Number | None, *, digits: int = 3, decimals: int | None = None) -> str:
    """Write a number to some significant digits, or to `decimals`; a dash for None and NaN.

    Whole numbers of an integer type are never rounded.
    """
    if isinstance(value, Integral):
        return _grouped(f"{int(value):,d}")
    value = math.nan if value is None else float(value)
    if math.isnan(value):
        return EMPTY
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if decimals is not None and abs(value) < 1e6:
        return _grouped(f"{value:,.{decimals}f}")
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.{max(digits - 1, 0)}e}".split("e")
        return _grouped(f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPT)}")
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - (math.floor(math.log10(abs(rounded))) if rounded else 0))
    return _grouped(f"{rounded if places else value:,.{places}f}")


def decimals_beside(value: float, limits: Iterable[float], decimals: int) -> int:
    """Return how many decimals tell a number from each limit that it does not equal, `decimals` at least.

    So an R-hat of 1.0102 is never written as 1.010 where it is warned of above 1.01.
    """
    apart = [limit for limit in limits if value != limit]
    while decimals < MOST and any(
        f"{value:.{decimals}f}" == f"{limit:.{decimals}f}" for limit in apart
    ):
        decimals += 1
    return decimals


def is_number(value: object) -> bool:
    """Tell whether a cell's value is to be written as a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _grouped(text: str) -> str:
    return text.replace(",", _GROUP).replace("-", "−")
