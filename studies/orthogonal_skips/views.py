"""The study's tables."""

from collections.abc import Callable, Iterable

from onebasin.truth.pairs import MIN_PAIRS

from ..lab import METHOD_WORDS, Field, Frames, Row, View, at_most, pair, select
from ..lab.averages import averages
from ..lab.effects import change
from ..shared.heldout import MAX_RHAT
from .design import CHECK, INSIDE, OUTSIDE, TRUTH, VARIANTS, VI
from .making import ALL
from .measures import OF_UNITS

_COMMON = ("condition", "method", "problem")
_CONDITION = Field("condition", "condition")
_WHERE = (INSIDE, OUTSIDE)


def _method(row: Row) -> str:
    return METHOD_WORDS[row["method"]]


_POSTERIOR = (
    _CONDITION,
    Field("by", _method),
    Field("network", "problem"),
    Field("data sets", "datasets"),
)


def _everywhere(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{where}" for name in names for where in _WHERE)


def _both(heading: str, name: str, decimals: int, unit: str = "") -> tuple[Field, ...]:
    """Give a measure's two columns, inside and outside."""
    between = ", " if unit else ""
    return tuple(
        Field(heading, f"{name}_{where}", decimals=decimals, unit=f"{where}{between}{unit}")
        for where in _WHERE
    )


PREDICTIONS = View(
    "Figure 1 in numbers, means over data sets, at test points inside the data's range (|x| < 1) and outside it "
    "(1 < |x| < 2). Explained: share of the true function's variance that the predictive mean explains",
    (
        *_POSTERIOR,
        Field("explained", f"explained_{INSIDE}", decimals=3, unit=INSIDE),
        *_both("RMSE", "rmse", 3),
        *_both("log score", "log_score", 2, "nats"),
        *_both("coverage", "coverage_95", 3, "95 % interval"),
        *_both("epistemic sd", "epistemic", 3),
        *_both("aleatoric sd", "aleatoric", 3),
    ),
    over=averages(
        "cells",
        _COMMON,
        mean=_everywhere("explained", "rmse", "log_score", "coverage_95", "epistemic", "aleatoric"),
    ),
)
COLLAPSE = View(
    "What has collapsed, mean-field fits at the end, means over data sets",
    (
        _CONDITION,
        Field("network", "problem"),
        Field("data sets", "datasets"),
        Field("active units", "active", decimals=1, unit="of all layers"),
        Field("units", "units", decimals=0),
        Field("KL to the prior", "kl", decimals=0, unit="nats, all weights"),
        Field("ELBO", "elbo", decimals=1, unit="nats"),
        Field("fit", "wall_time", decimals=0, unit="seconds"),
    ),
    over=averages(
        select("cells", method=VI),
        ("condition", "problem"),
        mean=("active", "units", "kl", "elbo", "wall_time"),
    ),
)
BY_LAYER = View(
    "The same layer by layer, of the median unit: KL of the weights into it and out of it to their prior, and their "
    "signal-to-noise",
    (
        _CONDITION,
        Field("network", "problem"),
        Field("hidden layer", "layer"),
        Field("active units", "active", decimals=1),
        Field("units", "units", decimals=0),
        Field("KL in", "kl_in", decimals=2, unit="nats"),
        Field("KL out", "kl_out", decimals=2, unit="nats"),
        Field("signal to noise in", "snr_in", decimals=2),
        Field("signal to noise out", "snr_out", decimals=2),
    ),
    over=averages("layers", ("condition", "problem", "layer"), mean=("active", "units", *OF_UNITS)),
)


def _share(side: str) -> Callable[[Row], float | None]:
    return lambda row: None if row[side] is None else 100 * row[side] / row["log_order"]


_BOUNDS = (
    Field("at least", "lower", decimals=1, unit="nats"),
    Field("at most", "upper", decimals=1, unit="nats"),
    Field("log |G|", "log_order", decimals=1, unit="nats"),
    Field("at most", _share("upper"), decimals=1, unit="% of log |G|"),
)
GAP_BY_LAYER = View(
    "Equation 6 at the end of the training, means over data sets: KL[q₀ ‖ q] between the fit and its symmetric mixture",
    (
        _CONDITION,
        Field("network", "problem"),
        Field("hidden layer", "layer"),
        *_BOUNDS,
    ),
    over=averages(
        select("gaps", end=True),
        ("condition", "problem", "layer"),
        mean=("lower", "upper", "log_order"),
    ),
)


def _training(frames: Frames) -> Iterable[Row]:
    """Give equation 6 beside what had collapsed by then, means over data sets."""
    names = ("condition", "problem", "iteration")
    gaps = averages(select("gaps", layer=ALL), names, mean=("lower", "upper", "log_order"))
    fits = averages(
        "training", names, mean=("divergence_weight", "elbo", "active", "kl", "explained")
    )
    gap = {tuple(row[name] for name in names): row for row in gaps(frames)}
    for row in fits(frames):
        none = dict.fromkeys(("lower", "upper", "log_order"))
        yield {**none, **gap.get(tuple(row[name] for name in names), {}), **row}


TRAINING = View(
    "How fits change as they are trained, means over data sets; equation 6 of networks with a symmetry",
    (
        _CONDITION,
        Field("network", "problem"),
        Field("step", "iteration"),
        Field("weight of the divergence", "divergence_weight", decimals=2),
        Field("ELBO", "elbo", decimals=1, unit="nats"),
        Field("active units", "active", decimals=1),
        Field("KL to the prior", "kl", decimals=0, unit="nats"),
        Field("explained", "explained", decimals=3, unit="by the mean weights"),
        *_BOUNDS[:2],
    ),
    over=_training,
)
_CHAINS = select("cells", method=(TRUTH, CHECK))
CHAINS = View(
    "Can the samplers' draws be trusted? R-hat of f, largest over test points and data sets",
    (
        *_POSTERIOR,
        Field("R-hat of f", f"max_rhat_{INSIDE}", decimals=3, unit=INSIDE, flag=at_most(MAX_RHAT)),
        Field(
            "R-hat of f", f"max_rhat_{OUTSIDE}", decimals=3, unit=OUTSIDE, flag=at_most(MAX_RHAT)
        ),
        *_both("points above", "rhat_above", 3, f"R-hat {MAX_RHAT:g}, mean share"),
        *_both("bulk ESS of f", "ess", 0, "mean"),
        Field("R-hat", "max_rhat_value", decimals=2, unit="largest of a weight"),
        Field("divergences", "max_divergences", decimals=0, unit="most"),
        Field("time", "wall_time", decimals=0, unit="seconds, mean"),
    ),
    over=averages(
        _CHAINS,
        _COMMON,
        mean=(*_everywhere("rhat_above", "ess"), "wall_time"),
        largest=(*_everywhere("rhat"), "rhat_value", "divergences"),
    ),
)
FROM_TRUTH = View(
    "Distance from NUTS on the same model and data, means over data sets: of mean-field fits, and of MCLMC, whose bias "
    "of the step size it shows",
    (
        *_POSTERIOR,
        *_both("shift of the mean", "from_truth_in_sds", 2, "posterior sds, rms"),
        *_both("shift", "from_truth_rms", 3, "units of y, rms"),
        *_both("sd of f", "from_truth_sd_ratio", 2, "ratio"),
        *_both("predictive sd", "from_truth_predictive_sd_ratio", 2, "ratio"),
    ),
    over=averages(
        lambda frames: frames["cells"].known(f"from_truth_rms_{INSIDE}"),
        _COMMON,
        mean=_everywhere(
            *(f"from_truth_{n}" for n in ("in_sds", "rms", "sd_ratio", "predictive_sd_ratio"))
        ),
    ),
)
_COMPARED = {
    "active units": "active",
    "KL to the prior, nats": "kl",
    "explained, inside": f"explained_{INSIDE}",
    "RMSE, inside": f"rmse_{INSIDE}",
    "RMSE, outside": f"rmse_{OUTSIDE}",
    "log score, inside": f"log_score_{INSIDE}",
    "log score, outside": f"log_score_{OUTSIDE}",
    "coverage of 95 %, inside": f"coverage_95_{INSIDE}",
    "coverage of 95 %, outside": f"coverage_95_{OUTSIDE}",
    "ELBO, nats": "elbo",
}


def _differences(frames: Frames) -> Iterable[Row]:
    """Give each measure of a mean-field fit less the plain network's, data set by data set."""
    fits = frames["cells"].where(method=VI)
    for condition in fits.levels("condition") if fits else ():
        rows = fits.where(condition=condition)
        for heading, measure in _COMPARED.items():
            row = {"condition": condition, "measure": heading}
            plain = rows.where(problem="plain").column(measure)
            row["plain"] = sum(plain) / len(plain) if plain else None
            for variant in [name for name in VARIANTS if name != "plain"]:
                pairs = pair(rows, measure, "problem", "plain", variant, by="dataset")
                row[variant] = None
                if pairs.num:
                    found = change(pairs.first, pairs.second, "difference")
                    ends = f" ({found.low:+.3g} to {found.high:+.3g})" if pairs.num > 1 else ""
                    row[variant] = f"{found.estimate:+.3g}{ends}"
            yield row


DIFFERENCES = View(
    "Mean-field fits less the plain network's, paired over data sets: mean and 95 % interval (Student). ELBOs of "
    f"different networks bound different evidences. Claims ask for {MIN_PAIRS} data sets",
    (
        _CONDITION,
        Field("measure", "measure"),
        Field("plain", "plain", unit="mean"),
        *(Field(name, name, unit="less plain") for name in VARIANTS if name != "plain"),
    ),
    over=_differences,
)
VIEWS = (
    PREDICTIONS,
    DIFFERENCES,
    COLLAPSE,
    BY_LAYER,
    GAP_BY_LAYER,
    TRAINING,
    CHAINS,
    FROM_TRUTH,
)
