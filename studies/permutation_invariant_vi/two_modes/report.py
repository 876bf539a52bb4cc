"""What the experiment of one Gaussian between two modes shows: tables, statements, sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from onebasin.analysis.report import Column, Note, Section, Table, format_number

from ...lab.claims import Statement, Trial, judge
from ..part import Part
from .descent import MIDWAY, Descent
from .interpolation import InterpolationResults
from .pictures import appendix, figure_three

REPORTED = {0.25: 1.25, 0.5: 2.5, 1.0: 5.0, 2.0: 10.0}
"""Thresholds that the paper's plots are said to show, by sigma; its text, as we have it, has lost them."""
SHOWN = (1.0, 2.0, 2.3, 2.5, 2.75, 3.0, 3.5, 4.5)
"""Ratios of alpha to sigma in the table of optima, where they were computed."""

_BELOW = (
    "[For alpha below a threshold], the optimization results are in fact mean-seeking in the sense that [mu*] is a "
    "mid-point interpolation between [the modes]."
)
_ABOVE = "Only for [alpha above the threshold], the behavior becomes mode-seeking."
_SCALES = (
    "We empirically find that the threshold for mode-seeking behavior scales with the standard deviation of [the] "
    "mixture components."
)
_WIDER = (
    "[Interpolating] solutions have higher variance than each of the mixture components, suggesting uncertainty may "
    "be overestimated."
)
_TEXT = (
    "A Gaussian q is fitted by reverse KL to p = ½ N(−α u, σ² I) + ½ N(α u, σ² I) in the plane (section 3, Figure 3, "
    "Appendix A). α is half the distance between the modes: only then is ||μ*|| / α one at a mode.\n\n"
    "Two ways. Every optimum lies on the line through the modes and has the target's spread across it, which leaves "
    "a mean and a standard deviation: their KL is computed by quadrature and all its stationary points are followed. "
    "And the paper's way: points of q are drawn at every step, and mean and full covariance go down the gradient of "
    "the sampled KL, from a mode. KL does not change when q and p are stretched alike, so that only α / σ matters.\n\n"
    "There are three thresholds to be told apart. Below the first there is no optimum but the midpoint: whatever a "
    "descent starts from, it ends there. Above it there is an optimum near each mode as well, and an exact descent "
    "from a mode stays: this is the threshold that the paper's experiment measures. Up to the second the midpoint "
    "still has the lower KL: a Gaussian that sits midway is then no failure of the descent but the best of its "
    "family. The third does not exist: the midpoint is a local optimum at every α, so that a descent that starts "
    "near it stays there however far apart the modes are.\n\n"
    "A midpoint's q is wider than a component, and narrower than p itself is along the line."
)


def part(results: InterpolationResults) -> Part:
    """Lay out what the experiment shows.

    Parameters
    ----------
    results : InterpolationResults
        Of `interpolation.run`.

    Returns
    -------
    Part
        For the study's page.
    """
    thresholds, optima = thresholds_table(results), optima_table(results)
    tables = (thresholds, optima, noise_table(results), time_table(results))
    section = Section(
        "One Gaussian between two modes",
        text=_TEXT,
        notes=(Note(_readings(results), title="Which number is the threshold?"),),
        tables=tables,
        figures=(figure_three(results), appendix(results)),
    )
    return Part(
        name="interpolation",
        headline=headline(results),
        section=section,
        statements=statements(results),
        tables=tables,
        shown=(thresholds,),
        data=results.to_dict(),
    )


def headline(results: InterpolationResults) -> tuple[str, ...]:
    """Say the result in two sentences."""
    appears, better = _by_sigma(results.vanishing, results), _by_sigma(results.switching, results)
    low, high = _outer(results.descent_brackets())
    return (
        f"A Gaussian fitted by reverse KL to two modes ±α sits midway below α = {appears:.4f} σ (a distance of "
        f"{2 * appears:.4f} σ), where no other optimum exists; midway stays the better one up to {better:.4f} σ, and "
        "a local optimum at every α.",
        f"Stochastic descents from a mode change from midway to the mode between {format_number(low)} σ and "
        f"{format_number(high)} σ at every σ tried, and end within {_excess(results):.1e} nats of the optimum.",
    )


