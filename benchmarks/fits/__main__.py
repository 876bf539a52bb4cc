"""Fit programs and simulated targets, and compare the fits with NUTS or the truth: `python -m benchmarks.fits`.

A fit is good if every mean lies within 0.2 standard deviations of the reference, every standard deviation within 15 %,
and every 5 % and 95 % quantile within 0.15 standard deviations. The programs come from `benchmarks.interpreter` and
`regressions`. Their reference is four NUTS chains of 4,000 draws; programs whose chains disagree are not counted. The
cost of NUTS is measured with its default settings. Moments of simulated targets come from independent draws.

With `--kinds`, the targets are random ones of fourteen kinds. With `--hierarchies`, they are random hierarchies whose
posterior is computed by quadrature. WORDS selects targets whose names contain one of the words.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onebasin.base.processes.libraries import prepare_libraries

from .claims import Moments, largest, misses, moments, too_large

PROGRAMS = (
    *("schools_centred", "schools_noncentred", "linear_regression", "logistic", "poisson_offset"),
    *("negative_binomial", "ordered_logistic", "categorical_logit", "robust_regression"),
    *("varying_slopes", "irt_1pl", "mixture", "hmm_marginal", "gaussian_process"),
    *("gaussian_process_latent", "autoregression", "garch", "local_level", "survival_weibull"),
    *("zero_inflated", "horseshoe", "stochastic_volatility"),
    *("bradley_terry", "lotka_volterra", "occupancy", "hurdle", "generalised_linear"),
    *("changepoint", "random_effects_crossed", "missing_normal", "cormack_jolly_seber", "irt_2pl"),
    *("gaussian_process_hilbert", "sir", "icar", "dirichlet_multinomial", "truncated", "von_mises"),
    *("sum_to_zero", "reduce_sum", "multinomial_softmax", "beta_binomial_quantiles"),
    *("hmm_forward", "multivariate_probit", "own_distribution", "change_of_variables"),
)
LONGER = 4_000
"""Number of draws per chain of the reference. With 1,000 draws, an sd with a heavy tail is off by a tenth."""


def fitted(target: Any, wanted: Moments, method: str, seed: int, weights: bool) -> dict:
    """Fit a target and judge the fit."""
    import onebasin as ob

    started = time.perf_counter()
    try:
        tree = ob.infer(target, method, seed=seed, predictive_mb=0, weights=weights)
    except ob.OnebasinError as error:
        return {"failed": str(error)[:100], "verdict": "unusable", "good": False, "claims": [0] * 3}
    seconds = time.perf_counter() - started
    diagnosis = ob.diagnose(tree)
    every, claimed = misses(tree, diagnosis, wanted)
    missed = largest(every)
    return {
        "good": not any(too_large(every)),
        "claims": [len(some) for some in claimed],
        "false": too_large(claimed),
        "verdict": diagnosis.verdict,
        "sentence": diagnosis.judgement.sentence,
        "mean": missed[0],
        "sd": missed[1],
        "quantile": missed[2],
        "gradients": int(tree.attrs.get("gradient_evaluations", 0)),
        "densities": int(tree.attrs.get("log_density_evaluations", 0)),
        "seconds": seconds,
        "worth": tree.attrs.get("worth"),
    }


def programs(words: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name and target of each program of `benchmarks.interpreter` and of each regression."""
    import onebasin as ob
    from benchmarks.fits import regressions
    from benchmarks.interpreter.cases import cases

    every = cases()
    for name in (*PROGRAMS, *regressions.MAKERS):
        if words and not any(word in name for word in words):
            continue
        if name in regressions.MAKERS:
            yield name, regressions.target(name)
        else:
            yield name, ob.stan_program(every[name].path, dict(every[name].make()))


