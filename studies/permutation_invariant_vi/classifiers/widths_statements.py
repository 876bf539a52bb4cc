"""The paper's statements on classifiers of growing width, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable

from ...lab.claims import Statement, Trial, judge
from .widths import MARGINS, Fits, WidthResults, pair, paired

DECIMALS = {"symmetrised": 2, "accuracy": 4}
_RULE = (
    "is above {other}: Student's 95 % interval of the paired differences lies above zero (void where it holds zero and "
    "more than {margin})"
)
_HIGHER = (
    "We demonstrate experimentally that our approach mitigates the aforementioned biases and results in improved "
    "predictions and a higher ELBO."
)
_ALWAYS = "[Symmetrized] VI always results in a better posterior, further motivating the optimization of [its ELBO]."
_GROWS = (
    "The improvement in accuracy achieved by the symmetrization increases with model width, verifying our intuition "
    "from Theorem 3.1."
)
_FUTURE = (
    "Ideally, in order to unlock the full potential of this approach for larger models, we want to be able to reduce "
    "the variance of [the estimator] without using large values of [K]."
)


def statements(results: WidthResults) -> tuple[Statement, ...]:
    """Hold the paper's statements against the results."""
    return (
        _statement(
            "InfoNCE: a higher ELBO",
            _HIGHER,
            "the mean symmetrised ELBO of the fits that InfoNCE trained is above the mean ELBO of MFVI",
            _higher(results),
        ),
        _statement(
            "InfoNCE: training with the term improves the posterior",
            _ALWAYS,
            _rule("the symmetrised ELBO", "that of MFVI's fits", "symmetrised"),
            _gain(results, "infonce", "symmetrised"),
        ),
        _statement(
            "InfoNCE: better predictions",
            _HIGHER,
            _rule("the test accuracy", "MFVI's", "accuracy"),
            _gain(results, "infonce", "accuracy"),
        ),
        _statement(
            "a better estimator improves the posterior",
            _FUTURE,
            _rule("the symmetrised ELBO", "that by InfoNCE at its best K", "symmetrised"),
            _recommended(results, "symmetrised"),
        ),
        _statement(
            "a better estimator predicts better",
            _FUTURE,
            _rule("the test accuracy", "MFVI's", "accuracy"),
            _gain(results, "permanent", "accuracy"),
        ),
        _statement(
            "the improvement in accuracy grows with width",
            _GROWS,
            _rule("the gain over MFVI at the widest network", "that at the narrowest", "accuracy"),
            _growth(results),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _rule(what: str, other: str, measure: str) -> str:
    return f"{what} {_RULE.format(other=other, margin=MARGINS[measure])}"


def _where(fits: Fits) -> str:
    return f"{fits.method.label}, {fits.width} units"


def _higher(results: WidthResults) -> Iterable[Trial]:
    for width in results.widths:
        plain = results.mfvi(width)
        if plain is None:
            continue
        for fits in results.at(width, "infonce"):
            ours, theirs = fits.symmetrised.mean(), plain.elbo.mean()
            yield Trial(_where(fits), f"{ours:.1f} and {theirs:.1f} nats", bool(ours > theirs))


def _gain(results: WidthResults, kind: str, measure: str) -> Iterable[Trial]:
    for width in results.widths:
        plain = results.mfvi(width)
        if plain is None:
            continue
        for fits in results.at(width, kind):
            if kind == "infonce" or fits.method.name == "recommended":
                found = paired(fits, plain, measure)
                measured = found.write(DECIMALS[measure])
                yield Trial(_where(fits), measured, found.gains(MARGINS[measure]))


def _recommended(results: WidthResults, measure: str) -> Iterable[Trial]:
    for width in results.widths:
        ours, infonce = results.recommended(width), results.best_infonce(width)
        if ours and infonce:
            found = paired(ours, infonce, measure)
            where = f"{_where(ours)}, K = {infonce.method.permutations}"
            yield Trial(where, found.write(DECIMALS[measure]), found.gains(MARGINS[measure]))


def _growth(results: WidthResults) -> Iterable[Trial]:
    if len(results.widths) < 2:
        return
    ends = (results.widths[0], results.widths[-1])
    names = [n for _, n in results.fits if n == "recommended" or n.startswith("infonce")]
    for name in dict.fromkeys(names):
        found = [(results.fits.get((w, name)), results.mfvi(w)) for w in ends]
        gains = [a.accuracy - b.accuracy for a, b in found if a and b]
        if len(gains) == len(ends) and len(gains[0]) == len(gains[1]):
            grown = pair(gains[1] - gains[0])
            label = results.fits[ends[0], name].method.label
            measured = (
                f"{gains[0].mean():+.4f} at {ends[0]} units, {gains[1].mean():+.4f} at {ends[1]}"
            )
            yield Trial(label, measured, grown.gains(MARGINS["accuracy"]))
