"""Page of the demonstration: the mixture, the network, and the provenance of every posterior."""

from collections.abc import Mapping

from onebasin.analysis.compare.comparable import fit_frame
from onebasin.analysis.diagnostics.result import AlignedDiagnosis
from onebasin.analysis.page import Code, Details, FigureItem, Part, Report, Section, Stat, Stats
from onebasin.analysis.plots.labels import plot_aligned
from onebasin.analysis.plots.posteriors import Subject
from onebasin.analysis.report.posteriors import definitions_of, describe_run
from onebasin.analysis.report.predictions import bands
from onebasin.analysis.report.sections import marginals
from onebasin.base.table import Column, Table
from onebasin.posteriors.view import as_view

from .mixture import HERE, Mixture
from .network import REFERENCE, NetworkPosteriors, Score

CODE = """\
import onebasin as ob

mixture = ob.stan_program("mixture.stan", "mixture.json")
posterior = ob.nuts(mixture, seed=1)      # four chains, without a compiler
print(ob.find_symmetry(mixture))          # what may be relabelled
print(ob.diagnose(posterior))             # may the draws be used?
aligned = ob.align(posterior).posterior   # every draw in one labelling
"""
MEASURES = (
    "Predictions: distance between the mean predictions and those of NUTS, in standard deviations of NUTS. "
    "Weights: Wasserstein distance between the aligned parameters and those of NUTS, in the same unit. "
    "Both are 0 for a perfect approximation. The baseline compares two chains of NUTS with the other two: "
    "a smaller distance is noise."
)


def page(mixture: Mixture, fits: NetworkPosteriors) -> Report:
    """Build the demonstration page."""
    runs = {"mixture": mixture.posterior, **fits.posteriors}
    subjects = [
        Subject("mixture", as_view(mixture.posterior), mixture.diagnosis),
        Subject(REFERENCE, as_view(fits.posteriors[REFERENCE]), fits.diagnosis),
    ]
    return Report(
        title="onebasin: a demonstration",
        lede="Posteriors of models with interchangeable components look unusable until every draw has the same "
        "labelling. This page shows one mixture before and after, and three approximations of a network.",
        sections=(_mixture(mixture), _network(fits)),
        provenance=tuple(describe_run(name, tree) for name, tree in runs.items()),
        definitions=definitions_of(subjects),
    )


def _mixture(mixture: Mixture) -> Section:
    aligned = mixture.aligned
    before, after = aligned.raw.rhat.value, aligned.aligned.rhat.value
    figure = FigureItem(
        plot_aligned(aligned, var_names="mu"),
        caption="Traces of `mu`, chain after chain. Left: as the sampler returned them. Right: aligned.",
        alt=f"Two components of mu in four chains. R-hat is {before:.2f} before alignment and {after:.2f} after.",
    )
    parts: tuple[Part, ...] = (
        Stats(
            (
                Stat("R-hat", f"{before:.2f}", "bad", "as sampled; limit 1.01"),
                Stat("R-hat", f"{after:.2f}", "good", "aligned"),
                Stat("symmetry", f"`{mixture.words}`", note="found in the log density"),
                Stat("change", f"{max(mixture.changes):.0e}", "good", "of the log density, nats"),
            )
        ),
        figure,
        _parameters(aligned),
        Details("The same in your own code", (Code(CODE),)),
        Details("The Stan program", (Code((HERE / "mixture.stan").read_text("utf-8")),)),
    )
    text = (
        "Nothing in this mixture of two normal components fixes which of them comes first. Each of the four chains "
        "therefore chooses its own labels, R-hat rejects them, and the means of `mu` over all chains are meaningless."
        "\n\n"
        "onebasin searches the log density for relabellings that do not change it, verifies the one that it finds at "
        "other points, and brings every draw into the same labelling."
    )
    return Section("1. A mixture in Stan whose labels switch", text, parts=parts)


def _parameters(aligned: AlignedDiagnosis) -> Table:
    raw, after = aligned.raw.parameters, aligned.aligned.parameters
    columns = (
        Column("parameter"),
        *(Column(name, decimals=2, unit="aligned") for name in ("mean", "sd")),
        Column("R-hat", decimals=2, unit="as sampled"),
        Column("R-hat", decimals=2, unit="aligned"),
    )
    rows = tuple(
        (f"`{name}`", row["mean"], row["sd"], raw["rhat"][name], row["rhat"])
        for name, row in after.sort_index().iterrows()
    )
    return Table(columns, rows, "Parameters before and after alignment.", sortable=False)


def _network(fits: NetworkPosteriors) -> Section:
    aligned = fits.diagnosis.aligned
    assert aligned is not None, "a network declares its symmetry"
    stats = Stats(
        (
            Stat("log density", fits.constant, note="nats, Stan − NumPyro", decimals=4),
            Stat("deviation", f"{fits.spread:.0e}", "good", "nats, largest of 10 points"),
            Stat("R-hat", f"{aligned.raw.rhat.value:.2f}", "bad", "NUTS, as sampled"),
            Stat("R-hat", f"{aligned.aligned.rhat.value:.2f}", "good", "NUTS, aligned"),
        )
    )
    views = {name: as_view(tree) for name, tree in fits.posteriors.items()}
    figures = marginals(views, REFERENCE, fit_frame(views[REFERENCE])), bands(views)
    parts: list[Part] = [stats, score_table(fits.scores, MEASURES)]
    parts += [figure for figure in figures if figure is not None]
    text = (
        "One description of a network with one input and two hidden tanh units gives its definitions in Stan and in "
        "NumPyro. The two log densities differ by a constant, so both define the same posterior. NUTS on the Stan "
        "program is the reference, and three variational approximations are compared with it."
        "\n\n"
        "Symmetrised VI fits a mean-field Gaussian, and counts its copies in all labellings in the bound on the log "
        f"evidence. They raise the bound by {fits.information:.2f} nats; its draws are those of one labelling."
    )
    return Section(
        "2. A network in Stan and NumPyro, and three approximations", text, parts=tuple(parts)
    )


def score_table(scores: Mapping[str, Score], caption: str = "") -> Table:
    """Make the table of distances from NUTS."""
    columns = (
        Column("posterior"),
        Column("predictions", decimals=3, unit="sds of NUTS"),
        Column("weights", decimals=3, unit="sds of NUTS"),
        Column("in 95 % interval", unit="of new targets"),
    )
    rows = []
    for name, score in scores.items():
        apart = (None, None) if name == REFERENCE else (score.predictions, score.weights)
        rows.append((name, *apart, f"{100 * score.inside:.1f} %"))
    return Table(columns, tuple(rows), caption, sortable=False)
