"""The tables on the network of two weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from onebasin.analysis.report import Table, TableCell

from ...lab import Field, Frames, Pairs, Row, View, mean_and_sd, mean_of, read
from .claims import beyond, gain
from .design import WORDS
from .fits import off, separations
from .optima import TOGETHER, relative_separation

_SURE = 4.0
"""Monte Carlo errors within which a method's own account agrees with quadrature."""


def mse_table(frames: Frames) -> Table:
    """Tabulate the paper's Table 2: test MSE over alpha."""
    settings = read("two_weights", frames).rows[0]
    fields = (
        Field("alpha", _alpha),
        Field("exact posterior", lambda row: f"{row['exact']['mse']:.4f}"),
        *(Field(label, _spread(method, "mse", 4)) for method, label in WORDS.items()),
    )
    caption = (
        f"The paper's Table 2: test MSE of the mean prediction, mean ± sd over {_fits(settings)} (noise's variance "
        f"{settings['noise'] ** 2:g}). SGM is the symmetrised mean field; InfoNCE has K = {settings['permutations']}"
    )
    return View(caption, fields, over=_by_alpha)(frames)


def elbo_table(frames: Frames) -> Table:
    """Tabulate the paper's Table 3: ELBO and symmetrised ELBO over alpha, by the methods' own account."""
    kinds = {"ELBO": "elbo", "symmetrised ELBO": "symmetrised_elbo"}
    columns = [(m, label, kind) for m, label in WORDS.items() for kind in kinds]
    fields = (
        Field("alpha", _alpha),
        Field("log evidence", lambda row: f"{row['log_evidence']:.2f}", unit="nats"),
        *(Field(label, _spread(m, kinds[kind], 2), unit=kind) for m, label, kind in columns),
        Field("off", _worst_account, unit="MCSE, largest"),
    )
    caption = (
        "The paper's Table 3: the methods' own account of the ELBO and of the symmetrised one (its lower side), in "
        f"nats, mean ± sd over {_fits(read('two_weights', frames).rows[0])}; off: by how many Monte Carlo errors an "
        "ELBO is away from quadrature"
    )
    return View(caption, fields, over=_by_alpha)(frames)


def divergence_table(frames: Frames) -> Table:
    """Tabulate how far every method's fits are from the posterior, by quadrature."""
    fields = (
        Field("alpha, method", lambda fit: f"{fit['alpha']:g}, {fit['label']}"),
        Field("KL(q || p)", mean_of("kl"), decimals=4, unit="nats"),
        Field("KL(q^G || p)", mean_of("kl_symmetrised"), decimals=4, unit="nats"),
        Field("spread", _range, digits=2, unit="of KL(q^G || p) over fits"),
        Field("best possible", "best", decimals=4, unit="of what is trained for"),
        Field(
            "|m1 - m2| / (2 alpha)",
            lambda fit: separations(fit).mean() / (2 * fit["alpha"]),
            decimals=2,
        ),
        Field(
            "truth",
            lambda fit: fit["truth"] / (2 * fit["alpha"]),
            decimals=2,
            unit="mean |w1 - w2| / (2 alpha)",
        ),
        Field("log score", mean_of("log_score"), decimals=3, unit="nats, test"),
    )
    caption = (
        "What the paper could not give: divergences of the fits from the posterior, means over "
        f"{_fits(read('two_weights', frames).rows[0])}. MFVI is trained for KL(q || p), SGM for KL(q^G || p)"
    )
    return View(caption, fields, over="weight_fits")(frames)


def _case(row: Row) -> str:
    return f"{row['noise']:g}, {row['alpha']:g}"


def _divergence(name: str, measure: str) -> Callable[[Row], float]:
    return lambda case: rounded(case[name][measure])


def _log_score(name: str) -> Field:
    words = {"exact": "exact", "mfvi": "MFVI", "sgm": "SGM"}
    return Field("log score", lambda case: case[name]["log_score"], decimals=4, unit=words[name])


def _per_alpha(name: str) -> Callable[[Row], float]:
    return lambda case: case[name]["separation"] / (2 * case["alpha"])


def _mean_field_apart(case: Row) -> TableCell:
    together = relative_separation(case, "mfvi") < TOGETHER
    return TableCell(_per_alpha("mfvi")(case), "warn" if together else "")


