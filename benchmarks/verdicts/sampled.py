"""Benchmark of verdicts on Stan programs like those of posteriordb, sampled with the defaults of `onebasin sample`.

    .venv/bin/python -m benchmarks.verdicts.sampled [--seeds 3] [--only WORD] [--out FOLDER]

All data except the eight schools are simulated. Sampled posteriors are harder to judge than simulated ones: chains get
stuck in necks, rotate slowly, and mix irregularly. With `--out`, posteriors are stored and not sampled again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onebasin as ob

from .truth import USABLE, Truth, aligned, unusable, wrong

PROGRAMS = Path(__file__).parent / "programs"
Data = dict[str, Any]
Simulator = Callable[[np.random.Generator], Data]


def normals(weights: list, means: list, scales: list, size: int, **more: int) -> Simulator:
    """Make a simulator of draws from a normal mixture."""

    def simulate(rng: np.random.Generator) -> Data:
        part = rng.choice(len(weights), p=weights, size=size)
        y = np.array(means)[part] + np.array(scales)[part] * rng.normal(size=size)
        return {"N": size, "y": y, **more}

    return simulate


def answers(items: int, persons: int, slope: float) -> Simulator:
    """Make a simulator of answers of persons to items, from a two-parameter logistic model."""

    def simulate(rng: np.random.Generator) -> Data:
        a, b = rng.lognormal(slope, 0.35, size=items), rng.normal(size=items)
        chance = 1 / (1 + np.exp(-a[:, None] * (rng.normal(size=persons) - b[:, None])))
        y = (rng.random((items, persons)) < chance).astype(int)
        return {"I": items, "J": persons, "y": y}

    return simulate


def loadings(factors: int) -> Simulator:
    """Make a simulator of the scores of sixty persons on eight scales."""

    def simulate(rng: np.random.Generator) -> Data:
        scores = rng.normal(size=(60, factors)) @ rng.normal(size=(factors, 8))
        return {"N": 60, "P": 8, "D": factors, "Y": scores + 0.5 * rng.normal(size=(60, 8))}

    return simulate


def hidden(rng: np.random.Generator) -> Data:
    """Simulate a hidden Markov model with three persistent states."""
    moves = np.array([[0.8, 0.1, 0.1], [0.15, 0.7, 0.15], [0.1, 0.1, 0.8]])
    states = [0]
    for _ in range(299):
        states.append(rng.choice(3, p=moves[states[-1]]))
    y = np.array([-3, 0, 4])[states] + np.array([1, 0.6, 1.2])[states] * rng.normal(size=300)
    return {"K": 3, "N": 300, "y": y}


def documents(rng: np.random.Generator) -> Data:
    """Simulate counts of 20 words in 25 documents on three topics."""
    topics, shares = rng.dirichlet(np.full(20, 0.2), 3), rng.dirichlet(np.full(3, 0.5), 25)
    counts = np.array([rng.multinomial(120, share @ topics) for share in shares])
    return {"K": 3, "V": 20, "M": 25, "n": counts}


def line(rng: np.random.Generator) -> Data:
    """Simulate a regression with five covariates."""
    x = rng.normal(size=(100, 5))
    y = 1 + x @ np.array([1.0, -0.5, 0, 2, 0.3]) + rng.normal(size=100)
    return {"N": 100, "P": 5, "X": x, "y": y}


def schools(_: np.random.Generator) -> Data:
    """Return the data of the eight schools (Rubin 1981)."""
    y, sigma = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    return {"J": 8, "y": y, "sigma": sigma}


WEIGHT = aligned("mu,sigma,1-theta", silent=["sigma"])
OVERLAP = Truth(("aligned", "invariant"), ("labels",), None)
SHORT = Truth(("usable", "unusable"), ("short",))
"""Truth for programs whose scales have about the minimum ESS with default settings: the verdict depends on the seed."""

CASES: dict[str, tuple[str, Simulator, Truth]] = {
    "normal mixture": ("mixture2", normals([0.4, 0.6], [-2.7, 2.8], [1, 1], 400), WEIGHT),
    "normal mixture, ordered": (
        "mixture2_ordered",
        normals([0.4, 0.6], [-2.7, 2.8], [1, 1], 400),
        USABLE,
    ),
    "normal mixture, overlapping": (
        "mixture2",
        normals([0.45, 0.55], [-0.7, 0.9], [1, 0.8], 200),
        OVERLAP,
    ),
    "mixture of three, simplex": (
        "mixture3",
        normals([0.3, 0.3, 0.4], [-4, 0, 5], [1, 0.7, 1.5], 150, K=3),
        aligned("mu,sigma,theta"),
    ),
    "2PL, positive slopes": ("irt_2pl", answers(20, 100, 0.0), SHORT),
    "2PL, free signs": ("irt_free", answers(8, 60, 0.3), aligned("+-theta:,+-a:")),
    "eight schools, centred": ("eight_schools_centered", schools, unusable("funnel")),
    "eight schools, not centred": ("eight_schools_noncentered", schools, USABLE),
    "hidden Markov": ("hmm", hidden, aligned("A:0:1,mu,pi1,sigma")),
    "two factors": ("factors", loadings(2), Truth(("invariant",), ("labels",), None)),
    "one factor": ("factors", loadings(1), aligned("+-L:,+-F:")),
    "topics": ("lda", documents, aligned("theta:1,phi")),
    "regression": ("regression", line, USABLE),
}


def main() -> None:
    """Sample, diagnose and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="run only cases whose name contains this text")
    parser.add_argument("--out", type=Path, help="folder for the posteriors")
    options = parser.parse_args()
    print("| program | seed | said | causes | words | wrong | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        for name, (program, simulate, truth) in CASES.items():
            for seed in range(options.seeds) if options.only in name else ():
                path = out / f"{name.replace(' ', '-')}-{seed}.nc"
                if not path.exists():
                    data = simulate(np.random.default_rng(seed))
                    target = ob.stan_program(PROGRAMS / f"{program}.stan", data)
                    ob.save(ob.nuts(target, engine="stan", seed=seed), path)
                tree, began = ob.open_posterior(path), time.perf_counter()
                said = ob.diagnose(tree).to_dict()
                seconds = time.perf_counter() - began
                faults = ", ".join(wrong(truth, said)) or "none"
                causes, words = ", ".join(said["causes"]), " ".join(said["exchangeable"])
                print(
                    f"| {name} | {seed} | {said['verdict']} | {causes} | {words and f'`{words}`'} | {faults} "
                    f"| {seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    sys.exit(main())
