"""NUTS from the package nutpie (https://github.com/pymc-devs/nutpie), for Stan programs and NumPyro models.

Every chain is a separate nutpie run with its own seed, so it depends only on the run's seed and its number. nutpie
calls the library of a Stan program without Python. For a NumPyro model, or a Stan program with given starts, it calls
the compiled gradient through Python, which takes some tens of microseconds, for one chain at a time. nutpie cannot
continue a chain. An interrupted or a longer chain is drawn again from the start, with the same first draws.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.errors import ArgumentError, InferenceError, RunCancelled
from onebasin.base.precision import precision
from onebasin.base.progress import ChainBar
from onebasin.stan.program import name_draws

from ..contracts.method import NUTPIE, Job, definition_of
from ..density.network import density_of, in_double
from .chains import ChainPlace, Standing
from .nuts import Nuts
from .starts import chain_starts

RADIUS = 2.0  # The `init_radius` that nutpie uses for Stan programs.


def checked(settings: Nuts) -> Nuts:
    """Return the settings if nutpie supports them."""
    allowed = {"metric": "diag", "dtype": "float64", "adapt": True}
    for name, value in allowed.items():
        if (given := getattr(settings, name)) != value:
            raise ArgumentError(
                f"`{name}` is {given!r}, but engine='nutpie' supports only {value!r}. Omit `{name}`, or use "
                "engine='numpyro' or engine='stanli'."
            )
    return settings


STATS = {
    "logp": "lp",
    "mean_tree_accept": "acceptance_rate",
    "step_size": "step_size",
    "depth": "tree_depth",
    "n_steps": "n_steps",
    "diverging": "diverging",
    "energy": "energy",
}
"""nutpie's names of statistics and ArviZ's."""
KINDS = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}
NUDGE = 1e-3  # Change of a start along a coordinate with slope zero.
LOOKS = 10  # Milliseconds between updates of the progress.
_VECTOR = "vector"

Values = dict[str, np.ndarray]


class NutpieChains:
    """Chains of one target, compiled once and called from several threads.

    Making it raises ValueError for settings that nutpie does not support, InferenceError if no starting point has a
    finite log density, and StanError if the program does not compile.
    """

    def __init__(self, job: Job[Nuts]) -> None:
        s = self.settings = checked(job.method)
        given = job.given
        if given is not None and (given.inverse_metric is not None or given.step_size is not None):
            raise ArgumentError(
                "`engine` is 'nutpie', which accepts no step size or metric. Use engine='numpyro', 'stanli' or "
                "'cmdstan'."
            )
        self.job, self.bars = job, job.bars
        by_itself = given is None and (s.init, s.init_radius) == ("random", RADIUS)
        by_stan = definition_of(job.target, NUTPIE.name) == "stan" and by_itself
        self.model: _Model = (_StanModel if by_stan else _VectorModel)(job, s)

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        s, number = self.settings, place.number
        place.start = self.model.start(number)
        began = time.perf_counter()
        watch = _Watch(self.bars.chain(number, warmup=s.warmup, draws=s.draws, done=0))
        trace = self._sampled(number, watch, cancel)
        took = time.perf_counter() - began
        warmed = s.warmup if s.save_warmup else 0
        if warmed:
            place.put(0, *self._taken(trace, "warmup_"))
        draws, stats = self._taken(trace)
        there = 0 if place.standing is None else place.standing.draws
        rest = [{n: v[there:] for n, v in part.items()} for part in (draws, stats)]
        place.put(warmed + there, *rest)
        sampling = max(0.0, (watch.seconds or took) - watch.warmup_seconds)
        place.finish(Standing(s.draws, watch.warmup_seconds, sampling))
        watch.bar.end(
            took,
            acceptance=float(stats["acceptance_rate"].mean()),
            step_size=float(stats["step_size"][-1]),
            divergences=int(stats["diverging"].sum()),
        )

    def _taken(self, trace: Any, phase: str = "") -> tuple[Values, Values]:
        """Return the draws and statistics of the warmup ("warmup_") or of the sampling phase ("")."""
        draws = self.model.draws(_of_chain(trace[f"{phase}posterior"]))
        found = _of_chain(trace[f"{phase}sample_stats"])
        return draws, {n: found[own].astype(KINDS.get(n, np.float64)) for own, n in STATS.items()}

    def _sampled(self, number: int, watch: _Watch, cancel: threading.Event) -> Any:
        """Return nutpie's result for a chain."""
        import nutpie

        s = self.settings
        sampler = nutpie.sample(
            self.model.compiled(number),
            chains=1,
            cores=1,
            seed=int(np.random.SeedSequence([self.job.seed, number]).generate_state(1)[0]),
            tune=s.warmup,
            draws=s.draws,
            target_accept=s.target_acceptance,
            maxdepth=s.max_tree_depth,
            save_warmup=s.save_warmup,
            progress_bar=False,
            progress_callback=watch,
            progress_rate=LOOKS,
            blocking=False,
        )
        while True:
            try:
                return sampler.wait(timeout=LOOKS / 1000)
            except TimeoutError:
                if cancel.is_set():
                    sampler.cancel()
                    raise RunCancelled("The chain was stopped.") from None
            except RuntimeError as error:
                words = (str(error).splitlines() or ["no message"])[0].rstrip(".")
                raise InferenceError(
                    f"nutpie failed on {self.job.target.name!r} ({words}). Check the data and the prior, or use "
                    "another engine."
                ) from error


