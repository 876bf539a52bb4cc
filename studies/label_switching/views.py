"""The study's tables."""

from collections.abc import Callable

from onebasin.base.table import Table, TableCell
from onebasin.truth.alignment_failures import RULES

from .. import lab
from .claims import GOOD, HELD_OUT, LARGEST_SDS, RMS_SDS, least_ess, spread


def _ess(column: str) -> Callable[[lab.Row], TableCell | None]:
    """Flag effective draws by how many a posterior of so many chains must have."""

    def cell(row: lab.Row) -> TableCell | None:
        value = row[column]
        return None if value is None else TableCell(value, lab.at_least(least_ess(row))(value))

    return cell


def _rhat(column: str, unit: str, limit: float = GOOD) -> lab.Field:
    return lab.Field("R-hat", column, decimals=3, unit=unit, flag=lab.at_most(limit))


def _distance(column: str, unit: str, limit: float, entry: str = "") -> lab.Field:
    note = (lambda row: f"`{row[entry]}`") if entry else None
    return lab.Field("distance", column, decimals=2, unit=unit, flag=lab.at_most(limit), note=note)


DIAGNOSTICS = lab.View(
    "The worst parameter that the symmetry moves, raw and aligned; chains aligned with a reference that they had "
    "no part in; and the worst quantity that the symmetry leaves alone",
    (
        lab.Field("posterior", "label"),
        _rhat("raw_rhat", "raw"),
        _rhat("aligned_rhat", "aligned"),
        _rhat("held_out_rhat", "held out", HELD_OUT),
        _rhat("invariant_rhat", "invariants"),
        *(
            lab.Field(f"{kind} ESS", _ess(f"{state}_ess_{kind}"), decimals=0, unit=unit)
            for kind, state, unit in (
                ("bulk", "raw", "raw"),
                ("bulk", "aligned", "aligned"),
                ("tail", "raw", "raw"),
                ("tail", "aligned", "aligned"),
                ("bulk", "invariant", "invariants"),
            )
        ),
    ),
)

SWITCHING = lab.View(
    "What alignment found. Basins: groups of chains that agree after it. Shuffled parts are the yardstick for what "
    "alignment gains on noise. Before sampling the declared symmetry is tried on the log density at random points",
    (
        lab.Field("posterior", "label"),
        lab.Field("labellings", "labellings_in_all", unit="in all"),
        lab.Field("basins", lambda row: len(row["basins"]), unit="left", flag=lab.at_most(1)),
        lab.Field(
            "labellings",
            lambda row: spread(row["labellings_by_mean"]),
            unit="a chain, by the mean",
        ),
        lab.Field(
            "labellings", lambda row: spread(row["labellings"]), unit="a chain, by a Gaussian"
        ),
        lab.Field("sd", "sd_ratio", decimals=2, unit="aligned over raw"),
        lab.Field("variance", "variance_ratio", decimals=2, unit="aligned over relabelled"),
        lab.Field("variance", "noise_ratio", decimals=2, unit="the same, shuffled parts"),
        lab.Field("log density", "symmetry_check", digits=1, unit="largest change by the symmetry"),
    ),
)

RECOVERY = lab.View(
    "Aligned posterior means against the truth that made the data, matched by the group, in posterior sds; and by "
    "how much the mean leaves a posterior wider than the Gaussian does",
    (
        lab.Field("posterior", "label"),
        lab.Field("entries", "entries"),
        _distance("rms_sds", "rms, by a Gaussian", RMS_SDS),
        _distance("largest_sds", "largest, by a Gaussian", LARGEST_SDS, "largest_entry"),
        lab.Field("inside", "inside_95", decimals=2, unit="95 % intervals"),
        _distance("mean_rms_sds", "rms, by the mean", RMS_SDS),
        _distance("mean_largest_sds", "largest, by the mean", LARGEST_SDS, "mean_largest_entry"),
        lab.Field("sd", "inflation", decimals=2, unit="by the mean over by a Gaussian, largest"),
    ),
)


def rates(frames: lab.Frames) -> Table:
    """Tabulate failure rates, one separation a row, means over the posteriors."""
    first = frames["rates"].rows[0]
    rules = {"optimal": "best possible", **RULES}
    view = lab.View(
        f"Share of draws whose labels come out wrong; {first['components']} parts of {first['features']} features "
        f"each, {len(first['optimal'])} posteriors of {first['draws']} draws",
        (
            lab.Field("separation", "separation", unit="sds"),
            *(
                lab.Field(rules[rule], lab.mean_of(rule), decimals=3)
                for rule in rules
                if rule in first
            ),
        ),
        over="rates",
    )
    return view(frames)


VIEWS = (DIAGNOSTICS, lab.CLAIMS, SWITCHING, RECOVERY, rates, lab.TRIALS, lab.FAILURES)
SHOWN = (DIAGNOSTICS, lab.CLAIM_VERDICTS)
