"""The section of the page on the network of two weights."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.report import Section

from ...lab.legacy import filled
from ..part import Part
from . import pictures, tables
from .measures import TwoWeightResults
from .optima import Average
from .statements import ERRORS, TIE, statements

NAME = "two_weights"
TITLE = "The smallest network with a permutation"
_NEAR = 0.001


def part(results: TwoWeightResults) -> Part:
    """Say what follows from the results."""
    every = filled(
        tables.mse_table(results),
        tables.elbo_table(results),
        tables.divergence_table(results),
        tables.optimum_table(results),
        tables.average_table(results),
    )
    return Part(
        name=NAME,
        headline=headline(results),
        section=Section(
            TITLE,
            text=_text(results),
            tables=every,
            figures=(pictures.contours(results), pictures.over_alpha(results)),
        ),
        statements=statements(results),
        tables=every,
        shown=every[:1],
        data=results.to_dict(),
    )


def headline(results: TwoWeightResults) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    said = (_collapse(results), _divergence(results), _prediction(results))
    return tuple(sentence for sentence in said if sentence)


def _collapse(results: TwoWeightResults) -> str:
    edges = [
        f"alpha = {edge:.2f} with noise {noise:g}"
        for noise, edge in results.thresholds.items()
        if edge is not None
    ]
    if not edges:
        return ""
    least = min(case.relative_separation("sgm") for case in results.cases.values())
    return (
        f"Of the network with two weights, the best mean field lies between the modes up to {' and '.join(edges)}; "
        f"the best symmetrised one does so nowhere (its means are {least:.2f} times as far apart as the truth's "
        "weights, or more)."
    )


def _divergence(results: TwoWeightResults) -> str:
    worst = max(case.best["sgm"].kl_symmetrised for case in results.cases.values())
    plain = [case.best["mfvi"].kl for case in results.cases.values()]
    fits = [f.kl_symmetrised.max() for (_, m), f in results.fits.items() if m == "sgm-exact"]
    trained = f", and fits trained with the exact term are within {max(fits):.3f}" if fits else ""
    return (
        f"The best symmetrised approximations are within {worst:.3f} nats of the exact posterior{trained}; the best "
        f"mean fields are {min(plain):.2f} to {max(plain):.2f} nats away. {_afterwards(results)}"
    )


def _afterwards(results: TwoWeightResults) -> str:
    """Say what symmetrising a mean field after its training leaves undone."""
    left = {
        pair: case.best["mfvi"].kl_symmetrised - case.best["sgm"].kl_symmetrised
        for pair, case in results.cases.items()
    }
    (noise, alpha), most = max(left.items(), key=lambda item: item[1])
    near = sum(value < _NEAR for value in left.values())
    return (
        f"Symmetrised only after training, a mean field is up to {most:.2f} nats farther away than one trained for it "
        f"(noise {noise:g}, alpha = {alpha:g}), and by less than {_NEAR:g} in {near} of {len(left)} cases."
    )


def _prediction(results: TwoWeightResults) -> str:
    better, worse = _moved(results, up=True), _moved(results, up=False)
    if not better and not worse:
        return "Symmetrising changes no prediction by more than chance."
    said = [f"lowers the expected test MSE at {' and '.join(better)}"] if better else []
    if worse:
        it = "it" if better else "the expected test MSE"
        said.append(
            f"raises {it} at {' and '.join(worse)}, where the midpoint of the modes, which shrinks the function, is "
            "nearer to a truth that is small"
        )
    return f"Over {results.settings.data_sets} data sets symmetrising {' and '.join(said)}."


def _moved(results: TwoWeightResults, *, up: bool) -> list[str]:
    """Alphas, noise by noise, at which the error is surely lower (`up`) or higher."""
    said = []
    for noise in results.settings.noises:
        found = [a for a in results.averages.values() if a.noise == noise and _sure(a, up)]
        if found:
            alphas = ", ".join(f"{average.alpha:g}" for average in found)
            said.append(f"alpha = {alphas} with noise {noise:g}")
    return said


def _sure(average: Average, up: bool) -> bool:
    gain, error = average.gain
    gain = gain if up else -gain
    return gain > max(ERRORS * error, TIE * average.noise**2)


def _text(results: TwoWeightResults) -> str:
    settings = results.settings
    moved = max(case.truth.moved for case in results.cases.values())
    return (
        "f(x) = relu(w1 x) + relu(w2 x), with w1 and w2 ~ N(0, 1), is the smallest network whose units can be "
        "swapped; its posterior is known. The data follow f(x) = alpha |x|, so that (alpha, -alpha) and "
        "(-alpha, alpha) serve equally well, and lie the farther apart the larger alpha is. The text of the paper at "
        f"hand has lost its numbers; here there are {settings.num_obs} training points with x ~ N(0, 1), noise of "
        f"standard deviation {settings.noise:g}, and {settings.num_test} test points. Every alpha has the same x and "
        f"the same standardised errors. Methods are trained by {settings.steps} steps of Adam on all points at once "
        "(the paper has batches), from random starts.\n\n"
        "The posterior is found by quadrature: its log evidence moves by at most "
        f"{_power(moved)} nats when the panels are halved. A Gaussian's ELBO is in closed form here, and its "
        "information a smooth integral, so that divergences from the posterior are known of every q, and the best q "
        "of each kind can be found without chance, as a yardstick of the fits. All errors of predictions against the "
        "true function are expected ones over x ~ N(0, 1)."
    )


def _power(value: float) -> str:
    """A bound as a power of ten."""
    return f"1e{int(np.ceil(np.log10(max(value, 1e-15)))):d}"
