"""Kill commands at random moments, and check what they leave and whether the same command resumes correctly.

    .venv/bin/python benchmarks/kills.py [--sample N] [--numpyro N] [--study N] [--build N] [--seed N] [--json]

N commands of each kind receive SIGKILL, SIGTERM, SIGHUP or SIGINT in turn. The moment is drawn uniformly from the
duration of an undisturbed run (`cmdstan build`: from its first `BUILD_SECONDS`, when it links and compiles). The
benchmark counts processes that are alive 2 seconds after the end of the command, exit codes and messages, and the
status in `run.json`.

After every third kill, the same command runs to its end. Its draws are compared with those of the undisturbed run (for
a chain of Stan, up to its new random stream). The output folder, the temporary folder and the cache are searched for
files that the command should have removed. After a killed build, the next build compiles for a few seconds instead. It
may leave only its own unfinished folder in the cache.

`--numpyro` only sends SIGKILL, each time after a chain has started. The moment is drawn uniformly from the time that an
undisturbed run needs from there to its result. `phases` counts the phases of the killed commands. After every third
kill, the command runs to its end, as above. Chains save their state every tenth of a second instead of every ten
seconds, so every kill can hit a write.

All processes are found by an environment variable, in /proc of Linux. The benchmark uses a separate cache, into which
the user's CmdStan homes are linked. So only the builds under test compile CmdStan itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import platformdirs

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
RUN = "import sys; from onebasin.cli.main import main; sys.exit(main())"
OFTEN = "from onebasin.inference.mcmc import places; places.SECONDS = 0.1"
MARK = "ONEBASIN_KILLS"
NEW_STREAM = -np.inf
"""Placeholder for draws of a resumed Stan chain, which differ from the undisturbed run."""
ORPHAN_SECONDS, END_SECONDS, BUILD_SECONDS = 2.0, 60.0, 12.0
PROGRAM = """
parameters { vector[20] x; real<lower=0> scale; }
model { scale ~ lognormal(0, 1); x ~ normal(0, scale); }
"""
MODEL = """
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist


def model():
    scale = numpyro.sample("scale", dist.LogNormal(0, 1))
    numpyro.sample("x", dist.Normal(jnp.zeros(30), scale).to_event(1))
"""


@dataclass
class Figures:
    """Counts of what happened when one command was killed."""

    command: str
    kills: int = 0
    early: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    orphans: int = 0
    wrong_codes: Counter[str] = field(default_factory=Counter)
    silent: int = 0
    untrue: list[str] = field(default_factory=list)
    finished: int = 0
    leftovers: list[str] = field(default_factory=list)
    other_draws: int = 0
    failed: list[str] = field(default_factory=list)
    slowest_end: float = 0.0


class Place:
    """A folder with output, temporary files and, optionally, a separate cache."""

    def __init__(self, root: Path, *, own_cache: bool = True, first: str = "") -> None:
        self.program = f"{first}; {RUN}" if first else RUN
        self.root, self.out, self.temporary = root, root / "out", root / "tmp"
        for folder in (self.out, self.temporary, root / "cache" / "onebasin"):
            folder.mkdir(parents=True)
        self.cache = root / "cache" / "onebasin"
        self.environment = os.environ | {MARK: str(root), "TMPDIR": str(self.temporary)}
        if own_cache:
            self.environment["XDG_CACHE_HOME"] = str(root / "cache")

    def link_home(self) -> None:
        """Link the user's CmdStan homes into the cache."""
        homes = platformdirs.user_cache_path("onebasin") / "cmdstan"
        if homes.is_dir():
            shutil.copytree(homes, self.cache / "cmdstan", copy_function=os.link)

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        """Start a command in a new session, as a terminal or a scheduler does."""
        with (self.root / "stderr.txt").open("w") as said:
            return subprocess.Popen(
                [sys.executable, "-c", self.program, *words],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                text=True,
            )

    def said(self) -> str:
        """Return what the last command wrote to stderr."""
        return (self.root / "stderr.txt").read_text(errors="replace")

    def processes(self) -> list[int]:
        """Return the ids of live processes that descend from the started commands."""
        wanted, found = f"{MARK}={self.root}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except (OSError, IndexError):
                continue
        return found

    def unfinished(self) -> list[str]:
        """List files that a finished command must not leave: temporary files, parts, unfinished folders."""
        left = list(self.temporary.iterdir())
        left += [path for path in self.out.rglob("*") if path.name.startswith(".")]
        left += [path for path in self.out.rglob("*.chains")]
        caches = [
            path for name in ("cmdstan", "programs") for path in (self.cache / name).glob(".*")
        ]
        return [str(path.relative_to(self.root)) for path in left + caches]


