"""The precision of a block, whether JAX is there before it or not."""

import subprocess
import sys

from ..each import each

SCRIPT = """
import os, sys
before, first, dtype = sys.argv[1:]
os.environ.pop("JAX_ENABLE_X64", None)
if before:
    os.environ["JAX_ENABLE_X64"] = before
if first == "yes":
    import jax
from onebasin.base.precision import precision
with precision("float64"):
    pass
assert ("jaxlib" in sys.modules) == (first == "yes")
with precision(dtype):
    import jax
    assert str(jax.numpy.ones(1).dtype) == dtype
assert str(jax.numpy.ones(1).dtype) == ("float64" if before == "1" else "float32")
assert os.environ.get("JAX_ENABLE_X64", "") == before
"""


@each("before", ["", "1"])
@each("first", ["yes", "no"])
@each("dtype", ["float64", "float32"])
def test_a_block_has_its_precision_and_the_process_keeps_its_own(before, first, dtype):
    command = [sys.executable, "-c", SCRIPT, before, first, dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
