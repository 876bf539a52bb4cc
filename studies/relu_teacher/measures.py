"""Tables over data sets: a row is what all of them have in common, its numbers are means or extremes over them."""

from collections.abc import Callable, Iterable, Sequence

from .. import lab
from ..lab import Field, Frames, Row, Rows, View, at_most
from ..lab.averages import averages
from ..shared.against_nuts import BOUND, advi
from ..shared.heldout import mixing


def several(frames: Frames) -> bool:
    """Tell whether there are several data sets."""
    cells = frames["cells"]
    return any(row.get("data") for row in cells)


def over_data(
    rows: Rows, factors: Sequence[str], mean: Sequence[str] = (), largest: Sequence[str] = ()
) -> Callable[[Frames], Iterable[Row]]:
    """Average columns over data sets, and take the largest of others; none where there is one data set."""
    averaged = averages(rows, factors, mean, largest)
    return lambda frames: averaged(frames) if several(frames) else ()


def _name(row: Row) -> str:
    method = lab.METHOD_WORDS[row["method"]]
    return f"{row['problem']}, {method}, {lab.ENGINE_WORDS[row['engine']]}"


_COMMON = ("problem", "method", "engine", "noise_sd")
_SIZE = (
    Field("posterior", _name),
    Field("noise", "noise_sd"),
    Field("data sets", "datasets"),
)
MIXING = mixing(
    ("problem", "engine", "noise_sd"),
    "NUTS: how far the chains have got, over all data sets (parametrisation, engine, noise)",
)
AGREEMENT = View(
    "NUTS in Stan against NUTS in NumPyro over all data sets: the largest difference of any predictive mean",
    (
        Field("parametrisation", "problem"),
        Field("data sets", "datasets"),
        Field("largest difference", "max_largest", decimals=2, unit="MCSE"),
        Field("beyond", "max_beyond", unit=f"{BOUND:g} MCSE, worst data set", flag=at_most(0)),
        Field("R-hat", "max_rhat", decimals=3, unit="largest"),
    ),
    over=over_data(lab.select("engines"), ("problem",), largest=("largest", "beyond", "rhat")),
)
FROM_NUTS = View(
    "ADVI against NUTS with the same parametrisation, means over data sets",
    (
        *_SIZE,
        Field("shift of the mean", "from_nuts_in_sds", decimals=2, unit="posterior sds, rms"),
        Field("by chance", "from_nuts_floor_in_sds", decimals=2, unit="posterior sds, rms"),
        Field("sd of f", "from_nuts_sd_ratio", decimals=2, unit="ratio to NUTS"),
        Field("k-hat", "khat", decimals=2),
    ),
    over=over_data(
        advi(),
        _COMMON,
        mean=("from_nuts_in_sds", "from_nuts_floor_in_sds", "from_nuts_sd_ratio", "khat"),
    ),
)
SCORES = View(
    "Predictions at the held-out points, means over data sets",
    (
        *_SIZE,
        Field("RMSE", "rmse", unit="of the data"),
        Field("log score", "log_score", decimals=3, unit="nats"),
        Field("coverage", "coverage_50", decimals=3, unit="50 % interval"),
        Field("coverage", "coverage_95", decimals=3, unit="95 % interval"),
        Field("error", "error", decimals=3, unit="rms, true function"),
    ),
    over=over_data(
        lab.select("cells"),
        _COMMON,
        mean=("rmse", "log_score", "coverage_50", "coverage_95", "error"),
    ),
)
OVER_DATA_SETS = (MIXING, AGREEMENT, FROM_NUTS, SCORES)