def _readings(results: InterpolationResults) -> str:
    appears, better = _by_sigma(results.vanishing, results), _by_sigma(results.switching, results)
    tried = zip(results.settings.noisy, results.noisy_brackets(), strict=True)
    calm, *_, rough = sorted(tried, key=lambda pair: pair[0].noise)
    return (
        "Thresholds of 1.25, 2.5, 5 and 10 at σ = 0.25, 0.5, 1 and 2 are reported for the paper, that is 5 σ. With α "
        f"as half the distance 5 σ is far above all of them: from {format_number(appears)} σ on a careful descent "
        "from a mode stays there. As a distance between the modes, 5 σ lies between the two exact ones, "
        f"{2 * appears:.2f} σ, where a mode's optimum appears, and {2 * better:.2f} σ, where it becomes the better "
        "one. To two digits neither is 5.0. Rough steps can knock a descent out of an optimum that is there, which "
        f"raises the threshold: as a distance, it is between {_found(*rough)}, and between {_found(*calm)}. Stopping "
        "early lowers it. The paper's numbers of samples and steps and its rate are missing from our text of it."
    )


def _found(way: Descent, bracket: tuple[float, float]) -> str:
    ends = " and ".join(f"{format_number(2 * end)} σ" for end in bracket)
    return f"{ends} with {way.samples} samples a step and a rate of {way.learning_rate:g} σ²"


