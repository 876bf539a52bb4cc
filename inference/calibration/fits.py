"""Many simulations by one compiled program: ADVI and symmetrised variational inference on NumPyro.

Objectives, starts, keys, optimiser and stopping rule are those of `advi` and `symmetrised_vi` with one fit. Fits go on
side by side until all have settled; of each, what it was when it settled is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, override

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.models.target import Target

from ..contracts.method import Method, weighs
from ..mcmc.hmc import Hmc
from ..mcmc.nuts import Nuts
from ..microcanonical.mclmc import Mclmc
from ..variational.advi import Advi
from ..variational.engine import Begun, State, annealed, has_settled, most_steps, planned
from ..variational.result import draw_fit
from ..variational.symmetrised import Symmetrised
from .compiled import Compiled, CompiledChains, Stacked, traced
from .drawn import SimulationDraws
from .family import Family


def together(family: Family, method: Method) -> Compiled | None:
    """One compiled program for all simulations, where there is one for the method."""
    if family.model is None:
        return None
    if (
        weighs(method, is_network=hasattr(family.model, "network"))
        or getattr(method, "init", None) == "fit"
    ):
        return None  # weights take a loop of their own
    if isinstance(method, Nuts | Hmc | Mclmc):
        return CompiledChains(family, method)
    if isinstance(method, Advi | Symmetrised) and method.batch_size is None:
        return CompiledFits(family, method)
    return None


class CompiledFits(Compiled):
    """Fits approximations of many simulations."""

    @override
    def infer(self, data: Stacked, seeds: np.ndarray) -> list[SimulationDraws]:
        params, failed = self._trained(data, seeds)
        draws = self._draw(data, seeds, params)
        draws = {name: np.asarray(values, np.float64) for name, values in draws.items()}
        return [
            SimulationDraws(failure="the ELBO is not finite")
            if failed[i]
            else SimulationDraws({n: v[i][None] for n, v in draws.items()}, independent=True)
            for i in range(len(seeds))
        ]

    @override
    def prepare(self, like: Target, data: Mapping[str, np.ndarray]) -> None:
        s = self.settings
        one = replace(s, fits=1) if isinstance(s, Symmetrised) else s
        plan = planned(like, one)

        def began(data: Mapping[str, jax.Array], seed: jax.Array) -> Begun:
            return plan.on(traced(self.family, like, data)).begin(seed)

        def first(data: Any, seed: jax.Array) -> State:
            return began(data, seed).state

        def advance(data: Any, seed: jax.Array, state: State, done: Any, num: Any) -> Any:
            begun = began(data, seed)
            state = begun.elbo.stepped(state, done, num)
            key = begun.evaluations
            if begun.elbo.information is not None:
                key = jax.random.fold_in(key, done)
            both = jax.vmap(lambda p: jnp.stack(begun.elbo.evaluate(key, p)))(state.params)
            return state, both[0]

        def draw(data: Any, seed: jax.Array, params: Any) -> Any:
            elbo, _, _, keys = began(data, seed)
            density, num = elbo.density, self.settings.draws
            return draw_fit(density, elbo.family, params, keys[0], num)[0]

        self._first = jax.jit(jax.vmap(first))
        self._advance = jax.jit(jax.vmap(advance, in_axes=(0, 0, 0, None, None)))
        self._draw = jax.jit(jax.vmap(draw))

    def _trained(self, data: Stacked, seeds: np.ndarray) -> tuple[Any, np.ndarray]:
        """Parameters of every fit as it settled, and which fits failed."""
        steps, every = most_steps(self.settings), self.settings.evaluate_every
        wait = annealed(self.settings.anneal, steps)
        state = self._first(data, seeds)
        trace = np.zeros((0, len(seeds)))
        settled = np.zeros(len(seeds), bool)

        def either(settled: np.ndarray, old: jax.Array, new: jax.Array) -> jax.Array:
            """Return the old values (fit, ...) of fits that had settled, and the new values of others."""
            return jnp.where(settled.reshape(-1, *[1] * (old.ndim - 1)), old, new)

        kept = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
        for done in range(0, steps, every):
            if done >= wait:
                settled |= [
                    has_settled(list(column), self.settings.tolerance) for column in trace.T
                ]
            if settled.all():
                break
            state, both = self._advance(data, seeds, state, done, min(every, steps - done))
            trace = np.vstack([trace, np.asarray(both, np.float64).sum(axis=1)])
            now = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
            kept = jax.tree.map(partial(either, settled), kept, now)
            settled |= ~np.isfinite(trace[-1])
        leaves = [np.asarray(leaf).reshape(len(seeds), -1) for leaf in jax.tree.leaves(kept)]
        return kept, ~np.isfinite(np.concatenate(leaves, axis=1)).all(axis=1)
