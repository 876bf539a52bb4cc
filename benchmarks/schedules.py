"""What a longer training of mean-field VI gains in ELBO over the steps of the study of orthogonal skips.

    .venv/bin/python benchmarks/schedules.py [--variants plain,orthogonal] [--times 1,4] [--json]

The networks of `onebasin study orthogonal-skips`, first data set under its first condition, fitted by its settings with
its number of steps times each of `--times` (20 times are the paper's 200,000), the divergence annealed over the first
half of each. The ELBO at the end is that of 4,096 draws, with its standard error.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import onebasin as ob
from onebasin.studies.orthogonal_skips.design import DEFAULT, VARIANTS, cells, target

DRAWS = 4096


def fit(variant: str, times: int) -> dict[str, Any]:
    """Fit a variant in so many times the study's steps."""
    (cell,) = (c for c in cells(DEFAULT) if c.key.startswith(f"known-set01.{variant}.meanfield"))
    steps = DEFAULT.vi.iterations * times
    settings = replace(
        DEFAULT.vi,
        iterations=steps,
        evaluate_every=steps // 20,
        draws=DRAWS,
        trace_parameters=False,
    )
    started = time.process_time()
    fitted = ob.infer(target(DEFAULT, cell), settings, seed=cell.seed)
    (found,) = ob.approximations.elbo(fitted).table.to_dict("records")
    return {
        "variant": variant,
        "steps": steps,
        "elbo": found["elbo"],
        "error": found["elbo_mcse"],
        "seconds": time.process_time() - started,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variants", default="plain,orthogonal")
    parser.add_argument("--times", default="1,4")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    variants = [name for name in VARIANTS if name in given.variants.split(",")]
    rows = [fit(v, t) for v in variants for t in map(int, given.times.split(","))]
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"{row['variant']:>10} {row['steps']:>7,} steps: ELBO {row['elbo']:.2f} "
            f"(standard error {row['error']:.2f}), {row['seconds']:.0f} processor seconds"
        )


if __name__ == "__main__":
    main()
