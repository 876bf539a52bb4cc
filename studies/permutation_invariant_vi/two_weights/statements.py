"""The paper's statements on the network of two weights beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from ...lab.claims import Statement, Trial, judge
from .fits import FitScores
from .measures import WORDS, TwoWeightResults
from .optima import OBJECTIVES, TOGETHER, paired

ERRORS = 2.0
"""Standard errors beyond which a difference counts."""
TIE = 1e-3
"""Share of the noise's variance below which two mean squared errors are the same."""
EVEN = 1e-6
"""Nats below which two divergences, or an information and zero, are the same."""
SGM = ("sgm-exact", "sgm-infonce")

_INTERPOLATES = (
    "Figure 4(b) demonstrates our intuition from Section 3 and shows that the unimodal approximate "
    "posterior interpolates between the modes."
)
_PREVENTS = (
    "VI using symmetrized variational posteriors prevents equivalent mode interpolation [...]."
)
_HIGHER = "This leads to higher (symmetrized) ELBO values, detailed in Table 3 [...]."
_ALWAYS = "Thus, symmetrized VI always results in a better posterior [...]."
_COROLLARY = (
    "For all variational parameter configurations, [the symmetrised ELBO is at least the ELBO], with "
    "equality iff [q] is [G]-invariant."
)
_POOR = "This translates to poor predictive performance, as demonstrated in Table 2."
_BETTER = "[...] and better predictive performance, detailed in Table 2."


