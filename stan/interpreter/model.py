"""A Stan program with its data in the driver's process, and Stan's algorithms on it but for its samplers.

Every algorithm is Stan's own code, called through the interpreter's C interface.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import time
from collections.abc import Sequence
from ctypes import byref, c_double, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError

from .arguments import Arguments
from .runtime import LOG, Message, Structure, load, new_options
from .source import compiled, with_constants
from .tables import say, write_table

_EVALUATING = "Error evaluating the log probability"
"""The program's own words follow such a line, after "Exception: " in CmdStan."""
_ELBO = re.compile(r"^\s*(\d+)\s+(-?[\d.e+]+|-?inf|nan)\s")


class RunFailed(OnebasinError):
    """A program that refuses its data, or an algorithm that failed; the message is Stan's own."""


class DoubleRows:
    """An array of doubles that the library writes, by rows."""

    def __init__(self, rows: int, width: int = 1) -> None:
        self.width = width
        self.array = (c_double * max(1, rows * width))()
        ctypes.memset(self.array, 0xFF, ctypes.sizeof(self.array))  # all bits set: NaN

    def row(self, number: int) -> list[float]:
        """Return one row."""
        return self.array[number * self.width : (number + 1) * self.width]


Table = tuple[tuple[str, ...], list[list[float]]]
"""Names of the columns before the program's own, and all rows."""