def statements(results: InterpolationResults) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    return (
        _statement(
            "midway below a threshold, though KL is reversed and the start is a mode",
            _BELOW,
            f"every descent below the threshold by quadrature ends with ||mu*|| / alpha under {MIDWAY:g}",
            _sides(results, above=False),
        ),
        _statement(
            "at a mode above it",
            _ABOVE,
            f"every descent above the threshold by quadrature ends with ||mu*|| / alpha over {MIDWAY:g}",
            _sides(results, above=True),
        ),
        _statement(
            "the threshold scales with sigma",
            _SCALES,
            "its ratio to sigma is the same at every sigma: to 1e-6 by quadrature, to the grid by descents (whose rate "
            "is in units of sigma squared)",
            _scaling(results),
        ),
        _statement(
            "interpolating solutions are wider than a component",
            _WIDER,
            "det Sigma is above sigma^4 at every midpoint that is the only optimum",
            _wider(results),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _sides(results: InterpolationResults, *, above: bool) -> Iterable[Trial]:
    ratios = np.asarray(results.settings.ratios)
    for row, sigma in enumerate(results.settings.sigmas):
        side = (ratios > results.vanishing[row] / sigma) == above
        shift = results.descents.shift[row, side]
        if shift.size:
            tried = f"alpha from {ratios[side].min():g} to {ratios[side].max():g} sigma"
            measured = f"{shift.size} descents, {tried}: {shift.min():.3f} to {shift.max():.3f}"
            holds = (shift > MIDWAY).all() if above else (shift < MIDWAY).all()
            yield Trial(f"sigma {sigma:g}", measured, bool(holds))


def _scaling(results: InterpolationResults) -> Iterable[Trial]:
    sigmas = np.asarray(results.settings.sigmas)
    kinds = {
        "quadrature: an optimum near a mode appears": results.vanishing / sigmas,
        "quadrature: it becomes the better one": results.switching / sigmas,
    }
    for where, ratios in kinds.items():
        holds = bool(np.ptp(ratios) < 1e-6)
        yield Trial(where, f"{ratios.min():.8f} to {ratios.max():.8f} sigma", holds)
    found = results.descent_brackets()
    words = ", ".join(f"{low:g} to {high:g}" for low, high in found)
    alike = None if np.isnan(found).any() else len(set(found)) == 1
    yield Trial("descents from a mode, each sigma", f"{words} sigma", alike)


def _wider(results: InterpolationResults) -> Iterable[Trial]:
    for row, sigma in enumerate(results.settings.sigmas):
        alone = results.ratios * sigma < results.vanishing[row]
        midway = results.branches["midpoint"].determinant[row, alone]
        first, last = results.ratios[alone][[0, -1]]
        measured = (
            f"{midway[0]:.4f} at alpha = {first:.2g} sigma to {midway[-1]:.2f} at {last:.3g} sigma; of p itself "
            f"{1 + last**2:.2f}"
        )
        yield Trial(f"sigma {sigma:g}", measured, bool((midway > 1).all()))


def thresholds_table(results: InterpolationResults) -> Table:
    """Tabulate thresholds for every sigma, in alpha and as distances between the modes."""
    columns = (
        Column("sigma"),
        Column("a mode's optimum appears", digits=5, unit="alpha"),
        Column("a mode's optimum appears", digits=5, unit="distance"),
        Column("it becomes the better one", digits=5, unit="alpha"),
        Column("it becomes the better one", digits=5, unit="distance"),
        Column("descents from a mode stay", unit="alpha, between"),
        Column("descents from a mode stay", unit="distance, between"),
        Column("reported for the paper"),
    )
    both = zip(results.vanishing, results.switching, results.descent_brackets(), strict=True)
    rows = tuple(
        (
            sigma,
            *(times * float(alpha) for alpha in (appears, better) for times in (1, 2)),
            *(_range(bracket, times * sigma) for times in (1, 2)),
            REPORTED.get(sigma),
        )
        for sigma, (appears, better, bracket) in zip(results.settings.sigmas, both, strict=True)
    )
    caption = (
        "Thresholds by quadrature and by descents; alpha is half the distance between the modes"
    )
    return Table(columns, rows, caption)


def optima_table(results: InterpolationResults) -> Table:
    """Tabulate optima beside the ends of descents, at the sigma nearest 1."""
    row = int(np.abs(np.log(results.settings.sigmas)).argmin())
    names = ("shift", "determinant", "divergence")
    rows = []
    for ratio in (ratio for ratio in SHOWN if ratio in results.settings.ratios):
        place = int(np.abs(results.ratios - ratio).argmin())
        column = results.settings.ratios.index(ratio)
        middle, near = (
            [float(getattr(results.branches[branch], name)[row, place]) for name in names]
            for branch in ("midpoint", "mode")
        )
        ends = [float(getattr(results.descents, name)[row, column].mean()) for name in names]
        rows.append((ratio, *middle[1:], *near, *ends))
    measures = (("||mu|| / alpha", 4), ("det Sigma / sigma^4", 3), ("KL", 4))
    kinds = (("midway", measures[1:]), ("near a mode", measures), ("descents, mean", measures))
    columns = (
        Column("alpha / sigma"),
        *(Column(name, decimals=d, unit=kind) for kind, shown in kinds for name, d in shown),
    )
    caption = "Optima by quadrature and ends of descents from a mode; KL in nats; sigma "
    return Table(columns, tuple(rows), caption + f"{results.settings.sigmas[row]:g}")


def noise_table(results: InterpolationResults) -> Table:
    """Tabulate what the noise of its steps does to the threshold that a descent finds."""
    rows = tuple(
        (way.samples, way.learning_rate, way.steps, way.noise, _range(found), _range(found, 2))
        for way, found in zip(results.settings.noisy, results.noisy_brackets(), strict=True)
    )
    columns = (
        Column("samples", unit="a step"),
        Column("rate", unit="of sigma²"),
        "steps",
        Column("rate over samples"),
        Column("descents stay", unit="alpha / sigma, between"),
        Column("descents stay", unit="distance / sigma, between"),
    )
    return Table(columns, rows, "Noise raises the threshold that a descent from a mode finds")


def time_table(results: InterpolationResults) -> Table:
    """Tabulate what stopping early does to the threshold that a descent finds."""
    rows = tuple(
        (time, float(ratio), 2 * float(ratio))
        for time, ratio in zip(results.settings.times, results.stopped, strict=True)
    )
    columns = (
        Column("steps x rate", unit="of sigma²"),
        Column("descents stay", digits=5, unit="alpha / sigma, above"),
        Column("descents stay", digits=5, unit="distance / sigma, above"),
    )
    return Table(columns, rows, "Stopping early lowers it: a descent without noise, from a mode")


def _by_sigma(thresholds: np.ndarray, results: InterpolationResults) -> float:
    return float(np.mean(thresholds / np.asarray(results.settings.sigmas)))


def _outer(brackets: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Give the range that holds every bracket; NaN where one is open."""
    low, high = np.array(list(brackets)).T
    return float(low.min()), float(high.max())


def _excess(results: InterpolationResults) -> float:
    """Largest KL of a descent's end above that of the optimum on its side of the threshold."""
    places = np.searchsorted(results.ratios, results.settings.ratios)
    near, middle = (results.branches[b].divergence[:, places] for b in ("mode", "midpoint"))
    best = np.where(np.isnan(near), middle, near)
    return float((results.descents.divergence - best[..., None]).max())


def _range(bracket: tuple[float, float], times: float = 1.0) -> str:
    return " to ".join(format_number(times * end) for end in bracket)
