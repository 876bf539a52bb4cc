"""Files of other makers that are broken, before every command that reads posteriors."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from . import files as f
from .cases import Case, File


def _csv(
    chain: int, *, draws: int = 40, due: int = 40, model: str = "mix", names: str = "mu.1"
) -> str:
    rows = np.random.default_rng(chain).normal(size=(draws, 1 + len(names.split(","))))
    said = f"# stan_version_major = 2\n# model = {model}_model\n# method = sample\n"
    said += f"# num_samples = {due}\n# id = {chain}\n"
    return said + f"lp__,{names}\n" + "".join(",".join(map(repr, r)) + "\n" for r in rows.tolist())


def _zip(**members: bytes | str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return held.getvalue()


def _store(path: Path) -> None:
    path.mkdir()
    (path / ".zgroup").write_text("{")


ALONE: dict[str, tuple[str, File | Callable[[Path], object] | None, str]] = {
    "empty-csv": ("bad.csv", "", "holds no draws"),
    "comments-alone": ("bad.csv", "# method = sample\n", "holds no draws"),
    "cut-csv": ("bad.csv", _csv(1)[:-9], "is cut short"),
    "csv-without-its-last-draws": ("bad.csv", _csv(1, draws=30), "holds 30 of the 40 draws"),
    "optimum": ("bad.csv", _csv(1).replace("sample\n", "optimize\n"), "holds an optimum"),
    "csv-of-text": ("bad.csv", "a,b\nx,y\n", "is no number"),
    "csv-of-bytes": ("bad.csv", bytes(range(128, 256)), "is no text"),
    "unequal-chains": ("bad.csv", "chain,x\n1,2\n1,3\n2,4\n", "has 1 draws of chain 2"),
    "no-json": ("bad.json", "{", "is no JSON that can be read"),
    "data-of-a-program": ("bad.json", f.data(N=3), "but not the draws of a posterior"),
    "unequal-json": (
        "bad.json",
        json.dumps([{"x": [1, 2]}, {"x": [1]}]),
        "whose chains or draws differ in shape",
    ),
    "zip-without-json": ("bad.zip", _zip(notes_txt="nothing"), "holds no JSON"),
    "zip-bomb": ("bad.zip", _zip(bomb_json=bytes(70_000_000)), "of values, but has"),
    "broken-store": ("bad.zarr", _store, "is no Zarr store that can be read"),
    "folder": ("bad.zarr", None, "is a folder that is no Zarr store"),
}


def test_file_of_another_maker_that_cannot_be_read(refuse):
    refuse(
        Case(f"diagnose {name}", f"diagnose {file}", (file, says), {file: content})
        for name, (file, content, says) in ALONE.items()
    )
    for name, words in {
        "cut-csv": "compare good.nc {}",
        "optimum": "convert {} --out out.nc",
    }.items():
        file, content, says = ALONE[name]
        files = {"good.nc": f.good, file: content}
        refuse([Case(words, words.format(file), (file, says), files)])


TOGETHER: dict[str, tuple[str, str]] = {
    "of-another-model": (_csv(2, model="other"), "is of the model other"),
    "of-other-variables": (_csv(2, names="tau"), "has no column mu.1"),
    "of-other-length": (_csv(2, draws=30, due=30), "has 30 draws"),
    "of-the-same-draws": (_csv(1), "holds the same draws"),
    "named-with-markup": (_csv(2, names="<b>[red]\x1b[31m"), "has no column mu.1"),
}


def test_files_that_are_not_chains_of_one_posterior(refuse):
    refuse(
        Case(
            name,
            "diagnose a_1.csv a_2.csv",
            ("a_2.csv", says),
            {"a_1.csv": _csv(1), "a_2.csv": content},
        )
        for name, (content, says) in TOGETHER.items()
    )
