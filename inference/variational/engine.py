"""Variational inference by Adam on an ELBO: ADVI and symmetrised variational inference, for several fits at once.

The objective of a step, in nats, is E_q[log likelihood] - beta (KL(q || prior) - I). The likelihood of a batch is
scaled up to all data, beta rises from 0 to 1 over the annealed share of the steps, and I is the mutual information
that a symmetry adds, 0 for ADVI. Every `evaluate_every` steps, the ELBO of all data and I are estimated with beta 1.
Once beta is 1, the trace of their sum decides when to stop (`has_settled`).

Symmetrised variational inference follows Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q
over the group G has the ELBO of q plus I, the mutual information between a group element and the draw that it moved
(Theorem 4.1). They estimate I by InfoNCE. If q is independent over the parts of a block, I follows from the permanent
of a matrix (`mutual_information`), the default here. Gradients of I are Rao-Blackwellised, and every fit is reported
with an interval for I, whatever the training estimator. The symmetrised ELBO is a bound only if the declared symmetry
holds; every run checks this.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from onebasin.base.errors import AdviFailed, ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.density import Values
from ..contracts.method import Found, Job, one_chain
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.stan_vectors import Density
from ..runs.checkpoint import Keeper, fingerprint, keeper_in
from ..training.ensemble import check_batches
from ..training.train import Batches
from .gaussians import (
    GAUSSIANS,
    GaussianFamily,
    MeanField,
    Parameters,
    SymmetryLayout,
    layout_of,
    sample,
)
from .methods import Advi, Symmetrised
from .term import Information, check_permutations, choose_estimator

WINDOW = 10  # Number of ELBO evaluations whose relative changes decide whether to stop.

Inputs = tuple[jax.Array, jax.Array | None]
"""Key of a step, and rows of its observations (None for all)."""


def has_settled(elbo: Sequence[float], tolerance: float) -> bool:
    """Return whether the mean or the median relative change over the last `WINDOW` evaluations is below `tolerance`.

    This is the rule of Stan's ADVI (Kucukelbir et al. 2017, section 2.6) with a fixed window. For an ELBO below one
    nat the absolute change is used, because log densities have an arbitrary constant.
    """
    if len(elbo) <= WINDOW:
        return False
    last = np.asarray(elbo[-WINDOW - 1 :])
    change = np.abs(np.diff(last)) / np.maximum(np.abs(last[1:]), 1.0)
    return bool(min(change.mean(), np.median(change)) < tolerance)


class State(NamedTuple):
    """The state of training, with a leading axis of fits; `carried` is passed from step to step."""

    params: Parameters
    adam: optax.OptState
    carried: Any


@dataclass(frozen=True)
class Optimised:
    """The result of training."""

    params: Parameters  # (fit, ...).
    iteration: np.ndarray  # Number of finished steps (evaluation,).
    elbo: np.ndarray  # (evaluation, fit).
    information: np.ndarray
    settled: np.ndarray  # Whether each fit met the stopping rule (fit,).
    recorded: list[Parameters]  # Parameters at each evaluation, if requested.


def step_sizes(schedule: str, first: float, steps: int) -> optax.ScalarOrSchedule:
    """Return Adam's step sizes: they fall to a hundredth ("exponential") or to zero ("cosine"), or are "constant"."""
    if schedule == "exponential":
        return optax.exponential_decay(first, steps, 0.01)
    return optax.cosine_decay_schedule(first, steps) if schedule == "cosine" else first


def most_steps(settings: Advi | Symmetrised) -> int:
    """Return the maximum number of steps of the optimiser."""
    return settings.iterations if isinstance(settings, Advi) else settings.steps


def annealed(share: float, steps: int) -> int:
    """Return the number of steps during which the weight of the divergence is below one."""
    return math.ceil(share * steps)


def divergence_weight(number: jax.Array, share: float, steps: int) -> Float[Array, ""]:
    """Return the weight of the divergence at a step, which rises linearly from 0 to 1 over a share of the steps."""
    rising = (number + 1) / max(share * steps, 1.0)
    return jnp.minimum(1.0, rising).astype(jnp.result_type(float))


