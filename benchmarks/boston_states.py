"""Weights of the two states that a network's function has at some test points: `python -m benchmarks.boston_states`.

Boston Housing, 13-50-1 ReLU units, free weights, float32. Two samplers, each with starts of its own: many short chains
of static HMC; and ladders of chains whose likelihood is raised to powers from 1 down to `--hottest`, with swaps of
neighbours by turns (even pairs, then odd ones). Chains move together, in a metric of variances over chains and units.

A state is a side of the threshold that divides the draws at a point best (Otsu). Its weight is the mean over chains,
and its error the larger one of those from autocorrelation and from the chains' spread. Chains whose test error is above
one, the standard deviation of the target, have not come to the posterior: they are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import onebasin as ob
from onebasin.analysis.predictive.regression import pointwise_log_score
from onebasin.analysis.summaries.summary import summary
from onebasin.inference.density.network import NetworkDensity
from onebasin.models.networks.prediction import predict_with_noise
from onebasin.posteriors.draws import Draws
from onebasin.truth.problems.relu_networks import boston_split, relu_network

ACCEPTANCE = 0.8
FIRST = 64, 64
"""Least and most leapfrog steps of a trajectory in the first half of the warmup."""


class Chains:
    """Static HMC of many chains, each at its power of the likelihood; chains of a power share step size and metric."""

    def __init__(
        self, density: NetworkDensity, powers: np.ndarray, steps: tuple[int, int], seed: int
    ) -> None:
        """Start at random points within 2 of zero; `steps` are the least and most of a trajectory."""
        self.density, self.powers, self.steps = density, powers, steps
        self.rng = np.random.default_rng(seed)
        self.at = jnp.asarray(self.rng.uniform(-2, 2, (len(powers), density.size)), jnp.float32)
        self.log_step, self.scale = np.full(len(powers), np.log(1e-3)), jnp.ones_like(self.at)
        self.gradients = 0

    @partial(jax.jit, static_argnums=0)
    def _moved(self, at: Any, powers: Any, stride: Any, key: Any, steps: Any) -> tuple[Any, ...]:
        def height(vector: Any, power: Any) -> tuple[Any, Any]:
            likelihood = self.density.log_likelihood(vector).sum()
            return self.density.log_prior(vector) + power * likelihood, likelihood

        def leap(_: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            x, p, _, slopes = state
            p = p + 0.5 * stride * slopes
            x = x + stride * p
            heights, slopes = rise(x, powers)
            return x, p + 0.5 * stride * slopes, heights, slopes

        rise = jax.vmap(jax.value_and_grad(height, has_aux=True))
        noise, uniform = jax.random.split(key)
        momentum = jax.random.normal(noise, at.shape)
        old, slopes = rise(at, powers)
        x, p, new, _ = jax.lax.fori_loop(0, steps, leap, (at, momentum, old, slopes))
        gain = new[0] - old[0] + 0.5 * (momentum**2 - p**2).sum(1)
        rate = jnp.where(jnp.isfinite(gain), jnp.exp(jnp.minimum(gain, 0)), 0)
        taken = jax.random.uniform(uniform, rate.shape) < rate
        return jnp.where(taken[:, None], x, at), rate, jnp.where(taken, new[1], old[1])

    def move(self, lengths: tuple[int, int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Move every chain by a trajectory; return acceptance rates and log likelihoods."""
        least, most = lengths or self.steps
        steps = int(self.rng.integers(least, most + 1))
        stride = jnp.asarray(np.exp(self.log_step), jnp.float32)[:, None] * self.scale
        key = jax.random.key(int(self.rng.integers(2**31)))
        powers = jnp.asarray(self.powers, jnp.float32)
        self.at, rate, likelihood = self._moved(self.at, powers, stride, key, steps)
        self.gradients += (steps + 1) * len(self.powers)
        return np.asarray(rate), np.asarray(likelihood, np.float64)

    def warm_up(self, count: int, lengths: tuple[int, int] | None = None, *, rescale: bool) -> None:
        """Find step sizes; then scales, by the variance of a variable's (and input's) weights over all units."""
        groups = [np.flatnonzero(self.powers == power) for power in np.unique(self.powers)]
        kept = []
        for number in range(count):
            rates, _ = self.move(lengths)
            for group in groups:
                change = rates[group].mean() - ACCEPTANCE
                self.log_step[group] += change * max(0.1, (1 + number) ** -0.6)
            kept = [*kept, np.asarray(self.at)][-(count // 2) :]
        for group in groups if rescale else ():
            own, sd = (
                np.stack(kept)[:, group].reshape(-1, self.density.size),
                np.ones(self.at.shape[1]),
            )
            for name, places in self.density.places().items():
                for row in places if name == "W1" else [places.ravel()]:
                    sd[row] = own[:, row].std()
            self.scale = self.scale.at[group].set(sd)

    def swap(
        self, likelihood: np.ndarray, ladders: int, turn: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Swap neighbours of every ladder; return the rates of all pairs, and the chain that is now in each place."""
        rungs = len(self.powers) // ladders
        place = np.arange(len(self.powers)).reshape(ladders, rungs)
        heights, rates = likelihood.reshape(ladders, rungs), np.full(rungs - 1, np.nan)
        for low in range(turn % 2, rungs - 1, 2):
            apart = self.powers[low] - self.powers[low + 1]
            chance = np.exp(np.minimum(apart * (heights[:, low + 1] - heights[:, low]), 0))
            rates[low] = chance.mean()
            for ladder in np.flatnonzero(self.rng.uniform(size=ladders) < chance):
                place[ladder, [low, low + 1]] = place[ladder, [low + 1, low]]
        self.at = self.at[place.ravel()]
        return rates, place.ravel()


def trips(visits: np.ndarray, rungs: int) -> int:
    """Count journeys of chains from the hottest place to the coldest, of the chains in every place (turn, place)."""
    count, hot = 0, set()
    for chains in visits:
        hot |= set(chains[rungs - 1 :: rungs])
        count += len(hot & set(chains[::rungs]))
        hot -= set(chains[::rungs])
    return count


def threshold(values: np.ndarray) -> float:
    """The number that divides values into two groups with the least variance within them."""
    ordered = np.sort(values.ravel())
    below = np.arange(1, len(ordered))
    low, total = np.cumsum(ordered)[:-1], ordered.sum()
    between = (low / below - (total - low) / below[::-1]) ** 2 * below * below[::-1]
    best = int(between.argmax())
    return float(ordered[best : best + 2].mean())


def weights(f: np.ndarray, limits: dict[int, float]) -> pd.DataFrame:
    """Weight of the upper state at points, with its error, of draws (chain, draw, point)."""
    upper = np.stack([f[..., point] > limit for point, limit in limits.items()], -1).astype(float)
    table = summary(Draws(tuple(map(str, limits)), upper))[["mean", "mcse_mean", "ess_bulk"]]
    own = upper.mean(1)
    table["spread"] = own.std(0, ddof=1) / len(own) ** 0.5
    table["error"] = table[["mcse_mean", "spread"]].max(axis=1)
    half = upper.shape[1] // 2
    table["first_half"], table["second_half"] = (
        upper[:, :half].mean((0, 1)),
        upper[:, half:].mean((0, 1)),
    )
    table["crossings"] = np.abs(np.diff(upper, axis=1)).sum((0, 1)).astype(int)
    table["rhat_of_f"] = summary(Draws(tuple(map(str, limits)), f[..., list(limits)]))["rhat"]
    return table.assign(threshold=list(limits.values()))


def main() -> None:
    """Sample for some minutes, and write draws of the function and the weights of its states."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sampler", choices=["chains", "ladders"])
    parser.add_argument("--split", type=int, default=9)
    parser.add_argument("--chains", type=int, default=32, help="chains, or ladders")
    parser.add_argument("--rungs", type=int, default=24)
    parser.add_argument("--hottest", type=float, default=0.35)
    parser.add_argument("--steps", type=int, nargs=2, default=[512, 1536], help="of a trajectory")
    parser.add_argument("--warmup", type=int, default=240, help="trajectories")
    parser.add_argument(
        "--minutes", type=float, default=25.0, help="of the processor, warmup included"
    )
    parser.add_argument("--points", type=int, nargs="*", default=[70, 84, 95])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="a file .npz")
    options = parser.parse_args()
    data = boston_split(0, options.split)
    model = relu_network(data.train, 50, "free")
    density = NetworkDensity.of(model.condition(data.train.x, data.train.y, name="boston"))
    rungs = options.rungs if options.sampler == "ladders" else 1
    powers = np.tile(np.geomspace(1, options.hottest, rungs) if rungs > 1 else 1.0, options.chains)
    chains, begun = Chains(density, powers, options.steps, options.seed), time.process_time()
    quarter = options.warmup // 4
    chains.warm_up(quarter, FIRST, rescale=False)
    chains.warm_up(quarter, FIRST, rescale=True)
    chains.warm_up(quarter, rescale=True)
    chains.warm_up(quarter, rescale=False)
    values = jax.jit(jax.vmap(density.constrain))
    f, sigma, rates, visits, who = [], [], [], [], np.arange(len(powers))
    while time.process_time() - begun < 60 * options.minutes:
        _, likelihood = chains.move()
        if rungs > 1:
            swaps, place = chains.swap(likelihood, options.chains, len(f))
            who = who[place]
            rates.append(swaps)
            visits.append(who)
        draws = {name: np.asarray(v)[None] for name, v in values(chains.at[::rungs]).items()}
        function, noise = predict_with_noise(model, draws, data.test.x)
        f.append(function[0, :, :, 0])
        sigma.append(noise[0, :, 0, 0])
    function, noise, y = np.stack(f, 1), np.stack(sigma, 1), data.test.y[:, 0]
    there = ((function.mean(1) - y) ** 2).mean(1) < 1
    function, noise = function[there], noise[there]
    rhat = summary(Draws(tuple(map(str, range(function.shape[2]))), function))["rhat"]
    points = sorted({*options.points, *map(int, rhat.nlargest(5).index)})
    table = weights(function, {p: threshold(function[..., p]) for p in points})
    log_likelihood = -0.5 * ((y - function) / noise[..., None]) ** 2 - np.log(
        noise[..., None] * (2 * np.pi) ** 0.5
    )
    scores = pointwise_log_score(log_likelihood), (function.mean((0, 1)) - y) ** 2
    rest = np.setdiff1d(np.arange(len(y)), np.flatnonzero(rhat > 1.05))
    found = {
        "settings": {k: str(v) for k, v in vars(options).items()},
        "versions": {"onebasin": ob.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "draws": function.shape[:2], "gradients": chains.gradients,
        "seconds": time.process_time() - begun, "step": np.exp(chains.log_step[:rungs]).tolist(),
        "rhat": [float(rhat.max()), float(rhat.median())], "above_1.05": int((rhat > 1.05).sum()),
        "trips": trips(np.stack(visits), rungs) if rungs > 1 else None,
        "swaps": np.nanmean(rates, 0).tolist() if rungs > 1 else None,
        "log_score": [float(scores[0].mean()), float(scores[0][rest].mean())],
        "mse": [float(scores[1].mean()), float(scores[1][rest].mean())],
        "weights": json.loads(table.to_json(orient="index")),
    }  # fmt: skip
    np.savez_compressed(options.out, f=function.astype(np.float32), sigma=noise)
    options.out.with_suffix(".json").write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )
    print(
        table.round(3).to_string(),
        json.dumps({k: v for k, v in found.items() if k != "weights"}),
        sep="\n",
    )


if __name__ == "__main__":
    main()
