"""A reference in the layout and the formats of posteriordb: draws as zipped JSON, and what is said of them.

Source: https://github.com/stan-dev/posteriordb, folder posterior_database. Draws are a list of chains, each a mapping
of names such as ``mu[1]``, counted from 1, to lists of numbers.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from onebasin.posteriors import schema

from .reference import Reference, ReferenceError

_INDEX = re.compile(r"\[([^\[\]]*)\]$")


def export(reference: Reference, folder: Path) -> tuple[Path, ...]:
    """Write a reference with its full draws into a posterior database, at the top of which `folder` is.

    It is a `ReferenceError` if the draws are not there.
    """
    if reference.full is None:
        raise ReferenceError(
            f"`--posteriordb` needs all draws of {reference.name}, which are not here: make them with "
            f"`onebasin truth make {reference.name}`."
        )
    name, info = reference.name, reference.info
    from onebasin.posteriors.view import as_view

    view = as_view(reference.full)
    columns = view.draws(list(reference.info["dimensions"]))
    names = [_from_one(name) for name in columns.names]
    values = columns.values
    draws = [
        {name: values[chain, :, i].tolist() for i, name in enumerate(names)}
        for chain in range(columns.num_chains)
    ]
    said = dict(info)
    described = info["diagnostics"]["diagnostic_information"]["names"]
    described = {"diagnostic_information": {"names": [_from_one(n) for n in described]}}
    said["diagnostics"] = info["diagnostics"] | described
    posterior = {
        "name": name,
        "keywords": info["keywords"],
        "urls": [],
        "model_name": name,
        "data_name": name,
        "reference_posterior_name": name,
        "references": info["references"],
        "dimensions": {
            n: shape if len(shape) > 1 else (*shape, 1)[0]
            for n, shape in info["dimensions"].items()
        },
        "added_date": info["added_date"],
        "added_by": info["added_by"],
    }
    place = folder / "reference_posteriors" / "draws"
    written = [
        _write(folder / "posteriors" / f"{name}.json", posterior),
        _write(place / "info" / f"{name}.info.json", said),
    ]
    path = place / "draws" / f"{name}.json.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.json", json.dumps(draws))
    written.append(path)
    program = str(reference.full.attrs.get(schema.PROGRAM, ""))
    if "parameters" in program and "model" in program:
        path = folder / "models" / "stan" / f"{name}.stan"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program, encoding="utf-8")
        written.append(path)
    return tuple(written)


def _from_one(name: str) -> str:
    """``mu[1]`` of ``mu[0]``: posteriordb counts as Stan does; labels that are no numbers stay."""
    found = _INDEX.search(name)
    if not found or not all(part.isdigit() for part in found[1].split(",")):
        return name
    places = ",".join(str(int(part) + 1) for part in found[1].split(","))
    return f"{name[: found.start()]}[{places}]"


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    return path
