"""NUTS by the package nutpie (https://github.com/pymc-devs/nutpie), on Stan programs and NumPyro models.

Every chain is a run of nutpie's with its own seed, so that it depends only on the run's seed and its number. A
Stan program is sampled by its library without Python in between; a NumPyro model, and a Stan program from a given
start, by calls of the compiled gradient, some tens of microseconds each, of which one chain at a time makes one. nutpie
cannot continue amid a chain: what was broken off is started again, and a chain that is to be longer is drawn again,
with the same beginning.
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

RADIUS = 2.0  # Within which nutpie itself starts Stan programs.


def checked(settings: Nuts) -> Nuts:
    """The settings, if nutpie has what they ask for."""
    allowed = {"metric": "diag", "dtype": "float64", "adapt": True}
    for name, value in allowed.items():
        if (given := getattr(settings, name)) != value:
            raise ArgumentError(
                f"`{name}` is {given!r}, but engine='nutpie' has {value!r} alone; leave it out, or use "
                "engine='numpyro' or 'stanli'."
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
"""nutpie's names and ArviZ's."""
KINDS = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}
NUDGE = 1e-3  # By which a start moves along a coordinate in which the density is flat there.
LOOKS = 10  # Milliseconds between looks at how far a chain is.
_VECTOR = "vector"

Values = dict[str, np.ndarray]


class NutpieChains:
    """Runs chains of one target; compiled once, called from several threads.

    ValueError rejects settings that ask for what nutpie does not have; InferenceError says that no starting point of
    finite log density is found, StanError that the program does not compile.
    """

    def __init__(self, job: Job[Nuts]) -> None:
        s = self.settings = checked(job.method)
        given = job.given
        if given is not None and (given.inverse_metric is not None or given.step_size is not None):
            raise ArgumentError(
                "`engine` is 'nutpie', which takes no step size and no metric; use engine='numpyro', 'stanli' or "
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
        """Return the draws and statistics of a phase, "warmup_" or, of the draws, ""."""
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
            # From the run's seed and the chain's number alone.
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
                words = (str(error).splitlines() or ["without a word"])[0].rstrip(".")
                raise InferenceError(
                    f"nutpie failed on {self.job.target.name!r} ({words}); check the data and the prior, or use "
                    "another engine."
                ) from error


class _StanModel:
    """A Stan program by its library, which nutpie loads itself."""

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
        """Nothing: nutpie itself chooses where a chain begins."""
        del number
        return {}

    def compiled(self, number: int) -> Any:
        """Return the model that nutpie samples; `transformed data` has the same random numbers in all chains."""
        del number
        return self._parts.with_data(seed=self._job.seed)

    def draws(self, variables: Values) -> Values:
        """Draws of everything that the program declares after its data."""
        return name_draws(self._job.target, variables)


class _VectorModel:
    """A model by its compiled gradient, which nutpie calls in Python: of NumPyro's, or a Stan program's by its library.

    nutpie's own way to a Stan program begins at random points alone.
    """

    def __init__(self, job: Job[Nuts], settings: Nuts) -> None:
        with precision("float64"):
            density = self._density = density_of(job.target, job.bars.say)
            self._init = settings.init
            given = job.given
            starts = chain_starts(density, settings, job.seed) if given is None else given.positions
            self._gradient = jax.jit(jax.value_and_grad(density.log_density))
            slopes = np.stack([self._gradient(jnp.asarray(start))[1] for start in starts])
            # nutpie takes its first metric from the slope, and fails where that is zero.
            self._starts = np.asarray(starts) + NUDGE * (slopes == 0)
            self._constrain = in_double(lambda v: density.quantities(density.unravel(v)))

    def start(self, number: int) -> Values:
        """Return the values at which a chain begins, if they were looked for."""
        if self._init == "random":
            return {}
        with precision("float64"):
            values = self._density.constrain(jnp.asarray(self._starts[number]))
        return {name: np.asarray(value) for name, value in values.items()}

    def compiled(self, number: int) -> Any:
        """Return the function of vectors that nutpie samples, from the start of a chain."""
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
        """Draws of every variable, and of what follows from them."""
        found: Values = self._constrain(variables[_VECTOR])
        return found

    def _at(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        with precision("float64"):  # which holds for a thread alone, and this is one of nutpie's
            value, gradient = self._gradient(vector)
            return float(value), np.asarray(gradient)


_Model = _StanModel | _VectorModel


class _Watch:
    """Moves the bar of a chain, and notes how long it has taken by nutpie's own clock, and its warmup."""

    def __init__(self, bar: ChainBar) -> None:
        self.bar = bar
        self.seconds = self.warmup_seconds = 0.0

    def __call__(self, chains: Any) -> None:
        """Take in how far the chain is; called by a thread of nutpie's."""
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
    """Arrays (draw, ...) of the only chain."""
    return {str(name): array.values[0] for name, array in group.to_dataset().data_vars.items()}
