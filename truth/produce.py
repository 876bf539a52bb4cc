"""A reference from beginning to end: made, written, and checked by code that shares no line with what made it.

Its files are written whole or not at all, with checksums of each other. `export` writes it in the layout and formats of
posteriordb: draws as zipped JSON, a list of chains, each a mapping of names such as ``mu[1]``, counted from 1, to lists
of numbers, and what is said of them. Source: https://github.com/stan-dev/posteriordb, folder posterior_database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.base.files.atomic import replacing
from onebasin.base.files.cache import make_user_cache, user_cache
from onebasin.base.files.netcdf import write_tree
from onebasin.base.jsonable import json_safe
from onebasin.inference.runs import provenance
from onebasin.models.symmetry import words
from onebasin.models.symmetry.blocks import equal_modes, to_json
from onebasin.posteriors import draws_json, schema

from . import checker, criteria
from .labelling import Labelling
from .making import Made, Order, make
from .reference import FULL, Reference, ReferenceError, open_reference, references, status_of

CACHE = "truth"
KEPT_DRAWS = 1000
"""Draws of all chains in the file that is kept with the package."""
TRAJECTORY = "trajectory"
"""Group of the full file: energies and divergences of all iterations after the warmup."""
_DIGITS = 10
_LEFT_OUT = (schema.COMMAND, schema.WALL_TIME, schema.FINGERPRINT)


def place_of(name: str, seed: int, *, make: bool = False) -> Path:
    """Return the default folder of a reference, in the user's cache."""
    top = make_user_cache(CACHE) if make else user_cache(CACHE)
    return top / f"{name}-seed{seed}"


def kept_labelling(order: Order) -> Labelling | None:
    """The canonical labelling of the package's reference of a problem, where there is one of the same symmetry."""
    if not order.problem.name or order.name not in references():
        return None
    reference = open_reference(order.name)
    same = reference.symmetry == equal_modes(order.target.symmetry)
    return reference.labelling if same else None


