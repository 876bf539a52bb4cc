"""Claims about the remedies: each is tried on every data set, in either run.

docs/guides/which-remedy.md states the claims that hold everywhere, in the words of their labels, and no others; a test
holds it to the record.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import gt, lt

from ..lab import Claim, Finding, Frames, Row, Test, contrast, each, join, select
from ..lab.shared import MAX_RHAT

NOTHING, SYMMETRISED = "plain.meanfield", "plain.symmetrised"
BROKEN = ("ordered.meanfield", "unit-norm.meanfield", "skips.meanfield")
"""Remedies that change the model so that no symmetry is left, or less of it."""
FITS = (NOTHING, *BROKEN, SYMMETRISED)
GAUSSIAN, FULL, DISTILLED = "plain.gaussian", "plain.gaussian-full", "plain.distilled"
NUTS, MCLMC, ENSEMBLE = "plain.nuts", "plain.mclmc", "plain.ensemble"
LITTLE = 0.1
"""A distance that changes by less than this share of it counts as unchanged."""
MOST = 0.9
"""Share of a gain that counts as most of it."""
NARROW = 0.95
"""Predictions whose spread is below this times the truth's count as too sure."""
APART = 1.1
"""R-hat above which fits, or chains, count as different."""


def no_truth(frames: Frames, row: Row) -> bool:
    """Tell whether the chains that a row is compared with disagree on the outputs, or are missing."""
    return row["truth_rhat"] is None or row["truth_rhat"] > MAX_RHAT


def _where(row: Row) -> str:
    return f"{row['dataset']}, run {row['run']}"


def _against(
    first: str, seconds: Iterable[str], tried: Callable[[Row, Row], Finding], *, void: bool = True
) -> Test:
    """Compare each of some remedies with the first, data set by data set and run by run."""
    return contrast(
        "cells",
        "remedy",
        [(first, second) for second in seconds],
        tried,
        same=("dataset", "run"),
        where=lambda a, b: f"{_where(b)}: {b['label']}",
        void=no_truth if void else (lambda frames, row: False),
    )


def _of(remedies: Iterable[str], tried: Callable[[Row], Finding], *, void: bool = True) -> Test:
    """Ask the same of some remedies, data set by data set and run by run."""
    return each(
        select("cells", remedy=tuple(remedies)),
        tried,
        where=lambda row: f"{_where(row)}: {row['label']}",
        void=no_truth if void else (lambda frames, row: False),
    )


def _from_to(
    name: str, holds: Callable[[float, float], bool], form: str = "{:.3g} to {:.3g}"
) -> Callable[[Row, Row], Finding]:
    """Ask whether a measure of the first remedy and of the second are as they should be."""
    return lambda a, b: (form.format(a[name], b[name]), holds(a[name], b[name]))


_nearer = _from_to("distance", gt)


def _there_already(a: Row, b: Row) -> Finding:
    gain, there = b["best_bound"] - a["best_bound"], a["gap_lower"]
    return f"{there:.1f} of {gain:.1f} nats", gain > 0 and there > MOST * gain


def _too_sure(row: Row) -> Finding:
    return f"spread {row['spread_ratio']:.2f} of the truth's", row["spread_ratio"] < NARROW


def _outputs_agree(row: Row) -> Finding:
    words = f"R-hat {row['outputs_rhat']:.3f} of outputs, {row['weights_rhat']:.2f} of weights"
    return words, row["outputs_rhat"] <= MAX_RHAT and row["outputs_rhat"] < row["weights_rhat"]


