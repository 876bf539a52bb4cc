"""Run a Stan program in the interpreter, with CmdStan's command lines and files.

`python -m onebasin.stan.interpreter.driver PROGRAM.stan method=sample ...` does the same as CmdStan's executable with
the same arguments, so that the same code runs, watches and reads both. A program that crashes, loops or exhausts memory
ends only this process. Random streams are the same as in CmdStan; draws agree up to rounding. Every algorithm is Stan's
own code, called through the interpreter's C interface: `stanli.Model` needs NumPy, lacks Pathfinder, Laplace and ADVI,
and has no chain number, which determines the random stream. The file of draws appears only when it is complete.

`method=check` lists the declarations of a program. `method=try` evaluates a compiled library, given in place of the
program, at a few points, before the user's process loads it.

Static HMC, fixed parameters, optima without the Jacobian, and several Pathfinder paths per run are not available.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError

from . import runtime


def say(line: str) -> None:
    """Print a line and flush it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


Rows = Iterable[Iterable[float]]


def write_table(
    path: Path, columns: Sequence[str], rows: Rows, digits: int, comments: Iterable[str] = ()
) -> None:
    """Write rows of numbers with the given number of significant digits, then lines of comments."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(",".join(columns) + "\n")
        for row in rows:
            file.write(",".join([f"%.{digits}g" % number for number in row]) + "\n")
        file.writelines(f"# {line}\n" for line in comments)
    part.replace(path)


_SECTIONS = ("data", "output", "random", "adapt")
_SAME = (
    *("save_warmup", "max_depth", "iter", "jacobian", "draws", "num_elbo_draws", "max_lbfgs_iters"),
    *("history_size", "grad_samples", "elbo_samples", "eta", "tol_rel_obj", "eval_elbo"),
    "output_samples",
)
_FIELDS = dict(zip(_SAME, _SAME, strict=True)) | {
    "random.seed": "seed",
    "id": "chain_id",
    "num_warmup": "warmup",
    "num_samples": "samples",
    "adapt.delta": "delta",
    "adapt.engaged": "adapt_engaged",
    "stepsize": "step_size",
    "num_psis_draws": "num_draws",
}
"""The interpreter's options, by the names of a command line's numbers."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a command line; a key within a section has the section's name as a prefix, as in `data.file`."""

    values: Mapping[str, str]

    def get[T: (str, int, float)](self, key: str, default: T) -> T:
        """Return a value with the type of its default."""
        return type(default)(self.values.get(key, default))

    @property
    def data(self) -> str:
        """The data as JSON."""
        file = self.values.get("data.file")
        return "{}" if file is None else Path(file).read_text(encoding="utf-8")

    @property
    def output(self) -> Path:
        """The CSV file of the draws."""
        return Path(self.values["output.file"])

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.get("random.seed", 1)

    @property
    def start(self) -> Path | float:
        """The JSON file of initial values, or the radius within which they are drawn."""
        text = self.values.get("init", "2")
        try:
            return float(text)
        except ValueError:
            return Path(text)

    def options(self, name: str) -> runtime.Structure:
        """Return the options of a function, taken from the command line and the library's defaults."""
        options = runtime.new_options(name)
        for key, text in ({"random.seed": "1", "id": "1"} | dict(self.values)).items():
            field = _FIELDS.get(key, "")
            if hasattr(options, field):
                setattr(options, field, type(getattr(options, field))(text))
        return options


def parse(words: Sequence[str]) -> Arguments:
    """Parse a command line."""
    values: dict[str, str] = {}
    section = ""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            section = f"{word}." if word in _SECTIONS else ""
        elif key in ("method", "init", "algorithm", "refresh", "id"):
            section = "" if key != "init" else section
            values[key] = value
        else:
            values[f"{section}{key}"] = value
    return Arguments(values)


_EVALUATING = "Error evaluating the log probability"
"""The program's message follows such a line, after "Exception: " in CmdStan."""
_ELBO = re.compile(r"^\s*(\d+)\s+(-?[\d.e+]+|-?inf|nan)\s")


class RunFailed(OnebasinError):
    """Raised when a program rejects its data or an algorithm fails, with Stan's message."""


