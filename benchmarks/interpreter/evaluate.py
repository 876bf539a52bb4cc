"""Evaluate one program in one engine. A separate process keeps a crash from affecting other programs.

    python -m benchmarks.interpreter.evaluate NAME ENGINE OUT.npz

The file contains arrays and the JSON text `facts`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from onebasin.stan.library import StanLibrary

from .cases import Case, cases
from .engines import opened, warning_of

POINTS, RADIUS, SEED = 20, 2.0, 7
STREAMS = (11, 12)
"""Seeds of two random streams. Entries that differ between the streams are random."""
LEAST_SECONDS, REPEATS = 0.02, 9
"""Shortest duration of a repeat in seconds, and number of repeats. The fastest repeat counts."""


def points_of(name: str, dim: int) -> np.ndarray:
    """Draw the points of a program, uniform within the radius."""
    generator = np.random.default_rng([SEED, crc32(name.encode())])
    return generator.uniform(-RADIUS, RADIUS, (POINTS, dim))


def evaluate(case: Case, engine: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Evaluate a program.

    Parameters
    ----------
    case : Case
        The program with its data.
    engine : str
        ``"cmdstan"`` or ``"stanli"``.

    Returns
    -------
    dict
        Facts: names, times and messages.
    dict
        Arrays by name.
    """
    facts: dict[str, Any] = {"error": "", "warning": ""}
    compiled: list[str] = []
    try:
        data = case.make()
        began = time.perf_counter()
        library = opened(case.path, data, engine, progress=compiled.append)
        facts["ready_seconds"] = time.perf_counter() - began
        facts["compiled"] = any(line.startswith("compiling") for line in compiled)
        points = points_of(case.name, library.dim)
        values, gradients = library.log_density_gradient(points)
        alone = library.log_density(points)
        if engine == "stanli":
            facts["warning"] = plain(warning_of(case.path, data), case)
    except Exception as error:
        return facts | {"error": plain(str(error), case), "class": type(error).__name__}, {}
    arrays = {"values": values, "gradients": gradients, "alone": alone}
    inner = library.names(include_tp=False, include_gq=False)
    facts |= {"dim": library.dim, "parameters": inner}
    for block, flags in {
        "transformed": {"include_tp": True, "include_gq": False},
        "generated": {"include_tp": True, "include_gq": True},
    }.items():
        facts[block] = library.names(**flags)
    try:
        for seed in STREAMS:
            rows = [
                library.constrain(
                    p, include_tp=True, include_gq=True, generator=library.generator(seed + 100 * i)
                )
                for i, p in enumerate(points)
            ]
            arrays[f"rows_{seed}"] = np.array(rows)
        whole = arrays[f"rows_{STREAMS[0]}"][:, : len(inner)]
        arrays["back"] = np.array([library.unconstrain(np.ascontiguousarray(r)) for r in whole])
    except Exception as error:
        facts["error"] = plain(str(error), case)
    finite = points[np.isfinite(values)]
    if len(finite):
        facts["gradient_microseconds"] = time_gradient(library, finite)
    return facts, arrays


def time_gradient(library: StanLibrary, points: np.ndarray) -> float:
    """Return the CPU microseconds of one gradient, from calls with all points at once."""

    def sweep(count: int) -> float:
        began = time.process_time()
        for _ in range(count):
            library.log_density_gradient(points)
        return time.process_time() - began

    sweep(1)
    count = max(1, int(LEAST_SECONDS / max(sweep(1), 1e-7)))
    return min(sweep(count) for _ in range(REPEATS)) / (count * len(points)) * 1e6


def plain(text: str, case: Case) -> str:
    """Shorten a message, and remove folders from it."""
    text = text.replace(f"{case.path.parent}/", "")
    text = re.sub(r" Please report this at .* refuse such models\.", "", text, flags=re.DOTALL)
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text).strip()[:700]


def main() -> None:
    """Evaluate a program and write the results."""
    name, engine, out = sys.argv[1:]
    facts, arrays = evaluate(cases()[name], engine)
    np.savez(Path(out), facts=json.dumps(facts), **arrays)


if __name__ == "__main__":
    main()
