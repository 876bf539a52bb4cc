"""Many simulations by one compiled program: ADVI and symmetrised variational inference on NumPyro.

Objectives, starts, keys, optimiser and stopping rule are those of `advi` and `symmetrised_vi` with one fit. Fits go on
beside one another until all have settled; of each, what it was when it settled is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target

from ..density.numpyro import NumpyroDensity
from ..density.start import random_starts
from ..training.members import he_values
from ..variational.advi import Advi
from ..variational.choice import choose_estimator
from ..variational.elbo import Objective, applies_locally
from ..variational.families.base import Family as Approximation
from ..variational.families.table import GAUSSIANS, family_of
from ..variational.fit import has_settled
from ..variational.layout import layout_of
from ..variational.numpyro import INIT_RADIUS, PlainElbo, check_init
from ..variational.optimise import Optimiser, State
from ..variational.result import draw_fit
from ..variational.symmetrised import Symmetrised
from ..variational.symmetrised_elbo import SymmetrisedElbo
from ..variational.symmetrised_fit import random_means
from ..variational.term import Information
from .compiled import stacked
from .drawn import Drawn, Simulation
from .family import Family
from .traced import traced

Began = tuple[Optimiser, State, jax.Array, jax.Array]
"""An optimiser of one fit, its state, the key of its evaluations and that of its draws."""
Begin = Callable[[NumpyroDensity, jax.Array], Began]


class CompiledFits:
    """Fits approximations of many simulations.

    Parameters
    ----------
    family : Family
        With a model.
    settings : Advi or Symmetrised
        Of each fit.
    """

    def __init__(self, family: Family, settings: Advi | Symmetrised) -> None:
        self.family, self.settings = family, settings
        self._programs: tuple[Any, Any, Any] | None = None

    def __call__(self, simulations: Sequence[Simulation]) -> list[Drawn]:
        """Fit and draw for each simulation."""
        data = stacked([simulation.data for simulation in simulations])
        seeds = np.array([simulation.seed for simulation in simulations], np.int64)
        with precision(self.settings.dtype):
            if self._programs is None:
                self._programs = self._compile(self.family.condition(simulations[0].data))
            params, failed = self._trained(data, seeds)
            draws = self._programs[2](data, seeds, params)
            draws = {name: np.asarray(values, np.float64) for name, values in draws.items()}
        return [
            Drawn(failure="the ELBO is not finite")
            if failed[i]
            else Drawn({n: v[i][None] for n, v in draws.items()}, independent=True)
            for i in range(len(simulations))
        ]

    def _compile(self, like: Target) -> tuple[Any, Any, Any]:
        """Programs that begin fits, advance them and draw from them."""
        begin = self._begin(like)

        def began(data: Mapping[str, jax.Array], seed: jax.Array) -> Began:
            return begin(traced(self.family, like, data), seed)

        def first(data: Any, seed: jax.Array) -> State:
            return began(data, seed)[1]

        def advance(data: Any, seed: jax.Array, state: State, done: Any, num: Any) -> Any:
            optimiser, _, key, _ = began(data, seed)
            state = optimiser.stepped(state, done, num)
            key = jax.random.fold_in(key, done)
            both = jax.vmap(lambda p: jnp.stack(optimiser.evaluate(key, p)))(state.params)
            return state, both[0]

        def draw(data: Any, seed: jax.Array, params: Any) -> Any:
            optimiser, _, _, key = began(data, seed)
            density, q = optimiser.objective.density, optimiser.family  # type: ignore[attr-defined]
            return draw_fit(density, q, params, key, self.settings.draws)[0]

        shared = (0, 0, 0, None, None)
        return (
            jax.jit(jax.vmap(first)),
            jax.jit(jax.vmap(advance, in_axes=shared)),
            jax.jit(jax.vmap(draw)),
        )

    def _trained(self, data: Any, seeds: np.ndarray) -> tuple[Any, np.ndarray]:
        """Parameters of every fit as it settled, and which fits failed."""
        assert self._programs is not None, "compiled before"
        first, advance, _ = self._programs
        steps, every = self._steps, self.settings.evaluate_every
        wait = int(np.ceil(self.settings.anneal * steps))
        state = first(data, seeds)
        trace = np.zeros((0, len(seeds)))
        settled = np.zeros(len(seeds), bool)
        kept = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
        for done in range(0, steps, every):
            if done >= wait:
                settled |= [
                    has_settled(list(column), self.settings.tolerance) for column in trace.T
                ]
            if settled.all():
                break
            state, both = advance(data, seeds, state, done, min(every, steps - done))
            trace = np.vstack([trace, np.asarray(both, np.float64).sum(axis=1)])
            now = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
            kept = jax.tree.map(partial(_either, settled), kept, now)
            settled |= ~np.isfinite(trace[-1])
        leaves = [np.asarray(leaf).reshape(len(seeds), -1) for leaf in jax.tree.leaves(kept)]
        return kept, ~np.isfinite(np.concatenate(leaves, axis=1)).all(axis=1)

    @property
    def _steps(self) -> int:
        s = self.settings
        return s.iterations if isinstance(s, Advi) else s.steps

    def _begin(self, like: Target) -> Begin:
        if isinstance(self.settings, Symmetrised):
            return _symmetrised(like, replace(self.settings, fits=1))
        check_init(like, self.settings)
        return _plain(like, GAUSSIANS[self.settings.family], self.settings)


def _either(settled: np.ndarray, old: jax.Array, new: jax.Array) -> jax.Array:
    """What was kept (fit, ...) of fits that had settled, of others what is new."""
    return jnp.where(settled.reshape(-1, *[1] * (old.ndim - 1)), old, new)


def _plain(like: Target, make: Callable[[int], Approximation], settings: Advi) -> Begin:
    """ADVI; see `variational.numpyro.fit`."""

    def begin(density: NumpyroDensity, seed: jax.Array) -> Began:
        q = make(density.size)
        if settings.init == "he":
            loc = _he(density, seed)
        else:
            loc = random_starts(density, keys_for(Purpose.POINT, seed, 1), INIT_RADIUS)
        key_steps, key_elbo, key_draws = jax.random.split(jax.random.key(seed), 3)
        local = applies_locally(like, q, settings.local_reparametrisation)
        elbo = PlainElbo(
            Objective(density, q, local, keep_noise=True),
            settings,
            key_for(Purpose.ADVI_BATCHES, seed),
        )
        state = elbo.first(loc, settings.init_scale, jax.random.key_data(key_steps)[None])
        return elbo, state, key_elbo, key_draws

    return begin


def _he(density: NumpyroDensity, seed: Any) -> jax.Array:
    """The start of `variational.starts.he_starts`, of one fit."""
    assert isinstance(density.target, NetworkTarget), "asked before"
    key = key_for(Purpose.MEMBER_START, seed)
    return density.unconstrain(he_values(density.target, key))[None]


def _symmetrised(like: Target, settings: Symmetrised) -> Begin:
    """Symmetrised variational inference; see `variational.symmetrised`."""
    layout = layout_of(like)
    q = family_of(settings.family, layout, settings.rank)
    choice = choose_estimator(settings.mutual_information, q, layout)
    information = Information(layout, q, choice, settings)
    known = layout.density
    assert isinstance(known, NumpyroDensity), "a family with a model is NumPyro's"

    def begin(density: NumpyroDensity, seed: jax.Array) -> Began:
        density = replace(density, charts=known.charts)
        local = applies_locally(like, q, settings.local_reparametrisation)
        elbo = SymmetrisedElbo(Objective(density, q, local), information, settings, seed)
        he = settings.init == "he" and like.is_network
        loc = _he(density, seed) if he else random_means(density.size, seed, 1)
        draws = jax.random.fold_in(keys_for(Purpose.FIT_DRAWS, seed, 1)[0], 0)
        return elbo, elbo.start(loc), key_for(Purpose.FIT_EVALUATIONS, seed), draws

    return begin
