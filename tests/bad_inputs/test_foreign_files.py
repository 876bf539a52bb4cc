"""Broken files of other makers, before commands that read posteriors; tests/posteriors has every way to be broken."""

from __future__ import annotations

from pathlib import Path

from ..posteriors import chains
from . import files as f
from .cases import Case, File


def _store(path: Path) -> None:
    path.mkdir()
    (path / ".zgroup").write_text("{")


BROKEN: dict[str, tuple[File | None, str]] = {
    "cut.csv": (chains.text()[:1500], "of the 40 draws that its run was to write"),
    "optimum.csv": (chains.text().replace("method = sample", "method = optimize"), "an optimum"),
    "bad.zip": (b"no archive", "bad.zip"),
    "bad.zarr": (_store, "is no Zarr store that can be read"),
    "folder.zarr": (None, "is a folder that is no Zarr store"),
}


def test_file_of_another_maker_that_cannot_be_read(refuse):
    commands = ("diagnose {}", "compare good.nc {}", "convert {} --out out.nc")
    refuse(
        Case(words.format(name), words.format(name), (name, says), {"good.nc": f.good, name: held})
        for words in commands
        for name, (held, says) in BROKEN.items()
    )


def test_files_that_are_not_chains_of_one_posterior(refuse):
    other = chains.text(2, names="<b>[red]\x1b[31m")
    files = {"a_1.csv": chains.text(1), "a_2.csv": other}
    refuse([Case("other names", "diagnose a_1.csv a_2.csv", ("a_2.csv", "no column mu.1"), files)])
