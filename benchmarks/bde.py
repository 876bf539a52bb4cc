r"""Networks by `ob.mclmc` against microcanonical Langevin ensembles (sklearn-contrib-bde), side by side at equal time.

    .venv/bin/python benchmarks/bde.py --bde-python /path/to/its/venv/bin/python \
        [--data airfoil,yacht,table.csv] [--splits 5] [--first 20] [--json]

Both have a network of 16-16 ReLU units with predicted noise and N(0, 1) on every weight, in single precision, and
80/20 splits standardised by the training part; of a file the last column is the target. On every split the package
runs first, with the settings of `bde_fit.py`, and its seconds (of `fit` alone, compiling included) are all that ours
has, compiling included too: a trial of a few gradients tells how many steps fit. Both run in processes of their own,
one after the other, without anything compiled before. Score: mean log density of the mixture over all draws, in
standardised units; coverage: share of test targets within the mixture's central 95 %. Without --bde-python a virtual
environment is made for the package in the private cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
PACKAGE = "sklearn-contrib-bde==1.0.2"
CHAINS, DRAWS = 4, 500
WARMUP = 0.35
"""Share of all steps."""
RESERVE = 2.0
"""Seconds that `ob.mclmc` takes to compile, in those that the trial took to."""
USED = 0.92
"""Share of the seconds left that is planned for: what runs beside may slow a run down."""


def table(name: str) -> np.ndarray:
    """Rows of a data set of ours, or of a file whose last column is the target; a line of names is passed over."""
    if not Path(name).exists():
        from onebasin.networks import load_data

        data = load_data(name)
        return np.column_stack([data.x, data.y])
    lines = [line for line in Path(name).read_text().splitlines() if line.strip()]
    comma = next((mark for mark in (",", ";", "\t") if mark in lines[-1]), None)
    rows = np.genfromtxt(lines, delimiter=comma)
    return rows[1:] if np.isnan(rows[0]).all() else rows


def split(rows: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """80/20 by a permutation, standardised by the training part."""
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = np.split(rows[order], [int(0.8 * len(rows))])
    mean, sd = train.mean(0), train.std(0)
    train, test = ((part - mean) / np.where(sd > 0, sd, 1.0) for part in (train, test))
    return {"x": train[:, :-1], "y": train[:, -1], "x_test": test[:, :-1], "y_test": test[:, -1]}


def ours(split_file: str, answer: str, seed: int, seconds: float) -> None:
    """Fit and predict within some seconds."""
    import onebasin as ob
    from onebasin.base.cores import available_cores

    data = np.load(split_file)
    network = ob.networks.Network(data["x"].shape[1], (16, 16))
    model = ob.networks.BayesianNetwork(network, ob.networks.Gaussian(noise_sd="predicted"))
    wall, cpu = time.perf_counter(), time.process_time()
    target = model.condition(data["x"], data["y"])
    each, compiling = trial(target, available_cores())
    left = seconds - (time.perf_counter() - wall) - RESERVE * compiling
    rounds = -(-CHAINS // available_cores())
    steps = max(2000, int(USED * left / (2 * each * rounds)))
    thin = max(1, round((1 - WARMUP) * steps / DRAWS))
    settings = ob.Mclmc(
        chains=CHAINS, warmup=round(WARMUP * steps), draws=DRAWS, thin=thin, dtype="float32"
    )
    run = ob.infer(target, settings, seed=seed, predictive_mb=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    mean, sd = predicted(model, run, data["x_test"])
    np.savez(answer, mean=mean, sd=sd, wall=wall, cpu=cpu, steps=steps)


def trial(target: Any, threads: int) -> tuple[float, float]:
    """Seconds of a gradient with all cores at work, and those that compiling it took."""
    import jax

    from onebasin.base.precision import precision
    from onebasin.inference.density.network import density_of

    def work(vector: Any) -> None:
        with precision("float32"):
            jax.block_until_ready(run(vector))

    begun = time.perf_counter()
    with precision("float32"):
        density = density_of(target)
        slope = jax.grad(density.log_density)
        start = np.full(density.size, 0.01, np.float32)
        run = jax.jit(lambda v: jax.lax.fori_loop(0, 2000, lambda _, v: v + 1e-9 * slope(v), v))
        compiled = run.lower(start).compile()
    run = compiled
    compiling = time.perf_counter() - begun
    begun = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [start] * threads))
    return (time.perf_counter() - begun) / 2000, compiling


def predicted(model: Any, run: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations (draw, row) of all draws."""
    import jax

    posterior = run["posterior"]
    weights = {n: posterior[n].values.reshape(-1, *s) for n, s in model.network.shapes.items()}
    x = x.astype(np.float32)
    outputs = jax.jit(lambda w: jax.lax.map(lambda one: model.network.apply(one, x), w))(weights)
    mean, sd = model.likelihood.mean_and_sd(outputs)
    return np.asarray(mean[..., 0], np.float64), np.asarray(sd[..., 0], np.float64)


