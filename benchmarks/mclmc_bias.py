"""Bias of unadjusted microcanonical draws by their energy variance, and of adjusted ones, held against NUTS.

    .venv/bin/python benchmarks/mclmc_bias.py [--chains 8] [--draws 1000] [--json]

A network of 4-4 tanh units with predicted noise on 100 rows of a sine whose noise grows, in double precision. Shift:
root mean square over 50 inputs of the difference of the means of f to NUTS's, in NUTS's posterior sds; by chance: what
Monte Carlo error of both would give; noise: geometric mean of the ratio of the mean predicted sds to NUTS's. R-hat
(worst input) and bulk ESS (median input) are of f.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import onebasin as ob

VARIANCES = (0.3, 0.1, 0.03, 0.01, 0.003, 5e-4)
INPUTS = np.linspace(-2, 2, 50)[:, None]
COLUMNS = ("shift", "by_chance", "noise", "rhat", "ess", "gradients", "seconds")


def target() -> Any:
    """The posterior."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * (1 + np.abs(x[:, 0])) * rng.standard_normal(100)
    network = ob.networks.Network(1, (4, 4), activation="tanh")
    return ob.networks.BayesianNetwork(
        network, ob.networks.Gaussian(noise_sd="predicted")
    ).condition(x, y)


def rows(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Those of f, or of the noise."""
    return table[table.index.str.startswith(f"{part}[")]


def measured(run: Any, truth: pd.DataFrame, seconds: float) -> dict[str, float]:
    """How far a posterior's predictions are from NUTS's."""
    table = ob.networks.summarise_predictions(run, INPUTS)
    f, reference = rows(table, "f"), rows(truth, "f")
    scale = reference["sd"]
    noise = np.log(rows(table, "noise_sd")["mean"] / rows(truth, "noise_sd")["mean"])
    error = np.hypot(f["mcse_mean"], reference["mcse_mean"]) / scale
    return {
        "shift": float(np.sqrt(np.mean(((f["mean"] - reference["mean"]) / scale) ** 2))),
        "by_chance": float(np.sqrt(np.mean(error**2))),
        "noise": float(np.exp(noise.mean())),
        "rhat": float(f["rhat"].max()),
        "ess": float(f["ess_bulk"].median()),
        "gradients": int(run.attrs["gradient_evaluations"]),
        "seconds": seconds,
    }


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    posterior = target()
    nuts = ob.Nuts(chains=args.chains, warmup=args.draws, draws=args.draws)
    plain = ob.Mclmc(chains=args.chains, warmup=10_000, draws=args.draws, thin=40)
    begun = time.perf_counter()
    run = ob.infer(posterior, nuts, seed=1, predictive_mb=0)
    truth = ob.networks.summarise_predictions(run, INPUTS)
    found = {"nuts": measured(run, truth, time.perf_counter() - begun)}
    ways = {f"unadjusted {v:g}": replace(plain, energy_variance=v) for v in VARIANCES}
    ways["adjusted"] = replace(plain, adjusted=True, thin=4, warmup=2000)
    for name, settings in ways.items():
        begun = time.perf_counter()
        run = ob.infer(posterior, settings, seed=2, predictive_mb=0)
        found[name] = measured(run, truth, time.perf_counter() - begun)
    if args.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'':<18}" + "".join(f"{column:>11}" for column in COLUMNS))
    for name, numbers in found.items():
        print(f"{name:<18}" + "".join(f"{numbers[column]:>11.4g}" for column in COLUMNS))


if __name__ == "__main__":
    main()
