"""The paper's statements, and how they are tried: in every engine, pair of parametrisations, family of ADVI."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..lab import (
    ENGINE_WORDS,
    METHOD_WORDS,
    Claim,
    Frame,
    Frames,
    Row,
    Rows,
    contrast,
    each,
    join,
    ratio,
    select,
)
from ..lab.claims import Finding, Test

PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
MARGIN = 0.8
"""A ratio counts as lower below this, and as higher above its inverse."""
DEPTH_MARGIN = 0.1
"""Levels by which a mean tree depth must be lower, besides two standard errors."""
MAX_RHAT = 1.05
"""Where the R-hat of f is above this, NUTS itself is not the truth, and a comparison is void."""
SHIFT = 0.25
"""Root mean square shift, in posterior sds, above which a predictive mean is called biased."""

_FEWER = (
    "In practice, we found the number of effective samples [...] to be lower in the constrained "
    "case."
)
_SHALLOWER = (
    "In practice, we found the [...] average NUTS tree depth to be lower in the constrained case."
)
_EASIER = (
    "Using unit vectors via the Givens Transform results in a much more well-behaved posterior "
    "that is easier to sample from [...]."
)
_BIASED = (
    "This posterior is [...] difficult for VI to approximate, which results in biased posterior "
    "predictive distributions of new samples."
)
_ACCURATE = (
    "This amounts to more accurate estimates and posterior predictive uncertainties of new data."
)
_NUTS = select("cells", method="nuts")
_LOW, _HIGH = f"{MARGIN:g}", f"{1 / MARGIN:g}"
_LOWER = f"constrained over free is below {_LOW}"


def void(frames: Frames, row: Row) -> bool:
    """Tell whether the chains of NUTS disagree on f with a row's parametrisation and engine."""
    nuts = frames["cells"].find(problem=row["problem"], engine=row["engine"], method="nuts")
    return nuts is None or nuts["prediction_rhat"] is None or nuts["prediction_rhat"] > MAX_RHAT


def _constrained(over: Rows, tried: Callable[[Row, Row], Finding]) -> Test:
    """Compare cells without and with the constraint."""
    return contrast(
        over,
        "problem",
        PAIRS,
        tried,
        same=("method", "engine"),
        where=lambda a, b: (
            f"{a['problem']} to {b['problem']}, {METHOD_WORDS[a['method']]}, {ENGINE_WORDS[a['engine']]}"
        ),
        void=void,
    )


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


def _estimates(row: Row) -> float:
    return row["from_nuts_in_sds"]


def _uncertainties(row: Row) -> float:
    return abs(math.log(row["from_nuts_sd_ratio"]))


def _advi(**wanted: str) -> Callable[[Frames], Frame]:
    """Select variational cells that are held against NUTS."""
    return lambda frames: frames["cells"].known("from_nuts_in_sds").where(**wanted)


def _gains(number: Callable[[Row], float]) -> Test:
    """Compare a distance of ADVI from NUTS without and with the constraint, family by family."""

    def tried(free: Row, constrained: Row) -> Finding:
        a, b = number(free), number(constrained)
        return f"{a:.2f} to {b:.2f}", b < MARGIN * a

    return join(*(_constrained(_advi(method=m), tried) for m in ("meanfield", "fullrank")))


CLAIMS = (
    Claim(
        "fewer effective samples, parameters",
        _FEWER,
        f"smallest bulk ESS of a parameter, {_LOWER}",
        _constrained(_NUTS, ratio("ess_bulk_value", below=MARGIN)),
    ),
    Claim(
        "fewer effective samples, predictions",
        _FEWER,
        f"median bulk ESS of f over the held-out points, {_LOWER}",
        _constrained(_NUTS, ratio("prediction_ess", below=MARGIN)),
    ),
    Claim(
        "lower tree depth",
        _SHALLOWER,
        f"the mean depth is lower by more than {DEPTH_MARGIN:g} and by more than two standard "
        "errors (from the chains' means)",
        _constrained(_NUTS, _shallower),
    ),
    Claim(
        "easier to sample",
        _EASIER,
        f"median bulk ESS of f per 1000 gradients, constrained over free is above {_HIGH}",
        _constrained(_NUTS, ratio("ess_per_1000_gradients", above=1 / MARGIN)),
    ),
    Claim(
        "ADVI of free weights is biased",
        _BIASED,
        f"its predictive mean is off NUTS's by more than {SHIFT:g} posterior sds (root mean "
        f"square over the held-out points), or its sd of f is outside {_LOW} to {_HIGH} times "
        "NUTS's",
        each(_advi(problem="free"), _biased, void=void),
    ),
    Claim(
        "ADVI gains by the constraint, estimates",
        _ACCURATE,
        f"distance of its predictive mean from NUTS's in posterior sds, {_LOWER}",
        _gains(_estimates),
    ),
    Claim(
        "ADVI gains by the constraint, uncertainties",
        _ACCURATE,
        f"absolute log ratio of its sd of f to NUTS's, {_LOWER}",
        _gains(_uncertainties),
    ),
)
