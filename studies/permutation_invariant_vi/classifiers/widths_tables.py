"""Tables of the classifiers of growing width."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from onebasin.analysis.report import Cell, Column, Table
from onebasin.analysis.report.page import Flag

from .widths import Fits, Paired, PerFit, WidthResults, paired

_FLAGS: Mapping[bool | None, Flag] = {True: "good", False: "bad", None: ""}


def accuracy_table(results: WidthResults) -> Table:
    """Tabulate accuracies in the form of the paper's Table 1, whose numbers are lost from our text."""
    return _by_width(
        results,
        lambda fits: spread(100 * fits.accuracy, 2),
        "The paper's Table 1 remade: test accuracy in %, of class probabilities averaged over draws of q, mean ± "
        "standard deviation over seeds, by hidden units. SGM: symmetrised mean field",
    )


def elbo_table(results: WidthResults) -> Table:
    """Tabulate symmetrised ELBOs likewise."""
    return _by_width(
        results,
        lambda fits: spread(fits.symmetrised, 1),
        "Symmetrised ELBO in nats, the lower end of its interval by the same estimator for all methods, mean ± "
        "standard deviation over seeds, by hidden units",
    )


def _by_width(results: WidthResults, write: Callable[[Fits], str], caption: str) -> Table:
    widths = results.widths
    names = dict.fromkeys(name for _, name in results.fits)
    rows = []
    for name in names:
        found = [results.fits.get((width, name)) for width in widths]
        label = next(fits.method.label for fits in found if fits)
        rows.append((label, *(write(fits) if fits else None for fits in found)))
    return Table(("method", *(f"{width}" for width in widths)), tuple(rows), caption)


def spread(values: PerFit, decimals: int) -> str:
    """Write mean and standard deviation over seeds."""
    if len(values) < 2:
        return f"{values.mean():.{decimals}f}"
    return f"{values.mean():.{decimals}f} ± {values.std(ddof=1):.{decimals}f}"


def fit_table(results: WidthResults) -> Table:
    """Tabulate every method at every width."""
    rows = tuple(_fit_row(results, fits) for fits in results.fits.values())
    columns = (
        Column("units", decimals=0),
        "method",
        "term trained by",
        Column("ELBO", decimals=1, unit="nats"),
        Column("I", decimals=2, unit="lower, nats"),
        Column("I", decimals=2, unit="upper, nats"),
        Column("I", decimals=3, unit="share of log |G|"),
        Column("symmetrised ELBO", decimals=1, unit="lower, nats"),
        Column("symmetrised ELBO", decimals=1, unit="upper, nats"),
        Column("gain over MFVI", unit="lower ends, ± s.e., seeds won"),
        Column("accuracy", decimals=4, unit="test"),
        Column("log score", decimals=4, unit="test, nats"),
        Column("accuracy", decimals=4, unit="one draw"),
        Column("time", decimals=0, unit="s"),
    )
    caption = (
        "Every method at every width, means over seeds. I: mutual information by which the symmetrised ELBO exceeds "
        "the ELBO; ✓ marks a gain over MFVI above zero by Student's 95 % interval over seeds"
    )
    return Table(columns, rows, caption)


def _fit_row(results: WidthResults, fits: Fits) -> tuple:
    plain = results.mfvi(fits.width)
    gain = paired(fits, plain, "symmetrised") if plain and plain is not fits else None
    return (
        fits.width,
        fits.method.label,
        fits.chosen,
        fits.elbo.mean(),
        fits.lower.mean(),
        fits.upper.mean(),
        fits.lower.mean() / fits.log_order,
        fits.symmetrised.mean(),
        fits.symmetrised_upper.mean(),
        difference(gain, 2),
        fits.accuracy.mean(),
        fits.log_score.mean(),
        fits.draw_accuracy.mean(),
        fits.seconds,
    )


def paired_table(results: WidthResults) -> Table:
    """Tabulate estimators by the permanent against InfoNCE at its best K."""
    rows = []
    for width in results.widths:
        infonce = results.best_infonce(width)
        if infonce is None:
            continue
        for fits in results.at(width, "permanent"):
            found = [
                paired(fits, infonce, name) for name in ("symmetrised", "accuracy", "log_score")
            ]
            decimals = (2, 4, 4)
            cells = (difference(one, d) for one, d in zip(found, decimals, strict=True))
            rows.append((width, fits.method.label, infonce.method.permutations, *cells))
    columns = (
        Column("units", decimals=0),
        "method",
        Column("best K", decimals=0),
        Column("symmetrised ELBO", unit="nats"),
        Column("accuracy", unit="test"),
        Column("log score", unit="test, nats"),
    )
    caption = (
        "What training with an estimator that rests on the permanent changes beside InfoNCE at its best K: "
        "differences seed by seed, mean ± standard error, seeds won; ✓ above and ✗ below zero by Student's 95 % "
        "interval"
    )
    return Table(columns, tuple(rows), caption)


def difference(found: Paired | None, decimals: int) -> Cell:
    """Write a paired difference with its verdict."""
    if found is None:
        return Cell(None)
    return Cell(found.write(decimals), _FLAGS[found.above])


def share(fits: Fits) -> PerFit:
    """Mutual information over its largest value, log |G|."""
    return np.asarray(fits.lower / fits.log_order)
