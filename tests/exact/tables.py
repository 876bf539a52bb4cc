"""The tables of docs/explanations/exact-cases.md, from the record alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Record = Mapping[str, Any]
_BOUNDED = ("mean-field ADVI numpyro", "full-rank ADVI numpyro", "Laplace")


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cases(record: Record) -> str:
    """Every case: parameters and evidence."""
    rows = (
        [
            f"`{row['case']}`",
            str(row["parameters"]),
            f"{row['log_evidence']:.3f}",
            f"{row['error']:.0e}",
        ]
        for row in record["cases"]
    )
    return _table(("case", "parameters", "log evidence, nats", "moved by a coarser rule"), rows)


def samplers(record: Record) -> str:
    """Every sampler: how many statistics, how far the worst is."""
    rows = []
    for method, runs in _by_method(record["samplers"]).items():
        worst = max(runs, key=lambda run: run["worst_errors"])
        rows.append(
            [
                method,
                str(len(runs)),
                f"{sum(run['statistics'] for run in runs):,}",
                f"{min(run['least_ess'] for run in runs):,}",
                f"{worst['worst_errors']:.1f}",
                f"{worst['worst']}, `{worst['case']}`",
            ]
        )
    return _table(("sampler", "runs", "statistics", "least ESS", "worst, MCSE", "which"), rows)


def bounds(record: Record) -> str:
    """Nats below the evidence, case by case, and what the best Gaussian of the family would leave."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for run in record["approximations"]:
        if run["method"] in _BOUNDED and _shown(run):
            found.setdefault(run["case"], {})[run["method"]] = run
    rows = []
    for case, runs in found.items():
        mean, full, laplace = (runs.get(method, {}) for method in _BOUNDED)
        pairs = [(run, word) for run in (mean, full) for word in ("short", "least_short")]
        numbers = [run.get(word) for run, word in (*pairs, (laplace, "short"))]
        rows.append([f"`{case}`", *map(_number, numbers)])
    headings = ("case", "mean field", "the best", "full rank", "the best", "Laplace")
    return _table(headings, rows)


def symmetrised(record: Record) -> str:
    """What averaging over the symmetry closes of the gap."""
    runs = _by_method(record["approximations"])
    plain = {run["case"]: run for run in runs["mean-field ADVI numpyro"]}
    rows = [
        [f"`{run['case']}`", _number(plain[run["case"]]["short"]), _number(run["short"])]
        for run in runs["symmetrised VI"]
    ]
    return _table(("case", "mean-field ADVI", "symmetrised VI"), rows)


def approximations(record: Record) -> str:
    """Every approximation: medians and worst of its errors over cases."""
    rows = []
    for method, runs in _by_method(record["approximations"]).items():
        bias = np.array([run["worst_bias"] for run in runs])
        least = np.array([run["least_spread"] for run in runs])
        rows.append(
            [
                method,
                str(len(runs)),
                f"{np.median(bias):.2f}",
                f"{bias.max():.2f}",
                f"{np.median(least):.2f}",
                f"{least.min():.2f}",
            ]
        )
    headings = ("method", "runs", "bias, median", "bias, worst", "spread, median", "spread, least")
    return _table(headings, rows)


TABLES = (cases, samplers, bounds, symmetrised, approximations)


def _by_method(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        found.setdefault(run["method"], []).append(run)
    return found


def _shown(run: Mapping[str, Any]) -> bool:
    """Whether a run is in the chart that a table of one row a case shows: of unit norms the seamless one."""
    return not run["case"].startswith("unit") or run["chart"] == "givens_seamless"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
