"""A record made in parts: what a further run of the same study has measured is added to it.

    python -m onebasin.studies.lab.joining studies/results/NAME.json RUN_FOLDER [RUN_FOLDER ...]
        [--later advi.init ...] [--more references ...] [--replace]

A study that takes hours may run in parts (`--only`), whose folders need not be kept: a record holds every row that its
page is made from. Parts have to agree in settings and versions. A setting that the record predates, or that changed
without a difference to the cells that the record keeps, is named with `--later`; one that lists what is run, of which
the part ran other entries, with `--more`. With `--replace` cells that the part has made again take the place of the
record's.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from onebasin.base.errors import StudyError
from onebasin.base.files.seal import Seal, examine_json

from .folder import config_hash, read_json
from .frame import Frame, Row
from .record import made_by, read_record, rewrite_record

AGREE = ("study", "config_hash", "versions")
"""Facts in which the runs must agree."""
_ROUNDING = 1e-9
"""Relative difference of a number that was measured twice, on two machines."""


def join(
    record: Mapping[str, Any],
    part: Mapping[str, Any],
    later: Collection[str] = (),
    more: Collection[str] = (),
    *,
    replace: bool = False,
) -> dict[str, Any]:
    """Add a part's rows to a record; both as the JSON of a record says them, without checksums.

    The command, the commit and the seconds are those of both; the settings are the part's, if some came or changed
    `later`, such as ``advi.init``. Those that list what is run (`more`, such as ``references``) list the entries of
    both. Rows of cells that both have are the part's, to `replace` the record's. It is a `StudyError` if they do not
    agree, or hold another row of one cell.
    """
    record, part = ({**side, "config": dict(side["config"])} for side in (record, part))
    for name in more:
        lists = [side["config"].get(name) for side in (record, part)]
        if not all(isinstance(entries, list) for entries in lists):
            raise StudyError(
                f"`--more` names {name}, which is no list in the settings of both: name one that says what is run, "
                "such as references."
            )
        for side in (record, part):
            side["config"][name] = list(dict.fromkeys(chain(*lists)))
            side["config_hash"] = config_hash(side["study"], side["config"])
    if later and _without(part["config"], later) == _without(record["config"], later):
        record |= {name: part[name] for name in ("config", "config_hash")}
    versions = {**part["versions"], **record["versions"]}  # a run without Stan names none of it
    part["versions"] = versions | part["versions"]
    record["versions"] = versions
    for name in AGREE:
        if record[name] != part[name]:
            raise StudyError(
                f"`part` has another {name} than the record ({part[name]}; {record[name]}): run it with "
                "that of the record, or record it by itself."
            )
    sides = [
        {name: Frame.from_json(kept) for name, kept in side["frames"].items()}
        for side in (record, part)
    ]
    remade = {row["key"] for frame in sides[1].values() for row in frame if "key" in row}
    frames = {}
    for name in {**sides[0], **sides[1]}:
        old, new = (side.get(name, Frame()) for side in sides)
        rows: list[Row] = []
        done: set[str] = set()
        for row in old:  # rows of cells that were made again go to the places of what they replace
            key = row.get("key")
            if not replace or key is None or key not in remade:
                rows.append(row)
            elif key not in done:
                done.add(key)
                rows += [other for other in new if other.get("key") == key]
        added = [row for row in new if not any(_same(row, other) for other in rows)]
        known = {row["key"] for row in rows if "key" in row}
        if twice := sorted({row["key"] for row in added if "key" in row} & known):
            raise StudyError(
                f"`part` has other numbers for {len(twice)} of the record's cells, such as {twice[0]}: leave them "
                "out (--only), let them replace the record's (--replace), or record the study again."
            )
        frames[name] = Frame.of([*rows, *added])
    return {
        **record,
        "command": f"{record['command']} && {part['command']}",
        "commit": _both(record["commit"], part["commit"], ", "),
        "machine": _both(record["machine"], part["machine"], "; "),
        "seconds": record["seconds"] + part["seconds"],
        "frames": {name: frame.table for name, frame in frames.items()},
    }


def _same(one: Row, other: Row) -> bool:
    """Tell whether two rows say the same, up to how another machine rounds."""
    pairs = ((one.get(name), other.get(name)) for name in {**one, **other})
    return all(
        math.isclose(a, b, rel_tol=_ROUNDING)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in pairs
    )


def _without(config: Mapping[str, Any], later: Collection[str], above: str = "") -> dict[str, Any]:
    """Settings but for those that came later, each named with all that it is part of."""
    return {
        name: _without(value, later, f"{above}{name}.") if isinstance(value, Mapping) else value
        for name, value in config.items()
        if f"{above}{name}" not in later
    }


def _both(old: str, new: str, between: str) -> str:
    return between.join(dict.fromkeys([*str(old).split(between), str(new)]))


def join_run(
    numbers: Path,
    folder: Path,
    later: Collection[str] = (),
    more: Collection[str] = (),
    *,
    replace: bool = False,
) -> None:
    """Add a run's folder to a record, and write both of the record's files.

    It is a `StudyError` if the run is not finished, either was changed by hand, or they do not agree.
    """
    record = read_record(numbers)
    run, findings = (read_json(folder / name) for name in ("run.json", "findings.json"))
    for name, content in (("run.json", run), ("findings.json", findings)):
        if not content or examine_json(content) is Seal.DAMAGED:
            raise StudyError(f"`folder` has no sound {name}: name the folder of a finished run.")
    if run.get("status") != "done":
        raise StudyError(f"`folder` is {folder}, whose run is not finished: finish it first.")
    part = {"study": run["study"], **made_by(run), "frames": findings["frames"]}
    rewrite_record(numbers, join(record, part, later, more, replace=replace))


def main() -> None:
    """Add the folders that are named to the record that is named first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--later", nargs="+", default=(), metavar="SETTING")
    parser.add_argument("--more", nargs="+", default=(), metavar="SETTING")
    parser.add_argument("--replace", action="store_true")
    args = parser.parse_args()
    for folder in args.folders:
        join_run(args.record, folder, args.later, args.more, replace=args.replace)


if __name__ == "__main__":
    main()
