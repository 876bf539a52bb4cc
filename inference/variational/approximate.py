"""Fits of Gaussians by the engine: ADVI, and symmetrised variational inference, which averages q over a group.

Source of the latter: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the
ELBO of q plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate
I by InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default. Departures: gradients of I are Rao-Blackwellised; every fit
is reported with an interval for I, whatever it was trained with.

Layers' values may be drawn instead of weights (local reparametrisation, `elbo`), as Kurle et al. 2021 train.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.method import Found, Job
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..density.stan_vectors import StanVectors
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from ..training.train import check_batches
from .advi import Advi
from .elbo import Objective, applies_locally
from .engine import State, TrainingLoop
from .gaussians import GAUSSIANS, GaussianFamily, family_of
from .layout import SymmetryLayout, layout_of
from .result import plain, symmetrised
from .symmetrised import Symmetrised
from .symmetry_check import check_fit, check_start
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

    Attributes
    ----------
    settings : Advi or Symmetrised
        Of every fit.
    density, family
        Of the target, and of q.
    local
        Whether layers' values are drawn.
    layout, information
        The symmetry and what it adds; of ADVI None.
    """

    settings: Advi | Symmetrised
    density: NumpyroDensity | StanVectors
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
        """Make the state before the first step.

        Raises
        ------
        ValueError
            If the start does not fit the target.
        """
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
    """Choose what is trained on a target, in the precision of the caller's context.

    Raises
    ------
    ValueError
        If the target has no symmetry where one is needed, or family, estimator and settings do not fit one another or
        the target.
    TypeError
        If single precision is asked for with a Stan program.
    """
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


def fit(job: Job[Any]) -> Found:
    """Train the fits side by side, and draw from them.

    Raises
    ------
    ValueError
        As `planned`, and if the start does not fit.
    TypeError
        If single precision is asked for with a Stan program.
    SymmetryError
        If the log density does not have the declared symmetry.
    InferenceError
        If the ELBO becomes infinite or undefined.
    """
    target, s, bars = job.target, job.method, job.bars
    with precision(s.dtype):
        plan = planned(target, s, bars.say)
        layout = plan.layout
        density = jax.jit(plan.density.log_density)
        evidence = None if layout is None else check_start(target, layout, density)
        begun = plan.begin(job.seed, job.start)
        bar = bars.add(plan.label, s.most_steps)
        optimised = begun.elbo.run(
            begun.state,
            keeper_in(job.checkpoint, lambda: _mark(job, plan)),
            lambda done: bars.move(bar, done),
            begun.evaluations,
        )
        if optimised.settled.all():
            bars.move(bar, int(optimised.iteration[-1]), f"{plan.label}, stopping rule met")
        if layout is None:
            return plain(job, begun.elbo, optimised, begun.draws[0])
        found = symmetrised(begun.elbo, optimised, job.seed, begun.draws)

    def check(tree: xr.DataTree) -> None:
        assert layout is not None and evidence is not None
        with precision(s.dtype):
            seen = check_fit(target, layout, density, tree, evidence)
        tree.attrs[schema.SYMMETRY_EVIDENCE] = seen.to_json()

    assert plan.information is not None
    how = {
        "family": s.family,
        "mutual_information": plan.information.choice,
        "information_side": plan.information.side,
        "log_group_order": plan.information.log_order,
        "local_reparametrisation": plan.local,
    }
    # A network's symmetry follows from its architecture.
    finish = None if target.is_network else check
    return replace(found, attributes={**how, **found.attributes}, finish=finish)


def _mark(job: Job[Symmetrised], plan: Plan) -> str | None:
    """The fingerprint of a fit."""
    s, start, choice = job.method, job.start, plan.information and plan.information.choice
    return fingerprint(
        job.target,
        engine=job.engine,
        method=f"symmetrised-{s.family}-{choice}",
        symmetry=to_json(job.target.symmetry),
        settings=replace(s, family="meanfield", mutual_information="auto"),  # `method` has them
        seed=job.seed,
        start=None if start is None else {n: np.asarray(v) for n, v in start.items()},
    )
