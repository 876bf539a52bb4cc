"""The section of the page on HMC: text, table, statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onebasin.analysis.report import Column, Section, Table

from ...lab.claims import Statement, Trial, judge
from ...lab.legacy import filled
from ..part import Part
from .truth_measures import Distances, TruthResults
from .widths import pair

NAME = "truth"
TITLE = "How far from the posterior?"
MARGIN = 0.0005
"""Differences of halved total variation below which nothing is gained that matters."""
ENERGY_MARGIN = 0.01
"""Likewise of the energy distance."""
_BIASES = (
    "These symmetries lead to biases in the approximate posterior, which degrade predictive performance and posterior "
    "fit if not explicitly accounted for."
)
_TEXT = (
    "HMC's draws are the truth where it is affordable. In prediction, class probabilities averaged over draws are "
    "compared: permutations do not matter there. In weights, HMC's draws are aligned to their iterated mean, draws of "
    "q to the same mean by the same rule, and what is compared are these aligned distributions. The halves of HMC's "
    "chains against each other are what can be told apart; draws from the prior, aligned alike, what a q without "
    "any knowledge would have."
)


def part(results: TruthResults) -> Part | None:
    """Say what follows from the distances; None where HMC did not run."""
    if not results.truths:
        return None
    table = distance_table(results)
    return Part(
        name=NAME,
        headline=headline(results),
        section=Section(TITLE, text=_text(results), tables=(table,)),
        statements=statements(results),
        tables=(table,),
        shown=filled(table),
        data=results.to_dict(),
    )


def _text(results: TruthResults) -> str:
    return "\n\n".join((_TEXT, " ".join((_basins(results), *_narrow(results)))))


def _basins(results: TruthResults) -> str:
    left = ", ".join(f"{t.spread_left:.0%} at {w} units" for w, t in results.truths.items())
    return (
        f"Of the squared distance of HMC's draws to their mean, alignment leaves {left}: the nearer to all of it, the "
        "less there is one basin, and the less a distance in weights says."
    )


def _narrow(results: TruthResults) -> Iterator[str]:
    """Say where draws from the prior are nearer in weights than MFVI's fits."""
    for width, truth in results.truths.items():
        plain = results.found.get((width, "mfvi"))
        if plain is not None and truth.prior["energy"] < plain.energy.mean():
            yield (
                f"At {width} units draws from the prior are nearer to HMC's in weights than MFVI's fits are (energy "
                f"distances {truth.prior['energy']:.2f} and {plain.energy.mean():.2f}), whose standard deviations are "
                f"{plain.sd_ratio.mean():.2f} of HMC's at the median."
            )


def headline(results: TruthResults) -> tuple[str, ...]:
    """Say the result in a sentence a width."""
    said = []
    for width, truth in results.truths.items():
        found = [
            f"{results.labels[name]} {results.found[width, name].total_variation.mean():.3f}"
            for name in ("mfvi", "recommended")
            if (width, name) in results.found
        ]
        if found:
            said.append(
                f"At {width} units the predictions' total variation from HMC's is {', '.join(found)} (halves of HMC: "
                f"{truth.halves.total_variation[0]:.3f})."
            )
    return tuple(said)


def distance_table(results: TruthResults) -> Table:
    """Tabulate distances, means over seeds."""
    rows: list[tuple] = []
    for width, truth in results.truths.items():
        scores = (
            truth.scores["accuracy"],
            truth.scores["log_score"],
            truth.scores["draw_accuracy"],
        )
        rows.append((width, "HMC, all draws", 1.0, 0.0, *scores, *(None,) * 4))
        rows.append((width, "HMC, second half against the first", *_row(truth.halves)))
        for (at, name), found in results.found.items():
            if at == width:
                rows.append((width, results.labels[name], *_row(found)))
        weights = (truth.prior[name] for name in ("energy", "mean", "sd", "sd_ratio"))
        rows.append((width, "prior", *(None,) * 5, *weights))
    columns = (
        Column("units", decimals=0),
        "draws",
        Column("agreement", decimals=4),
        Column("total variation", decimals=4, unit="halved"),
        Column("accuracy", decimals=4, unit="test"),
        Column("log score", decimals=4, unit="test, nats"),
        Column("accuracy", decimals=4, unit="one draw"),
        Column("energy distance", digits=3, unit="weights, aligned"),
        Column("means", digits=3, unit="rms difference, HMC's sds"),
        Column("sds", digits=3, unit="rms log ratio"),
        Column("sds", digits=3, unit="median ratio"),
    )
    caption = "Distances from HMC's draws, in prediction and in aligned weights, means over seeds"
    return Table(columns, tuple(rows), caption)


def _row(found: Distances) -> tuple[float, ...]:
    return tuple(float(values.mean()) for values in vars(found).values())


def statements(results: TruthResults) -> tuple[Statement, ...]:
    """Hold the paper's statement against the distances."""
    rule = "{} from HMC is smaller than that of MFVI's fits: Student's 95 % interval of paired differences is below "
    return (
        _statement(
            "symmetrising brings predictions closer to the posterior",
            _BIASES,
            rule.format("the total variation of predictions")
            + f"zero (void where it holds zero and -{MARGIN:g})",
            _closer(results, "total_variation", MARGIN),
        ),
        _statement(
            "symmetrising brings weights closer to the posterior",
            _BIASES,
            rule.format("the energy distance of aligned weights")
            + f"zero (void where it holds zero and -{ENERGY_MARGIN:g})",
            _closer(results, "energy", ENERGY_MARGIN),
        ),
    )


def _statement(label: str, quote: str, rule: str, trials: Iterable[Trial]) -> Statement:
    found = tuple(trials)
    return Statement(label, quote, rule, found, judge([trial.holds for trial in found]))


def _closer(results: TruthResults, measure: str, margin: float) -> Iterator[Trial]:
    for width in results.truths:
        plain = results.found.get((width, "mfvi"))
        for (at, name), found in results.found.items():
            if at == width and name != "mfvi" and plain is not None:
                nearer = pair(getattr(plain, measure) - getattr(found, measure))
                ours, theirs = getattr(found, measure).mean(), getattr(plain, measure).mean()
                measured = (
                    f"{ours:.4f} and {theirs:.4f}, nearer in {nearer.wins} of {nearer.num} seeds"
                )
                yield Trial(
                    f"{results.labels[name]}, {width} units", measured, nearer.gains(margin)
                )
