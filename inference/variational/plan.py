"""The plan of a training: the density, the family and what a symmetry adds, and where fits of each seed begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from onebasin.base.errors import ArgumentError
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.target import Target

from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..density.stan_vectors import Density
from ..training.train import check_batches
from .advi import Advi
from .elbo import Objective, applies_locally
from .engine import State, TrainingLoop
from .gaussians import GAUSSIANS, GaussianFamily, family_of
from .layout import SymmetryLayout, layout_of
from .symmetrised import Symmetrised
from .term import Information, check_permutations, choose_estimator

RADIUS = 2.0
"""Half the width of the interval in which means start where there are no better values."""


class Begun(NamedTuple):
    """Fits before their first step: the engine, its state, the key of its evaluations, and a key of draws a fit."""

    elbo: TrainingLoop
    state: State
    evaluations: jax.Array
    draws: jax.Array


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a training on a target; made once by `planned`, and begun for each seed.

    `local` says whether layers' values are drawn; ADVI has no `layout` and no `information`.
    """

    settings: Advi | Symmetrised
    density: Density
    family: GaussianFamily
    local: bool
    layout: SymmetryLayout | None = None
    information: Information | None = None

    @property
    def label(self) -> str:
        """The text of the progress bar."""
        return f"symmetrised VI ({self.information.choice})" if self.information else "ADVI"

    def on(self, density: NumpyroDensity) -> Plan:
        """The same with the density of other data."""
        if self.layout is not None:
            assert isinstance(self.density, NumpyroDensity), "densities are of one kind"
            density = replace(density, charts=self.density.charts)
        return replace(self, density=density)

    def begin(self, seed: int | jax.Array, start: Mapping[str, Any] | None = None) -> Begun:
        """Make the state before the first step."""
        objective = Objective(self.density, self.family, self.local, frugal=not self.information)
        elbo = TrainingLoop(objective, self.settings, seed, self.information)
        if self.information is None:
            steps, evaluations, draws = jax.random.split(jax.random.key(seed), 3)
            return Begun(
                elbo, elbo.first(self._means(seed, start), steps), evaluations, draws[None]
            )
        keys = keys_for(Purpose.FIT_DRAWS, seed, self.settings.amount[0])
        draws = jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys)
        state = elbo.first(self._means(seed, start), keys)
        return Begun(elbo, state, key_for(Purpose.FIT_EVALUATIONS, seed), draws)

    def _means(self, seed: int | jax.Array, start: Mapping[str, Any] | None) -> jax.Array:
        """Return the means that training starts from, (fit, param)."""
        s, density, fits = self.settings, self.density, self.settings.amount[0]
        if start is not None:
            vector = density.given_start(start)
            return jnp.broadcast_to(vector[None], (fits, *vector.shape))
        if s.init == "he" and isinstance(density, NetworkDensity):
            return density.he_starts(keys_for(Purpose.MEMBER_START, seed, fits))
        if isinstance(s, Symmetrised):
            keys = keys_for(Purpose.FIT_START, seed, fits)
            place = partial(jax.random.uniform, minval=-RADIUS, maxval=RADIUS)
            return jax.vmap(lambda key: place(key, (density.size,)))(keys)
        if s.init == "he":
            raise ArgumentError(
                f"`init` is 'he', but the target {density.target.name!r} is no network; use init='random', or give a "
                "`start`."
            )
        return density.random_starts(keys_for(Purpose.POINT, seed, fits), RADIUS)


def planned(
    target: Target, settings: Advi | Symmetrised, progress: Callable[[str], None] | None = None
) -> Plan:
    """Choose what is trained on a target, in the precision of the caller's context."""
    s = settings
    if isinstance(s, Advi):
        check_batches(target, s.batch_size)
        density = numpyro_density_of(target)
        q = GAUSSIANS[s.family](density.size)
        return Plan(s, density, q, applies_locally(density, q, s.local_reparametrisation))
    layout = layout_of(target, progress)
    q = family_of(s.family, layout, s.rank)
    choice = choose_estimator(s.mutual_information, q, layout)
    check_permutations(choice, s.permutations)
    local = applies_locally(layout.density, q, s.local_reparametrisation)
    return Plan(s, layout.density, q, local, layout, Information(layout, q, choice, s))