class _StanModel:
    """A Stan program whose library nutpie calls directly."""

    def __init__(self, job: Job[Nuts], settings: Nuts) -> None:
        from nutpie import _lib
        from nutpie.compile_stan import CompiledStanModel

        from onebasin.stan.choice import CMDSTAN
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition

        program = definition(job.target)
        library = open_library(program, engine=CMDSTAN, threads=True, progress=job.bars.say)
        self._job = job
        self._parts = CompiledStanModel(
            dims={},
            _coords={},
            code="",
            data=dict(program.data),
            library=_lib.StanLibrary(str(library.file)),
            model=None,
        )

    def start(self, number: int) -> Values:
        """Return nothing, because nutpie chooses the start of a chain."""
        del number
        return {}

    def compiled(self, number: int) -> Any:
        """Return the model that nutpie samples; random numbers in `transformed data` are the same for all chains."""
        del number
        return self._parts.with_data(seed=self._job.seed)

    def draws(self, variables: Values) -> Values:
        """Return draws of all parameters and derived quantities."""
        return name_draws(self._job.target, variables)


class _VectorModel:
    """A NumPyro model, or a Stan program with given starts, whose compiled gradient nutpie calls through Python."""

    def __init__(self, job: Job[Nuts], settings: Nuts) -> None:
        with precision("float64"):
            density = self._density = density_of(job.target, job.bars.say)
            self._init = settings.init
            given = job.given
            starts = chain_starts(density, settings, job.seed) if given is None else given.positions
            self._gradient = jax.jit(jax.value_and_grad(density.log_density))
            slopes = np.stack([self._gradient(jnp.asarray(start))[1] for start in starts])
            # nutpie derives its first metric from the gradient, and fails where that is zero.
            self._starts = np.asarray(starts) + NUDGE * (slopes == 0)
            self._constrain = in_double(lambda v: density.quantities(density.unravel(v)))

    def start(self, number: int) -> Values:
        """Return the values at the start of a chain, if a search found it."""
        if self._init == "random":
            return {}
        with precision("float64"):
            values = self._density.constrain(jnp.asarray(self._starts[number]))
        return {name: np.asarray(value) for name, value in values.items()}

    def compiled(self, number: int) -> Any:
        """Return the function of vectors that nutpie samples, with the start of this chain."""
        from nutpie.compiled_pyfunc import from_pyfunc

        size, start = self._starts.shape[1], self._starts[number]
        return from_pyfunc(
            size,
            lambda: self._at,
            lambda *_: lambda vector: {_VECTOR: vector},
            [np.dtype(np.float64)],
            [(size,)],
            [_VECTOR],
            make_initial_point_fn=lambda _: start,
        )

    def draws(self, variables: Values) -> Values:
        """Return draws of all variables and derived quantities."""
        found: Values = self._constrain(variables[_VECTOR])
        return found

    def _at(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        with precision("float64"):  # nutpie calls this in a thread of its own.
            value, gradient = self._gradient(vector)
            return float(value), np.asarray(gradient)


_Model = _StanModel | _VectorModel


class _Watch:
    """Callback that updates a chain's bar, and records the times of the chain and its warmup by nutpie's clock."""

    def __init__(self, bar: ChainBar) -> None:
        self.bar = bar
        self.seconds = self.warmup_seconds = 0.0

    def __call__(self, chains: Any) -> None:
        """Update the progress; nutpie calls this from one of its threads."""
        (chain,) = chains
        self.seconds = chain.runtime_ms / 1000
        if chain.tuning:
            self.warmup_seconds = self.seconds
        divergences = None if chain.tuning else chain.divergences
        self.bar.show(
            chain.finished_draws,
            step_size=chain.step_size,
            acceptance=None,
            divergences=divergences,
        )


def _of_chain(group: Any) -> Values:
    """Return the arrays (draw, ...) of the only chain."""
    return {str(name): array.values[0] for name, array in group.to_dataset().data_vars.items()}
