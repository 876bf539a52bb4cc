"""What drawing layers' values instead of weights is worth: time a step, and noise of its gradient.

    nice .venv/bin/python benchmarks/local_reparametrisation.py [--dtype float32|float64] [--rounds N] [--json]

The network of Kurle et al. 2021, section 4 (five hidden layers of 32 SELU units, 128 points of a scaled sinc with noise
0.2, which is inferred) in its four variants, trained by `ob.advi` with 64 samples; one processor core. Both ways have
the same divergence weight and Adam's step. They are timed in one run, turn by turn, and medians of the rounds are taken
(seconds of the processor).

The variance is that of a step's gradient with 64 samples by all means and log standard deviations, summed over them,
over 100 gradients; at the start (He's weights, standard deviations 0.05) and after `--steps` steps. "equal quality" is
the ratio of the times in which both ways have a mean gradient of the same variance: that of a step times that of the
variance.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

if __name__ == "__main__":  # before JAX counts cores
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])

import jax
import jax.numpy as jnp
import numpy as np

from onebasin import Advi
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.inference.density.network import density_of
from onebasin.inference.runs.provenance import machine, versions
from onebasin.inference.variational.elbo import Objective
from onebasin.inference.variational.engine import State, TrainingLoop
from onebasin.inference.variational.gaussians import MeanField, Parameters
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.networks import BayesianNetwork, Gaussian, Network, Parametrisation, load_data

VARIANTS = {
    "plain": (None, "free"),
    "ordered": (None, "ordered"),
    "orthogonal": ("orthogonal", "free"),
    "both": ("orthogonal", "ordered"),
}
TIMED = 10
"""Steps that are timed together."""
GRADIENTS = 100


def target_of(variant: str) -> NetworkTarget:
    """The paper's network and data."""
    skip, biases = VARIANTS[variant]
    data = load_data("sinc", seed=0, num_obs=128, noise_sd=0.2)
    network = Network(1, (32,) * 5, 1, "selu", skip=skip)
    model = BayesianNetwork(network, Gaussian(), parametrisation=Parametrisation(biases=biases))
    return model.condition(data.x, data.y)


@dataclass(frozen=True)
class Way:
    """An optimiser that draws weights, or layers' values."""

    optimiser: TrainingLoop
    state: State

    @classmethod
    def of(cls, target: NetworkTarget, settings: Advi) -> Way:
        """With its state at the start."""
        density = density_of(target)
        objective = Objective(
            density, MeanField(density.size), bool(settings.local_reparametrisation), frugal=True
        )
        optimiser = TrainingLoop(objective, settings, 1)
        loc = density.he_starts(keys_for(Purpose.MEMBER_START, 0, 1))
        return cls(optimiser, optimiser.first(loc, jax.random.key(2)))

    def steps(self, num: int) -> State:
        """The state after so many steps with the whole divergence."""
        done = self.optimiser.steps  # where annealing is over
        return jax.block_until_ready(self.optimiser._advance(self.state, done, num))

    def variance(self, params: Parameters) -> float:
        """Of a step's gradient, summed over all entries."""
        one = jax.tree.map(lambda leaf: leaf[0], params)
        done = jnp.asarray(self.optimiser.steps)

        def slope(key: jax.Array) -> jax.Array:
            found = jax.grad(self.optimiser.loss)(one, done, (key, None))
            return jnp.concatenate([found["loc"], found["log_scale"]])

        keys = jax.random.split(jax.random.key(3), GRADIENTS)
        found = jax.jit(lambda k: jax.lax.map(slope, k))(keys)
        return float(np.asarray(found, np.float64).var(axis=0, ddof=1).sum())


def turn_by_turn(ways: dict[str, Way], rounds: int) -> dict[str, float]:
    """Median processor seconds of a step, after a call of each for its compilation."""

    def timed(run: Callable[[], object]) -> float:
        began = time.process_time()
        run()
        return time.process_time() - began

    for way in ways.values():
        way.steps(TIMED)
    found = [{n: timed(lambda w=w: w.steps(TIMED)) for n, w in ways.items()} for _ in range(rounds)]
    return {n: float(np.median([each[n] for each in found])) / TIMED for n in ways}


def row(variant: str, settings: Advi, rounds: int, trained: int) -> dict[str, object]:
    """Times, variances and their ratios for one variant."""
    with precision(settings.dtype):
        target = target_of(variant)
        ways = {
            name: Way.of(target, replace(settings, local_reparametrisation=local))
            for name, local in (("weights", False), ("layers", True))
        }
        seconds = turn_by_turn(ways, rounds)
        start = ways["layers"].state.params
        later = ways["layers"].steps(trained).params
        noise = {
            f"variance {when}": ways["weights"].variance(p) / ways["layers"].variance(p)
            for when, p in (("at the start", start), ("trained", later))
        }
    per_step = seconds["weights"] / seconds["layers"]
    quality = {
        f"equal quality {n.removeprefix('variance ')}": v * per_step for n, v in noise.items()
    }
    return {
        "variant": variant,
        "dtype": settings.dtype,
        "weights, ms": 1000 * seconds["weights"],
        "layers, ms": 1000 * seconds["layers"],
        "a step": per_step,
        **noise,
        **quality,
    }


def table(rows: list[dict[str, object]]) -> str:
    """In Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    for each in rows:
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in each.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--steps", type=int, default=2000, help="of training, before the second variance"
    )
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = [
        row(variant, settings, chosen.rounds, chosen.steps)
        for dtype in chosen.dtype
        for variant in chosen.variants
        for settings in [
            Advi(
                iterations=10**6,
                gradient_samples=64,
                learning_rate=0.005,
                schedule="constant",
                init_scale=0.05,
                dtype=dtype,
            )
        ]
    ]
    about = {"machine": machine(), "versions": versions()}
    print(json.dumps({"rows": rows} | about) if chosen.json else f"{table(rows)}\n\n{about}")


if __name__ == "__main__":
    main()