def kill(
    place: Place, words: list[str], number: signal.Signals, after: float, seen: Figures
) -> None:
    """Start a command, kill it after some seconds, and record what it leaves."""
    process = place.start(words)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    sent = time.monotonic()
    code = process.wait(END_SECONDS)
    ended = time.monotonic()
    seen.kills += 1
    seen.slowest_end = max(seen.slowest_end, ended - sent)
    if code == 0:
        seen.early += 1
    elif number != signal.SIGKILL:
        if code != 130:
            seen.wrong_codes[f"{number.name}: {code}"] += 1
        elif "interrupted" not in place.said():
            seen.silent += 1
    while (orphans := place.processes()) and time.monotonic() < ended + ORPHAN_SECONDS:
        time.sleep(0.05)
    seen.orphans += len(orphans)
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
    record = place.out / "run.json"
    if record.exists():
        status = json.loads(record.read_text())["status"]
        allowed = {"done", "interrupted"} | ({"running"} if number == signal.SIGKILL else set())
        if status not in allowed:
            seen.untrue.append(f"{number.name}: {status}")


def run_on(place: Place, words: list[str], seen: Figures, wanted: dict[str, np.ndarray]) -> None:
    """Run the same command to its end, and compare the result with an undisturbed run."""
    process = place.start(words)
    if process.wait(600):
        seen.failed.append(place.said().strip().splitlines()[-1][:300])
        return
    seen.finished += 1
    seen.leftovers += place.unfinished()
    seen.other_draws += are_others(place.out, wanted)
    record = place.out / "run.json"
    if record.exists() and json.loads(record.read_text())["status"] != "done":
        seen.untrue.append("finished, but not done")
    shutil.rmtree(place.out)
    place.out.mkdir()


def draws(folder: Path) -> dict[str, np.ndarray]:
    """Return all draws (chain, draw, ...) in the posterior files of a folder, without those of a new random stream."""
    import xarray as xr

    found = {}
    for path in sorted(folder.rglob("*.nc")):
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            restarts = json.loads(tree.attrs.get("restarts", "[]"))
            for name, values in tree["posterior"].data_vars.items():
                kept = np.array(values, dtype=float)
                for chain, at in enumerate(restarts):
                    if at:
                        kept[chain, at[0] :] = NEW_STREAM
                found[f"{path.relative_to(folder)}/{name}"] = kept
    return found


def are_others(folder: Path, wanted: dict[str, np.ndarray]) -> bool:
    """Return whether draws differ from an undisturbed run, ignoring Stan chains after a new random stream."""
    found = draws(folder)
    if found.keys() != wanted.keys():
        return True
    same = (
        kept.shape == wanted[name].shape
        and bool(np.all((kept == wanted[name]) | (kept == NEW_STREAM)))
        for name, kept in found.items()
    )
    return not all(same)


def phase(folder: Path) -> str:
    """Return the phase in which a sampling command was killed, from the files that it left."""
    if list(folder.glob("*.nc")):
        return "end"
    if list(folder.glob(".run.nc.onebasin-*")):
        return "writing"
    standing = []
    for path in folder.glob("*.chains/chain-*/state.npz"):
        with np.load(path) as arrays:
            standing.append((int(arrays["draws"]), int(arrays.get("state/warmed", 0))))
    if not standing:
        return "start"
    return "sampling" if any(draws for draws, _ in standing) else "warmup"


def measure_killed(place: Place, words: list[str], kills: int, rng: random.Random) -> Figures:
    """Kill a command after its chains have started; let it finish after every third kill and after late kills."""
    seen = Figures("numpyro")
    started = time.monotonic()
    if place.start(words).wait(1200):
        raise SystemExit(f"The run without kills failed: {place.said()}")
    wanted = draws(place.out)
    shutil.rmtree(place.out)
    place.out.mkdir()
    process = place.start(words)
    begun = wait_for_chains(place, process)
    while process.poll() is None and not list(place.out.glob("*.nc")):
        time.sleep(0.01)
    seconds = time.monotonic() - begun
    process.wait(1200)
    print(f"{begun - started:.1f} s, {seconds:.1f} s of them after the start", file=sys.stderr)
    shutil.rmtree(place.out)
    place.out.mkdir()
    while seen.kills < kills:
        process = place.start(words)
        wait_for_chains(place, process)
        time.sleep(rng.uniform(0, seconds))
        process.kill()
        process.wait(END_SECONDS)
        found = phase(place.out)
        if found == "end":  # The kill came too late, so check only the result.
            seen.early += 1
        else:
            seen.kills += 1
            seen.phases[found] += 1
        if seen.kills % 3 == 0 or found == "end":
            run_on(place, words, seen, wanted)
        print(vars(seen), file=sys.stderr, flush=True)
    return seen


