"""The paper's statements, tried in every engine, pair of parametrisations and family of ADVI."""

import math
from collections.abc import Callable

from .. import lab
from ..against_nuts import SHIFT, advi, void
from ..lab import Claim, Finding, Row, Test

PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
MARGIN = 0.8
"""A ratio counts as lower below this, and as higher above its inverse."""
DEPTH_MARGIN = 0.1
"""Levels by which a mean tree depth must be lower, besides two standard errors."""

_FEWER = "In practice, we found the number of effective samples [...] to be lower in the constrained case."
_ACCURATE = (
    "This amounts to more accurate estimates and posterior predictive uncertainties of new data."
)
_LOWER = f"constrained over free is below {MARGIN:g}"


def _where(a: Row, b: Row) -> str:
    return f"{a['problem']} to {b['problem']}, {lab.METHOD_WORDS[a['method']]}, {lab.ENGINE_WORDS[a['engine']]}"


def _constrained(over: lab.Rows, tried: Callable[[Row, Row], Finding]) -> Test:
    """Compare cells without and with the constraint."""
    same = ("method", "engine")
    return lab.contrast(over, "problem", PAIRS, tried, same=same, where=_where, void=void)


def _gains(number: Callable[[Row], float]) -> Test:
    """Compare a distance of ADVI from NUTS without and with the constraint, family by family."""

    def tried(free: Row, constrained: Row) -> Finding:
        a, b = number(free), number(constrained)
        return f"{a:.2f} to {b:.2f}", b < MARGIN * a

    return lab.join(*(_constrained(advi(method=m), tried) for m in ("meanfield", "fullrank")))


def _shallower(free: Row, constrained: Row) -> Finding:
    a, b = free["mean_tree_depth"], constrained["mean_tree_depth"]
    errors = [row["depth_error"] for row in (free, constrained)]
    error = math.nan if None in errors else math.hypot(*errors)
    lower = b - a < -max(DEPTH_MARGIN, 2 * error if math.isfinite(error) else math.inf)
    return f"{a:.2f} to {b:.2f}, standard error {error:.2f}", lower


def _biased(row: Row) -> Finding:
    shift, spread = row["from_nuts_in_sds"], row["from_nuts_sd_ratio"]
    alike = MARGIN <= spread <= 1 / MARGIN
    return f"off by {shift:.2f} sds, sd ratio {spread:.2f}", shift > SHIFT or not alike


_NUTS = lab.select("cells", method="nuts")
CLAIMS = (
    Claim(
        "fewer effective samples, parameters",
        _FEWER,
        f"smallest bulk ESS of a parameter, {_LOWER}",
        _constrained(_NUTS, lab.ratio("ess_bulk_value", below=MARGIN)),
    ),
    Claim(
        "fewer effective samples, predictions",
        _FEWER,
        f"median bulk ESS of f over the held-out points, {_LOWER}",
        _constrained(_NUTS, lab.ratio("prediction_ess", below=MARGIN)),
    ),
    Claim(
        "lower tree depth",
        "In practice, we found the [...] average NUTS tree depth to be lower in the constrained case.",
        f"the mean depth is lower by more than {DEPTH_MARGIN:g} and by more than two standard errors (from the "
        "chains' means)",
        _constrained(_NUTS, _shallower),
    ),
    Claim(
        "easier to sample",
        "Using unit vectors via the Givens Transform results in a much more well-behaved posterior that is easier to "
        "sample from [...].",
        f"median bulk ESS of f per 1000 gradients, constrained over free is above {1 / MARGIN:g}",
        _constrained(_NUTS, lab.ratio("ess_per_1000_gradients", above=1 / MARGIN)),
    ),
    Claim(
        "ADVI of free weights is biased",
        "This posterior is [...] difficult for VI to approximate, which results in biased posterior predictive "
        "distributions of new samples.",
        f"its predictive mean is off NUTS's by more than {SHIFT:g} posterior sds (root mean square over the "
        f"held-out points), or its sd of f is outside {MARGIN:g} to {1 / MARGIN:g} times NUTS's",
        lab.each(advi(problem="free"), _biased, void=void),
    ),
    Claim(
        "ADVI gains by the constraint, estimates",
        _ACCURATE,
        f"distance of its predictive mean from NUTS's in posterior sds, {_LOWER}",
        _gains(lambda row: row["from_nuts_in_sds"]),
    ),
    Claim(
        "ADVI gains by the constraint, uncertainties",
        _ACCURATE,
        f"absolute log ratio of its sd of f to NUTS's, {_LOWER}",
        _gains(lambda row: abs(math.log(row["from_nuts_sd_ratio"]))),
    ),
)
