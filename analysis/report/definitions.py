"""Definitions of a report's terms, for readers who meet them for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .subject import Subject

DIAGNOSTICS: tuple[tuple[str, str], ...] = (
    (
        "Parameter",
        "One scalar entry of a variable. Indices count from 0, unless the file names them otherwise: `A[0,1]` "
        "stands in the first row and the second column of `A`.",
    ),
    (
        "R-hat",
        "Rank-normalised split R-hat: how much wider the draws of all chains lie together than "
        "each half chain alone. 1 when the chains agree; above 1.01 they do not. (Vehtari, Gelman, "
        "Simpson, Carpenter and Bürkner 2021.)",
    ),
    (
        "Bulk ESS, tail ESS",
        "Effective sample size: how many independent draws would estimate the centre (rank-"
        "normalised), or the 5 % and 95 % quantiles (the smaller of the two; ArviZ's own table takes the ends "
        "of its interval), as well. At least 100 a chain, or 400 in all. (As above.)",
    ),
    (
        "MCSE",
        "Monte Carlo standard error of the mean: the error that is due to having finitely many "
        "draws.",
    ),
    (
        "Divergences",
        "Draws at which the simulated trajectory's energy error exploded: the posterior is curved "
        "more sharply there than the step size can follow, and draws near it may be missing.",
    ),
    (
        "Tree depth, saturated",
        "A NUTS trajectory of depth k takes up to 2ᵏ − 1 leapfrog steps. Saturated draws were cut "
        "off at the limit.",
    ),
    (
        "E-BFMI",
        "How freely the energy moves from draw to draw, compared with its spread, for each chain; "
        "below 0.3 the tails are explored too slowly. (Betancourt 2016.)",
    ),
    (
        "ESS per second, per gradient",
        "The smallest bulk ESS over the seconds of sampling (without warmup, summed over chains), "
        "and over the gradient evaluations of the kept draws.",
    ),
    (
        "k-hat",
        "Shape of the tail of the importance ratios posterior / approximation, by Pareto "
        "smoothing. Above min(1 − 1/log₁₀ S, 0.7) for S draws the approximation is too far off to "
        "be corrected. (Yao, Vehtari, Simpson and Gelman 2018.)",
    ),
    (
        "ELBO",
        "Evidence lower bound in nats; larger is better, and comparable only between fits of the "
        "same model.",
    ),
)

PREDICTION: tuple[tuple[str, str], ...] = (
    ("RMSE", "Root mean squared error of the predictive mean, in the units of the target."),
    (
        "Log score",
        "Mean over points of the log predictive density, averaged over draws inside the logarithm, "
        "in nats; larger is better.",
    ),
    (
        "Coverage, outside 95 %",
        "Share of points inside the central 50 % or 95 % predictive interval, and outside the "
        "95 % one; the nearer to 0.5, 0.95 and 0.05 the better.",
    ),
    (
        "Interval width",
        "Mean width of the central predictive interval; narrower is better at equal coverage.",
    ),
)

ALIGNMENT: tuple[tuple[str, str], ...] = (
    (
        "Labelling, aligned",
        "Interchangeable components have no names of their own: draws that differ in the order of the components say "
        "the same. Aligned draws are all brought into one order.",
    ),
    (
        "Invariant",
        "A quantity that no change of labels changes, such as a mean over the components.",
    ),
)

CROSS_VALIDATION: tuple[tuple[str, str], ...] = (
    (
        "PSIS-LOO, elpd, Pareto k",
        "Log predictive density of each observation under the posterior of all others, estimated from the draws by "
        "Pareto smoothed importance sampling. Where an observation's k is above the limit, its estimate is not to be "
        "trusted. (Vehtari, Gelman and Gabry 2017.)",
    ),
)

_OF_ALL, _OF_FITS = ("Parameter", "MCSE"), ("k-hat", "ELBO")
"""Diagnostics of all posteriors, and of fits; the others are of chains."""


def definitions_of(subjects: Sequence[Subject]) -> tuple[tuple[str, str], ...]:
    """Choose the definitions of the words that stand on a page."""
    from onebasin.posteriors import schema

    chains = any(subject.diagnosis.has_chains for subject in subjects)
    fits = any(subject.view.is_variational for subject in subjects)
    chosen = tuple(
        (word, text)
        for word, text in DIAGNOSTICS
        if word in _OF_ALL or (fits if word in _OF_FITS else chains)
    )
    if any(subject.diagnosis.aligned for subject in subjects):
        chosen += ALIGNMENT
    if any(subject.view.group(schema.LOG_LIKELIHOOD) is not None for subject in subjects):
        chosen += CROSS_VALIDATION
    if len(subjects) > 1 and any(subject.view.network for subject in subjects):
        chosen += PREDICTION
    return chosen
