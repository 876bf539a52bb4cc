"""One Dask worker against two on one study: what a second core is worth.

    .venv/bin/python benchmarks/workers.py [--splits 4] [--rounds 1] [--json] [WORDS ...]

`onebasin study boston --splits 4` with NUTS in NumPyro (free weights, short chains; WORDS replaces the study's words)
runs on a scheduler with one worker and with two, a thread each, and so on one core and on two: every worker makes one
cell at a time, in a process that uses one core. A run of one split, which is not timed, fills the cache of what JAX
compiles. Timed is the whole command, from its start to the report. The draws of both runs are held against each other,
bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

STUDY = ("boston", "--engine", "numpyro", "--parametrisations", "free", "--only", "*.free.nuts.*")
SIZE = ("--chains", "2", "--warmup", "200", "--draws", "200")
COMMAND = (sys.executable, "-c", "import sys; from onebasin.cli.main import main; sys.exit(main())")
DASK = (sys.executable, "-m", "dask")


@contextmanager
def cluster(workers: int, folder: Path) -> Iterator[str]:
    """Start a scheduler and workers of one thread as a user would; yields the scheduler's address."""
    programs = []
    with (folder / "dask.log").open("wb") as log:
        try:
            words = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
            file = folder / "scheduler.json"
            file.unlink(missing_ok=True)
            words += ("--scheduler-file", str(file))
            programs.append(subprocess.Popen([*DASK, *words], stderr=log, stdout=log))
            while not file.exists():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            words = ("worker", address, "--nthreads", "1", "--no-dashboard")
            for _ in range(workers):
                programs.append(
                    subprocess.Popen([*DASK, *words], stderr=log, stdout=log, cwd=folder)
                )
            yield address
        finally:
            for program in reversed(programs):
                program.terminate()
            for program in programs:
                program.wait(30)


def run(workers: int, words: Sequence[str], out: Path, folder: Path) -> float:
    """Run the study on so many workers; returns the seconds that it took."""
    shutil.rmtree(out, ignore_errors=True)
    with cluster(workers, folder) as address:
        started = time.perf_counter()
        subprocess.run(
            [*COMMAND, "study", *words, "--out", str(out), "--scheduler", address],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - started


def draws(out: Path) -> dict[str, bytes]:
    """All draws of a run, by cell and variable."""
    import xarray as xr

    found = {}
    for path in sorted((out / "posteriors").glob("*.nc")):
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            group = tree["posterior"].to_dataset()
            found |= {f"{path.stem}/{n}": np.asarray(v).tobytes() for n, v in group.items()}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs="*", default=[*STUDY, *SIZE])
    given = parser.parse_args()
    words = [*given.words, "--splits", str(given.splits), "--no-progress"]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(2, [*given.words, "--splits", "1", "--no-progress"], folder / "first", folder)
        for _ in range(given.rounds):
            for workers in seconds:
                seconds[workers].append(run(workers, words, folder / f"run{workers}", folder))
        same = draws(folder / "run1") == draws(folder / "run2")
    one, two = (min(times) for times in seconds.values())
    found = {
        "command": re.sub(r"\s+", " ", " ".join(words)),
        "cores": os.cpu_count(),
        "seconds": seconds,
        "ratio": two / one,
        "same_draws": same,
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"one worker {one:.1f} s, two {two:.1f} s: {two / one:.2f} of the time; same draws: {same}"
    )


if __name__ == "__main__":
    main()