class DoubleRows:
    """A matrix of doubles that the library writes, initially NaN."""

    def __init__(self, rows: int, width: int = 1) -> None:
        self.width = width
        self.array = (c_double * max(1, rows * width))()
        ctypes.memset(self.array, 0xFF, ctypes.sizeof(self.array))  # NaN has all bits set.

    def row(self, number: int) -> list[float]:
        """Return one row."""
        return self.array[number * self.width : (number + 1) * self.width]


Table = tuple[tuple[str, ...], list[list[float]]]
"""The names of the method's columns, and all rows."""


class Model:
    """A program with its data.

    The seed is used in the block `transformed data`, the chain's number in generated quantities.
    """

    def __init__(self, form: str, data: str, *, seed: int, chain: int = 1) -> None:
        self.library = runtime.load()
        options, message = runtime.new_options("model"), runtime.Message()
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
        """Open the program of a command line; `constants` keeps the constants that `~` drops, as Stan's ADVI does."""
        form = runtime.compiled(program.read_bytes().decode(errors="replace"), program.parent)
        form = runtime.with_constants(form) if constants else form
        return cls(form, arguments.data, seed=arguments.seed, chain=arguments.get("id", 1))

    @property
    def warning(self) -> str:
        """The interpreter's warning about parts of the program that it cannot compute, or computes slowly."""
        return (self.library.stanli_warnings(self.handle) or b"").decode(errors="replace")

    def gradient(self, point: Sequence[float]) -> float:
        """Evaluate the log density and its gradient; return the density, -inf if the program rejects the point."""
        level, slope = c_double(), (c_double * max(1, self.dim))()
        code = self.library.stanli_grad(self.handle, self._point(point), byref(level), slope)
        return float("-inf") if code else level.value

    def values(self, point: Sequence[float]) -> list[float]:
        """Compute the columns at a point; NaN for generated quantities that cannot be computed."""
        row = DoubleRows(1, len(self.columns))
        self._write(self.handle, self._point(point), row.array)
        return row.row(0)

    def unconstrained(self, values: str) -> list[float]:
        """Return the point for all parameters' values, as JSON; reject wrong shapes and values outside the support."""
        point = (c_double * max(1, self.dim))()
        # The interpreter reads arrays as flat lists in Stan's order.
        given = json.loads(values).items()
        flat = {n: _flattened(v) if isinstance(v, list) else v for n, v in given}
        message, text = runtime.Message(), json.dumps(flat).encode()
        if self.library.stanli_unconstrain_inits(self.handle, text, point, *message.arguments):
            raise RunFailed(message.text)
        return point[: self.dim]

    def start(self, options: runtime.Structure, arguments: Arguments, field: str = "init") -> None:
        """Set the starting point in the options to the one on the command line."""
        if isinstance(arguments.start, float):
            options.init_radius = arguments.start
        else:
            point = self._point(self.unconstrained(arguments.start.read_text(encoding="utf-8")))
            setattr(options, field, ctypes.cast(point, ctypes.POINTER(c_double)))

    def optimize(self, arguments: Arguments) -> Table:
        """Find an optimum by L-BFGS and print whether it converged; return a row with the log density and columns."""
        options = arguments.options("optimize")
        if not arguments.get("jacobian", 0):
            raise RunFailed(
                "stanli cannot optimise without the Jacobian adjustment. Use engine='cmdstan'."
            )
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
        """Draw from the Gaussian at a mode; return rows with both log densities, the Gaussian's last, and columns."""
        options = arguments.options("laplace")
        mode = self.unconstrained(Path(arguments.values["mode"]).read_text(encoding="utf-8"))
        count = options.draws
        rows = DoubleRows(count, len(self.columns))
        level, approximate = DoubleRows(count), DoubleRows(count)
        arrays = (rows.array, level.array, approximate.array)
        self.run("stanli_laplace_sample", options, self._point(mode), *arrays)
        return ("log_p__", "log_q__"), _side_by_side(count, level, approximate, rows)

    def pathfinder(self, arguments: Arguments) -> Table:
        """Run one path; return rows with the approximation's log density, the log density, the path, and columns."""
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
        """Fit ADVI and write its ELBO trace; return rows with a zero, two log densities and columns, the mean first."""
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

    def run(
        self, function: str, options: runtime.Structure, *arrays: Any, follow: Any = None
    ) -> None:
        """Call an algorithm; raise `RunFailed` if it fails."""
        code, words = self._call(function, options, *arrays, follow=follow)
        if code:
            raise RunFailed(words)

    def _call(
        self,
        function: str,
        options: runtime.Structure,
        *arrays: Any,
        logs: bool = True,
        follow: Any = None,
    ) -> tuple[int, str]:
        """Call an algorithm; print the lines of its log, and pass them to `follow`."""
        before = ""

        def log(_level: int, words: bytes, _user: object) -> None:
            nonlocal before
            line = words.decode(errors="replace")
            say(f"Exception: {line}" if before.strip().startswith(_EVALUATING) and line else line)
            before = line
            if follow is not None:
                follow(line)

        callback, message = runtime.LOG(log), runtime.Message()
        hooks = (callback, None, None, None, byref(c_int())) if logs else ()
        call = getattr(self.library, function)
        code = call(self.handle, byref(options), *arrays, *hooks, *message.arguments)
        return code, message.text

    def _point(self, point: Sequence[float]) -> Any:
        return (c_double * max(1, self.dim))(*point)


