"""Time the alignment of network posteriors by onebasin, and by Git Re-Basin's published weight matching pair by pair.

    nice .venv/bin/python benchmarks/alignment.py [--repeats N] [--wide N] [--pairs N] [--json]

Each draw is a common truth plus noise of the same size, both with entries from N(0, 1), in a random labelling. Units
overlap as in wide posteriors. All measurements run one after the other in one process. The output has the lowest and
highest time of several rounds, in wall-clock seconds and in processor seconds of all threads. The latter depend less on
the load of the machine. Costs are mean squared distances to the reference. The wide network is measured with some
draws, in float32, and extrapolated to 4,000.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from onebasin import align
from onebasin.inference.runs.posterior import machine, versions
from onebasin.models import Group, Symmetry
from onebasin.networks import BayesianNetwork, Network

Weights = dict[str, np.ndarray]


def draws_of(
    *widths: int, chains: int, draws: int, dtype: type = np.float64, truth: float = 1.0
) -> tuple[Symmetry, xr.Dataset]:
    """Make relabelled draws of a ReLU-like network without scaling symmetry; return its symmetry and the draws."""
    model = BayesianNetwork(Network(widths[0], widths[1:-1], widths[-1], activation="silu"))
    rng = np.random.default_rng(1)
    shapes = dict(model.network.shapes)
    values = {}
    for name, shape in shapes.items():
        noise = rng.standard_normal((chains, draws, *shape), dtype=np.float32).astype(dtype)
        noise += truth * rng.standard_normal(shape).astype(dtype)
        values[name] = noise
    group = Group(model.symmetry, shapes)
    for chain in range(chains):  # One chain at a time, to save memory.
        element = group.random(rng, (draws,))
        moved = group.act(element, {n: v[chain] for n, v in values.items()})
        for name, array in moved.items():
            values[name][chain] = array
    dims = model.network.dims
    return model.symmetry, xr.Dataset(
        {n: (("chain", "draw", *dims[n]), v) for n, v in values.items()}
    )


@dataclass(frozen=True)
class Seconds:
    """Times of all rounds of a measurement, in wall-clock and processor seconds."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    def times(self, factor: float) -> Seconds:
        """Return the times multiplied by a factor."""
        return Seconds(tuple(factor * s for s in self.wall), tuple(factor * s for s in self.cpu))


def clock(run: Callable[[], object], repeats: int) -> Seconds:
    """Time a function over several rounds."""
    wall, cpu = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - worked)
    return Seconds(tuple(wall), tuple(cpu))


def weight_matching(
    symmetry: Symmetry, reference: Weights, draw: Weights, rng: np.random.Generator
) -> Weights:
    """Match one draw by algorithm 1 of Ainsworth, Hayase and Srinivasa 2023, in NumPy.

    As published, it starts from the given labels and solves blocks in random order. It stops when no block gains more
    than 1e-12.
    """
    axes = [{n: int(a) for n, a in block.axes.items()} for block in symmetry]
    sizes = [reference[n].shape[a] for block in axes for n, a in [next(iter(block.items()))]]
    orders = [np.arange(size) for size in sizes]

    def permuted(name: str, without: int | None) -> np.ndarray:
        out = draw[name]
        for number, block in enumerate(axes):
            if number != without and name in block:
                out = np.take(out, orders[number], axis=block[name])
        return out

    moving = True
    while moving:
        moving = False
        for number in rng.permutation(len(axes)):
            size = sizes[number]
            gain = np.zeros((size, size))
            for name, axis in axes[number].items():
                ours = np.moveaxis(reference[name], axis, 0).reshape(size, -1)
                theirs = np.moveaxis(permuted(name, number), axis, 0).reshape(size, -1)
                gain += ours @ theirs.T
            _, order = linear_sum_assignment(gain, maximize=True)
            before = np.vdot(gain, np.eye(size)[orders[number]])
            after = np.vdot(gain, np.eye(size)[order])
            moving = moving or bool(after > before + 1e-12)
            orders[number] = order
    return {name: permuted(name, None) for name in draw}


def small(repeats: int) -> list[dict[str, object]]:
    """Time the alignment of 4,000 draws of 64-16-10."""
    symmetry, seen = draws_of(64, 16, 10, chains=4, draws=1000)
    scales = {"W1": 1.0, "b1": 1.0, "W2": 1.0}
    rows = []
    for reference, goal in (("draw", 0.2), ("mean", 2.0), ("gaussian", 2.0)):
        found: list = []

        def run(reference: str = reference, found: list = found) -> None:
            found[:] = [align(seen, symmetry, reference=reference, scales=scales)]

        seconds = clock(run, repeats)
        name = f"4,000 draws of 64-16-10, {reference}"
        rows.append({"name": name, "seconds": seconds, "goal": goal, "sweeps": found[0].sweeps})
    return rows