_claim = partial(Claim, mixed="depends")
CLAIMS = (
    _claim(
        "Chains agree on what the network predicts, not on its weights",
        "The labels of units switch between chains; outputs have no labels.",
        f"of NUTS's four chains the largest R-hat of an output is at most {MAX_RHAT:g}, and below that of a weight",
        _of([NUTS], _outputs_agree, void=False),
    ),
    _claim(
        "Symmetrised VI raises the bound",
        "Averaging over the group adds the mutual information to the ELBO, which plain mean-field VI leaves out.",
        "the lower bound of its symmetrised ELBO is above the ELBO of plain mean-field VI, of the best fit of each",
        _against(
            NOTHING, [SYMMETRISED], _from_to("best_bound", lt, "{:.1f} to {:.1f} nats"), void=False
        ),
    ),
    _claim(
        "Most of what symmetrised VI gains is there without training for it",
        "A plain fit that is averaged over the orders of its units after training has the gap of equation 6 as a gift.",
        f"of the best fits, the gap of plain mean-field VI is above {MOST:.0%} of what symmetrised VI has above its "
        "ELBO",
        _against(NOTHING, [SYMMETRISED], _there_already, void=False),
    ),
    _claim(
        "Symmetrised VI does not change the predictions",
        "What the average gains is evidence; its draws predict as those of the Gaussian that is averaged.",
        f"its distance from the truth is that of plain mean-field VI to within {LITTLE:.0%}",
        _against(
            NOTHING, [SYMMETRISED], _from_to("distance", lambda a, b: abs(b / a - 1) < LITTLE)
        ),
    ),
    _claim(
        "Ordered biases bring mean-field VI no nearer to the truth",
        "The order removes the symmetry, but makes a posterior that a Gaussian fits no better.",
        f"the distance from the truth is above {1 - LITTLE:.0%} of that with free biases",
        _against(
            NOTHING, ["ordered.meanfield"], _from_to("distance", lambda a, b: b > (1 - LITTLE) * a)
        ),
    ),
    _claim(
        "Orthogonal skips bring mean-field VI nearer to its truth",
        "With skips the model has no symmetry left, and a Gaussian fits its posterior better.",
        "the distance from the truth of its own model is below that of plain mean-field VI from its own",
        _against(NOTHING, ["skips.meanfield"], _nearer),
    ),
    _claim(
        "Unit-norm weights bring mean-field VI nearer to its truth",
        "Without the scale of its incoming weights a unit has one freedom less that a Gaussian fits badly.",
        "the distance from the truth of its own model is below that of plain mean-field VI from its own",
        _against(NOTHING, ["unit-norm.meanfield"], _nearer),
    ),
    _claim(
        "Mean-field VI is too sure of its predictions, with every remedy",
        "None of the remedies gives the spread of outputs that the posterior has.",
        f"the spread of its predictions is below {NARROW:g} times that of the truth of its model",
        _of(FITS, _too_sure),
    ),
    _claim(
        "Fits from other starts have other weights, with every remedy",
        "No remedy makes weights comparable between fits: there are more modes than symmetry makes.",
        f"R-hat of some weight over fits is above {APART:g} after alignment modulo what permutations are left",
        _of(
            FITS,
            lambda row: (f"R-hat {row['aligned_rhat']:.2f}", row["aligned_rhat"] > APART),
            void=False,
        ),
    ),
    _claim(
        "A Gaussian with the moments of aligned draws predicts worse than mean-field VI",
        "Moments keep each weight's spread and lose how weights go together, which predictions need.",
        "its distance from the truth is above that of plain mean-field VI",
        _against(NOTHING, [GAUSSIAN], _from_to("distance", lt)),
    ),
    _claim(
        "Of all single Gaussians the distilled one predicts nearest to the truth",
        "It is fitted to the predictions of the truth itself.",
        "its distance from the truth is below that of plain and of symmetrised mean-field VI, and of the Gaussians "
        "with the moments of aligned draws",
        join(
            *(
                _against(other, [DISTILLED], _nearer)
                for other in (NOTHING, SYMMETRISED, GAUSSIAN, FULL)
            )
        ),
    ),
    _claim(
        "Deep ensembles are surer of their predictions than the posterior",
        "Members are optima of the posterior, not draws of it.",
        f"the spread of its predictions is below {NARROW:g} times that of the truth",
        _of([ENSEMBLE], _too_sure),
    ),
    _claim(
        "Deep ensembles are surer of their predictions than mean-field VI",
        "Optima differ less than draws of the Gaussian.",
        "the spread of its predictions is below that of plain mean-field VI",
        _against(NOTHING, [ENSEMBLE], _from_to("spread_ratio", gt)),
    ),
    _claim(
        "MCLMC is nearer to the truth than mean-field VI",
        "Unadjusted chains have a bias, but a smaller one than a Gaussian.",
        "its distance from the truth is below that of plain mean-field VI",
        _against(NOTHING, [MCLMC], _nearer),
    ),
    _claim(
        "Mean-field VI and ensembles cost less than NUTS",
        "The posterior's own draws cost the most.",
        "a fit takes fewer gradients of the whole data's likelihood than all chains of NUTS",
        _against(
            NUTS,
            [NOTHING, ENSEMBLE],
            _from_to("gradients", gt, "{:.0f} to {:.0f} gradients"),
            void=False,
        ),
    ),
)
