"""How long it takes to find a model's symmetries, and whether they are the known ones.

    .venv/bin/python -m benchmarks.symmetries [--only NAME ...] [--rounds 3] [--markdown]

The models of the tests with known answers, as functions in NumPy (`tests/inference/symmetries/known.py`); the programs
of the notebooks, as Stan libraries, compiled before the clock runs; and two large ones, a mixture of 40 parts and ten
mixtures of three. Seconds are processor time of the fastest round, without compiling. An answer is right if its live
words are those that are known, and none besides.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

import onebasin as ob
from onebasin.inference.symmetries.find import find
from onebasin.inference.symmetries.measuring import SearchedDensity, searched
from tests.inference.symmetries.known import MODELS, Known

NOTEBOOKS = Path(__file__).parents[1] / "notebooks/programs"
PROGRAMS = {
    "item_response": ("+-theta:,+-a:",),
    "mixture": ("mu,sigma,1-theta",),
    "regression": (),
    "schools": (),
}
Y = np.random.default_rng(0).normal(0, 5, size=60)


@dataclass(frozen=True)
class Case:
    """A density to search, made again for every round, and the words that are known."""

    name: str
    words: tuple[str, ...]
    make: Callable[[], tuple[SearchedDensity, float]]


def large() -> dict[str, Known]:
    """Models with more parts, or more blocks, than the tests search."""

    def mixtures(names: Sequence[str], parts: int) -> Known:
        def density(p: dict[str, np.ndarray]) -> float:
            total = 0.0
            for name in names:
                mu, theta = p[f"mu{name}"], p[f"theta{name}"]
                each = np.log(theta) - 0.5 * (Y[:, None] - mu) ** 2
                total += logsumexp(each, axis=1).sum() - 0.5 * (mu**2).sum() / 25
            return float(total)

        shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        for name in names:
            shapes |= {f"mu{name}": ((parts,), "real"), f"theta{name}": ((parts,), "simplex")}
        return Known(shapes, density, tuple(f"mu{name},theta{name}" for name in names))

    return {
        "mixture of 40": mixtures([""], 40),
        "ten mixtures of three": mixtures([str(k) for k in range(10)], 3),
    }


def cases() -> Iterator[Case]:
    """All that is searched."""
    for name, known in {**MODELS, **large()}.items():
        yield Case(name, known.live, lambda known=known: (known.density(), 0.0))
    for name, words in PROGRAMS.items():
        target = ob.stan_program(NOTEBOOKS / f"{name}.stan", NOTEBOOKS / f"{name}.json")
        yield Case(f"{name}.stan", words, lambda target=target: searched(target, None, None))


def measure(case: Case, rounds: int) -> tuple[int, int, float, str]:
    """Parameters, evaluations, seconds, and the words or what is wrong with them."""
    seconds = []
    for _ in range(rounds):
        density, noise = case.make()
        before = time.process_time()
        found = find(density, seconds=np.inf, noise=noise)
        seconds.append(time.process_time() - before)
    words = " and ".join(found.words) or "none"
    if set(found.words) != set(case.words):
        words += f"; EXPECTED {' and '.join(case.words) or 'none'}"
    return density.dim, found.evaluations, min(seconds), words


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    line = "| {} | {} | {} | {:.3f} | {} |" if given.markdown else "{:42s} {:4d} {:7d} {:8.3f} {}"
    took, wrong, evaluations = [], 0, []
    for case in cases():
        if given.only and case.name not in given.only:
            continue
        dim, count, seconds, words = measure(case, given.rounds)
        took.append(seconds)
        evaluations.append(count)
        wrong += "EXPECTED" in words
        print(line.format(case.name, dim, count, seconds, words), flush=True)
    print(
        f"{len(took)} models, {wrong} wrong; evaluations {min(evaluations)} to {max(evaluations)} (median "
        f"{np.median(evaluations):.0f}); seconds {sum(took):.1f} together, median {np.median(took):.3f}, longest "
        f"{max(took):.2f}"
    )


if __name__ == "__main__":
    main()
