"""Writing where it fails, in a process that allows files of 64 KiB: one error, no traceback, no crash."""

import subprocess
import sys

WRITE = """
import resource, sys
from pathlib import Path
import numpy as np, xarray as xr
from onebasin.base.errors import WriteError
from onebasin.base.files.atomic import replacing
from onebasin.base.files.netcdf import write_tree

def netcdf(path):
    values = xr.Dataset({"a": (("x",), np.arange(100_000.0)), "b": (("x",), np.zeros(100_000))})
    write_tree(xr.DataTree.from_dict({"posterior": values, "more": values}), path)

def npz(path):
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, a=np.arange(100_000.0), b=np.arange(100_000.0))

def text(path):
    with replacing(path) as part:
        part.write_text("x" * 100_000)

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
for kind in (netcdf, npz, text):
    try:
        kind(Path(sys.argv[1]) / kind.__name__)
    except WriteError as error:
        print(error)
"""


def test_a_full_disk_is_one_error_that_names_the_file(tmp_path):
    paths = [tmp_path / kind for kind in ("netcdf", "npz", "text")]
    for path in paths:
        path.write_text("old")
    words = [sys.executable, "-c", WRITE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert [line.startswith(str(path)) for line, path in zip(told, paths, strict=True)] == [
        True
    ] * 3
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == ["old"] * 3