def scored(answer: Path, y: np.ndarray) -> dict[str, float]:
    """What predictions come to."""
    from scipy.special import logsumexp, ndtr

    found = np.load(answer)
    mean, sd = found["mean"], found["sd"]
    z = (y - mean) / sd
    log_density = -0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    below = ndtr(z).mean(0)
    return {
        "rmse": float(np.sqrt(np.mean((y - mean.mean(0)) ** 2))),
        "score": float(np.mean(logsumexp(log_density, 0) - np.log(len(mean)))),
        "coverage": float(np.mean((below > 0.025) & (below < 0.975))),
        "wall": float(found["wall"]),
        "cpu": float(found["cpu"]),
    }


def compared(
    rows: np.ndarray, seed: int, bde_python: Path, folder: Path
) -> dict[str, dict[str, float]]:
    """Both on one split, the package first."""
    parts = split(rows, seed)
    data, answers = folder / "split.npz", {w: folder / f"{w}.npz" for w in ("bde", "ours")}
    np.savez(data, **parts)
    fit = [str(HERE / "bde_fit.py"), str(data), str(answers["bde"]), str(seed)]
    # -P: without it `import bde` would be this file
    done = subprocess.run([str(bde_python), "-P", *fit], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bde.py: {bde_python} failed: {done.stderr.strip()[-500:]}")
    found = {"bde": scored(answers["bde"], parts["y_test"])}
    words = ["--fit", str(data), str(answers["ours"]), str(seed), str(found["bde"]["wall"])]
    subprocess.run([sys.executable, __file__, *words], check=True)
    return {**found, "ours": scored(answers["ours"], parts["y_test"])}


def python_with_bde() -> Path:
    """The Python of a virtual environment with the package, made where there is none yet."""
    from onebasin.base.files.cache import make_user_cache

    folder = make_user_cache("bde") / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", PACKAGE], check=True)
    return python


def line(name: str, seed: int, found: dict[str, dict[str, float]]) -> str:
    """A row of the table."""
    words = [f"{name:<10} {seed:>5}"]
    for who in ("bde", "ours"):
        f = found[who]
        words.append(
            f"{f['wall']:7.1f} {f['cpu']:7.1f} {f['rmse']:7.3f} {f['score']:7.3f} {f['coverage']:6.2f}"
        )
    return " |".join(words)


def main() -> None:
    """Compare on all splits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="airfoil,yacht", help="names, or files, with commas")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=20, help="seed of the first split")
    parser.add_argument("--bde-python", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        ours(args.fit[0], args.fit[1], int(args.fit[2]), float(args.fit[3]))
        return
    bde_python = args.bde_python or python_with_bde()
    say = (lambda *_: None) if args.json else (lambda text: print(text, flush=True))
    columns = "   wall     cpu    rmse   score  cover"
    say(f"{'':<16} |{'bde':^38} |{'onebasin':^38}")
    say(f"{'data':<10} split |{columns} |{columns}")
    tables = {Path(name).stem: table(name) for name in args.data.split(",")}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.splits):
            for name, rows in tables.items():
                found.append((name, seed, compared(rows, seed, bde_python, Path(folder))))
                say(line(*found[-1]))
    for name in tables:
        gains = [f["ours"]["score"] - f["bde"]["score"] for n, _, f in found if n == name]
        say(
            f"{name}: log score {statistics.mean(gains):+.3f} in the mean, better on "
            f"{sum(g > 0 for g in gains)} of {len(gains)} splits"
        )
    if args.json:
        print(json.dumps([{"data": n, "split": s, **f} for n, s, f in found], indent=1))


if __name__ == "__main__":
    main()
