"""Compare the effective draws per second of NUTS in NumPyro and Stan on Boston Housing, with the same settings.

    .venv/bin/python benchmarks/engines.py [--warmup 300] [--draws 300] [--depth 8] [--rounds 2] [--json]

The models are networks of 50 ReLU units with free weights and with Givens angles, on the training part of an 80/20
split. Engines take turns, with a new seed in each round. The chains of a run use all cores at once.

Effective draws are bulk ESS from ArviZ: the median over the outputs at 50 training inputs, and the minimum over
label-free parameters (means over units, and sigma). Seconds are the sampling time of the longest chain, without warmup.
Engines adapt their metrics differently, so effective draws per gradient differ too. The time of a gradient is printed
separately.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats

import onebasin as ob
from onebasin.inference.runs.posterior import machine, versions
from onebasin.models.data import split, standardise
from onebasin.posteriors import schema

WEIGHTS = ("free", "givens")
ENGINES = ("numpyro", "stan")
GOALS = {"free": 4, "givens": 3}


def target_of(weights: str) -> Any:
    """Return a network of 50 units, conditioned on the standardised training part of Boston Housing."""
    data = standardise(split(ob.networks.load_data("boston"), seed=0)).train
    parametrisation = ob.networks.Parametrisation(weights=weights)
    model = ob.networks.BayesianNetwork(
        ob.networks.Network(13, (50,), 1), parametrisation=parametrisation
    )
    return model.condition(data.x, data.y)


def outputs(target: Any, draws: xr.Dataset) -> np.ndarray:
    """Return the outputs (output, chain, draw) at 50 training inputs."""
    rows = np.linspace(0, len(target.x) - 1, 50).astype(int)
    return np.moveaxis(ob.networks.predict(target.model, draws, target.x[rows])[..., 0], -1, 0)


def moments(draws: xr.Dataset) -> np.ndarray:
    """Return label-free functions (number, chain, draw) of the parameters."""
    parts = [draws["W1"].mean("hidden1"), draws["b1"].mean("hidden1"), draws["W2"].mean("hidden1")]
    parts += [draws["b2"], draws["sigma"]]
    flat = [p.values.reshape(*p.values.shape[:2], -1) for p in parts]
    return np.moveaxis(np.concatenate(flat, -1), -1, 0)


def ess(values: np.ndarray) -> np.ndarray:
    """Return the bulk ESS of several quantities (number, chain, draw)."""
    return np.asarray(array_stats.ess(values, chain_axis=1, draw_axis=2, method="bulk"))


def measure(target: Any, engine: str, settings: Any, seed: int) -> dict[str, float]:
    """Measure the time and the effective draws of one run."""
    tree = ob.infer(target, settings, engine=engine, seed=seed)
    draws, stats = tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()
    steps = float(stats["n_steps"].sum())
    seconds = max(schema.decode(tree.attrs, schema.SAMPLING_SECONDS))
    predicted, of_parameters = ess(outputs(target, draws)), ess(moments(draws))
    rhat = array_stats.rhat(outputs(target, draws), chain_axis=1, draw_axis=2)
    return {
        "seconds": seconds,
        "gradients": steps,
        "prediction_ess": float(np.median(predicted)),
        "parameter_ess": float(np.min(of_parameters)),
        "prediction_rhat": float(np.max(rhat)),
        "prediction_ess_per_second": float(np.median(predicted)) / seconds,
        "parameter_ess_per_second": float(np.min(of_parameters)) / seconds,
        "microseconds_a_gradient": seconds * settings.chains / steps * 1e6,
    }


def rounds(settings: Any, number: int) -> Iterator[dict[str, Any]]:
    """Run every engine and parametrisation once per round, in turn."""
    targets = {weights: target_of(weights) for weights in WEIGHTS}
    for seed in range(number):
        for weights, target in targets.items():
            for engine in ENGINES:
                found = measure(target, engine, settings, seed)
                yield {"seed": seed, "weights": weights, "engine": engine, **found}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--chains", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    settings = ob.Nuts(
        chains=given.chains, warmup=given.warmup, draws=given.draws, max_tree_depth=given.depth
    )
    runs = []
    for run in rounds(settings, given.rounds):
        runs.append(run)
        if not given.json:
            print(
                json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in run.items()})
            )
    if given.json:
        print(json.dumps({"machine": machine(), "versions": versions(), "runs": runs}))
        return
    print(machine())
    for weights in WEIGHTS:
        show(weights, runs)


def show(weights: str, runs: list[dict[str, Any]]) -> None:
    """Print the medians over the rounds, and the advantage of NumPyro as a factor."""

    def middle(name: str, engine: str) -> float:
        chosen = [r for r in runs if (r["weights"], r["engine"]) == (weights, engine)]
        return statistics.median(run[name] for run in chosen)

    print(f"\n{weights}: NumPyro, Stan, times better (goal of effective draws: {GOALS[weights]})")
    for name in ("prediction_ess_per_second", "parameter_ess_per_second"):
        ours, theirs = (middle(name, engine) for engine in ENGINES)
        print(f"  {name:27s} {ours:9.3f} {theirs:9.3f} {ours / theirs:7.2f}")
    ours, theirs = (middle("microseconds_a_gradient", engine) for engine in ENGINES)
    print(f"  {'microseconds_a_gradient':27s} {ours:9.1f} {theirs:9.1f} {theirs / ours:7.2f}")
    ours, theirs = (middle("prediction_rhat", engine) for engine in ENGINES)
    print(f"  {'largest R-hat of outputs':27s} {ours:9.3f} {theirs:9.3f}")


if __name__ == "__main__":
    main()
