"""Cost of symmetrised variational inference: a training step beside the plain one, and gradients at equal time.

    nice .venv/bin/python benchmarks/symmetrised_elbo.py [--table steps|gradients] [--widths N ...] [--json]

The processor's seconds are measured, of all threads together, which other work on the machine moves less than the wall
clock's; everything that is compared is timed in this one run, turn by turn, and medians of the rounds are taken.

`steps`: one step of Adam for a classifier of 784 inputs, 10 outputs and one hidden layer in float32, 32 samples,
batches of 128, the information from two draws or one; once with weights drawn, once with layers' values drawn (local
reparametrisation). "none" is plain mean-field variational inference.

`gradients`: H parts with 10 features of unit scale, means N(0, delta / 10), so that a transposition has a log ratio of
about -2 delta. The gradient of the mutual information with respect to means and scales, from every choice of
`mutual_information`, is compared with the averaged path gradient on the same draws, with marginals of the exact
permanent for up to 12 parts and of 1,000 weighted permutations for more (so many of them count in the median as
`effective` says; with few, the reference is none). Bias is the norm of the mean difference, and the standard deviation
that of one draw, both relative to the norm of the gradient; the error at equal time is the root of their squares' sum,
with as many draws as fit into the time that ten, or a thousand, draws of "fractional" take. Biases below twice their
`bias_noise` are not known from zero.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from onebasin import Symmetrised
from onebasin.base.precision import precision
from onebasin.inference.mutual_information.estimators import (
    Estimator,
    barber_agakov,
    exact,
    importance,
    infonce,
    information,
)
from onebasin.inference.mutual_information.gradient import path_gradient
from onebasin.inference.mutual_information.messages import training_marginals
from onebasin.inference.mutual_information.ratios import mean_field
from onebasin.inference.runs.provenance import machine, versions
from onebasin.inference.variational.elbo import Objective
from onebasin.inference.variational.engine import TrainingLoop
from onebasin.inference.variational.gaussians import family_of
from onebasin.inference.variational.layout import layout_of
from onebasin.inference.variational.term import Information
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.networks import BayesianNetwork, Categorical, Network

Gradient = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
"""Of a key, draws' standardised noise (draw, part, param), loc and scale: by loc and by scale, one a draw."""

FEATURES = 10
EXACT_UP_TO = 12