class TrainingLoop:
    """A compiled loop that trains fits of one family."""

    def __init__(
        self,
        density: Density,
        family: GaussianFamily,
        settings: Advi | Symmetrised,
        seed: int | jax.Array,
        information: Information | None = None,
    ) -> None:
        s = settings
        self.density, self.family, self.settings, self.information = density, family, s, information
        self.steps = most_steps(s)
        self.draws = s.gradient_samples if isinstance(s, Advi) else s.samples
        self.adam = optax.adam(step_sizes(s.schedule, s.learning_rate, self.steps))
        self.batches = Batches(num := density.target.num_obs, s.batch_size or num)
        if information is None:
            self._order_keys = key_for(Purpose.ADVI_BATCHES, seed)
        else:
            self._keys = keys_for(Purpose.FIT_STEPS, seed, s.amount[0])
            self._order_keys = keys_for(Purpose.FIT_BATCHES, seed, s.amount[0])
        self._advance = jax.jit(self.stepped)
        self._evaluate = jax.jit(lambda p, key: jax.lax.map(partial(self.evaluate, key), p))

    def first(self, loc: Float[Array, "fit param"], key: jax.Array) -> State:
        """Return the state before the first step, with means at `loc`; the key gives the noise of ADVI."""
        params = jax.vmap(lambda v: self.family.initial(v, self.settings.init_scale))(loc)
        carried = jax.random.key_data(key)[None] if self.information is None else self._orders(0)
        return State(params, jax.vmap(self.adam.init)(params), carried)

    def run(
        self, state: State, keeper: Keeper, watch: Callable[[int], None], key: jax.Array
    ) -> Optimised:
        """Train until all fits have settled or the steps end."""
        s, every = self.settings, self.settings.evaluate_every
        state, trace = keeper.load((state, []))
        recorded: list[Parameters] = []
        while (done := min(len(trace) * every, self.steps)) < self.steps:
            if done >= annealed(s.anneal, self.steps) and np.all(self._settled(trace)):
                break
            state = self._advance(state, done, min(every, self.steps - done))
            # ADVI compares the ELBO at the same standard normal draws: noise from new draws would hide convergence.
            now = key if self.information is None else jax.random.fold_in(key, done)
            trace.append(np.stack(self._evaluate(state.params, now)))
            after = min(len(trace) * every, self.steps)
            if not np.all(np.isfinite(trace[-1])):
                raise self._failure(trace[-1], done, after)
            if isinstance(s, Advi) and s.trace_parameters:
                recorded.append(state.params)
            keeper.save((state, trace))
            watch(after)
        values = np.stack(trace)
        iteration = np.minimum(np.arange(1, len(trace) + 1) * every, self.steps)
        settled = self._settled(trace)
        return Optimised(state.params, iteration, values[:, 0], values[:, 1], settled, recorded)

    def stepped(self, state: State, done: jax.Array, num: jax.Array) -> State:
        """Run `num` more steps after the first `done`; the caller compiles this."""
        return jax.lax.fori_loop(0, num, lambda i, s: self._step(done + i, s), state)

    def _step(self, number: jax.Array, state: State) -> State:
        carried, inputs = self.prepare(state.carried, number)
        shared = self.information is None or inputs[1] is None  # Else each fit has its own rows.
        slopes = jax.vmap(jax.grad(self.loss), in_axes=(0, None, (0, None if shared else 0)))(
            state.params, number, inputs
        )
        updates, adam = jax.vmap(self.adam.update)(slopes, state.adam)
        return State(optax.apply_updates(state.params, updates), adam, carried)

    def prepare(self, carried: jax.Array, number: jax.Array) -> tuple[jax.Array, Inputs]:
        """Return the carried state and the inputs of a step.

        ADVI carries its key. With a symmetry, each fit has its own key, and the order of observations is carried.
        """
        batched = self.settings.batch_size is not None
        epoch, place = number // self.batches.per_epoch, number % self.batches.per_epoch
        if self.information is None:
            key, key_now = jax.random.split(jax.random.wrap_key_data(carried[0]))
            rows = self.batches.epoch(self._order_keys, epoch)[place] if batched else None
            return jax.random.key_data(key)[None], (key_now[None], rows)
        # Use cond outside vmap, which would run both branches.
        order = jax.lax.cond(place == 0, lambda: self._orders(epoch), lambda: carried)
        keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(self._keys)
        return order, (keys, order[:, place] if batched else None)

    def _orders(self, epoch: jax.Array | int) -> jax.Array:
        """Return rows (fit, batch, obs) of all batches of an epoch; a placeholder if every step uses all data."""
        if self.settings.batch_size is None:
            return jnp.zeros((len(self._keys), 1, 1), jnp.int32)
        return jax.vmap(lambda key: self.batches.epoch(key, epoch))(self._order_keys)

    def loss(self, params: Parameters, number: jax.Array, inputs: Inputs) -> Float[Array, ""]:
        """Return minus the objective of one fit; its derivative is correct, but its value lacks the information."""
        (key, rows), s = inputs, self.settings
        weight = divergence_weight(number, s.anneal, self.steps) if s.anneal else 1.0
        key_draws, key_terms = (key, key) if self.information is None else jax.random.split(key)
        draws = sample(self.family, params, key_draws, self.draws)
        joint = jnp.mean(jax.vmap(self._joint(rows, weight))(draws))
        gain = self._gain(params, key_draws, key_terms, draws)
        return -(joint + weight * (self.family.entropy(params) + gain))

    def _joint(self, rows: jax.Array | None, weight: jax.Array | float) -> Any:
        """Return the log density with a weighted prior and a batch's likelihood scaled up to all data."""
        density = self.density
        if rows is None and not self.settings.anneal:
            return density.log_density

        def weighted(vector: jax.Array) -> jax.Array:
            likelihood = jnp.sum(density.log_likelihood(vector, rows))
            return weight * density.log_prior(vector) + self.batches.weight * likelihood

        return weighted

    def _gain(
        self, params: Parameters, key_draws: jax.Array, key_terms: jax.Array, draws: jax.Array
    ) -> jax.Array | float:
        """Return a term with the same gradient as the information; zero without a symmetry."""
        s = self.settings
        if self.information is None or not isinstance(s, Symmetrised):
            return 0.0
        few = draws[: s.information_draws]
        if s.information_draws > s.samples:
            few = sample(self.family, params, key_draws, s.information_draws)
        return self.information.term(params, key_terms, few)

    def evaluate(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        """Estimate the ELBO of one fit on all data and the information."""
        s = self.settings
        key_draws, key_terms = (key, key) if self.information is None else jax.random.split(key)
        draws = sample(self.family, params, key_draws, s.elbo_samples)
        density = self.density.log_density
        # With batches, evaluate one draw after another, because the data for one may fill the memory.
        batched = s.batch_size is not None
        values = jax.lax.map(density, draws) if batched else jax.vmap(density)(draws)
        elbo = jnp.mean(values) + self.family.entropy(params)
        if self.information is None:
            return elbo, jnp.zeros_like(elbo)
        return elbo, jnp.mean(self.information.value(params, key_terms, draws))

    def _failure(self, values: np.ndarray, before: int, after: int) -> InferenceError:
        """Return the error for values (2, fit) that are not finite."""
        name, rate = self.density.target.name, self.settings.learning_rate
        if self.information is None:
            elbo = float(values[0, 0])
            return AdviFailed(
                f"ADVI (NumPyro) failed on {name!r}: the ELBO is {elbo} after {after} steps. Try a smaller "
                f"`learning_rate` (now {rate}) or another seed.",
                [{"learning_rate": rate, "error": f"ELBO {elbo} at step {after}"}],
            )
        return InferenceError(
            f"Symmetrised VI failed on {name!r}: the ELBO or the information is not finite (ELBO {values[0]}) "
            f"after step {before}. Try a smaller `learning_rate` (now {rate}) or `init_scale`, or another seed."
        )

    def _settled(self, trace: list[np.ndarray]) -> np.ndarray:
        """Return which fits have settled."""
        if not trace:
            return np.zeros(1, bool)
        total = np.stack(trace).sum(axis=1).astype(np.float64)
        tolerance = self.settings.tolerance
        return np.array([has_settled(column, tolerance) for column in total.T.tolist()])


RADIUS = 2.0  # Random initial means are uniform within +-RADIUS.


class Begun(NamedTuple):
    """Fits before their first step: the loop, its state, the key for evaluations, and a key for each fit's draws."""

    elbo: TrainingLoop
    state: State
    evaluations: jax.Array
    draws: jax.Array


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan to train on a target with any seed; ADVI has no `layout` and no `information`."""

    settings: Advi | Symmetrised
    density: Density
    family: GaussianFamily
    layout: SymmetryLayout | None = None
    information: Information | None = None

    @property
    def label(self) -> str:
        """The text of the progress bar."""
        return f"symmetrised VI ({self.information.choice})" if self.information else "ADVI"

    def begin(self, seed: int | jax.Array, start: Mapping[str, Any] | None = None) -> Begun:
        """Make the state before the first step."""
        elbo = TrainingLoop(self.density, self.family, self.settings, seed, self.information)
        if self.information is None:
            steps, evaluations, draws = jax.random.split(jax.random.key(seed), 3)
            first = elbo.first(self._means(seed, start), steps)
            return Begun(elbo, first, evaluations, draws[None])
        keys = keys_for(Purpose.FIT_DRAWS, seed, self.settings.amount[0])
        draws = jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys)
        state = elbo.first(self._means(seed, start), keys)
        return Begun(elbo, state, key_for(Purpose.FIT_EVALUATIONS, seed), draws)

    def _means(self, seed: int | jax.Array, start: Mapping[str, Any] | None) -> jax.Array:
        """Return the initial means (fit, param)."""
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
                f"`init` is 'he', but the target {density.target.name!r} is not a network. Use init='random', or give "
                "`start`."
            )
        return density.random_starts(keys_for(Purpose.POINT, seed, fits), RADIUS)


def planned(
    target: Target, settings: Advi | Symmetrised, progress: Callable[[str], None] | None = None
) -> Plan:
    """Choose the training plan for a target, in the precision of the caller's context."""
    s = settings
    if isinstance(s, Advi):
        check_batches(target, s.batch_size)
        density = numpyro_density_of(target)
        return Plan(s, density, GAUSSIANS[s.family](density.size))
    layout = layout_of(target, progress)
    q = MeanField(layout.density.size)
    choice = choose_estimator(s.mutual_information, layout)
    check_permutations(choice, s.permutations)
    return Plan(s, layout.density, q, layout, Information(layout, q, choice, s))


SIDES = {
    **dict.fromkeys(
        ("elbo", "final_elbo", "symmetrised_elbo", "symmetrised_elbo_lower"),
        "lower bound of the log evidence",
    ),
    "information_lower": "lower bound of the mutual information",
    "information_upper": "upper bound of the mutual information",
    "symmetrised_elbo_upper": "upper bound of the symmetrised ELBO, no bound of the log evidence",
}
"""The kind of bound that each number is, in expectation over draws."""


def found_by_advi(
    job: Job[Advi],
    draws: Mapping[str, Any],
    stats: Mapping[str, Any],
    variational: xr.Dataset,
    *,
    converged: bool,
    steps: int,
    attempts: Sequence[Mapping[str, Any]] = (),
) -> Found:
    """Return a fit of ADVI in the form of `one_chain`, with the number of optimiser steps and the engine's attempts."""
    how: dict[str, Any] = {
        "gradient_evaluations": steps * job.method.gradient_samples,
        "converged": int(converged),
        "attempts": list(attempts),
    }
    if job.start is not None:
        digest = hashlib.sha256()
        for name in sorted(job.start):
            values = np.ascontiguousarray(job.start[name], np.float64)
            digest.update(f"{name}{values.shape}".encode() + values.tobytes())
        how["start"] = digest.hexdigest()
    return replace(one_chain(draws, stats, variational, converged=converged), attributes=how)


def elbo_trace(
    iteration: Sequence[int] | np.ndarray, elbo: Sequence[float] | np.ndarray
) -> dict[str, Any]:
    """Return the trace as variables of the group `variational`."""
    return {
        "iteration": ("evaluation", np.asarray(iteration, dtype=np.int64)),
        "elbo": ("evaluation", np.asarray(elbo, dtype=np.float64)),
    }


def plain(job: Job[Advi], elbo: TrainingLoop, optimised: Optimised, key: jax.Array) -> Found:
    """Return draws of one fit, their statistics, and the group `variational`."""
    params = jax.tree.map(lambda leaf: leaf[0], optimised.params)
    density, family, num = elbo.density, elbo.family, job.method.draws
    draws, lp, log_q = jax.jit(lambda p: draw_fit(density, family, p, key, num))(params)
    described = {n: (d, np.asarray(v)) for n, (d, v) in family.describe(params).items()}
    described |= parameter_traces(family, optimised.recorded)
    trace = elbo_trace(optimised.iteration, optimised.elbo[:, 0])
    return found_by_advi(
        job,
        draws,
        {"lp": lp, "log_q": log_q},
        xr.Dataset(trace | described),
        converged=bool(optimised.settled[0]),
        steps=int(optimised.iteration[-1]),
    )


def symmetrised(
    optimiser: TrainingLoop, optimised: Optimised, seed: int, drawn: jax.Array
) -> Found:
    """Return draws (chain, draw, ...) with the keys `drawn`, their statistics, and the group `variational`."""
    s, params, density = optimiser.settings, optimised.params, optimiser.density
    assert isinstance(s, Symmetrised) and optimiser.information is not None
    keys = keys_for(Purpose.FIT_DRAWS, seed, s.fits)

    def one(both: tuple[Parameters, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
        return draw_fit(density, optimiser.family, *both, s.draws)

    values, lp, log_q = jax.jit(lambda both: jax.lax.map(one, both))((params, drawn))
    report = jax.jit(lambda both: jax.lax.map(lambda one: _reported(optimiser, *one), both))
    final = {name: ("chain", np.asarray(v)) for name, v in report((params, keys)).items()}
    traces = {
        "elbo": optimised.elbo,
        "information": optimised.information,
        "symmetrised_elbo": optimised.elbo + optimised.information,
    }
    variables: dict[str, Any] = {"iteration": ("evaluation", optimised.iteration)}
    variables |= {n: (("chain", "evaluation"), v.T) for n, v in traces.items()}
    variables |= {"settled": ("chain", optimised.settled.astype(np.int8)), **final}
    family = optimiser.family
    dims = {"loc": ("param",)} | {n: axes for n, (_, axes) in family.axes.items()}
    described = jax.vmap(lambda p: {n: v for n, (_, v) in family.describe(p).items()})(params)
    variables |= {n: (("chain", *dims[n]), np.asarray(v)) for n, v in described.items()}
    dataset = xr.Dataset(variables)
    traced = {"exact": "without bias", "lower": "lower bound of it"}[optimiser.information.side]
    dataset["information"].attrs["side"] = f"the mutual information, {traced}"
    for name, side in SIDES.items():
        dataset[name].attrs["side"] = side
    return Found(
        {name: np.asarray(v) for name, v in values.items()},
        {"lp": np.asarray(lp), "log_q": np.asarray(log_q)},
        {
            "gradient_evaluations": int(optimised.iteration[-1]) * s.samples * s.fits,
            "converged": int(np.all(optimised.settled)),
        },
        {schema.VARIATIONAL: dataset},
    )


def draw_fit(
    density: Density, family: GaussianFamily, params: Parameters, key: jax.Array, num: int
) -> tuple[Values, jax.Array, jax.Array]:
    """Draw from a fit: return values (draw, ...) and log densities (draw,) under the target and the fit."""
    vectors = sample(family, params, key, num)
    # Evaluate one draw after another, because the data for one may fill the memory.
    lp = jax.lax.map(density.log_density, vectors)
    values = jax.vmap(lambda v: density.quantities(density.unravel(v)))(vectors)
    return values, lp, family.log_density(params, vectors)


def parameter_traces(
    family: GaussianFamily, recorded: Sequence[Parameters]
) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Return the means and standard deviations (evaluation, param) of one fit, if recorded."""
    if not recorded:
        return {}
    each = [family.describe(jax.tree.map(lambda leaf: leaf[0], p)) for p in recorded]
    dims = ("evaluation", "param")
    loc = np.stack([np.asarray(d["loc"][1]) for d in each])
    sds = [
        np.asarray(d["scale"][1])
        if "scale" in d
        else np.linalg.norm(np.asarray(d["scale_tril"][1]), axis=1)
        for d in each
    ]
    return {schema.LOC_TRACE: (dims, loc), schema.SCALE_TRACE: (dims, np.stack(sds))}


def _reported(optimiser: TrainingLoop, params: Parameters, key: jax.Array) -> dict[str, jax.Array]:
    """Estimate the final numbers of one fit."""
    s, family = optimiser.settings, optimiser.family
    assert isinstance(s, Symmetrised) and optimiser.information is not None
    key_draws, key_terms = jax.random.split(jax.random.fold_in(key, 1))
    draws = sample(family, params, key_draws, s.report_draws)
    values = jax.lax.map(optimiser.density.log_density, draws) + family.entropy(params)
    both = optimiser.information.report(params, key_terms, draws)
    elbo = jnp.mean(values)
    return {
        "final_elbo": elbo,
        "final_elbo_mcse": jnp.std(values, ddof=1) / jnp.sqrt(len(values)),
        "information_lower": both.lower,
        "information_lower_mcse": both.lower_mcse,
        "information_upper": both.upper,
        "information_upper_mcse": both.upper_mcse,
        "symmetrised_elbo_lower": elbo + both.lower,
        "symmetrised_elbo_upper": elbo + both.upper,
    }


def fit(job: Job[Any]) -> Found:
    """Train the fits in parallel, and draw from them."""
    target, s, bars = job.target, job.method, job.bars
    with precision(s.dtype):
        plan = planned(target, s, bars.say)
        begun = plan.begin(job.seed, job.start)

        def mark() -> str | None:
            given = {n: np.asarray(v) for n, v in (job.start or {}).items()}
            return fingerprint(
                target,
                engine=job.engine,
                method=f"{s.label}-{plan.information and plan.information.choice}",
                symmetry=to_json(target.symmetry),
                settings=replace(s, mutual_information="auto"),  # `method` has it.
                seed=job.seed,
                start=None if job.start is None else given,
            )

        bar = bars.add(plan.label, begun.elbo.steps)
        optimised = begun.elbo.run(
            begun.state,
            keeper_in(job.checkpoint, mark),
            lambda done: bars.move(bar, done),
            begun.evaluations,
        )
        if optimised.settled.all():
            bars.move(bar, int(optimised.iteration[-1]), f"{plan.label}, stopping rule met")
        if plan.layout is None:
            return plain(job, begun.elbo, optimised, begun.draws[0])
        found = symmetrised(begun.elbo, optimised, job.seed, begun.draws)

    assert plan.information is not None
    how = {
        "mutual_information": plan.information.choice,
        "information_side": plan.information.side,
        "log_group_order": plan.information.layout.log_order,
    }
    return replace(found, attributes={**how, **found.attributes})
