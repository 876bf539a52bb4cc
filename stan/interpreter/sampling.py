"""NUTS in the driver's process; a chain's draws are written when it has ended."""

from __future__ import annotations

import ctypes
import json
from ctypes import byref, c_double, c_int
from pathlib import Path

from .arguments import Arguments
from .model import DoubleRows, Model, RunFailed
from .runtime import PROGRESS, Message, SampleReport, Structure
from .tables import say, write_table

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
    rows, report = DoubleRows(draws, len(model.columns)), SampleReport()
    step_size, metric = c_double(float("nan")), DoubleRows(1, _size(adaptation, model.dim))
    adaptation.adapted_step_size = ctypes.pointer(step_size)
    if adaptation.metric:
        adaptation.adapted_inv_metric = ctypes.cast(metric.array, ctypes.POINTER(c_double))
    message = Message()

    def progress(_chain: int, iteration: int, total: int, warming: int, _user: object) -> None:
        phase = "Warmup" if warming else "Sampling"
        say(f"Iteration: {iteration:5d} / {total} ({phase})")

    callback = PROGRESS(progress)
    failed = library.stanli_sample_multi_metric(
        *(model.handle, byref(options), byref(adaptation)),
        c_int(max(1, arguments.get("refresh", 100))),
        *(points.array, stats.array, rows.array, callback, None, None, None),
        *(byref(c_int()), byref(report), *message.arguments),
    )
    if failed:
        raise RunFailed(message.text)
    comments = [
        *("Adaptation terminated", f"Step size = {step_size.value!r}"),
        *_metric(adaptation, metric, model.dim),
        f" Elapsed Time: {report.warmup_seconds:.6g} seconds (Warm-up)",
        f"               {report.sampling_seconds:.6g} seconds (Sampling)",
    ]
    table = ((*stats.row(place), *rows.row(place)) for place in range(draws))
    digits = arguments.get("output.sig_figs", 8)
    write_table(arguments.output, (*names, *model.columns), table, digits, comments)


def _size(options: Structure, dim: int) -> int:
    """Numbers of a metric."""
    return max(1, dim ** int(options.metric))


def _metric(options: Structure, metric: DoubleRows, dim: int) -> list[str]:
    """Describe a metric as CmdStan does."""
    if options.metric == 0:
        return ["No free parameters for unit metric"]
    numbers = [repr(number) for number in metric.row(0)]
    if options.metric == 1:
        return ["Diagonal elements of inverse mass matrix:", ", ".join(numbers)]
    rows = [", ".join(numbers[at : at + dim]) for at in range(0, dim * dim, dim)]
    return ["Elements of inverse mass matrix:", *rows]
