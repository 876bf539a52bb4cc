"""References in tables: all of them, and one."""

from __future__ import annotations

import math
from typing import Any

from onebasin.base.table import Column, Flag, Table, TableCell

from .problems import PROBLEMS
from .reference import Reference, open_reference, references

NOT_MADE = "not made"
_FLAGS: dict[str, Flag] = {"passes": "good", "invariants pass": "warn", "fails": "bad"}


def listed() -> list[dict[str, Any]]:
    """A row a problem, with what is known of its reference; then references that are of no problem of ours."""
    made = references()
    rows: list[dict[str, Any]] = []
    for name in (*PROBLEMS, *(name for name in made if name not in PROBLEMS)):
        if name not in made:
            rows.append({"name": name, "status": NOT_MADE, "title": PROBLEMS[name].title})
            continue
        reference = open_reference(name)
        info, table = reference.info, reference.summary["parameters"]
        rows.append(
            {
                "name": name,
                "status": reference.status,
                "title": info["title"],
                "symmetry": info["symmetry_in_words"],
                "parameters": len(table),
                "thin": info["inference"]["method_arguments"]["thin"],
                "r_hat": float(table["rhat"].max()),
                "ess": float(table[["ess_bulk", "ess_tail"]].min().min()),
                "divergences": sum(info["diagnostics"]["divergent_transitions"]),
            }
        )
    return rows


def listed_rows(rows: list[dict[str, Any]]) -> Table:
    """The table of `listed`."""
    columns = (
        "problem",
        "reference",
        "symmetry",
        Column("parameters", decimals=0),
        Column("thin", decimals=0),
        Column("R-hat", decimals=4, unit="largest"),
        Column("ESS", decimals=0, unit="smallest"),
        Column("divergences", decimals=0),
    )
    cells = tuple(
        (
            row["name"],
            TableCell(row["status"], flag=_FLAGS.get(row["status"], "")),
            " and ".join(row.get("symmetry", ())) or ("–" if "symmetry" in row else ""),
            *(
                row.get(key, math.nan)
                for key in ("parameters", "thin", "r_hat", "ess", "divergences")
            ),
        )
        for row in rows
    )
    return Table(columns, cells, "")


def facts(reference: Reference) -> list[tuple[str, str]]:
    """Return the facts about one reference, as names and texts."""
    info = reference.info
    method = info["inference"]["method_arguments"]
    evidence = info["evidence"]
    made = [
        ("made by", f"{info['inference']['method']}, seed {method['seed']}, {info['added_date']}"),
        (
            "chains",
            f"{method['chains']} of {method['iter']:,} iterations, {method['warmup']:,} of them warmup; "
            f"one draw in {method['thin']} kept",
        ),
        ("R-hat as sampled", str(evidence["largest_r_hat_as_sampled"])),
        ("data", f"sha256 {info['data_sha256'][:16]}"),
        ("failed", ", ".join(k for k, v in info["checks_made"].items() if not v) or "nothing"),
    ]
    if quotient := info.get("quotient"):
        made.append(("quotient", str(quotient["rule"])))
    if info["labelling"] is not None:
        made += [
            ("symmetry", "; ".join(info["symmetry_described"])),
            ("labelling", f"nearest copy to fixed centres; {info['labelling']['canonical']}"),
            ("labellings seen", str(evidence["labellings_in_all"])),
        ]
    return made


def numbers(reference: Reference, table: str) -> Table:
    """Its moments and quantiles."""
    columns = (
        "quantity",
        Column("mean"),
        Column("sd"),
        Column("MCSE", digits=2, unit="of the mean"),
        Column("5 %"),
        Column("50 %"),
        Column("95 %"),
        Column("R-hat", decimals=4),
        Column("ESS", decimals=0, unit="bulk"),
    )
    keys = ("mean", "sd", "mcse_mean", "q5", "q50", "q95", "rhat", "ess_bulk")
    summary = reference.summary[table]
    values = summary[list(keys)].to_numpy(dtype=float).tolist()
    rows = tuple((str(name), *row) for name, row in zip(summary.index, values, strict=True))
    return Table(columns, rows, table)
