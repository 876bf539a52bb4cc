"""Writing where it fails, in a process that allows files of 64 KiB: one error, no traceback, no crash."""

import subprocess
import sys
from pathlib import Path

import pytest

from onebasin.base.files.sink import Sink

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
    assert done.stdout.splitlines() == [
        f"{path} cannot be written (File too large), and what was there before is as it was; make room, or name a "
        "file in another place."
        for path in paths
    ]
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == ["old"] * 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_the_first_error_of_a_write_is_raised_at_the_end():
    sink = Sink(Path("/dev/full"))
    sink.write(b"is lost")
    sink.write(b"goes on")
    with pytest.raises(OSError, match="No space left"):
        sink.close()
