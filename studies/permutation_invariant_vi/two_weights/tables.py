"""The tables on the network of two weights."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onebasin.analysis.report import Cell, Column, Table
from onebasin.analysis.report.page import Flag, Value

from .fits import FitScores
from .measures import WORDS, TwoWeightResults
from .optima import TOGETHER, paired
from .statements import ERRORS, TIE

_SURE = 4.0
"""Monte Carlo errors within which a method's own account agrees with quadrature."""


def mse_table(results: TwoWeightResults) -> Table:
    """Tabulate the paper's Table 2: test MSE over alpha."""
    rows = tuple(
        (
            f"{alpha:g}",
            f"{results.fitted_case(alpha).exact.mse:.4f}",
            *(_spread(results.fits.get((alpha, method)), "mse", 4) for method in WORDS),
        )
        for alpha in results.settings.alphas
    )
    return Table(
        ("alpha", "exact posterior", *WORDS.values()),
        rows if results.fits else (),
        f"The paper's Table 2: test MSE of the mean prediction, mean ± sd over {_fits(results)} (noise's variance "
        f"{results.settings.noise**2:g}). SGM is the symmetrised mean field; InfoNCE has "
        f"K = {results.settings.permutations}",
    )


def elbo_table(results: TwoWeightResults) -> Table:
    """Tabulate the paper's Table 3: ELBO and symmetrised ELBO over alpha, by the methods' own account."""
    rows: list[tuple[Cell | Value, ...]] = []
    for alpha in results.settings.alphas:
        cells: list[Cell | Value] = [
            f"{alpha:g}",
            f"{results.fitted_case(alpha).truth.log_evidence:.2f}",
        ]
        for method in WORDS:
            scores = results.fits.get((alpha, method))
            cells += [_spread(scores, name, 2) for name in ("elbo", "symmetrised_elbo")]
        worst = _worst_account(results, alpha)
        cells.append(Cell("") if worst is None else Cell(f"{worst:.1f}", _flag(worst)))
        rows.append(tuple(cells))
    kinds = [(word, kind) for word in WORDS.values() for kind in ("ELBO", "symmetrised ELBO")]
    columns: tuple[Column | str, ...] = (
        "alpha",
        Column("log evidence", unit="nats"),
        *(Column(word, unit=kind) for word, kind in kinds),
        Column("off", unit="MCSE, largest"),
    )
    return Table(
        columns,
        tuple(rows) if results.fits else (),
        f"The paper's Table 3: the methods' own account of the ELBO and of the symmetrised one (its lower side), in "
        f"nats, mean ± sd over {_fits(results)}; off: by how many Monte Carlo errors an ELBO is away from quadrature",
    )


def divergence_table(results: TwoWeightResults) -> Table:
    """Tabulate how far every method's fits are from the posterior, by quadrature."""
    rows = tuple(
        (
            f"{alpha:g}, {WORDS[method]}",
            f.kl.mean(),
            f.kl_symmetrised.mean(),
            f.kl_symmetrised.max() - f.kl_symmetrised.min(),
            _best(results, alpha, method),
            f.separation.mean() / (2 * alpha),
            results.fitted_case(alpha).truth.separation / (2 * alpha),
            f.log_score.mean(),
        )
        for (alpha, method), f in results.fits.items()
    )
    columns = (
        "alpha, method",
        Column("KL(q || p)", decimals=4, unit="nats"),
        Column("KL(q^G || p)", decimals=4, unit="nats"),
        Column("spread", digits=2, unit="of KL(q^G || p) over fits"),
        Column("best possible", decimals=4, unit="of what is trained for"),
        Column("|m1 - m2| / (2 alpha)", decimals=2),
        Column("truth", decimals=2, unit="mean |w1 - w2| / (2 alpha)"),
        Column("log score", decimals=3, unit="nats, test"),
    )
    return Table(
        columns,
        rows,
        f"What the paper could not give: divergences of the fits from the posterior, means over {_fits(results)}. "
        "MFVI is trained for KL(q || p), SGM for KL(q^G || p)",
    )