def _side_by_side(count: int, *parts: DoubleRows) -> list[list[float]]:
    """Join the first `count` rows of matrices."""
    return [[number for part in parts for number in part.row(place)] for place in range(count)]


def _flattened(value: list[Any]) -> list[float]:
    """Flatten nested lists, with the first index varying fastest."""
    if not value or not isinstance(value[0], list):
        return value
    inner = [_flattened(part) for part in value]
    return [part[place] for place in range(len(inner[0])) for part in inner]


_METRICS = ("unit_e", "diag_e", "dense_e")
_STATS = 7


def nuts(model: Model, arguments: Arguments) -> None:
    """Run one chain of NUTS."""
    library = model.library
    options, adaptation = arguments.options("sample"), arguments.options("metric")
    options.chains = 1
    adaptation.metric = _METRICS.index(arguments.get("metric", "diag_e"))
    if file := arguments.values.get("metric_file"):
        found = json.loads(Path(file).read_text(encoding="utf-8"))["inv_metric"]
        flat = [number for row in found for number in row] if adaptation.metric == 2 else found
        given = (c_double * _size(adaptation, model.dim))(*flat)
        adaptation.inv_metric = ctypes.cast(given, ctypes.POINTER(c_double))
    model.start(options, arguments, "inits")
    draws = options.samples + (options.warmup if options.save_warmup else 0)
    names = [library.stanli_sampler_column_name(place).decode() for place in range(_STATS)]
    points, stats = DoubleRows(draws, max(1, model.dim)), DoubleRows(draws, _STATS)
    rows, report = DoubleRows(draws, len(model.columns)), runtime.SampleReport()
    step_size, metric = c_double(float("nan")), DoubleRows(1, _size(adaptation, model.dim))
    adaptation.adapted_step_size = ctypes.pointer(step_size)
    if adaptation.metric:
        adaptation.adapted_inv_metric = ctypes.cast(metric.array, ctypes.POINTER(c_double))
    message = runtime.Message()

    def progress(_chain: int, iteration: int, total: int, warming: int, _user: object) -> None:
        phase = "Warmup" if warming else "Sampling"
        say(f"Iteration: {iteration:5d} / {total} ({phase})")

    callback = runtime.PROGRESS(progress)
    failed = library.stanli_sample_multi_metric(
        *(model.handle, byref(options), byref(adaptation)),
        c_int(max(1, arguments.get("refresh", 100))),
        *(points.array, stats.array, rows.array, callback, None, None, None),
        *(byref(c_int()), byref(report), *message.arguments),
    )
    if failed:
        raise RunFailed(message.text)
    numbers, dim = [repr(number) for number in metric.row(0)], model.dim
    about = ["No free parameters for unit metric"]
    if adaptation.metric == 1:
        about = ["Diagonal elements of inverse mass matrix:", ", ".join(numbers)]
    elif adaptation.metric == 2:
        matrix = [", ".join(numbers[at : at + dim]) for at in range(0, dim * dim, dim)]
        about = ["Elements of inverse mass matrix:", *matrix]
    comments = [
        *("Adaptation terminated", f"Step size = {step_size.value!r}"),
        *about,
        f" Elapsed Time: {report.warmup_seconds:.6g} seconds (Warm-up)",
        f"               {report.sampling_seconds:.6g} seconds (Sampling)",
    ]
    table = ((*stats.row(place), *rows.row(place)) for place in range(draws))
    digits = arguments.get("output.sig_figs", 8)
    write_table(arguments.output, (*names, *model.columns), table, digits, comments)


