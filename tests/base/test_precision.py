"""The precision of a block that is the first to import JAX, or does without it."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
before, dtype = sys.argv[1:]
os.environ.pop("JAX_ENABLE_X64", None)
if before:
    os.environ["JAX_ENABLE_X64"] = before
from onebasin.base.precision import precision
with precision("float64"):
    pass
assert "jaxlib" not in sys.modules
with precision(dtype):
    import jax
    assert str(jax.numpy.ones(1).dtype) == dtype
assert str(jax.numpy.ones(1).dtype) == ("float64" if before == "1" else "float32")
assert os.environ.get("JAX_ENABLE_X64", "") == before
"""


@pytest.mark.parametrize(
    ("before", "dtype"), [("", "float64"), pytest.param("1", "float32", marks=pytest.mark.full)]
)
def test_a_block_has_its_precision_and_the_process_keeps_its_own(before, dtype):
    command = [sys.executable, "-c", SCRIPT, before, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
