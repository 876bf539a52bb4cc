"""Tables of all parts of the study."""

from collections.abc import Iterable

import numpy as np

from ..lab.study import Change, Frames, Row, Summary, rows_of
from .classifiers import mean_bound, theorem_bound
from .two_weights import separations

REPORTED = {0.25: 1.25, 0.5: 2.5, 1.0: 5.0, 2.0: 10.0}
"""Threshold distances between the modes that the paper reports for its plots, by sigma."""
_BRANCHES = ("mfvi", "sgm")
_FITTED = {
    "test accuracy": "accuracy",
    "test log score, nats": "log_score",
    "symmetrised ELBO, nats": "symmetrised",
}
_FROM_HMC = {"total variation, halved": "total_variation", "energy distance": "energy"}


def _bounded(frames: Frames) -> Iterable[Row]:
    size = next((row["unit_size"] for row in rows_of("classifiers", frames)), None)
    for row in rows_of("nearest", frames):
        yield {**row, "unit_size": size}


def _best_infonce(frames: Frames) -> Iterable[Row]:
    """Return the recommended fits, and the InfoNCE fits at the K with the highest mean symmetrised ELBO."""
    fits = rows_of("fits", frames)
    for width in dict.fromkeys(fit["width"] for fit in fits):
        own = [fit for fit in fits if fit["width"] == width]
        yield from (fit for fit in own if fit["method"] == "recommended")
        found = [fit for fit in own if fit["kind"] == "infonce"]
        if found:
            best = max(found, key=lambda fit: np.mean(fit["symmetrised"]))
            yield {**best, "method": "InfoNCE at its best K"}


def _optima(frames: Frames) -> Iterable[Row]:
    """Return the best approximations of every case, one per row."""
    for case in rows_of("cases", frames):
        for name in _BRANCHES:
            yield {
                **{key: case[key] for key in ("noise", "alpha")},
                "method": name,
                "apart": case[name]["separation"] / case["exact"]["separation"],
                "kl": case[name]["kl" if name == "mfvi" else "kl_symmetrised"],
                "error": [error / case["noise"] ** 2 for error in case["errors"][name]],
            }


_SYMMETRISED = tuple(
    ("mfvi", name) for name in ("infonce-2", "infonce-10", "infonce-100", "recommended")
)
"""Pairs of the plain fit and a symmetrised fit."""
TABLES = (
    Summary(
        "One Gaussian between two modes (Figure 3): their distance, in sigmas, at which an optimum near a mode appears "
        "and becomes the better one, by quadrature, and between which descents begin to stay; next to what the paper's "
        "plots show",
        {
            "appears": lambda row: 2 * row["vanishing"] / row["sigma"],
            "is the better one": lambda row: 2 * row["switching"] / row["sigma"],
            "descents go midway at": lambda row: 2 * row["low"],
            "descents stay at": lambda row: 2 * row["high"],
        },
        by=("sigma",),
        over="thresholds",
        printed=lambda row: (
            {"appears": REPORTED[row["sigma"]] / row["sigma"]} if row["sigma"] in REPORTED else {}
        ),
    ),
    Summary(
        "Two weights, Tables 2 and 3: fits of one data set, test MSE, divergence of what was trained for from the "
        "posterior, and distance of the means over the truth's",
        {
            "test MSE": "mse",
            "KL, nats": lambda row: row["kl" if row["method"] == "mfvi" else "kl_symmetrised"],
            "least KL possible, nats": "best",
            "distance of the means": lambda row: separations(row) / row["truth"],
            "ELBO by the method, nats": "elbo",
        },
        by=("alpha", "label"),
        over="weight_fits",
    ),
    Summary(
        "Two weights: the best approximation of each kind, divergence, distance of the means over the truth's, and the "
        "expected squared error over data sets in units of the noise's variance",
        {"KL, nats": "kl", "distance of the means": "apart", "error": "error"},
        by=("noise", "alpha", "method"),
        over=_optima,
    ),
    Summary(
        "Two weights: by symmetrising, the expected squared error of the best approximation, paired over data sets, in "
        "units of the noise's variance. The paper finds better prediction",
        {"error": "error"},
        by=("noise", "alpha"),
        over=_optima,
        printed=lambda row: {"error": "lower"},
        change=Change("method", (_BRANCHES,)),
    ),
    Summary(
        "Classifiers: means over seeds",
        {
            **_FITTED,
            "information, share of log |G|": lambda row: np.array(row["lower"]) / row["log_order"],
        },
        by=("width", "label"),
        over="fits",
    ),
    Summary(
        "Classifiers: from plain mean-field fits to symmetrised ones, seed by seed. The paper finds a higher ELBO and "
        "improved predictions, more so in wider networks",
        _FITTED,
        by=("width",),
        over="fits",
        printed=lambda row: dict.fromkeys(_FITTED, "higher"),
        change=Change("method", _SYMMETRISED),
    ),
    Summary(
        "Classifiers: from InfoNCE at its best K to the recommended estimator, seed by seed",
        _FITTED,
        by=("width",),
        over=_best_infonce,
        change=Change("method", (("InfoNCE at its best K", "recommended"),)),
    ),
    Summary(
        "The nearest equivalent mode: distance in ||w||, next to Theorem 3.1's bound; 2 / sqrt(H - 1), which bounds "
        "every network's too",
        {
            "distance, mean": "distance",
            "distance, largest": "largest",
            "2 / sqrt(H - 1)": lambda row: mean_bound(row["width"]),
            "separation, sds of q": "separation",
        },
        by=("width", "label"),
        over=_bounded,
        printed=lambda row: {
            "distance, largest": f"at most {theorem_bound(row['width'], row['unit_size']):.3g}"
        },
    ),
    Summary(
        "Distances from HMC's draws, in prediction and in aligned weights, means over seeds; the halves of HMC's "
        "chains are what can be told apart",
        {
            **_FROM_HMC,
            "agreement": "agreement",
            "accuracy of one draw": "draw_accuracy",
            "variance left": "spread_left",
        },
        by=("width", "label"),
        over="truth",
    ),
    Summary(
        "Distances from HMC's draws: from plain mean-field fits to symmetrised ones, seed by seed",
        _FROM_HMC,
        by=("width",),
        over="truth",
        printed=lambda row: dict.fromkeys(_FROM_HMC, "lower"),
        change=Change("draws", _SYMMETRISED),
    ),
)
