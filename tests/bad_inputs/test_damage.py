"""Files with any attribute of another kind, cut anywhere, or with any bytes changed: a result or an `OnebasinError`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.report.posteriors import describe_run
from onebasin.base.errors import OnebasinError
from onebasin.posteriors import schema

from . import files as f

ATTRIBUTES = sorted({v for n, v in vars(schema).items() if n.isupper() and isinstance(v, str)})
VALUES = (
    *("", "words", "{", "[]", "{}", "[1]", '["a"]', "[[1]]", '[["a"]]', "null", "NaN", "3", "-1"),
    *('[{"a": 1}]', '{"a": {"b": []}}', '{"a": [1]}', '{"points": "x"}', '{"blocks": 3}'),
    *('{"shift": {}, "spread": 3}', '[{"kind": "exchangeable", "axes": {"mu": []}}]', "\x1b[31m"),
    *(3, np.nan, np.inf, 1e300, -1, np.array([1, 2]), np.array(["a", "b"])),
)
SYMMETRY = (ob.Exchangeable({"mu": 0, "sigma": 0}),)


def _variational() -> xr.DataTree:
    tree = f.changed(f.mixture(), lambda *_: None)
    tree["variational"] = xr.Dataset({"elbo": ("evaluation", np.linspace(-9, -3, 30))})
    return tree


READERS: dict[str, Callable[[xr.DataTree], object]] = {
    "diagnose": ob.diagnose,
    "align": lambda tree: ob.align(tree, SYMMETRY).to_tree(),
    "gaussian": lambda tree: ob.approximations.fit_gaussian(tree).sample(4, seed=1),
    "compare": lambda tree: ob.compare(
        {"a": tree, "b": f.mixture(seed=2)}, truth="a", permutations=9
    ),
    "elbo": lambda tree: repr(ob.approximations.elbo(tree)),
    "provenance": lambda tree: describe_run("run", tree),
}


@pytest.mark.parametrize("every", [301, pytest.param(1, marks=pytest.mark.slow)])
def test_attributes_of_another_kind(every):
    trees = {name: _variational() if name == "elbo" else f.mixture() for name in READERS}
    faults = []
    for reader, name, value in list(product(READERS, ATTRIBUTES, VALUES))[::every]:
        tree = f.changed(
            trees[reader], lambda _, attributes, n=name, v=value: attributes.update({n: v})
        )
        try:
            READERS[reader](tree)
        except OnebasinError:
            pass
        except Exception as error:
            faults.append(f"{reader} with {name}={value!r}: {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


FORMATS = ("run.nc", "run.csv", "run.parquet")


def _damages(content: bytes, number: int) -> Iterator[bytes]:
    size = len(content)
    for k in range(number):
        yield content[: size * k // number]
        first = size * k // number
        region = bytes(byte ^ 0x5A for byte in content[first : first + 1 + size // (3 * number)])
        yield content[:first] + region + content[first + len(region) :]


@pytest.mark.parametrize("number", [2, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(here, name, number):
    path = ob.save(f.mixture(), here / name)
    for content in _damages(path.read_bytes(), number):
        path.write_bytes(content)
        with warnings.catch_warnings(), suppress(OnebasinError):
            warnings.simplefilter("ignore")  # of numbers that are as large as they get
            ob.diagnose(path)  # which reads arrays as it comes to them
