"""The study's tables."""

from __future__ import annotations

from collections.abc import Iterator

from ..heldout import BOUND
from ..lab import ENGINE_WORDS, Field, Frames, Row, View, at_most, select
from .claims import SHIFT
from .design import CHARTS
from .measures import SEAM

_RHAT = 1.01


def _sampled(row: Row) -> str:
    return f"{row['problem']}, {ENGINE_WORDS[row['engine']]}"


def charts(frames: Frames) -> Iterator[Row]:
    """Go through the cells of NUTS with unit-norm weights and free biases, chart by chart."""
    for chart in CHARTS:
        yield from frames["cells"].where(problem=chart, method="nuts")


_OF_F = (
    Field("R-hat of f", "prediction_rhat", decimals=3, unit="worst point", flag=at_most(_RHAT)),
    Field("bulk ESS of f", "prediction_ess", decimals=0, unit="median point"),
    Field("tree depth", "mean_tree_depth", decimals=2, unit="mean"),
    Field("ESS of f", "ess_per_1000_gradients", unit="per 1000 gradients"),
)
AGREEMENT = View(
    "NUTS in Stan against NUTS in NumPyro: means of f at the held-out points and of `sigma`, "
    "none of which notices swapped or rescaled units",
    (
        Field("parametrisation", "problem"),
        Field("compared", "num_quantities", unit="means"),
        Field(
            "largest difference",
            "largest",
            decimals=2,
            unit="MCSE",
            flag=at_most(BOUND),
            note=lambda row: f"at `{row['where']}`",
        ),
        Field("beyond", "beyond", unit=f"{BOUND:g} MCSE", flag=at_most(0)),
        Field("R-hat", "rhat", decimals=3, unit="largest", flag=at_most(_RHAT, otherwise="warn")),
    ),
    over="engines",
)
SAMPLING = View(
    "NUTS: parameters, which swapped units spoil, and predictions f, which they do not",
    (
        Field("posterior", _sampled),
        Field("R-hat", "rhat_value", decimals=3, unit="worst parameter"),
        Field("bulk ESS", "ess_bulk_value", decimals=0, unit="worst parameter"),
        *_OF_F,
    ),
    over=select("cells", method="nuts"),
)
ALONG_THE_SEAM = View(
    f"One posterior in three charts. At the seam: a unit's longitude within {SEAM:g} of ±π. "
    "Crossings: a unit lies on one side of the seam and at the next draw on the other",
    (
        Field("chart", _sampled),
        Field("at the seam", "at_seam", decimals=3, unit="share of draws"),
        Field("crossings", "crossings", decimals=1, unit="per 1000 draws"),
        *_OF_F,
    ),
    over=charts,
)
VARIATIONAL = View(
    "ADVI against NUTS with the same parametrisation, held-out points",
    (
        Field("posterior", "label"),
        Field(
            "shift of the mean",
            "from_nuts_in_sds",
            decimals=2,
            unit="posterior sds, rms",
            flag=at_most(SHIFT, otherwise="warn"),
        ),
        Field("by chance", "from_nuts_floor_in_sds", decimals=2, unit="posterior sds, rms"),
        Field("shift", "from_nuts_rms", decimals=3, unit="units of y, rms"),
        Field("sd of f", "from_nuts_sd_ratio", decimals=2, unit="ratio to NUTS"),
        Field("predictive sd", "from_nuts_predictive_sd_ratio", decimals=2, unit="ratio to NUTS"),
        Field("k-hat", "khat", decimals=2),
        Field("ELBO", "elbo", decimals=1, unit="nats, last"),
        Field("converged", "converged"),
    ),
    over=lambda frames: frames["cells"].known("from_nuts_in_sds"),
)
PREDICTION = View(
    "Predictions at the held-out points",
    (
        Field("posterior", "label"),
        Field("RMSE", "rmse", unit="of the data"),
        Field("log score", "log_score", decimals=3, unit="nats"),
        Field("coverage", "coverage_50", decimals=2, unit="50 % interval"),
        Field("coverage", "coverage_95", decimals=2, unit="95 % interval"),
        Field("width", "width_95", unit="95 % interval"),
        Field("bias", "bias", decimals=3, unit="of the true function"),
        Field("error", "error", decimals=3, unit="rms, true function"),
    ),
)
