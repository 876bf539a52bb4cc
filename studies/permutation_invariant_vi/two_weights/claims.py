"""The paper's statements on the network of two weights next to the measurements."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ... import lab
from ...lab import Claim, Finding, Frames, Pairs, Row, Trial, each, read
from .design import WORDS
from .measures import TOGETHER, relative_separation, separations

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


def gain(case: Row) -> Pairs:
    """Errors over data sets of the best mean field, and of the best symmetrised one."""
    return Pairs(case["errors"]["mfvi"], case["errors"]["sgm"])


def _interpolating(frames: Frames) -> Iterator[Trial]:
    for edge in read("edges", frames):
        cases = read("cases", frames).where(noise=edge["noise"])
        at = [f"{c['alpha']:g}" for c in cases if relative_separation(c, "mfvi") < TOGETHER]
        words = f"at alpha = {', '.join(at)}" if at else "at none of the alphas"
        if at and edge["alpha"] is not None:
            words += f", and up to alpha = {edge['alpha']:.2f} in between"
        yield Trial(f"noise {edge['noise']:g}", words, bool(at))


def _fits_apart(fit: Row) -> Finding:
    values = separations(fit) / fit["truth"]
    return f"{values.min():.2f} to {values.max():.2f} times", bool(values.min() >= TOGETHER)


def _beside_mfvi(frames: Frames) -> Iterable[Row]:
    """Fits of a symmetrised method with those of the mean field at their alpha."""
    fits = read("weight_fits", frames)
    return lab.beside(fits.where(method=SGM), fits.where(method="mfvi"), same="alpha")


def _higher(fit: Row) -> Finding:
    pairs, evidence = Pairs(fit["other"]["kl"], fit["kl_symmetrised"]), fit["log_evidence"]
    before, after = (evidence - np.mean(kl) for kl in (pairs.first, pairs.second))
    words = f"{before:.3f} to {after:.3f}, standard error {pairs.error:.1g}"
    return words, None if math.isnan(pairs.error) else pairs.mean > ERRORS * pairs.error


def _always(case: Row) -> Finding:
    before, after = case["mfvi"], case["sgm"]
    afterwards = f"{before['kl_symmetrised']:.4f} where the mean field is symmetrised afterwards"
    words = f"{before['kl']:.4f} to {after['kl_symmetrised']:.4f} nats ({afterwards})"
    return words, after["kl_symmetrised"] < before["kl"] - EVEN


def _corollary(frames: Frames) -> Iterator[Trial]:
    for row in read("random", frames):
        values = np.array(row["information"])
        if row["kind"] == "alike":
            words, holds = f"at most {np.abs(values).max():.0e} nats", np.abs(values).max() < EVEN
            yield Trial(f"{len(values)} with units alike", words, bool(holds))
        else:
            yield Trial(f"{len(values)} random Gaussians", _ends(values), bool(values.min() > EVEN))
    for method, label in WORDS.items():
        fits = read("weight_fits", frames).where(method=method)
        values = np.array([v for fit in fits for v in fit["by_quadrature"]["information"]])
        if len(values):
            yield Trial(f"{len(values)} fits, {label}", _ends(values), bool(values.min() > -EVEN))


def _ends(values: np.ndarray) -> str:
    return f"information from {values.min():.1e} to {values.max():.3f} nats"


def _poor(case: Row) -> Finding:
    exact, plain = case["errors"]["exact"], case["errors"]["mfvi"]
    worse = Pairs(plain, exact)
    words = (
        f"{_of(exact)} (exact) and {_of(plain)}, difference {_write(worse)}; interpolates "
        f"in {case['interpolates']:.0%} of the data sets"
    )
    return words, beyond(worse, case["noise"])


def _better_fits(frames: Frames) -> Iterator[Trial]:
    noise = read("two_weights", frames).rows[0]["noise"]
    for fit in _beside_mfvi(frames):
        pairs = Pairs(fit["other"]["mse"], fit["mse"])
        yield Trial(_where_fit(fit), *_compared(pairs, noise))


def beyond(pairs: Pairs, noise: float) -> lab.Holds:
    """Tell whether a gain is one; open where it is neither a gain nor a loss for sure."""
    if math.isnan(pairs.error):
        return None
    sure = abs(pairs.mean) > ERRORS * pairs.error and abs(pairs.mean) > TIE * noise**2
    return pairs.mean > 0 if sure else "open"


def _compared(pairs: Pairs, noise: float) -> Finding:
    words = f"{_of(pairs.first)} to {_of(pairs.second)}, gain {_write(pairs)}"
    return words, beyond(pairs, noise)


def _write(pairs: Pairs) -> str:
    return f"{pairs.mean:.4f} ± {pairs.error:.4f}"


def _of(errors: Sequence[float]) -> str:
    return f"{np.mean(errors):.4f}"


def _where(case: Row) -> str:
    return f"noise {case['noise']:g}, alpha {case['alpha']:g}"


def _where_fit(fit: Row) -> str:
    return f"alpha {fit['alpha']:g}, {fit['label']}"


CLAIMS = (
    Claim(
        "a mean field interpolates between the modes",
        _INTERPOLATES,
        "at some alpha the means of the best mean field are less than "
        f"{TOGETHER:g} times as far apart as the truth's weights (mean of |w1 - w2|)",
        _interpolating,
    ),
    Claim(
        "a symmetrised one does not",
        _PREVENTS,
        f"at every alpha the means are at least {TOGETHER:g} times as far apart as the truth's "
        "weights, in the best approximation and in every fit",
        lab.join(
            each(
                "cases",
                lambda case: (
                    f"{relative_separation(case, 'sgm'):.2f} times",
                    relative_separation(case, "sgm") >= TOGETHER,
                ),
                where=lambda case: f"{_where(case)}, best",
            ),
            each(lab.select("weight_fits", method=SGM), _fits_apart, where=_where_fit),
        ),
    ),
    Claim(
        "higher (symmetrised) ELBO",
        _HIGHER,
        "the symmetrised ELBO of SGM's fits is above the ELBO of MFVI's, fit by fit, by more than "
        f"{ERRORS:g} standard errors, both by quadrature",
        each(_beside_mfvi, _higher, where=_where_fit),
    ),
    Claim(
        "better posterior, best against best",
        _ALWAYS,
        "KL(q^G || p) of the best symmetrised approximation is below KL(q || p) of the best mean field",
        each("cases", _always, where=_where),
    ),
    Claim(
        "symmetrised ELBO at least the ELBO",
        _COROLLARY,
        f"the information is above {EVEN:g} nats where the two units differ, and below it where they are alike",
        _corollary,
    ),
    Claim(
        "interpolation predicts poorly",
        _POOR,
        "where the best mean field interpolates in most data sets, its mean squared error is above the exact "
        f"posterior's, over data sets, by more than {ERRORS:g} standard errors; open where neither is above",
        each(
            lambda frames: (case for case in read("cases", frames) if case["interpolates"] > 0.5),
            _poor,
            where=_where,
        ),
    ),
    Claim(
        "better prediction, this data set",
        _BETTER,
        f"test MSE of SGM's fits is below that of MFVI's, fit by fit, by more than {ERRORS:g} standard errors and "
        f"by {TIE:g} of the noise's variance; open where neither is below",
        _better_fits,
    ),
    Claim(
        "better prediction, over data sets",
        _BETTER,
        "expected test MSE of the best symmetrised approximation is below that of the best mean field, likewise; "
        "alphas at which the two are the same are left out",
        each(
            lambda frames: (
                case
                for case in read("cases", frames)
                if np.abs(gain(case).differences).max() > TIE * case["noise"] ** 2
            ),
            lambda case: _compared(gain(case), case["noise"]),
            where=_where,
        ),
    ),
)