def measure_numpyro(place: Place, kills: int, seed: int) -> Figures:
    """Kill a command that samples a NumPyro model."""
    (place.root / "model.py").write_text(MODEL)
    words = ["sample", "model.py:model", "--out", "out/run.nc", "--no-progress", "--chains", "2"]
    words += ["--warmup", "6000", "--draws", "12000"]
    return measure_killed(place, words, kills, random.Random(seed))


def wait_for_chains(place: Place, process: subprocess.Popen[str]) -> float:
    """Wait until the first chain of this run has started, or the command has ended; return the time."""
    before = newest(place.out)
    while process.poll() is None and newest(place.out) == before:
        time.sleep(0.01)
    return time.monotonic()


def newest(folder: Path) -> float:
    """Return the time of the last saved chain state, or of the first write of the result."""
    found = [*folder.glob("*.chains/chain-*/state.npz"), *folder.glob(".run.nc.onebasin-*")]
    return max((path.stat().st_mtime for path in found if path.exists()), default=0.0)


def measure(place: Place, words: list[str], name: str, kills: int, rng: random.Random) -> Figures:
    """Kill a sampling command, and let it finish after every third kill."""
    seen = Figures(name)
    for timed in (False, True):  # The first run compiles the program.
        started = time.monotonic()
        if place.start(words).wait(1200):
            raise SystemExit(f"The run of {name} without kills failed: {place.said()}")
        seconds = time.monotonic() - started
        if timed:
            wanted = draws(place.out)
        shutil.rmtree(place.out)
        place.out.mkdir()
    for count in range(1, kills + 1):
        kill(place, words, SIGNALS[count % 4], rng.uniform(0, seconds), seen)
        if count % 3 == 0 or count == kills:
            run_on(place, words, seen, wanted)
        print(vars(seen), file=sys.stderr, flush=True)
    return seen


def measure_builds(place: Place, kills: int, rng: random.Random) -> Figures:
    """Kill builds of a CmdStan home; the next build must remove what they leave."""
    seen = Figures("cmdstan build")
    words = ["cmdstan", "build"]
    for count in range(1, kills + 1):
        kill(place, words, SIGNALS[count % 4], rng.uniform(0, BUILD_SECONDS), seen)
        process = place.start(words)
        while process.poll() is None and not compiles(place):
            time.sleep(0.1)
        own = f"-{process.pid}-"
        seen.leftovers += [path for path in place.unfinished() if own not in path]
        seen.finished += 1
        process.kill()
        process.wait()
        print(vars(seen), file=sys.stderr, flush=True)
    return seen


def compiles(place: Place) -> bool:
    """Return whether a compiler is running."""
    for pid in place.processes():
        try:
            if "cc1plus" in Path(f"/proc/{pid}/comm").read_text():
                return True
        except OSError:
            continue
    return False


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, number in (
        ("sample", 45),
        ("numpyro", 20),
        ("study", 35),
        ("build", 20),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for number in SIGNALS[
        1:
    ]:  # `nohup` and background jobs ignore some signals, and the commands would inherit this.
        signal.signal(number, signal.SIG_DFL)
    found = []
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        root = Path(folder)
        if given.sample:
            (root / "program.stan").write_text(PROGRAM)
            place = Place(root / "sample")
            place.link_home()
            words = ["sample", str(root / "program.stan"), "--out", "out/run.nc", "--no-symmetry"]
            words += ["--chains", "4", "--draws", "4000", "--no-progress"]
            found.append(measure(place, words, "sample", given.sample, random.Random(given.seed)))
        if given.numpyro:
            place = Place(root / "numpyro", own_cache=False, first=OFTEN)
            found.append(measure_numpyro(place, given.numpyro, given.seed))
        if given.study:
            place = Place(root / "study")
            place.link_home()
            words = ["study", "relu-teacher", "--quick", "--engine", "stan", "--out", "out"]
            words += ["--parametrisations", "free", "--no-progress"]
            found.append(measure(place, words, "study", given.study, random.Random(given.seed)))
        if given.build:
            place = Place(root / "build")
            found.append(measure_builds(place, given.build, random.Random(given.seed)))
    for figures in found:
        if given.json:
            print(json.dumps(vars(figures)))
            continue
        for name, value in vars(figures).items():
            print(f"{name:>14}: {value}")
        print()


if __name__ == "__main__":
    main()
