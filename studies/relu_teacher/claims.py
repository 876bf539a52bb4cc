"""The paper's statements, each an effect over data sets: in every engine, pair of parametrisations and level of noise.

With fewer data sets than a Wilcoxon test needs, as in the default run, every statement is unclear.
"""

import math
from collections.abc import Callable

from .. import lab
from ..lab import Measure, Scale, Side, Test, changes, exceeds
from ..shared.heldout import MAX_RHAT
from ..shared.papers import effect_claim, from_to, posterior_name

PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
ALIKE = ("method", "engine", "noise_sd")
SHIFT = 0.25
"""Root mean square shift, in posterior sds, above which a predictive mean is called biased."""

_FEWER = "In practice, we found the number of effective samples [...] to be lower in the constrained case."
_EASIER = (
    "Using unit vectors via the Givens Transform results in a much more well-behaved posterior that is easier to "
    "sample from [...]."
)
_ACCURATE = (
    "This amounts to more accurate estimates and posterior predictive uncertainties of new data."
)


def void(frames: lab.Frames, row: lab.Row) -> bool:
    """Tell whether NUTS is no truth: its chains disagree on f for a row's problem and engine, or it did not run."""
    alike = {name: row[name] for name in ("data", "problem", "engine") if name in row}
    nuts = frames["cells"].find(**alike, method="nuts")
    return nuts is None or nuts["prediction_rhat"] is None or nuts["prediction_rhat"] > MAX_RHAT


def advi(**wanted: str) -> Callable[[lab.Frames], lab.Frame]:
    """Select cells that are compared with NUTS."""
    return lambda frames: frames["cells"].known("from_nuts_in_sds").where(**wanted)


def _constrained(over: lab.Rows, measure: Measure, side: Side, scale: Scale = "ratio") -> Test:
    """Compare cells without and with the constraint, data set by data set."""
    return changes(
        over, measure, "problem", PAIRS, side,
        scale=scale, by="dataset", same=ALIKE, void=void,
        where=lambda a, b: f"{from_to(a, b)}, noise {a['noise_sd']:g}",
    )  # fmt: skip


def _gains(measure: Measure, scale: Scale) -> Test:
    """Compare a distance of ADVI from NUTS without and with the constraint, family by family."""
    families = ("meanfield", "fullrank")
    return lab.join(*(_constrained(advi(method=m), measure, "below", scale) for m in families))


_NUTS = lab.select("cells", method="nuts")
CLAIMS = (
    effect_claim(
        "fewer effective samples, parameters",
        _FEWER,
        "smallest bulk ESS of a parameter, constrained over free, has its interval below 1",
        _constrained(_NUTS, "ess_bulk_value", "below"),
    ),
    effect_claim(
        "fewer effective samples, predictions",
        _FEWER,
        "median bulk ESS of f over the held-out points, constrained over free, has its interval below 1",
        _constrained(_NUTS, "prediction_ess", "below"),
    ),
    effect_claim(
        "lower tree depth",
        "In practice, we found the [...] average NUTS tree depth to be lower in the constrained case.",
        "the mean depth, constrained less free, has its interval below 0",
        _constrained(_NUTS, "mean_tree_depth", "below", "difference"),
    ),
    effect_claim(
        "easier to sample, by gradients",
        _EASIER,
        "median bulk ESS of f per gradient, constrained over free, has its interval above 1",
        _constrained(_NUTS, "ess_per_1000_gradients", "above"),
    ),
    effect_claim(
        "easier to sample, by time",
        _EASIER,
        "median bulk ESS of f per second of sampling, constrained over free, has its interval above 1",
        _constrained(_NUTS, "prediction_ess_per_second", "above"),
    ),
    effect_claim(
        "ADVI of free weights is biased",
        "This posterior is [...] difficult for VI to approximate, which results in biased posterior predictive "
        "distributions of new samples.",
        f"the distance of its predictive mean from NUTS's (root mean square over the held-out points) has its interval "
        f"above {SHIFT:g} posterior sds",
        exceeds(
            advi(problem="free"), "from_nuts_in_sds", SHIFT,
            same=ALIKE, where=lambda row: f"{posterior_name(row)}, noise {row['noise_sd']:g}", void=void,
        ),
    ),
    effect_claim(
        "ADVI gains by the constraint, estimates",
        _ACCURATE,
        "distance of its predictive mean from NUTS's in posterior sds, constrained over free, has its interval below 1",
        _gains("from_nuts_in_sds", "ratio"),
    ),
    effect_claim(
        "ADVI gains by the constraint, uncertainties",
        _ACCURATE,
        "absolute log ratio of its sd of f to NUTS's, constrained less free, has its interval below 0",
        _gains(lambda row: abs(math.log(row["from_nuts_sd_ratio"])), "difference"),
    ),
)  # fmt: skip
