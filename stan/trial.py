"""A trial of a compiled program in a separate process, before it is opened in one that has other work to do.

`python -m onebasin.stan.trial LIBRARY DATA SEED` constructs the model and evaluates its gradient at a few points. A
crash, as of endless recursion, ends that process alone. Rejected points and printed text do not matter here.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

from onebasin.base.files.writing import working_folder
from onebasin.base.processes.children import ending, run_guarded
from onebasin.base.text import shown

from .home.errors import StanRunError
from .interpreter.driver import bound_memory
from .interpreter.model import trial_points

_PRINT = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char), ctypes.c_int)


def check_survives(library: Path, program: Path, data: str, seed: int) -> None:
    """Reject a library of a program that ends its process, with its data as JSON and the seed of random numbers."""
    with working_folder("trial") as folder:
        file = folder / "data.json"
        file.write_text(data, encoding="utf-8")
        command = (sys.executable, "-m", __name__, library, file, str(seed % 2**32))
        done = run_guarded(command, folder=folder)
    if done.code < 0:
        raise StanRunError(
            f"{shown(program.stem)} {ending(done.code)} as its log density was evaluated; check its functions and "
            "loops. It was tried in a separate process, and nothing is lost."
        )


def main(words: Sequence[str]) -> None:
    """Evaluate the gradient of a library's model at a few points."""
    bound_memory()
    library, data, seed = ctypes.CDLL(words[0]), Path(words[1]).read_bytes(), int(words[2])
    library.onebasin_construct.restype = ctypes.c_void_p
    message, silent = ctypes.c_char_p(), _PRINT(lambda text, size: None)
    handle = library.onebasin_construct(data, ctypes.c_uint(seed), silent, ctypes.byref(message))
    if not handle:  # which is reported where it is opened
        return
    model = ctypes.c_void_p(handle)
    size = library.bs_param_unc_num(model)
    numbers = ctypes.c_double * max(1, size)
    value, slope = ctypes.c_double(), numbers()
    flags = ctypes.c_bool(True), ctypes.c_bool(True)
    for point in trial_points(size, seed):
        library.bs_log_density_gradient(
            *(model, *flags, numbers(*point), ctypes.byref(value), slope, ctypes.byref(message))
        )


if __name__ == "__main__":
    main(sys.argv[1:])