def processor(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    jax.block_until_ready(run())
    return time.process_time() - began


def turn_by_turn[K](runs: dict[K, Callable[[], object]], repeats: int) -> dict[K, float]:
    """Median seconds of each, after one call of each for its compilation."""
    for run in runs.values():
        jax.block_until_ready(run())
    rounds = [{name: processor(run) for name, run in runs.items()} for _ in range(repeats)]
    return {name: float(np.median([each[name] for each in rounds])) for name in runs}


def averaged(marginals: Callable[[jax.Array, object], jax.Array]) -> Gradient:
    """The averaged path gradient."""

    def gradient(key: jax.Array, eps: jax.Array, loc: jax.Array, scale: jax.Array) -> tuple:
        draws = loc[None] + scale[None] * eps
        ratios = mean_field(draws, loc, scale)
        return path_gradient(draws, loc, scale, marginals(key, ratios))

    return gradient


def differentiated(estimator: Estimator) -> Gradient:
    """The derivative of an estimator's value through the draws, without a control variate, as one trains with it."""

    def gradient(key: jax.Array, eps: jax.Array, loc: jax.Array, scale: jax.Array) -> tuple:
        def value(loc: jax.Array, scale: jax.Array, key: jax.Array, eps: jax.Array) -> jax.Array:
            ratios = mean_field((loc + scale * eps)[None], loc, scale)
            return information(ratios, estimator(key, ratios), control_variate=False)[0]

        slope = jax.vmap(jax.grad(value, argnums=(0, 1)), in_axes=(None, None, 0, 0))
        return slope(loc, scale, jax.random.split(key, len(eps)), eps)

    return gradient


def of_estimator(estimator: Estimator) -> Gradient:
    """The averaged path gradient with an estimator's marginals."""
    return averaged(lambda key, ratios: estimator(key, ratios).marginals)


def choices(num_parts: int) -> dict[str, Gradient]:
    """Every training gradient."""
    found = {"fractional": averaged(lambda key, ratios: training_marginals(ratios))}
    if num_parts <= EXACT_UP_TO:
        found["exact"] = of_estimator(exact)
    found["importance(10)"] = of_estimator(partial(importance, num_permutations=10))
    found["Barber-Agakov"] = differentiated(barber_agakov)
    for num in (2, 10, 100, 1000):
        found[f"InfoNCE({num})"] = differentiated(partial(infonce, num_permutations=num))
    return found


@dataclass(frozen=True)
class Case:
    """Parts of a benchmark, and how many draws a bias is measured on and a time."""

    num_parts: int
    delta: float
    draws: int
    together: int

    def arrays(self) -> tuple[jax.Array, jax.Array]:
        """Means and scales."""
        rng = np.random.default_rng(self.num_parts)
        loc = rng.standard_normal((self.num_parts, FEATURES)) * np.sqrt(self.delta / FEATURES)
        return jnp.asarray(loc, jnp.float32), jnp.ones((self.num_parts, FEATURES), jnp.float32)

    def noise(self, seed: int, draws: int) -> jax.Array:
        """Standardised draws."""
        shape = (draws, self.num_parts, FEATURES)
        return jax.random.normal(jax.random.key(seed), shape, jnp.float32)


def by_draw(case: Case, gradient: Gradient) -> np.ndarray:
    """Gradients (draw, entry), a few draws at a time."""
    loc, scale = case.arrays()
    pieces = case.noise(1, case.draws).reshape(-1, case.together, case.num_parts, FEATURES)
    keys = jax.random.split(jax.random.key(2), len(pieces))
    compiled = jax.jit(gradient)
    found = [compiled(key, eps, loc, scale) for key, eps in zip(keys, pieces, strict=True)]
    flat = [np.concatenate([np.asarray(a).reshape(len(a), -1) for a in f], 1) for f in found]
    return np.concatenate(flat).astype(float)


def effective(case: Case, estimator: Estimator) -> float:
    """Median effective number of permutations."""
    loc, scale = case.arrays()
    ratios = mean_field(loc + scale * case.noise(1, 16), loc, scale)
    return float(jnp.median(jax.jit(estimator)(jax.random.key(5), ratios).effective))


def mean_square(values: np.ndarray) -> tuple[float, float]:
    """Squared norm of the expectation, without its noise's share, and the variance of one draw."""
    variance = values.var(0, ddof=1).sum()
    return float((values.mean(0) ** 2).sum() - variance / len(values)), float(variance)


def times(case: Case, gradients: dict[str, Gradient], repeats: int) -> dict[str, float]:
    """Seconds a draw of mean gradients."""
    loc, scale = case.arrays()
    eps, key = case.noise(3, case.together), jax.random.key(4)

    def run(gradient: Gradient) -> Callable[[], object]:
        mean = jax.jit(lambda *a: jax.tree.map(lambda g: jnp.mean(g, axis=0), gradient(*a)))
        return lambda: mean(key, eps, loc, scale)

    seconds = turn_by_turn({name: run(g) for name, g in gradients.items()}, repeats)
    return {name: each / case.together for name, each in seconds.items()}


def gradients(case: Case, repeats: int) -> list[dict[str, object]]:
    """Bias, spread, time and error of every choice."""
    marginals = (
        exact if case.num_parts <= EXACT_UP_TO else partial(importance, num_permutations=1000)
    )
    reference = by_draw(case, of_estimator(marginals))
    norm = mean_square(reference)[0]
    found = choices(case.num_parts)
    seconds = times(case, found, repeats)
    count = effective(case, marginals)
    rows = []
    for name, gradient in found.items():
        values = by_draw(case, gradient)
        bias, noise = mean_square(values - reference)
        row = {
            "parts": case.num_parts,
            "delta": case.delta,
            "effective": count,
            "gradient": name,
            "bias": np.sqrt(max(bias, 0.0) / norm),
            "bias_noise": np.sqrt(noise / len(values) / norm),
            "sd": np.sqrt(mean_square(values)[1] / norm),
            "seconds": seconds[name],
        }
        for draws in (10, 1000):
            fitting = draws * seconds["fractional"] / seconds[name]
            row[f"error_{draws}"] = np.sqrt(row["bias"] ** 2 + row["sd"] ** 2 / fitting)
        rows.append(row)
    return rows


STEPS = {False: 3, True: 10}
"""Steps of a round, with and without local reparametrisation."""


def classifier(width: int, rows: int = 1000) -> NetworkTarget:
    """One hidden layer on images of noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(rows, 784)).astype(np.float32)
    model = BayesianNetwork(Network(784, (width,), 10, activation="relu"), likelihood=Categorical())
    return model.condition(x, rng.integers(0, 10, rows))


def training(target: NetworkTarget, choice: str, draws: int, local: bool) -> Callable[[], object]:
    """A few steps from means and scales of early training, compiled."""
    settings = Symmetrised(
        samples=32,
        batch_size=128,
        dtype="float32",
        information_draws=draws,
        local_reparametrisation=local,
    )
    layout = layout_of(target)
    family = family_of("meanfield", layout, 1)
    information = Information(layout, family, choice, settings)
    optimiser = TrainingLoop(Objective(layout.density, family, local), settings, 0, information)
    noise = np.random.default_rng(1).standard_normal((1, layout.density.size))
    state = optimiser.first(jnp.asarray(0.1 * noise, jnp.float32), jax.random.key(0))
    return lambda: optimiser._advance(state, 0, STEPS[local])


CHOICES = ("none", "fractional", "barber_agakov", "importance", "infonce", "bethe", "exact")


def steps(width: int, choices: Sequence[str], repeats: int) -> list[dict[str, object]]:
    """Milliseconds of a step by some choices, and how many plain ones that is."""
    target = classifier(width)
    names = [n for n in CHOICES if n in choices and (n != "exact" or width <= EXACT_UP_TO)]
    trained = [(name, 2) for name in names] + [("fractional", 1)]
    rows = []
    for local in (False, True):
        with precision("float32"):
            runs = {case: training(target, *case, local) for case in trained}
            seconds = turn_by_turn(runs, repeats)
        rows += [
            {
                "width": width,
                "drawn": "values" if local else "weights",
                "choice": name,
                "information_draws": draws,
                "milliseconds": 1000 * each / STEPS[local],
                "times_plain": each / seconds["none", 2],
            }
            for (name, draws), each in seconds.items()
        ]
    return rows


CASES = {8: (8192, 64), 12: (2048, 32), 32: (1024, 16), 128: (256, 4)}
"""Draws that a bias is measured on, and that are timed together, of each number of parts."""

DELTAS = (0.1, 1.0, 3.0, 10.0)


def table(rows: list[dict[str, object]]) -> str:
    """In Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    for row in rows:
        cells = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", choices=["steps", "gradients"], default="steps")
    parser.add_argument("--widths", type=int, nargs="+", help="hidden units, or parts")
    parser.add_argument(
        "--choices", nargs="*", default=CHOICES, choices=CHOICES, help="beside the recommended one"
    )
    parser.add_argument("--repeats", type=int, default=7, help="rounds")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows: list[dict[str, object]] = []
    if chosen.table == "steps":
        for width in chosen.widths or (32, 128, 512):
            rows += steps(width, ("none", "fractional", *chosen.choices), chosen.repeats)
    else:
        for num in chosen.widths or CASES:
            rows += [
                row
                for delta in DELTAS
                for row in gradients(Case(num, delta, *CASES[num]), chosen.repeats)
            ]
    about = {"machine": machine(), "versions": versions()}
    print(json.dumps({"rows": rows} | about) if chosen.json else f"{table(rows)}\n\n{about}")


if __name__ == "__main__":
    main()
