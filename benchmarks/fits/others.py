"""NUTS of other packages on the same gradients: `python -m benchmarks.fits.others`.

nutpie's with its three metrics (`diag`: by draws and gradients; `draw_diag`: by draws, as Stan's; `low_rank`), and
WALNUTS, whose steps adapt within a trajectory, by `owalnuts` where that is installed.
Four chains of 1,000 + 1,000 from random points within two of zero. ESS is the smallest bulk ESS of a parameter, per
gradient with those of the warmup. Of targets with known moments also the largest misses of a mean (in sds) and an sd.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from onebasin.base.processes.libraries import prepare_jax

from .__main__ import programs
from .claims import distance, moments

Gradient = Callable[[np.ndarray], tuple[float, np.ndarray]]
METRICS = ("draw_diag", "diag", "low_rank")
CHAINS, ITERATIONS = 4, 1000


def by_nutpie(at: Gradient, size: int, metric: str, seed: int) -> tuple[np.ndarray, int]:
    """Return vectors (chain, draw, param), and the gradients that they took."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    rng, vectors, gradients = np.random.default_rng(seed), [], 0
    for number in range(CHAINS):
        start = rng.uniform(-2, 2, size)
        compiled = from_pyfunc(
            size, lambda: at, lambda *_: lambda vector: {"vector": vector}, [np.dtype(np.float64)], [(size,)],
            ["vector"], make_initial_point_fn=lambda _, start=start: start,
        )  # fmt: skip
        trace = nutpie.sample(
            compiled, chains=1, cores=1, seed=100 * seed + number, tune=ITERATIONS, draws=ITERATIONS,
            adaptation=metric, target_accept=0.8, maxdepth=10, save_warmup=True, progress_bar=False,
        )  # fmt: skip
        vectors.append(trace["posterior"]["vector"].values[0])
        for group in ("sample_stats", "warmup_sample_stats"):
            gradients += int(trace[group]["n_steps"].sum())
    return np.stack(vectors), gradients


def by_walnuts(at: Gradient, size: int, seed: int) -> tuple[np.ndarray, int]:
    """Return the same by `owalnuts`, with its own settings."""
    import owalnuts

    found = owalnuts.sample(
        at, dim=size, chains=CHAINS, warmup=ITERATIONS, draws=ITERATIONS, seed=seed, init="uniform"
    )
    return np.asarray(found.samples), int(found.health()["target_calls"])


def measured(target: Any, sampler: str, seed: int) -> tuple[float, float, dict[str, np.ndarray]]:
    """ESS of the worst parameter per gradient, its R-hat, and all draws."""
    import jax

    from onebasin.analysis.summaries.summary import summary
    from onebasin.base.precision import precision
    from onebasin.inference.density.counted import CountedDensity
    from onebasin.inference.density.network import density_of
    from onebasin.posteriors.draws import Draws

    with precision("float64"):
        counted = CountedDensity(density_of(target))
        slope = jax.jit(jax.value_and_grad(counted.density.log_density))

    def at(vector: np.ndarray) -> tuple[float, np.ndarray]:
        with precision("float64"):  # of this thread, which may be the package's
            height, slopes = slope(vector)
            return float(height), np.asarray(slopes)

    how = (by_walnuts, ()) if sampler == "walnuts" else (by_nutpie, (sampler,))
    vectors, gradients = how[0](at, counted.size, *how[1], seed)
    with precision("float64"):
        values = counted.constrain(vectors.reshape(-1, counted.size))
    flat = np.concatenate([v.reshape(*vectors.shape[:2], -1) for v in values.values()], axis=-1)
    table = summary(Draws(tuple(map(str, range(flat.shape[2]))), flat))
    return float(table["ess_bulk"].min()) / gradients, float(table["rhat"].max()), values


def targets(words: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, target and known moments, if any."""
    from . import simulated

    for name, target in programs(words):
        yield name, target, None
    for name in simulated.MODELS:
        if any(word in name for word in words):
            yield name, simulated.target(name), moments(simulated.known_draws(name))


def main() -> None:
    """Run, and print a line a target and sampler: gain over the first sampler, and R-hat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    prepare_jax()
    samplers = (*METRICS, "walnuts") if find_spec("owalnuts") else METRICS
    for name, target, known in targets(options.words):
        first = None
        for sampler in samplers:
            ess, rhat, values = measured(target, sampler, options.seed)
            first = first or ess
            misses = (
                ""
                if known is None
                else "misses {:.3f} {:.3f} {:.3f}".format(*distance(moments(values), known))
            )
            print(
                f"{name:24} {sampler:10} {ess / first:6.2f} R-hat {rhat:.3f} {misses}", flush=True
            )


if __name__ == "__main__":
    main()
