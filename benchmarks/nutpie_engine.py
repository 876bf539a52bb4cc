"""NUTS of NumPyro, CmdStan and nutpie beside one another: effective draws a second and a gradient.

    .venv/bin/python benchmarks/nutpie_engine.py [--only NAME ...] [--chains 4] [--warmup 1000] [--draws 1000] [--json]

The teacher of two ReLU units, Boston Housing with 50, and ten programs of the notebooks and the tests. Every engine has
the same settings, in double precision, chains on all cores at once; a target is sampled by the engines that it has
definitions for, nutpie by NumPyro's gradient of networks and by the library of programs. ESS is the smallest bulk ESS
of the parameters, of networks that of their outputs at 50 training inputs, which no exchange of units changes; seconds
are those of sampling without warmup, of the longest chain. A gradient is a leapfrog step. `z` is the largest difference
of a parameter's mean from the one of the first engine, in Monte Carlo errors of both.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import onebasin as ob
from onebasin.inference.runs.origin import machine, package_versions, versions
from onebasin.models import NetworkTarget, Target
from onebasin.models.data import own_split, split, standardise
from onebasin.posteriors import schema

ROOT = Path(__file__).parents[1]
NOTEBOOKS, KNOWN = ROOT / "notebooks/programs", ROOT / "tests/stan/programs/known"
SEED = 1
DATA = {"schools_centred": "schools"}
"""Programs of the notebooks whose data are another's."""


def made_data() -> dict[str, dict[str, Any]]:
    """Data of the known programs of the tests, as these make them."""
    rng = np.random.default_rng(0)
    x, line = rng.normal(size=(40, 1)), np.linspace(0, 4, 6)
    count, time = rng.normal(size=100), np.array([0.5, 1.0, 2.0, 3.0])
    chance = 1 / (1 + np.exp(-0.5 - 1.5 * x[:, 0]))
    return {
        "counts": {"N": 20, "successes": 6},
        "decay": {"N": 4, "time": time, "y": np.exp(-0.7 * time) + rng.normal(0, 0.1, 4)},
        "gaussian_process": {
            **{"G": 2, "N": 6, "x": line},
            "y": np.sin(line) + 0.3 * rng.normal(size=(2, 6)),
        },
        "logistic": {"N": 40, "x": x, "y": rng.binomial(1, chance)},
        "parallel": {"N": 100, "x": count, "y": rng.poisson(np.exp(0.5 + 0.3 * count))},
    }


def targets() -> dict[str, Callable[[], Target]]:
    """What is sampled, made when its turn comes."""
    return {
        "relu-teacher": _teacher,
        "boston": _boston,
        **{name: partial(_notebooks, name) for name in ("regression", "schools")},
        **{name: partial(_notebooks, name) for name in ("schools_centred", "item_response")},
        **{name: partial(_known, name, data) for name, data in made_data().items()},
        "gaussian": _gaussian,
    }


def _teacher() -> Target:
    data = own_split(ob.networks.load_data("relu-teacher")).train
    return ob.networks.BayesianNetwork(ob.networks.Network(2, (2,), 1)).condition(data.x, data.y)


def _boston() -> Target:
    data = standardise(split(ob.networks.load_data("boston"), seed=0)).train
    return ob.networks.BayesianNetwork(ob.networks.Network(13, (50,), 1)).condition(data.x, data.y)


def _notebooks(name: str) -> Target:
    return ob.stan_program(NOTEBOOKS / f"{name}.stan", NOTEBOOKS / f"{DATA.get(name, name)}.json")


def _known(name: str, data: dict[str, Any]) -> Target:
    return ob.stan_program(KNOWN / f"{name}.stan", data)


def _gaussian() -> Target:
    """A correlated Gaussian and a skewed positive variable, of which all moments are known."""
    data = {"mu": [1.0, -2.0], "Sigma": [[1.0, 0.6], [0.6, 0.5]], "shape": 3.0, "rate": 2.0}
    return ob.stan_program(ROOT / "tests/inference/programs/known.stan", data)


def engines_of(target: Target) -> tuple[str, ...]:
    """The engines that sample it."""
    own = ("numpyro", "stan") if target.is_network else target.engines
    return (*own, "nutpie")


def numbers(target: Target, tree: Any) -> np.ndarray:
    """What the ESS is of, (number, chain, draw)."""
    draws = tree["posterior"].to_dataset()
    if isinstance(target, NetworkTarget):
        rows = np.linspace(0, len(target.x) - 1, 50).astype(int)
        return np.moveaxis(ob.networks.predict(target.model, draws, target.x[rows])[..., 0], -1, 0)
    kinds = schema.decode(tree.attrs, schema.KINDS)
    own = [draws[name].values for name in draws if kinds.get(name) == "parameter"]
    flat = [values.reshape(*values.shape[:2], -1) for values in own]
    return np.moveaxis(np.concatenate(flat, -1), -1, 0)


def measure(target: Target, engine: str, settings: Any) -> tuple[dict[str, float], Any]:
    """One run: what it took and what it was worth, and its moments."""
    tree = ob.infer(target, settings, engine=engine, seed=SEED, check_symmetry=False)
    values = numbers(target, tree)
    values = values[values.std(axis=(1, 2)) > 0]
    ess, rhat, mcse = (
        np.asarray(function(values, chain_axis=1, draw_axis=2))
        for function in (array_stats.ess, array_stats.rhat, array_stats.mcse)
    )
    seconds = max(schema.decode(tree.attrs, schema.SAMPLING_SECONDS))
    steps = float(tree["sample_stats"]["n_steps"].sum())
    found = {
        "seconds": seconds,
        "gradients": steps,
        "ess": float(ess.min()),
        "rhat": float(rhat.max()),
        "divergences": int(tree["sample_stats"]["diverging"].sum()),
        "ess_per_second": float(ess.min()) / seconds,
        "ess_per_1000_gradients": float(ess.min()) / steps * 1000,
        "microseconds_a_gradient": seconds * settings.chains / steps * 1e6,
    }
    return found, (values.mean(axis=(1, 2)), mcse)


def runs(names: list[str], settings: Any) -> Iterator[dict[str, Any]]:
    """Every target on every engine."""
    for name, make in targets().items():
        if names and name not in names:
            continue
        target, first = make(), None
        for engine in engines_of(target):
            found, (mean, mcse) = measure(target, engine, settings)
            first = first or (mean, mcse)
            z = np.abs(mean - first[0]) / np.sqrt(mcse**2 + first[1] ** 2)
            yield {"target": name, "engine": engine, **found, "z": float(z.max())}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], choices=list(targets()))
    for name, default in (("chains", 4), ("warmup", 1000), ("draws", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    settings = ob.Nuts(chains=given.chains, warmup=given.warmup, draws=given.draws)
    made = []
    for run in runs(given.only, settings):
        made.append(run)
        if not given.json:
            words = [
                f"{run['target']:22s} {run['engine']:8s}",
                *(f"{key} {_short(run[key])}" for key in run if key not in ("target", "engine")),
            ]
            print("  ".join(words), flush=True)
    if given.json:
        found = versions() | package_versions("nutpie")
        print(json.dumps({"machine": machine(), "versions": found, "runs": made}))


def _short(value: float) -> str:
    return f"{value:.3g}" if value and math.isfinite(value) else f"{value:g}"


if __name__ == "__main__":
    main()
