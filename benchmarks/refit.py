"""Fit programs to 10 % more rows, anew and from the earlier posterior: `python -m benchmarks.refit [WORDS]`.

The earlier posterior is of the first 10/11 of the rows. The second run has all of them: with everything by default, or
with `init` and `adapt_from` of the earlier one. Compared are gradients, those of the warmup included, for a smallest
bulk ESS of 400. Rows are the places of every data array that is as long as one of the program's whole numbers. The
programs are those of `benchmarks.fits` that have rows, with parameters whose number does not depend on them. With WORDS
only those whose names hold one of them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np

from onebasin.base.processes.libraries import prepare_jax

PROGRAMS = (
    *("linear_regression", "logistic", "poisson_offset", "negative_binomial", "ordered_logistic"),
    *("categorical_logit", "robust_regression", "mixture", "autoregression", "garch"),
    *(
        "survival_weibull",
        "zero_inflated",
        "hmm_marginal",
        "varying_slopes",
        "irt_1pl",
        "horseshoe",
    ),
)
ESS = 400


def fewer_rows(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Leave out the last eleventh of the rows; None where there are none to be seen."""
    counts = {n: v for n, v in data.items() if isinstance(v, int) and not isinstance(v, bool)}
    lengths = [len(v) for v in data.values() if isinstance(v, list | np.ndarray) and np.ndim(v)]
    names = [name for name, count in counts.items() if count >= 22 and count in lengths]
    if not names:
        return None
    name = max(names, key=lambda name: lengths.count(counts[name]))
    rows, kept = counts[name], round(counts[name] * 10 / 11)
    cut = {
        n: v[:kept]
        for n, v in data.items()
        if isinstance(v, list | np.ndarray) and np.ndim(v) and len(v) == rows
    }
    return {**data, **cut, name: kept}


def cost(tree: Any) -> tuple[float, float]:
    """Gradients of all chains for an ESS of 400, warmup included; and the share of the warmup."""
    from onebasin.analysis.diagnostics.diagnose import diagnose

    table = diagnose(tree).parameters
    ess = float(table["ess_bulk"].min())
    warmup = tree.attrs["warmup_gradient_evaluations"]
    whole = warmup + tree.attrs["gradient_evaluations"] * ESS / ess
    return whole, warmup / whole


def main() -> None:
    """Print a row for each program."""
    prepare_jax()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    import onebasin as ob
    from benchmarks.interpreter.cases import cases

    ratios = []
    print("program                 anew (warmup)   reused (warmup)  ratio")
    every = cases()
    for name in PROGRAMS:
        if args.words and not any(word in name for word in args.words):
            continue
        path, data = every[name].path, dict(every[name].make())
        if (less := fewer_rows(data)) is None:
            continue
        how = {"engine": "numpyro", "predictive_mb": 0, "progress": False}
        try:
            earlier = ob.nuts(ob.stan_program(path, less), seed=args.seed, **how)
            target = ob.stan_program(path, data)
            anew = cost(ob.nuts(target, seed=args.seed + 1, **how))
            reused = {"init": earlier, "adapt_from": earlier}
            again = cost(ob.nuts(target, seed=args.seed + 1, **reused, **how))
        except (ValueError, ob.errors.OnebasinError) as error:
            print(f"{name:22} {str(error).splitlines()[0][:90]}", flush=True)
            continue
        ratios.append(again[0] / anew[0])
        print(
            f"{name:22} {anew[0]:8,.0f} ({anew[1]:.0%}) {again[0]:12,.0f} ({again[1]:.0%}) {ratios[-1]:12.2f}",
            flush=True,
        )
    if ratios:
        half = sum(ratio <= 0.5 for ratio in ratios)
        print(f"median {statistics.median(ratios):.2f}; at most half: {half} of {len(ratios)}")


if __name__ == "__main__":
    main()