def optimum_table(results: TwoWeightResults) -> Table:
    """Tabulate the best approximations over noise and alpha."""
    rows: list[tuple[Cell | Value, ...]] = []
    for (noise, alpha), case in results.cases.items():
        plain, sgm = case.best["mfvi"], case.best["sgm"]
        apart = case.relative_separation("mfvi")
        rows.append(
            (
                f"{noise:g}, {alpha:g}",
                _rounded(plain.kl),
                _rounded(plain.kl_symmetrised),
                _rounded(sgm.kl_symmetrised),
                Cell(plain.q.separation / (2 * alpha), "warn" if apart < TOGETHER else ""),
                sgm.q.separation / (2 * alpha),
                case.truth.separation / (2 * alpha),
                case.exact.log_score,
                plain.prediction.log_score,
                sgm.prediction.log_score,
            )
        )
    columns = (
        "noise, alpha",
        Column("KL(q || p)", decimals=4, unit="MFVI"),
        Column("KL(q^G || p)", decimals=4, unit="MFVI, symmetrised after"),
        Column("KL(q^G || p)", decimals=4, unit="SGM"),
        Column("|m1 - m2| / (2 alpha)", decimals=2, unit="MFVI"),
        Column("|m1 - m2| / (2 alpha)", decimals=2, unit="SGM"),
        Column("mean |w1 - w2| / (2 alpha)", decimals=2, unit="truth"),
        Column("log score", decimals=4, unit="exact"),
        Column("log score", decimals=4, unit="MFVI"),
        Column("log score", decimals=4, unit="SGM"),
    )
    caption = (
        "The best of each kind, found without chance, on the data set of the fits; a mark shows where the mean "
        "field interpolates"
    )
    return Table(columns, tuple(rows), caption)


def average_table(results: TwoWeightResults) -> Table:
    """Tabulate what symmetrising does to predictions over data sets."""
    rows: list[tuple[Cell | Value, ...]] = []
    for (noise, alpha), found in results.averages.items():
        gain, error = found.gain
        sure = abs(gain) > max(ERRORS * error, TIE * noise**2)
        rows.append(
            (
                f"{noise:g}, {alpha:g}",
                f"{found.interpolates:.0%}",
                *(errors.mean() / noise**2 for errors in (found.exact, found.mfvi, found.sgm)),
                Cell(_rounded(gain / noise**2), ("good" if gain > 0 else "bad") if sure else ""),
                error / noise**2,
                _rounded(paired(found.exact, found.sgm)[0] / noise**2),
            )
        )
    columns = (
        "noise, alpha",
        Column("MFVI interpolates", unit="of the data sets"),
        Column("error", decimals=4, unit="exact posterior"),
        Column("error", decimals=4, unit="MFVI"),
        Column("error", decimals=4, unit="SGM"),
        Column("gain", decimals=4, unit="MFVI less SGM"),
        Column("standard error", decimals=4, unit="of the gain"),
        Column("exact less SGM", decimals=4),
    )
    return Table(
        columns,
        tuple(rows),
        f"Expected squared error of the mean prediction, against the true function, over {results.settings.data_sets} "
        "data sets, by the best of each kind, in units of the noise's variance (add 1 for the expected test MSE)",
    )


def _best(results: TwoWeightResults, alpha: float, method: str) -> float:
    best = results.fitted_case(alpha).best
    return best["mfvi"].kl if method == "mfvi" else best["sgm"].kl_symmetrised


def _rounded(value: float) -> float:
    """Round to the four decimals that are shown, so that none is shown as minus zero."""
    return round(value, 4) + 0.0


def _spread(scores: FitScores | None, name: str, decimals: int) -> str:
    if scores is None:
        return ""
    values: Float[np.ndarray, " fit"] = getattr(scores, name)
    if len(values) < 2:
        return f"{values[0]:.{decimals}f}"
    return f"{values.mean():.{decimals}f} ± {values.std(ddof=1):.{decimals}f}"


def _worst_account(results: TwoWeightResults, alpha: float) -> float | None:
    found = [f.off for (a, _), f in results.fits.items() if a == alpha]
    return max((float(np.abs(off).max()) for off in found), default=None)


def _flag(worst: float) -> Flag:
    return "good" if worst <= _SURE else "bad"


def _fits(results: TwoWeightResults) -> str:
    number = results.settings.fits
    return f"{number} fits" if number > 1 else "one fit"
