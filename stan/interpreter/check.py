"""The check of a program before it is used, in the driver's process: whether the interpreter takes all of it.

The program is compiled, given its data, and evaluated at a few points. Only a program that comes through is opened in a
process that has other work to do.
"""

from __future__ import annotations

import json
import random
from ctypes import byref, c_bool, c_char_p, c_void_p
from pathlib import Path
from typing import Any

from .model import Arguments, Model, RunFailed
from .source import (
    adds_to_target_early,
    compiled,
    declared_data,
    emptied,
    full_text,
    held,
    included_files,
    until_data,
)

POINTS = 3
RADIUS = 2.0


def check(program: Path, arguments: Arguments) -> dict[str, Any]:
    """Try a program with its data.

    Returned are `form` and `jacobian`, the program and the same without its model block; `inputs`; `names` of the
    parameters, of these with transformed parameters, and of all; `includes`; and the interpreter's `warning`. A program
    that does not parse is a `ProgramRefused`; one that the interpreter does not take, or refuses its data, `RunFailed`.
    """
    includes = included_files(program)
    form = compiled(program.read_bytes().decode(errors="replace"), program.parent)
    text = full_text(program, includes)
    if adds_to_target_early(text):
        raise RunFailed(
            "stanli compile: a function whose name ends in _lp, outside the model block"
        )
    jacobian = compiled(emptied(text, "model"), program.parent)
    data = arguments.data
    given = json.loads(data)
    wanted = declared_data(compiled(until_data(text), program.parent))
    if absent := [name for name in wanted if name not in given]:
        raise RunFailed(f"absent: {', '.join(absent)}")
    for name, number in wanted.items():
        if number and isinstance(given[name], list):
            raise RunFailed(f"{name} is an array; it is declared as a single number")
    model = Model(form, data, seed=arguments.seed)
    Model(jacobian, data, seed=arguments.seed)
    for point in trial_points(model.dim, arguments.seed):
        model.gradient(point)
        model.values(point)
    # Columns of the parameters, of these with transformed parameters, and of all.
    library, error = model.library, c_char_p()
    whole = json.dumps({**given, **held(form)}).encode()
    handle = c_void_p(library.bs_model_construct(whole, arguments.seed % 2**32, byref(error)))
    flags = ((False, False), (True, False), (True, True))
    names = [library.bs_param_names(handle, *map(c_bool, each)).decode() for each in flags]
    library.bs_model_destruct(handle)
    return {
        "form": form,
        "jacobian": jacobian,
        "inputs": list(wanted),
        "names": [columns.split(",") if columns else [] for columns in names],
        "includes": [str(path) for path in includes],
        "warning": model.warning,
    }


def trial_points(dim: int, seed: int) -> list[list[float]]:
    """Draw a few points, uniform within a radius around 0."""
    stream = random.Random(seed)
    return [[stream.uniform(-RADIUS, RADIUS) for _ in range(dim)] for _ in range(POINTS)]