def produce(
    order: Order,
    folder: Path,
    *,
    labelling: Labelling | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Reference, checker.ReferenceVerdict]:
    """Make a reference in a folder, and check it; an earlier run of the same order that is kept there is resumed.

    `labelling` is the canonical one, fitted to the first half of the chains if not given. `say` is called with a line
    of text before what takes long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = make(order, folder, labelling=labelling, progress=progress, say=say)
    say("writing, and checking what is written")
    reference = write(found, folder)
    verdict = checker.check(reference.folder, reference.name)
    _write_json(reference.file("check.json"), verdict.to_dict())
    return reference, verdict


def write(made: Made, folder: Path) -> Reference:
    """Write all files of a reference."""
    name = made.order.name
    reference = Reference(folder, name)
    posterior = made.tree["posterior"].to_dataset()[list(made.names)]
    groups = {
        "posterior": _compressed(posterior),
        "sample_stats": _compressed(made.tree["sample_stats"].to_dataset()),
        TRAJECTORY: _compressed(made.iterations),
    }
    whole = _tree(groups, made)
    write_tree(whole, reference.file(FULL))
    some = slice(0, None, max(1, made.facts.chains * made.order.settings.draws // KEPT_DRAWS))
    stats = made.tree["sample_stats"].to_dataset()
    chosen = [n for n in (schema.LP, schema.ENERGY, schema.DIVERGING) if n in stats]
    few = {
        "posterior": _compressed(posterior.isel(draw=some).astype(np.float32)),
        "sample_stats": _compressed(stats[chosen].isel(draw=some)),
    }
    for group in schema.DATA_GROUPS:
        if group in made.tree.children:
            few[group] = _compressed(made.tree[group].to_dataset())
    write_tree(_tree(few, made), reference.file("draws.nc"))
    summary = {
        "columns": list(made.parameters.columns),
        "parameters": _rows(made.parameters),
        "invariants": _rows(made.invariants),
    }
    _write_json(reference.file("summary.json"), summary, indent=None)
    sums = {part: sha256(reference.file(part)) for part in ("summary.json", "draws.nc", FULL)}
    _write_json(reference.file("info.json"), _info(made) | {"sha256": sums})
    return Reference(folder, name)


def keep(reference: Reference, folder: Path) -> Path:
    """Copy what is small of a reference into a folder of its name."""
    place = folder / reference.name
    place.mkdir(parents=True, exist_ok=True)
    for part in ("info.json", "summary.json", "draws.nc", "check.json"):
        with replacing(place / f"{reference.name}.{part}") as there:
            there.write_bytes(reference.file(part).read_bytes())
    return place


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree(groups: dict[str, xr.Dataset], made: Made) -> xr.DataTree:
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {k: v for k, v in made.tree.attrs.items() if k not in _LEFT_OUT}
    tree.attrs[schema.SYMMETRY] = to_json(made.symmetry)
    return tree


def _compressed(dataset: xr.Dataset) -> xr.Dataset:
    packed = dataset.copy()
    for variable in packed.variables.values():
        variable.encoding = {"zlib": True, "complevel": 6, "shuffle": True} if variable.ndim else {}
    return packed


def _rows(table: pd.DataFrame) -> dict[str, list[float]]:
    return {
        str(row): [float(f"{value:.{_DIGITS}g}") for value in values]
        for row, values in zip(table.index, table.to_numpy(), strict=True)
    }


def _info(made: Made) -> dict[str, Any]:
    order, tree = made.order, made.tree
    settings = replace(order.settings, draws=order.settings.draws * made.thin)
    unthinned = criteria.short(made.facts.efmi_unthinned)
    info: dict[str, Any] = {
        "name": order.name,
        "title": order.problem.title,
        "inference": {
            "method": f"{order.engine}_nuts",
            "method_arguments": {
                "chains": made.facts.chains,
                "iter": settings.warmup + settings.draws,
                "warmup": settings.warmup,
                "thin": made.thin,
                "seed": order.seed,
                "control": {
                    "adapt_delta": settings.target_acceptance,
                    "max_treedepth": settings.max_tree_depth,
                },
                "settings": asdict(settings),
            },
        },
        "diagnostics": criteria.diagnostics(made.parameters, made.facts)
        | {"expected_fraction_of_missing_information_unthinned": unthinned},
        "diagnostics_of_invariants": criteria.diagnostics(made.invariants, made.facts),
        "checks_made": criteria.checks_made(made.parameters, made.facts),
        "checks_of_invariants": criteria.checks_made(made.invariants, made.facts),
    }
    info["status"] = status_of(info)
    in_words = []
    for block in made.symmetry:
        try:
            in_words.append(words.spell(block))
        except ValueError:
            in_words.append(str(block.describe()))
    return info | {
        "symmetry": json.loads(to_json(made.symmetry)),
        "symmetry_in_words": in_words,
        "symmetry_described": [block.describe() for block in made.symmetry],
        "labelling": None if made.labelling is None else made.labelling.to_json(),
        "quotient": None if made.quotient is None else made.quotient.to_json(),
        "dimensions": {name: list(tree["posterior"][name].shape[2:]) for name in made.names},
        "evidence": made.evidence,
        "problem": order.problem.name,
        "program_name": str(tree.attrs.get(schema.PROGRAM_NAME, "")),
        "data_sha256": str(tree.attrs.get(schema.DATA_SHA256, "")),
        "references": list(order.problem.references),
        "keywords": list(order.problem.keywords),
        "comments": None,
        "added_by": "onebasin truth make",
        "added_date": schema.now()[:10],
        "versions": provenance.versions(),
        "machine": provenance.machine(order.engine),
    }


def _write_json(path: Path, value: Any, *, indent: int | None = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(json_safe(value), indent=indent, ensure_ascii=False)
    if indent is None:  # a row a line: small, and its changes can be read
        text = text.replace('], "', '],\n"').replace('{"', '{\n"')
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")
    return path


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
    names = draws_json.names(reference.full["posterior"].to_dataset())
    described = [names[n] for n in info["diagnostics"]["diagnostic_information"]["names"]]
    diagnostics = info["diagnostics"] | {"diagnostic_information": {"names": described}}
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
        _write_json(folder / "posteriors" / f"{name}.json", posterior),
        _write_json(place / "info" / f"{name}.info.json", info | {"diagnostics": diagnostics}),
    ]
    path = place / "draws" / f"{name}.json.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    draws_json.write(reference.full, path, zipped=f"{name}.json")
    written.append(path)
    program = str(reference.full.attrs.get(schema.PROGRAM, ""))
    if "parameters" in program and "model" in program:
        path = folder / "models" / "stan" / f"{name}.stan"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program, encoding="utf-8")
        written.append(path)
    return tuple(written)
