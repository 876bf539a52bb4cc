"""From the rows to findings and a page."""

from __future__ import annotations

from onebasin.analysis.report import Report, Section, describe_run

from ..lab.claims import Statement
from ..lab.images import image_split
from ..lab.legacy import (
    count_verdicts,
    failed_section,
    failure_table,
    filled,
    present,
    statement_table,
    trial_table,
    verdict_table,
)
from ..lab.study import Findings, Outcomes
from . import pictures, tables
from .design import ENSEMBLE, HMC, MEANFIELD, REFINED, Config, num_parameters
from .measures import Measured, Results, measure_all
from .statements import statements

TITLE = "One Gaussian for a network's posterior"
_DEFINITIONS = (
    (
        "Agreement, total variation",
        "Of class probabilities averaged over draws with those of all of HMC's draws: the share of test images "
        "with the same most probable class; and half the sum over classes of the absolute differences, averaged "
        "over test images (equations 1 and 2 of the paper, the second without its half).",
    ),
    (
        "Mutual information",
        "The entropy of the averaged probabilities less the mean entropy of a single draw's: how much draws "
        "differ in what they predict. A point has none.",
    ),
    (
        "q_i, q_r",
        "Diagonal Gaussians with the mean and standard deviations of the draws as they are, and after alignment "
        "(rebasin).",
    ),
    (
        "Distilled",
        "A diagonal Gaussian whose predictions, draw by draw, are brought to those of HMC's draws on training "
        "images and mixtures of two of them, by the energy score. It has seen HMC's predictions, no test image.",
    ),
    (
        "Transpositions (NoT)",
        "The fewest exchanges of two hidden units that make up a permutation: units less cycles.",
    ),
)


def conclude(config: Config, outcomes: Outcomes) -> Findings:
    """Measure, judge, and lay out the page."""
    results = measure_all(config, outcomes)
    judged = statements(results)
    said = headline(results, judged)
    every = (
        tables.table_one(results),
        tables.row_table(results),
        tables.goal_table(results),
        tables.alignment_table(results),
        tables.swaps_table(results),
        statement_table(judged),
        trial_table(judged),
        failure_table(outcomes),
    )
    return Findings(
        headline=said,
        statements=judged,
        shown=filled(tables.table_one(results), tables.goal_table(results), verdict_table(judged)),
        tables=filled(*every),
        report=_page(config, results, outcomes, judged, said),
        data=results.to_dict(),
    )


def headline(results: Results, judged: tuple[Statement, ...]) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    said = [_recipes(results), _spread(results), count_verdicts(judged)]
    return tuple(sentence for sentence in said if sentence)


def _recipes(results: Results) -> str:
    theirs, best = results.measured.get("hmc-qr"), _best(results)
    if theirs is None or best is None:
        return ""
    return (
        f"One diagonal Gaussian by the paper's recipe agrees with HMC on {theirs.averaged.agreement:.3f} of the test "
        f"images (halved total variation {theirs.averaged.total_variation:.3f}); the best one here "
        f"({best.row.label}) on {best.averaged.agreement:.3f} ({best.averaged.total_variation:.3f})."
    )


def _spread(results: Results) -> str:
    truth, best = results.measured.get("hmc"), _best(results)
    if truth is None or best is None:
        return ""
    return (
        f"A single draw of it classifies {best.draw_accuracy:.3f} of the test images, one of HMC's "
        f"{truth.draw_accuracy:.3f}; its mutual information is {best.mutual_information:.3f} nats, HMC's "
        f"{truth.mutual_information:.3f}."
    )


def _best(results: Results) -> Measured | None:
    ours = [m for m in results.measured.values() if m.row.group.startswith("one Gaussian")]
    return min(ours, key=lambda m: m.averaged.total_variation) if ours else None


def _page(
    config: Config,
    results: Results,
    outcomes: Outcomes,
    judged: tuple[Statement, ...],
    said: tuple[str, ...],
) -> Report:
    sections = (
        _question(config),
        Section("The paper's Table 1", tables=(tables.table_one(results),)),
        _representations(results),
        _basins(results),
        _pairs(results),
        Section(
            "What the paper says, and what was measured",
            text="A statement reproduces where it holds in every comparison; all are listed at the end.",
            tables=(statement_table(judged),),
        ),
        Section("Every comparison", tables=(trial_table(judged),)),
        failed_section(outcomes),
    )
    keys = (HMC, ENSEMBLE, MEANFIELD, REFINED)
    runs = [describe_run(cell.label, outcomes.tree(cell)) for cell in outcomes if cell.key in keys]
    return Report(
        title=TITLE,
        lede=" ".join(said),
        sections=tuple(section for section in sections if section is not None),
        provenance=tuple(runs),
        definitions=_DEFINITIONS,
    )


def _question(config: Config) -> Section:
    data, size = image_split(config.size, config.seed), config.size
    return Section(
        "The question",
        text="A network's hidden units can be permuted without any change to what it computes. Xiao, Liu and "
        "Bamler (2023) bring the draws of a Bayesian network into one labelling and replace them by one Gaussian. "
        "How much of the posterior is left?\n\n"
        f"Here the network has {size.side**2} inputs, {size.hidden} ReLU units and 10 outputs "
        f"({num_parameters(config):,} weights and biases) with N(0, 1) priors, conditioned on "
        f"{data.train.num_obs:,} images and tried on {data.test.num_obs:,} others ({data.train.source}). HMC's "
        "draws are the truth; every representation is made from the same draws.",
    )


def _representations(results: Results) -> Section:
    floor = ""
    if results.floor:
        floor = (
            f" The halves of HMC's chains agree on {results.floor.agreement:.4f} of the images, with halved total "
            f"variation {results.floor.total_variation:.4f}: nothing below that can be told apart."
        )
    return Section(
        "How good is one Gaussian?",
        text="Agreement and total variation look at predictions averaged over draws alone, and a lone network "
        "does well by them. So the accuracy of one draw and the mutual information stand beside them: they say "
        f"whether the spread is the posterior's.{floor}",
        tables=(tables.row_table(results), tables.goal_table(results)),
        figures=present((pictures.overview(results), pictures.figure_five(results))),
    )


def _basins(results: Results) -> Section | None:
    table = tables.alignment_table(results)
    if not table.rows:
        return None
    return Section(
        "Is there one basin?",
        text="Alignment brings any draws closer together, draws from the prior and draws of shuffled units too.",
        tables=(table,),
    )


def _pairs(results: Results) -> Section | None:
    figures = present((pictures.figure_two(results), pictures.figure_three(results)))
    if not figures:
        return None
    return Section(
        "Trained networks, and the line between them",
        text="These networks are trained by Adam on the likelihood alone, as in the paper's Figures 2 and 3.",
        tables=filled(tables.swaps_table(results)),
        figures=figures,
    )
