"""From the parts to findings and a page."""

from __future__ import annotations

from collections.abc import Iterator

from onebasin.analysis.report import Report, Section, describe_run

from ..lab.claims import Statement
from ..lab.legacy import (
    count_verdicts,
    failed_section,
    failure_table,
    filled,
    statement_table,
    trial_table,
    verdict_table,
)
from ..lab.study import Findings, Outcomes
from .classifiers import proximity_report, truth_report, widths_report
from .classifiers.proximity_measures import measure_proximity
from .classifiers.truth_measures import measure_truth
from .classifiers.widths import measure_widths
from .design import INTERPOLATION, Config, width_key
from .part import Part
from .plan import two_weight_key
from .two_modes.interpolation import InterpolationResults
from .two_weights.design import METHODS

TITLE = "Permutation-invariant variational inference"
_DEFINITIONS = (
    (
        "MFVI, SGM",
        "Mean-field variational inference; and its symmetrised form, a Gaussian averaged over all permutations of the "
        "hidden units, the paper's symmetric Gaussian mixture. A draw of the mixture is a draw of the Gaussian, "
        "permuted, so that both predict alike; what differs is what the Gaussian is trained for.",
    ),
    (
        "Mutual information, I",
        "Of a random permutation and the draw that it moved. The symmetrised ELBO is the ELBO plus I (Theorem 4.1), "
        "and I lies between 0 and log |G|, the logarithm of the number of permutations.",
    ),
    (
        "InfoNCE, K",
        "The paper's estimate of I, from the identity and K - 1 random permutations (Theorem 4.3). It is never above "
        "log K.",
    ),
    (
        "Recommended, fractional, Barber-Agakov",
        "Estimates of I that rest on its being a matrix permanent: the exact permanent for few units, marginals of "
        "fractional messages for more; and a bound by those messages.",
    ),
)


def conclude(config: Config, outcomes: Outcomes) -> Findings:
    """Measure, judge, and lay out the page."""
    parts = tuple(_parts(config, outcomes))
    judged = tuple(statement for part in parts for statement in part.statements)
    said = (*(sentence for part in parts for sentence in part.headline), count_verdicts(judged))
    tables = (
        *(table for part in parts for table in part.tables),
        statement_table(judged),
        trial_table(judged),
        failure_table(outcomes),
    )
    shown = (*(table for part in parts for table in part.shown), verdict_table(judged))
    return Findings(
        headline=said,
        statements=judged,
        shown=filled(*shown),
        tables=filled(*tables),
        report=_page(config, parts, outcomes, judged, said),
        data={part.name: dict(part.data) for part in parts},
    )


def _parts(config: Config, outcomes: Outcomes) -> Iterator[Part]:
    """Conclude every part whose cells succeeded."""
    from .two_modes import report as interpolation_report

    there = {cell.key for cell in outcomes}
    modes = _interpolation(outcomes) if INTERPOLATION in there else None
    if modes is not None:
        yield interpolation_report.part(modes)
    yield from _two_weights(config, outcomes)
    threshold = None if modes is None else float(modes.vanishing[0] / modes.settings.sigmas[0])
    widths = measure_widths(config, outcomes, within=threshold or 0.0)
    if widths.fits:
        yield widths_report.part(config, widths)
    yield proximity_report.part(measure_proximity(config, outcomes, widths, threshold=threshold))
    truth = truth_report.part(measure_truth(config, outcomes, widths))
    if truth is not None:
        yield truth


def _interpolation(outcomes: Outcomes) -> InterpolationResults:
    from .two_modes import interpolation

    tree = outcomes.by_key(INTERPOLATION)
    return interpolation.from_dataset(tree["interpolation"].to_dataset())


def _two_weights(config: Config, outcomes: Outcomes) -> Iterator[Part]:
    from .two_weights import measures as two_weights
    from .two_weights import report as two_weights_report

    there = {cell.key for cell in outcomes}
    keys = {
        (alpha, label): two_weight_key(alpha, label)
        for alpha in config.two_weights.alphas
        for label in METHODS
    }
    fits = {pair: outcomes.by_key(key) for pair, key in keys.items() if key in there}
    if fits:
        yield two_weights_report.part(two_weights.measure(config.two_weights, fits))


def _page(
    config: Config,
    parts: tuple[Part, ...],
    outcomes: Outcomes,
    judged: tuple[Statement, ...],
    said: tuple[str, ...],
) -> Report:
    verdicts = Section(
        "What the paper says, and what was measured",
        text="A statement reproduces where it holds in every comparison; all are listed at the end.",
        tables=(statement_table(judged),),
    )
    sections: tuple[Section | None, ...] = (
        _question(),
        *(part.section for part in parts),
        verdicts,
        Section("Every comparison", tables=(trial_table(judged),)),
        failed_section(outcomes),
    )
    keys = [width_key(w, m) for w in config.widths for m in ("mfvi", "recommended", "hmc")]
    runs = [describe_run(cell.label, outcomes.tree(cell)) for cell in outcomes if cell.key in keys]
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=tuple(section for section in sections if section is not None),
        provenance=tuple(runs),
        definitions=_DEFINITIONS,
    )


def _question() -> Section:
    return Section(
        "The question",
        text="A network's posterior has a mode for every order of its hidden units. A Gaussian fitted by the ELBO "
        "may come to lie between modes. Gelberg, van der Ouderaa, van der Wilk and Gal (2024) average the Gaussian "
        "over all permutations and train it by the ELBO of the average, whose new term, a mutual information, they "
        "estimate by InfoNCE. For one hidden layer the term is a matrix permanent, which is computed here exactly or "
        "with bounds on both sides.\n\n"
        "Five experiments: where one Gaussian lies between two modes; a network of two weights, whose posterior is "
        "known; classifiers of growing width, trained with either estimate; how close equivalent modes are; and "
        "the distance to HMC's draws.",
    )
