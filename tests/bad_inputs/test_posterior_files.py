"""Files that are no posterior, or a broken one, before commands that read posteriors; odd ones that are in order."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from . import files as f
from .cases import DONE, Case, File

ALIGN = "align bad.nc --out out.nc --exchangeable mu,sigma"
READERS = {
    "diagnose": "diagnose bad.nc",
    "align": ALIGN,
    "compare": "compare good.nc bad.nc",
    "report": "report good.nc bad.nc --out page.html",
}


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(change(f.as_bytes(f.mixture)))


def _hdf5(fill: Callable[[h5py.File], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            fill(file)

    return write


def _array(group: h5py.Group, kind: object = "f8") -> object:
    return group.create_dataset("mu", (2, 10), kind)


def _put(name: str, values: np.ndarray, *dims: str) -> Callable[[Path], None]:
    return f.with_posterior(lambda posterior: posterior.assign({name: (dims, values)}))


SHAPE = (f.CHAINS, f.DRAWS)
QUICK = ("half", "no-posterior", "without-chain", "moved-is-text")
"""What every command is tried with; the rest, through the same door, is tried with `diagnose` alone."""

BROKEN: dict[str, File | None] = {
    "folder": None,
    "empty": b"",
    "noise": np.random.default_rng(0).bytes(4096),
    "half": _bytes(lambda whole: whole[: len(whole) // 2]),
    "gzip": _bytes(gzip.compress),
    "plain-hdf5": _hdf5(_array),
    "posterior-is-an-array": _hdf5(lambda file: file.create_dataset("posterior", (3,), "f8")),
    "plain-hdf5-in-the-group": _hdf5(lambda file: _array(file.create_group("posterior"))),
    "compound-type": _hdf5(
        lambda file: _array(file.create_group("posterior"), [("a", "f8"), ("b", "i4")])
    ),
    "no-posterior": f.with_change(lambda groups, _: groups.pop("posterior")),
    "flat-dataset-without-chains": lambda path: xr.Dataset({"mu": ("draw", [0.0])}).to_netcdf(path),
    "without-chain": f.with_posterior(lambda p: p.isel(chain=0, drop=True)),
    "other-dimensions": f.with_posterior(lambda p: p.rename(chain="walker", draw="sample")),
    "one-without-draw": _put("extra", np.zeros(f.CHAINS), "chain"),
    "no-variables": f.with_posterior(lambda p: p.drop_vars(list(p.data_vars))),
    "no-chains": f.with_posterior(lambda p: p.isel(chain=slice(0, 0))),
    "three-draws": f.with_posterior(lambda p: p.isel(draw=slice(0, 3))),
    "complex": _put("extra", np.zeros(SHAPE, complex), "chain", "draw"),
    "moved-is-text": _put("mu", np.full((*SHAPE, 3), "a"), "chain", "draw", "mu_dim_0"),
    "symmetry-no-json": f.with_attribute("symmetry", "{{{"),
}


def _broken() -> Iterator[Case]:
    for reader, words in READERS.items():
        yield Case(words, ("bad.nc",), {"good.nc": f.good})
        for name, content in BROKEN.items():
            if reader == "diagnose" or name in QUICK:
                yield Case(words, ("bad.nc",), {"good.nc": f.good, "bad.nc": content})
    nan = f.with_values("mu", lambda v: np.where(np.arange(3) == 1, np.nan, v))
    yield Case(ALIGN, ("bad.nc",), {"bad.nc": nan})
    too_large = '[{"kind": "exchangeable", "axes": {"mu": 7}}]'
    yield Case(READERS["diagnose"], ("mu",), {"bad.nc": f.with_attribute("symmetry", too_large)})
    of_no_json = f.with_attribute("model", "not json", f.network)
    yield Case(READERS["compare"], (), {"good.nc": f.of_network, "bad.nc": of_no_json})


@pytest.mark.parametrize("case", list(_broken()), ids=lambda case: case.words)
def test_a_file_that_is_no_posterior_is_refused(refuse, case):
    refuse(case)


@pytest.mark.parametrize(
    ("words", "write"),
    [
        ("diagnose 'взвод a--force'", f.good),
        ("diagnose run.nc", f.with_change(lambda _, attributes: attributes.clear())),
        ("diagnose run.nc", f.with_values("mu", lambda v: np.where(v == v.flat[0], np.inf, v))),
        ("diagnose run.nc", f.with_values("noise", lambda v: v * np.nan)),
        (ALIGN.replace("bad", "run"), f.with_posterior(lambda p: p.isel(draw=slice(0, 1)))),
        (ALIGN.replace("bad", "run"), _put("extra", np.full(SHAPE, "a"), "chain", "draw")),
    ],
)
def test_what_looks_odd_and_is_in_order_is_taken(refuse, words, write):
    name = words.partition("'")[2].rstrip("'") or "run.nc"
    refuse(Case(words, (), {name: write}, code=DONE, makes=("out.nc",)))