def wide(num: int, repeats: int) -> list[dict[str, object]]:
    """Time the alignment of some float32 draws of 784-512-10 to one draw, and measure the additional memory.

    If draws share one truth, matching every unit to its nearest counterpart is already the optimal assignment.
    Independent draws are the worst case, because every assignment problem must be solved.
    """
    rows = []
    scales = {"W1": 1.0, "b1": 1.0, "W2": 1.0}
    for truth, word in ((1.0, "about one truth"), (0.0, "independent")):
        symmetry, seen = draws_of(784, 512, 10, chains=1, draws=num, dtype=np.float32, truth=truth)
        before = resident()

        def run(seen: xr.Dataset = seen, symmetry: Symmetry = symmetry) -> None:
            align(seen, symmetry, reference="draw", scales=scales)

        with Peak() as peak:
            scaled = clock(run, repeats).times(4000 / num)
        name = f"784-512-10, draw, 4,000 from {num}, {word}"
        memory = (peak.highest - before) / 2**30
        rows.append({"name": name, "seconds": scaled, "goal": 60.0, "GiB": memory})
    return rows


def against_pairs(num: int, repeats: int) -> list[dict[str, object]]:
    """Measure milliseconds per draw and cost of onebasin and Git Re-Basin, for one and three hidden layers."""
    rows = []
    for widths in ((64, 16, 10), (64, 128, 10), (64, 32, 32, 32, 10), (64, 128, 128, 128, 10)):
        symmetry, seen = draws_of(*widths, chains=1, draws=num)
        names = dict.fromkeys(n for block in symmetry for n in block.variables)
        scales = dict.fromkeys(names, 1.0)
        plain = [{n: seen[n].values[0, k] for n in names} for k in range(num)]
        moved: list[Weights] = []

        def pairs(moved: list = moved, plain: list = plain, symmetry: Symmetry = symmetry) -> None:
            rng = np.random.default_rng(0)
            moved[:] = [weight_matching(symmetry, plain[0], draw, rng) for draw in plain]

        with threadpool_limits(1, user_api="blas"):  # One thread is faster at these sizes.
            their_seconds = clock(pairs, repeats)
        their_cost = np.mean(
            [sum(((w[n] - plain[0][n]) ** 2).sum() for n in names) for w in moved[1:]]
        )
        rows.append(line(widths, "Git Re-Basin, pairs", their_seconds, their_cost, num))
        restarts = (1,) if len(widths) == 3 else (1, 4)
        for starts in restarts:
            found: list = []

            def run(
                starts: int = starts,
                found: list = found,
                seen: xr.Dataset = seen,
                symmetry: Symmetry = symmetry,
                scales: dict = scales,
            ) -> None:
                options = {"reference": "draw", "scales": scales, "restarts": starts}
                found[:] = [align(seen, symmetry, max_sweeps=100, **options)]

            seconds = clock(run, repeats)
            name = f"onebasin, {starts} start{'s' * (starts > 1)}"
            cost = found[0].distance_after[0, 1:].mean()
            row = line(widths, name, seconds, cost, num)
            faster = min(their_seconds.wall) / min(seconds.wall)
            work = min(their_seconds.cpu) / min(seconds.cpu)
            rows.append(row | {"faster": faster, "less_work": work})
    return rows


def line(widths: tuple, name: str, seconds: Seconds, cost: float, num: int) -> dict:
    """Make a row of the comparison."""
    each = seconds.times(1e3 / num)
    return {"network": "-".join(map(str, widths)), "name": name, "ms": each, "cost": float(cost)}


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


class Peak:
    """Context manager that records the peak memory of the process, checked every 5 ms."""

    def __enter__(self) -> Peak:
        self.highest, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.highest = max(self.highest, resident())

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wide", type=int, default=100, help="draws of 784-512-10")
    parser.add_argument(
        "--pairs", type=int, default=300, help="number of draws to match one by one as well"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    timed = small(options.repeats) + wide(options.wide, min(2, options.repeats))
    compared = against_pairs(options.pairs, options.repeats)
    if options.json:
        found = {"timed": timed, "compared": compared, "load": os.getloadavg()}
        print(json.dumps({"machine": machine(), "versions": versions(), **found}, default=asdict))
        return
    print(f"{machine()}; load {os.getloadavg()[1]:.1f} over the last 5 minutes")
    for row in timed:
        seconds, memory = row["seconds"], f"  {row['GiB']:.2f} GiB" if "GiB" in row else ""
        print(f"{row['name']:50s} {said(seconds, 2)} s; goal {row['goal']}{memory}")
    for row in compared:
        faster = ""
        if "faster" in row:
            faster = f"  {row['faster']:.1f} times as fast, by work {row['less_work']:.1f}"
        print(
            f"{row['network']:20s} {row['name']:22s} {said(row['ms'], 3)} ms a draw  "
            f"cost {row['cost']:10.2f}{faster}"
        )


def said(seconds: Seconds, digits: int) -> str:
    """Format the lowest and highest wall-clock time and the lowest processor time."""
    low, high = min(seconds.wall), max(seconds.wall)
    return f"{low:8.{digits}f} (to {high:.{digits}f}; processor {min(seconds.cpu):.{digits}f})"


if __name__ == "__main__":
    main()
