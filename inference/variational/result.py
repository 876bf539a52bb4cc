"""From trained parameters to draws, numbers with their sides, and the group `variational`.

Fits of Gaussians by the engine: ADVI, and symmetrised variational inference, which averages q over a group.

Source of the latter: Gelberg, van der Ouderaa, van der Wilk and Gal 2024. The average q^G of q over the group G has the
ELBO of q plus I, the mutual information between a group element and the draw that it moved (Theorem 4.1). They estimate
I by InfoNCE; where q is independent over the parts of a block, it follows from the permanent of a matrix
(`mutual_information`), and what is trained here by default. Departures: gradients of I are Rao-Blackwellised; every fit
is reported with an interval for I, whatever it was trained with.

Where the declared symmetry does not hold, which is always tried (`runs.declared`), the symmetrised ELBO is no bound.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.symmetry.blocks import to_json
from onebasin.posteriors import schema

from ..contracts.density import Values
from ..contracts.method import Found, Job, one_chain
from ..density.stan_vectors import Density
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .advi import Advi
from .engine import Optimised, TrainingLoop, planned
from .gaussians import GaussianFamily, Parameters, sample
from .symmetrised import Symmetrised

SIDES = {
    **dict.fromkeys(
        ("elbo", "final_elbo", "symmetrised_elbo", "symmetrised_elbo_lower"),
        "lower bound of the log evidence",
    ),
    "information_lower": "lower bound of the mutual information",
    "information_upper": "upper bound of the mutual information",
    "symmetrised_elbo_upper": "upper bound of the symmetrised ELBO, no bound of the log evidence",
}
"""The bound that each number is, in expectation over draws."""


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
    """Put a fit of ADVI together; `contracts.method.one_chain` describes the arguments.

    `steps` are those that the optimiser took, and `attempts` each attempt, where an engine makes several.
    """
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
    """The trace as variables of the group `variational`."""
    return {
        "iteration": ("evaluation", np.asarray(iteration, dtype=np.int64)),
        "elbo": ("evaluation", np.asarray(elbo, dtype=np.float64)),
    }


def plain(job: Job[Advi], elbo: TrainingLoop, optimised: Optimised, key: jax.Array) -> Found:
    """Draws of one fit, their statistics, and the group `variational`."""
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
    """Draws (chain, draw, ...), their statistics, and the group `variational`; `drawn` are the keys of draws."""
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
    """Draws from a fit: values (draw, ...), their log densities, and those under the fit, (draw,)."""
    vectors = sample(family, params, key, num)
    # One after the other: a pass over all data may fill the memory by itself.
    lp = jax.lax.map(density.log_density, vectors)
    values = jax.vmap(lambda v: density.quantities(density.unravel(v)))(vectors)
    return values, lp, family.log_density(params, vectors)


def parameter_traces(
    family: GaussianFamily, recorded: Sequence[Parameters]
) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Means and standard deviations (evaluation, param) of one fit's parameters (fit, ...); nothing where none are."""
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
    """The numbers at the end, of one fit."""
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
    """Train the fits side by side, and draw from them."""
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
                settings=replace(s, mutual_information="auto"),  # `method` has it
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
