"""Files that are no posterior, or a broken one, before every command that reads posteriors."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import xarray as xr

from . import files as f
from .cases import Case, File

READERS = {
    "diagnose": "diagnose bad.nc",
    "align": "align bad.nc --out out.nc --exchangeable mu,sigma",
    "compare": "compare bad.nc good.nc",
    "compare-second": "compare good.nc bad.nc",
    "report": "report good.nc bad.nc --out page.html",
    "reference": "align good.nc --out out.nc --exchangeable mu,sigma --reference bad.nc",
}


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(f.as_bytes(f.mixture)))


def _hdf5(fill: Callable[[h5py.File], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            fill(file)

    return write


QUICK = ("half", "no-posterior", "without-chain", "no-chains", "nan", "moved-is-text")
"""What every command is tried with; the rest, through the same door, is tried with `diagnose` alone."""

NOT_READABLE: dict[str, File | None] = {
    "folder": None,
    "empty": b"",
    "text": "not NetCDF\n",
    "noise": np.random.default_rng(0).bytes(4096),
    "half": _bytes(lambda whole: whole[: len(whole) // 2]),
    "gzip": _bytes(gzip.compress),
    "plain-hdf5": _hdf5(lambda file: file.create_dataset("mu", data=np.zeros((2, 10)))),
    "hdf5-without-anything": _hdf5(lambda file: None),
    "posterior-is-an-array": _hdf5(lambda file: file.create_dataset("posterior", data=np.zeros(3))),
    "plain-hdf5-in-the-group": _hdf5(
        lambda file: file.create_group("posterior").create_dataset("mu", data=np.zeros((2, 10)))
    ),
    "compound-type": _hdf5(
        lambda file: file.create_group("posterior").create_dataset(
            "mu", data=np.zeros(3, [("a", "f8"), ("b", "i4")])
        )
    ),
    "no-posterior": f.with_change(lambda groups, _: groups.pop("posterior")),
    "flat-dataset-without-chains": lambda path: xr.Dataset(
        {"mu": (("draw",), np.zeros(10))}
    ).to_netcdf(path, engine="h5netcdf"),
}
"""Files that cannot be read, or hold no group of draws."""


def _unreadable() -> Iterator[Case]:
    for reader, words in READERS.items():
        yield Case(f"{reader}-absent", words, ("bad.nc does not exist",), {"good.nc": f.good})
        for name, content in NOT_READABLE.items():
            if reader == "diagnose" or name in QUICK:
                files = {"good.nc": f.good, "bad.nc": content}
                yield Case(f"{reader}-{name}", words, ("bad.nc",), files)


def test_file_that_is_no_posterior(refuse):
    refuse(_unreadable())


def _with_dims(**names: str) -> Callable[[Path], None]:
    return f.with_posterior(lambda posterior: posterior.rename(names))


def _put(name: str, values: np.ndarray, *dims: str) -> Callable[[Path], None]:
    return f.with_posterior(lambda posterior: posterior.assign({name: (dims, values)}))


SHAPE = (f.CHAINS, f.DRAWS)
BROKEN_DRAWS: dict[str, Callable[[Path], None]] = {
    "without-chain": f.with_posterior(lambda p: p.isel(chain=0, drop=True)),
    "other-dimensions": _with_dims(chain="walker", draw="sample"),
    "one-without-draw": _put("extra", np.zeros(f.CHAINS), "chain"),
    "no-variables": f.with_posterior(lambda p: p.drop_vars(list(p.data_vars))),
    "no-chains": f.with_posterior(lambda p: p.isel(chain=slice(0, 0))),
    "one-draw": f.with_posterior(lambda p: p.isel(draw=slice(0, 1))),
    "three-draws": f.with_posterior(lambda p: p.isel(draw=slice(0, 3))),
    "nan": f.with_values("mu", lambda v: np.where(np.arange(3) == 1, np.nan, v)),
    "one-nan": f.with_values("sigma", lambda v: np.where(v == v.flat[7], np.nan, v)),
    "inf": f.with_values("mu", lambda v: np.where(v == v.flat[0], np.inf, v)),
    "all-nan": f.with_values("noise", lambda v: v * np.nan),
    "complex": _put("extra", np.zeros(SHAPE, complex), "chain", "draw"),
    "text": _put("extra", np.full(SHAPE, "a"), "chain", "draw"),
    "moved-is-text": _put("mu", np.full((*SHAPE, 3), "a"), "chain", "draw", "mu_dim_0"),
}
"""Posteriors whose draws cannot be worked with."""

LEFT_OUT = {"nan": ("diagnose", "compare", "report"), "all-nan": ("diagnose",)}
"""Entries that are finite in no draw are left out and named; alignment refuses those that it would move."""

FOUND = ("one-nan", "inf")
"""Entries that are finite in some draws are findings of a diagnosis; they end a comparison."""

IN_COMPARE = ("one-draw", "three-draws", *FOUND, "complex")
"""What a comparison has its own words for."""


def _broken_draws() -> Iterator[Case]:
    for reader, words in READERS.items():
        for name, write in BROKEN_DRAWS.items():
            told = reader in LEFT_OUT.get(name, ()) or (reader == "diagnose" and name in FOUND)
            own = reader == "compare" and name in IN_COMPARE
            if not told and (own or reader == "diagnose" or name in QUICK):
                files = {"good.nc": f.good, "bad.nc": write}
                yield Case(f"{reader}-{name}", words, ("bad.nc",), files)


def test_posterior_with_draws_that_cannot_be_used(refuse):
    refuse(_broken_draws())


BROKEN_ATTRIBUTES: dict[str, Callable[[Path], None]] = {
    "symmetry-no-json": f.with_attribute("symmetry", "{{{"),
    "symmetry-of-absent-variable": f.with_attribute(
        "symmetry", '[{"kind": "exchangeable", "axes": {"tau": 0, "mu": 0}}]'
    ),
    "symmetry-axis-too-large": f.with_attribute(
        "symmetry", '[{"kind": "exchangeable", "axes": {"mu": 7}}]'
    ),
    "symmetry-axis-a-word": f.with_attribute(
        "symmetry", '[{"kind": "exchangeable", "axes": {"mu": "x"}}]'
    ),
    "model-no-json": f.with_attribute("model", "not json", f.network),
    "model-of-other-shapes": f.with_attribute(
        "model",
        f.network().attrs["model"].replace('"hidden": [2]', '"hidden": [3]').replace("[2]", "[3]"),
        f.network,
    ),
}


def _broken_attributes() -> Iterator[Case]:
    for name, write in BROKEN_ATTRIBUTES.items():
        of_model = name.startswith("model")
        there = {"bad.nc": write, "good.nc": f.of_network if of_model else f.good}
        readers = ["align bad.nc --out out.nc", "compare bad.nc good.nc", "diagnose bad.nc"]
        if of_model:
            readers.pop()  # it reads no model
        if name == "model-of-other-shapes":
            readers.pop(0)  # of the network only its scales are taken
        for reader in readers:
            yield Case(f"{reader.split()[0]}-{name}", reader, (), there)


def test_posterior_with_attributes_that_cannot_be_read(refuse):
    refuse(_broken_attributes())
