"""From trained parameters to draws, numbers with their sides, and the group `variational`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.seeds import Purpose, keys_for
from onebasin.posteriors import schema

from ..contracts.density import Values
from ..contracts.method import Found
from ..density.numpyro import NumpyroDensity
from ..density.stan_vectors import StanVectors
from .families.base import Family, Parameters, sample
from .optimise import Optimised
from .symmetrised_elbo import SymmetrisedElbo

Described = Mapping[str, tuple[tuple[str, ...], jax.Array]]
"""Parameters of a family under their names in files, with their axes."""


def finish(optimiser: SymmetrisedElbo, optimised: Optimised, seed: int) -> Found:
    """Draws (chain, draw, ...), their statistics, and the group `variational`."""
    s, params, density = optimiser.settings, optimised.params, optimiser.objective.density
    keys = keys_for(Purpose.FIT_DRAWS, seed, s.fits)

    def one(both: tuple[Parameters, jax.Array]) -> tuple[Values, jax.Array, jax.Array]:
        p, key = both
        return draw_fit(density, optimiser.family, p, jax.random.fold_in(key, 0), s.draws)

    values, lp, log_q = jax.jit(lambda both: jax.lax.map(one, both))((params, keys))
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
    dims = {
        n: d
        for n, (d, _) in optimiser.family.describe(jax.tree.map(lambda v: v[0], params)).items()
    }
    described = jax.vmap(lambda p: {n: v for n, (_, v) in optimiser.family.describe(p).items()})(
        params
    )
    variables |= {n: (("chain", *dims[n]), np.asarray(v)) for n, v in described.items()}
    dataset = xr.Dataset(variables)
    for name, side in _sides(optimiser.information.side).items():
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


def _sides(traced: str) -> dict[str, str]:
    """What each number bounds, in expectation over draws."""
    words = {"exact": "without bias", "lower": "lower bound of it"}
    evidence = "lower bound of the log evidence"
    return {
        "elbo": evidence,
        "final_elbo": evidence,
        "information": f"the mutual information, {words[traced]}",
        "symmetrised_elbo": evidence,
        "information_lower": "lower bound of the mutual information",
        "information_upper": "upper bound of the mutual information",
        "symmetrised_elbo_lower": evidence,
        "symmetrised_elbo_upper": "upper bound of the symmetrised ELBO, no bound of the log evidence",
    }


def draw_fit(
    density: NumpyroDensity | StanVectors,
    family: Family,
    params: Parameters,
    key: jax.Array,
    num: int,
) -> tuple[Values, jax.Array, jax.Array]:
    """Draws from a fit: values (draw, ...), their log densities, and those under the fit, (draw,)."""
    vectors = sample(family, params, key, num)
    # One after the other: a pass over all data may fill the memory by itself.
    lp = jax.lax.map(density.log_density, vectors)
    values = jax.vmap(lambda v: density.quantities(density.unravel(v)))(vectors)
    return values, lp, family.log_density(params, vectors)


def parameter_traces(
    family: Family, recorded: Sequence[Parameters]
) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Means and standard deviations (evaluation, param) of one fit's parameters (fit, ...); nothing where none are."""
    if not recorded:
        return {}
    each = [family.describe(jax.tree.map(lambda leaf: leaf[0], p)) for p in recorded]
    dims = ("evaluation", "param")
    loc = np.stack([np.asarray(d["loc"][1]) for d in each])
    sds = np.stack([_sds(d) for d in each])
    return {schema.LOC_TRACE: (dims, loc), schema.SCALE_TRACE: (dims, sds)}


def _sds(described: Described) -> np.ndarray:
    """Standard deviations (param,) of a diagonal or of a full covariance."""
    if "scale" in described:
        return np.asarray(described["scale"][1])
    return np.linalg.norm(np.asarray(described["scale_tril"][1]), axis=1)


def _reported(
    optimiser: SymmetrisedElbo, params: Parameters, key: jax.Array
) -> dict[str, jax.Array]:
    """The numbers at the end, of one fit."""
    s, family = optimiser.settings, optimiser.family
    key_eps, key_layers, key_terms = jax.random.split(jax.random.fold_in(key, 1), 3)
    draws = sample(family, params, key_eps, s.report_draws)
    values = optimiser.objective.elbo_values(params, key_layers, draws)
    both = optimiser.information.report(params, key_terms, draws)
    elbo = jnp.mean(values)
    return {
        "final_elbo": elbo,
        "final_elbo_mcse": jnp.std(values, ddof=1) / jnp.sqrt(len(values)),
        "information_lower": both.lower,
        "information_lower_mcse": both.lower_mcse,
        "information_upper": both.upper,
        "information_upper_mcse": both.upper_mcse,
        "information_effective": both.effective,
        "symmetrised_elbo_lower": elbo + both.lower,
        "symmetrised_elbo_upper": elbo + both.upper,
    }