def _size(options: runtime.Structure, dim: int) -> int:
    """Return how many numbers a metric has."""
    return max(1, dim ** int(options.metric))


POINTS = 3
RADIUS = 2.0


def check(program: Path, arguments: Arguments) -> dict[str, Any]:
    """Try a program with its data.

    The result has `form` and `jacobian` (the program with and without its model block), `inputs`, `names` (lists of the
    parameters, of these with transformed parameters, and of all columns), `includes`, and the interpreter's `warning`.
    Raise `ProgramRefused` if the program does not parse, and `RunFailed` if the interpreter does not accept it or if it
    rejects its data.
    """
    includes = runtime.included_files(program)
    form = runtime.compiled(program.read_bytes().decode(errors="replace"), program.parent)
    text = runtime.full_text(program, includes)
    if runtime.adds_to_target_early(text):
        raise RunFailed(
            "stanli compile: a function whose name ends in _lp, outside the model block"
        )
    jacobian = runtime.compiled(runtime.emptied(text, "model"), program.parent)
    data = arguments.data
    given = json.loads(data)
    wanted = runtime.declared_data(runtime.compiled(runtime.until_data(text), program.parent))
    if absent := [name for name in wanted if name not in given]:
        raise RunFailed(f"absent: {', '.join(absent)}")
    for name, number in wanted.items():
        if number and isinstance(given[name], list):
            raise RunFailed(
                f"{name} is an array, but the program declares a single number. Give a number"
            )
    model = Model(form, data, seed=arguments.seed)
    Model(jacobian, data, seed=arguments.seed)
    for point in trial_points(model.dim, arguments.seed):
        model.gradient(point)
        model.values(point)
    library, error = model.library, c_char_p()
    whole = json.dumps({**given, **runtime.held(form)}).encode()
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
    """Draw a few points, uniform within `RADIUS` of 0 in each coordinate."""
    stream = random.Random(seed)
    return [[stream.uniform(-RADIUS, RADIUS) for _ in range(dim)] for _ in range(POINTS)]


def try_library(file: str, arguments: Arguments) -> None:
    """Evaluate the gradient of a compiled library's model at a few points."""
    library, message = ctypes.CDLL(file), c_char_p()
    silent = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char), c_int)(lambda text, size: None)
    library.onebasin_construct.restype = c_void_p
    seed, data = ctypes.c_uint(arguments.seed), arguments.data.encode()
    handle = library.onebasin_construct(data, seed, silent, byref(message))
    if not handle:  # Opening the library reports the error.
        return
    model = c_void_p(handle)
    numbers = c_double * max(1, library.bs_param_unc_num(model))
    value, slope, flags = c_double(), numbers(), (c_bool(True), c_bool(True))
    for point in trial_points(library.bs_param_unc_num(model), arguments.seed):
        library.bs_log_density_gradient(
            *(model, *flags, numbers(*point), byref(value), slope, byref(message))
        )


SHARE = 0.8
"""Fraction of the machine's memory that a program may use."""


def bound_memory() -> None:
    """Limit the memory of this process where the system allows it."""
    try:
        import resource

        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = int(SHARE * total)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (within, hard))
    except (ImportError, OSError, ValueError):  # Windows has no limits, and macOS may reject them.
        return


def main(words: Sequence[str] = ()) -> int:
    """Run a command line; print errors and return the exit code, 1 after an error."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    bound_memory()
    program, *rest = words or sys.argv[1:]
    arguments = parse(rest)
    method = arguments.values["method"]
    try:
        if method == "try":
            try_library(program, arguments)
        elif method == "check":
            found = json.dumps(check(Path(program), arguments))
            arguments.output.write_text(found, encoding="utf-8")
        else:
            model = Model.of(Path(program), arguments, constants=method == "variational")
            if method == "sample":
                nuts(model, arguments)
            else:
                names, rows = getattr(model, method)(arguments)
                digits = arguments.get("output.sig_figs", 8)
                write_table(arguments.output, (*names, *model.columns), rows, digits)
    except OSError as error:  # The C++ driver prints the same message.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(f"Error: {f'cannot write output file: {error.strerror}' if full else error}")
        return 1
    except (runtime.InterpreterMissing, runtime.ProgramRefused, RunFailed) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