def references(
    words: list[str], each: int, first: int, hierarchies: int = 0
) -> Iterator[tuple[str, Any, Moments, dict[str, Any]]]:
    """Yield each reference: name, target, moments and cost of NUTS. `each` and `hierarchies` count random targets."""
    import onebasin as ob
    from benchmarks.fits import hierarchies as grouped
    from benchmarks.fits import kinds, simulated

    for number in range(first, first + hierarchies):
        target, draws = grouped.made(number)
        yield target.name, target, moments(draws), {}
    for number in range(first, first + each):
        for kind in kinds.KINDS:
            if not words or kind in words:
                target, draws = kinds.made(kind, number)
                yield target.name, target, moments(draws), {}
    if each or hierarchies:
        return
    for name, target in programs(words):
        started = time.perf_counter()
        chains = ob.nuts(target, seed=7, predictive_mb=0, target_acceptance=0.95)
        seconds = time.perf_counter() - started
        longer = ob.nuts(target, seed=8, predictive_mb=0, target_acceptance=0.95, draws=LONGER)
        measured = ob.diagnose(longer)
        kinds = json.loads(longer.attrs["kinds"])
        draws = {
            n: v.values.reshape(-1, *v.shape[2:])
            for n, v in longer["posterior"].data_vars.items()
            if kinds.get(n) == "parameter"
        }
        price = {
            "gradients": int(chains.attrs["gradient_evaluations"]),
            "seconds": seconds,
            "rhat": measured.rhat.value,
            "ess": measured.ess_bulk.value,
        }
        yield name, target, moments(draws), price
    for name in simulated.MODELS:
        if not words or any(word in name for word in words):
            yield name, simulated.target(name), simulated.known_moments(name), {}


def main() -> None:
    """Run the benchmark, print one line per fit, and write all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--method", default="dadvi")
    parser.add_argument("--plain", action="store_true", help="fit without weights")
    parser.add_argument("--kinds", type=int, default=0, help="use random targets, N per kind")
    parser.add_argument("--hierarchies", type=int, default=0, help="use N random hierarchies")
    parser.add_argument("--first-kind", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    prepare_libraries()
    rows = []
    found = references(options.words, options.kinds, options.first_kind, options.hierarchies)
    for place, (name, target, wanted, price) in enumerate(found):
        first = options.first_seed + (place if options.kinds or options.hierarchies else 0)
        for seed in range(first, first + options.seeds):
            row = fitted(target, wanted, options.method, seed, not options.plain)
            row |= {"name": name, "seed": seed, "nuts": price}
            row["size"] = len(wanted)
            rows.append(row)
            print(line(row), flush=True)
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(summary(rows))


def line(row: dict[str, Any]) -> str:
    """Format one fit as a line."""
    if "failed" in row:
        return f"{row['name']:24} failed: {row['failed']}"
    nuts = row["nuts"]
    beside = (
        f" | NUTS {nuts['gradients']:8,} {nuts['seconds']:5.1f} s R-hat {nuts['rhat']:.3f}"
        if nuts
        else ""
    )
    said = "good" if row["good"] else "BAD " if any(row["false"]) else "held"
    cost = (
        f"gradients {row['gradients']:6,} densities {row['densities']:6,} {row['seconds']:5.1f} s"
    )
    misses = f"mean {row['mean']:6.3f} sd {row['sd']:6.3f} quantile {row['quantile']:6.3f}"
    return f"{row['name']:24} {row['size']:3} {said} {row['verdict']:9} {misses} {cost}{beside}"


def summary(rows: list[dict[str, Any]]) -> str:
    """Count good fits and claims, for references whose chains agree."""
    sure = [
        r for r in rows if not r["nuts"] or (r["nuts"]["rhat"] < 1.01 and r["nuts"]["ess"] > 400)
    ]
    called = [r for r in sure if r["verdict"] != "unusable"]
    usable = [r for r in called if r["verdict"] == "usable"]
    false = [f"{r['name']} ({r['seed']})" for r in called if any(r["false"])]
    kinds = ("means", "standard deviations", "quantiles")
    counts = ", ".join(
        f"{sum(r['false'][at] for r in called)} of {sum(r['claims'][at] for r in called):,} {kind}"
        for at, kind in enumerate(kinds)
    )
    price = [r["gradients"] / r["nuts"]["gradients"] for r in sure if r["nuts"]]
    shares = (
        f"; median of gradients by NUTS's draws {statistics.median(price):.3f}" if price else ""
    )
    good, parts = sum(r["good"] for r in sure), len(called) - len(usable)
    return (
        f"{good} of {len(sure)} fits are good. Verdicts: {len(usable)} usable, {parts} in part. Wrong claims: "
        f"{', '.join(false) or 'none'} ({counts} are wrong). {len(rows) - len(sure)} without a valid reference{shares}"
    )


if __name__ == "__main__":
    main()