class Model:
    """A program with its data, both as text; made by `of`.

    The seed is of random numbers in the block `transformed data`, the chain that of generated quantities.
    """

    def __init__(self, form: str, data: str, *, seed: int, chain: int = 1) -> None:
        self.library = load()
        options, message = new_options("model"), Message()
        options.seed = seed % 2**32
        handle = self.library.stanli_model_new_with_opts(
            form.encode(), data.encode(), byref(options), *message.arguments
        )
        if not handle:
            raise RunFailed(message.text)
        self.handle = c_void_p(handle)
        self.dim: int = self.library.stanli_n_unconstrained(self.handle)
        name, self._write = self.library.stanli_wa_column_name, self.library.stanli_wa_row
        count = self.library.stanli_wa_n_columns(self.handle)
        if not count:
            count = self.library.stanli_n_constrained(self.handle)
            name, self._write = self.library.stanli_constrained_name, self.library.stanli_constrain
        self.columns: tuple[str, ...] = tuple(
            name(self.handle, c_int64(place)).decode() for place in range(count)
        )
        self.library.stanli_wa_seed_chain(
            self.handle, ctypes.c_uint32(seed % 2**32), ctypes.c_uint32(chain)
        )

    @classmethod
    def of(cls, program: Path, arguments: Arguments, *, constants: bool = False) -> Model:
        """Open a program as a command line says; with the constants that `~` drops, as Stan's ADVI has it, if asked."""
        form = compiled(program.read_bytes().decode(errors="replace"), program.parent)
        form = with_constants(form) if constants else form
        return cls(form, arguments.data, seed=arguments.seed, chain=arguments.get("id", 1))

    @property
    def warning(self) -> str:
        """The interpreter's words on parts of the program that it cannot compute, or computes slowly."""
        return (self.library.stanli_warnings(self.handle) or b"").decode(errors="replace")

    def gradient(self, point: Sequence[float]) -> float:
        """Evaluate the log density with its gradient; -inf where the program rejects the point."""
        level, slope = c_double(), (c_double * max(1, self.dim))()
        code = self.library.stanli_grad(self.handle, self._point(point), byref(level), slope)
        return float("-inf") if code else level.value

    def values(self, point: Sequence[float]) -> list[float]:
        """Compute a row of the columns; NaN where generated quantities cannot be computed."""
        row = DoubleRows(1, len(self.columns))
        self._write(self.handle, self._point(point), row.array)
        return row.row(0)

    def unconstrained(self, values: str) -> list[float]:
        """Return the point at values of all parameters, as JSON; refuse those of another shape or outside support."""
        point = (c_double * max(1, self.dim))()
        # Arrays as flat lists in Stan's own order, in which the interpreter reads them.
        given = json.loads(values).items()
        flat = {n: _flattened(v) if isinstance(v, list) else v for n, v in given}
        message, text = Message(), json.dumps(flat).encode()
        if self.library.stanli_unconstrain_inits(self.handle, text, point, *message.arguments):
            raise RunFailed(message.text)
        return point[: self.dim]

    def start(self, options: Structure, arguments: Arguments, field: str = "init") -> None:
        """Put a command line's start into options, which keep what they point to."""
        if isinstance(arguments.start, float):
            options.init_radius = arguments.start
        else:
            point = self._point(self.unconstrained(arguments.start.read_text(encoding="utf-8")))
            setattr(options, field, ctypes.cast(point, ctypes.POINTER(c_double)))

    def optimum(self, arguments: Arguments) -> Table:
        """Climb to an optimum by L-BFGS and say whether its criterion was met: a row of log density and columns."""
        options = arguments.options("optimize")
        if not arguments.get("jacobian", 0):
            raise RunFailed("The interpreter cannot leave the Jacobian out of an optimum.")
        self.start(options, arguments)
        point, row = (c_double * max(1, self.dim))(), DoubleRows(1, len(self.columns))
        level = c_double(float("nan"))
        code, words = self._call(
            "stanli_optimize", options, point, row.array, byref(level), logs=False
        )
        if code and not math.isfinite(level.value):
            raise RunFailed(words)
        if code:
            say(words)
        say("The search ended before it met its criterion" if code else "Convergence detected")
        return ("lp__",), [[level.value, *self.values(point[: self.dim])]]

    def laplace(self, arguments: Arguments) -> Table:
        """Draw from the Gaussian at a mode: rows of log density, log density of the Gaussian, and columns."""
        options = arguments.options("laplace")
        mode = self.unconstrained(Path(arguments.values["mode"]).read_text(encoding="utf-8"))
        count = options.draws
        rows = DoubleRows(count, len(self.columns))
        level, approximate = DoubleRows(count), DoubleRows(count)
        arrays = (rows.array, level.array, approximate.array)
        self.run("stanli_laplace_sample", options, self._point(mode), *arrays)
        return ("log_p__", "log_q__"), _side_by_side(count, level, approximate, rows)

    def pathfinder(self, arguments: Arguments) -> Table:
        """Run one path: rows of the approximation's log density, the density, the path, and columns."""
        options = arguments.options("pathfinder")
        self.start(options, arguments, "inits")
        most = self.library.stanli_pathfinder_max_draws(byref(options))
        rows, level = DoubleRows(most, len(self.columns)), DoubleRows(most)
        approximate, path, count = DoubleRows(most), DoubleRows(most), c_int64()
        arrays = (rows.array, level.array, approximate.array, path.array)
        self.run("stanli_pathfinder", options, *arrays, byref(count))
        table = _side_by_side(count.value, approximate, level, path, rows)
        return ("lp_approx__", "lp__", "path__"), table

    def variational(self, arguments: Arguments) -> Table:
        """Fit ADVI: rows of a zero, the two log densities and columns, the mean first; write the trace of the ELBO."""
        options = arguments.options("variational")
        options.algorithm = int(arguments.values["algorithm"] == "fullrank")
        self.start(options, arguments)
        count, began = options.output_samples, time.monotonic()
        mean, rows = DoubleRows(1, len(self.columns)), DoubleRows(count, len(self.columns))
        level, approximate = DoubleRows(count), DoubleRows(count)
        trace: list[tuple[int, float, float]] = []

        def follow(words: str) -> None:
            if found := _ELBO.match(words):
                trace.append((int(found[1]), time.monotonic() - began, float(found[2])))

        arrays = (mean.array, rows.array, level.array, approximate.array)
        self.run("stanli_variational", options, *arrays, follow=follow)
        if file := arguments.values.get("output.diagnostic_file"):
            write_table(Path(file), ("iter", "time_in_seconds", "ELBO"), trace, 18)
        draws = [[0.0, *row] for row in _side_by_side(count, level, approximate, rows)]
        return ("lp__", "log_p__", "log_g__"), [[0.0, 0.0, 0.0, *mean.row(0)], *draws]

    def run(self, function: str, options: Structure, *arrays: Any, follow: Any = None) -> None:
        """Call an algorithm whose failure is an error."""
        code, words = self._call(function, options, *arrays, follow=follow)
        if code:
            raise RunFailed(words)

    def _call(
        self, function: str, options: Structure, *arrays: Any, logs: bool = True, follow: Any = None
    ) -> tuple[int, str]:
        """Call an algorithm; what it logs is printed, and given line by line to `follow`."""
        before = ""

        def log(_level: int, words: bytes, _user: object) -> None:
            nonlocal before
            line = words.decode(errors="replace")
            say(f"Exception: {line}" if before.strip().startswith(_EVALUATING) and line else line)
            before = line
            if follow is not None:
                follow(line)

        callback, message = LOG(log), Message()
        hooks = (callback, None, None, None, byref(c_int())) if logs else ()
        call = getattr(self.library, function)
        code = call(self.handle, byref(options), *arrays, *hooks, *message.arguments)
        return code, message.text

    def _point(self, point: Sequence[float]) -> Any:
        return (c_double * max(1, self.dim))(*point)


def _side_by_side(count: int, *parts: DoubleRows) -> list[list[float]]:
    """Join the first rows of arrays."""
    return [[number for part in parts for number in part.row(place)] for place in range(count)]


def _flattened(value: list[Any]) -> list[float]:
    """Go through nested lists with the first index fastest."""
    if not value or not isinstance(value[0], list):
        return value
    inner = [_flattened(part) for part in value]
    return [part[place] for place in range(len(inner[0])) for part in inner]