def statements(results: TwoWeightResults) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    return (
        _statement(
            "a mean field interpolates between the modes",
            _INTERPOLATES,
            "at some alpha the means of the best mean field are less than "
            f"{TOGETHER:g} times as far apart as the truth's weights (mean of |w1 - w2|)",
            _interpolating(results),
        ),
        _statement(
            "a symmetrised one does not",
            _PREVENTS,
            f"at every alpha the means are at least {TOGETHER:g} times as far apart as the truth's "
            "weights, in the best approximation and in every fit",
            _apart(results),
        ),
        _statement(
            "higher (symmetrised) ELBO",
            _HIGHER,
            "the symmetrised ELBO of SGM's fits is above the ELBO of MFVI's, fit by fit, by more than "
            f"{ERRORS:g} standard errors, both by quadrature",
            _higher(results),
        ),
        _statement(
            "better posterior, best against best",
            _ALWAYS,
            "KL(q^G || p) of the best symmetrised approximation is below KL(q || p) of the best mean field",
            _always(results),
        ),
        _statement(
            "symmetrised ELBO at least the ELBO",
            _COROLLARY,
            f"the information is above {EVEN:g} nats where the two units differ, and below it where they are alike",
            _corollary(results),
        ),
        _statement(
            "interpolation predicts poorly",
            _POOR,
            "where the best mean field interpolates in most data sets, its mean squared error is above the exact "
            f"posterior's, over data sets, by more than {ERRORS:g} standard errors; void where neither is above",
            _poor(results),
        ),
        _statement(
            "better prediction, this data set",
            _BETTER,
            f"test MSE of SGM's fits is below that of MFVI's, fit by fit, by more than {ERRORS:g} standard errors and "
            f"by {TIE:g} of the noise's variance; void where neither is below",
            _better_fits(results),
        ),
        _statement(
            "better prediction, over data sets",
            _BETTER,
            "expected test MSE of the best symmetrised approximation is below that of the best mean field, likewise; "
            "alphas at which the two are the same are left out",
            _better_average(results),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _interpolating(results: TwoWeightResults) -> Iterable[Trial]:
    for noise in results.settings.noises:
        cases = {alpha: case for (n, alpha), case in results.cases.items() if n == noise}
        apart = {alpha: case.relative_separation("mfvi") for alpha, case in cases.items()}
        at = [f"{alpha:g}" for alpha, value in apart.items() if value < TOGETHER]
        edge = results.thresholds[noise]
        until = "" if edge is None else f", and up to alpha = {edge:.2f} in between"
        words = f"at alpha = {', '.join(at)}{until}" if at else "at none of the alphas"
        yield Trial(f"noise {noise:g}", words, bool(at))


def _apart(results: TwoWeightResults) -> Iterable[Trial]:
    for (noise, alpha), case in results.cases.items():
        value = case.relative_separation("sgm")
        yield Trial(
            f"noise {noise:g}, alpha {alpha:g}, best", f"{value:.2f} times", value >= TOGETHER
        )
    for (alpha, method), scores in results.fits.items():
        if method in SGM:
            values = scores.separation / results.fitted_case(alpha).truth.separation
            words = f"{values.min():.2f} to {values.max():.2f} times"
            yield Trial(f"alpha {alpha:g}, {WORDS[method]}", words, bool(values.min() >= TOGETHER))


def _pairs(results: TwoWeightResults) -> Iterable[tuple[str, float, FitScores, FitScores]]:
    for alpha in results.settings.alphas:
        plain = results.fits.get((alpha, "mfvi"))
        for method in SGM:
            other = results.fits.get((alpha, method))
            if plain is not None and other is not None:
                yield f"alpha {alpha:g}, {WORDS[method]}", alpha, plain, other


def _higher(results: TwoWeightResults) -> Iterable[Trial]:
    for where, alpha, plain, other in _pairs(results):
        evidence = results.fitted_case(alpha).truth.log_evidence
        gain, error = paired(plain.kl, other.kl_symmetrised)
        before, after = evidence - plain.kl.mean(), evidence - other.kl_symmetrised.mean()
        words = f"{before:.3f} to {after:.3f}, standard error {error:.1g}"
        yield Trial(where, words, None if math.isnan(error) else gain > ERRORS * error)


def _always(results: TwoWeightResults) -> Iterable[Trial]:
    for (noise, alpha), case in results.cases.items():
        before, after = (case.best[name] for name in OBJECTIVES)
        words = (
            f"{before.kl:.4f} to {after.kl_symmetrised:.4f} nats ({before.kl_symmetrised:.4f} where the "
            "mean field is symmetrised afterwards)"
        )
        holds = after.kl_symmetrised < before.kl - EVEN
        yield Trial(f"noise {noise:g}, alpha {alpha:g}", words, bool(holds))


def _corollary(results: TwoWeightResults) -> Iterable[Trial]:
    random, alike = results.random_information, results.alike_information
    words = f"information from {random.min():.1e} to {random.max():.3f} nats"
    yield Trial(f"{len(random)} random Gaussians", words, bool(random.min() > EVEN))
    words = f"at most {np.abs(alike).max():.0e} nats"
    yield Trial(f"{len(alike)} with units alike", words, bool(np.abs(alike).max() < EVEN))
    for method in WORDS:
        found = [f for (_, name), f in results.fits.items() if name == method]
        if found:
            values = np.array([q.information for scores in found for q in scores.gaussians])
            words = f"information from {values.min():.1e} to {values.max():.3f} nats"
            yield Trial(f"{len(values)} fits, {WORDS[method]}", words, bool(values.min() > -EVEN))


def _poor(results: TwoWeightResults) -> Iterable[Trial]:
    for (noise, alpha), found in results.averages.items():
        if found.interpolates > 0.5:
            worse, error = paired(found.mfvi, found.exact)
            words = (
                f"{_of(found.exact)} (exact) and {_of(found.mfvi)}, difference {worse:.4f} ± {error:.4f}; interpolates "
                f"in {found.interpolates:.0%} of the data sets"
            )
            yield Trial(f"noise {noise:g}, alpha {alpha:g}", words, _beyond(worse, error, noise))


def _better_fits(results: TwoWeightResults) -> Iterable[Trial]:
    for where, _, plain, other in _pairs(results):
        gain, error = paired(plain.mse, other.mse)
        words = f"{plain.mse.mean():.4f} to {other.mse.mean():.4f}, gain {gain:.4f} ± {error:.4f}"
        yield Trial(where, words, _beyond(gain, error, results.settings.noise))


def _better_average(results: TwoWeightResults) -> Iterable[Trial]:
    for (noise, alpha), found in results.averages.items():
        gain, error = found.gain
        if np.abs(found.mfvi - found.sgm).max() > TIE * noise**2:
            words = f"{_of(found.mfvi)} to {_of(found.sgm)}, gain {gain:.4f} ± {error:.4f}"
            yield Trial(f"noise {noise:g}, alpha {alpha:g}", words, _beyond(gain, error, noise))


def _beyond(gain: float, error: float, noise: float) -> bool | None:
    """Whether a gain is one; None where it is neither a gain nor a loss for sure."""
    sure = abs(gain) > ERRORS * error and abs(gain) > TIE * noise**2
    return gain > 0 if sure else None


def _of(errors: Float[np.ndarray, " data_set"]) -> str:
    return f"{errors.mean():.4f}"