OPTIMA = View(
    "The best of each kind, found without chance, on the data set of the fits; a mark shows where the mean "
    "field interpolates",
    (
        Field("noise, alpha", _case),
        Field("KL(q || p)", _divergence("mfvi", "kl"), decimals=4, unit="MFVI"),
        Field(
            "KL(q^G || p)",
            _divergence("mfvi", "kl_symmetrised"),
            decimals=4,
            unit="MFVI, symmetrised after",
        ),
        Field("KL(q^G || p)", _divergence("sgm", "kl_symmetrised"), decimals=4, unit="SGM"),
        Field("|m1 - m2| / (2 alpha)", _mean_field_apart, decimals=2, unit="MFVI"),
        Field("|m1 - m2| / (2 alpha)", _per_alpha("sgm"), decimals=2, unit="SGM"),
        Field("mean |w1 - w2| / (2 alpha)", _per_alpha("exact"), decimals=2, unit="truth"),
        *map(_log_score, ("exact", "mfvi", "sgm")),
    ),
    over="cases",
)


def _error(name: str, unit: str) -> Field:
    def value(case: Row) -> float:
        return float(np.mean(case["errors"][name]) / case["noise"] ** 2)

    return Field("error", value, decimals=4, unit=unit)


def _gain(case: Row) -> TableCell:
    pairs, better = gain(case), beyond(gain(case), case["noise"])
    value = rounded(pairs.mean / case["noise"] ** 2)
    return TableCell(value, "" if better is None else "good" if better else "bad")


def _left(case: Row) -> float:
    pairs = Pairs(case["errors"]["exact"], case["errors"]["sgm"])
    return rounded(pairs.mean / case["noise"] ** 2)


def average_table(frames: Frames) -> Table:
    """Tabulate what symmetrising does to predictions over data sets."""
    fields = (
        Field("noise, alpha", _case),
        Field(
            "MFVI interpolates", lambda case: f"{case['interpolates']:.0%}", unit="of the data sets"
        ),
        _error("exact", "exact posterior"),
        _error("mfvi", "MFVI"),
        _error("sgm", "SGM"),
        Field("gain", _gain, decimals=4, unit="MFVI less SGM"),
        Field(
            "standard error",
            lambda case: gain(case).error / case["noise"] ** 2,
            decimals=4,
            unit="of the gain",
        ),
        Field("exact less SGM", _left, decimals=4),
    )
    number = read("two_weights", frames).rows[0]["data_sets"]
    caption = (
        f"Expected squared error of the mean prediction, against the true function, over {number} "
        "data sets, by the best of each kind, in units of the noise's variance (add 1 for the expected test MSE)"
    )
    return View(caption, fields, over="cases")(frames)


TABLES = (mse_table, elbo_table, divergence_table, OPTIMA, average_table)


def rounded(value: float) -> float:
    """Round to the four decimals that are shown, so that none is shown as minus zero."""
    return round(value, 4) + 0.0


def _by_alpha(frames: Frames) -> Iterator[Row]:
    """Cases of the fits' noise, each with the fits of every method; none where there are no fits."""
    fits, noise = read("weight_fits", frames), read("two_weights", frames).rows[0]["noise"]
    for case in read("cases", frames).where(noise=noise) if len(fits) else ():
        mine = {fit["method"]: fit for fit in fits.where(alpha=case["alpha"])}
        yield {**case, "fits": mine}


def _alpha(row: Row) -> str:
    return f"{row['alpha']:g}"


def _spread(method: str, name: str, decimals: int) -> Callable[[Row], str]:
    def write(row: Row) -> str:
        return mean_and_sd(row["fits"][method][name], decimals) if method in row["fits"] else ""

    return write


def _worst_account(row: Row) -> TableCell:
    found = [float(np.abs(off(fit)).max()) for fit in row["fits"].values()]
    if not found:
        return TableCell("")
    return TableCell(f"{max(found):.1f}", "good" if max(found) <= _SURE else "bad")


def _range(fit: Row) -> float:
    return float(max(fit["kl_symmetrised"]) - min(fit["kl_symmetrised"]))


def _fits(settings: Row) -> str:
    number = settings["fits"]
    return f"{number} fits" if number > 1 else "one fit"
