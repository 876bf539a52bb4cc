"""From trained parameters to draws, numbers with their sides, and the group `variational`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ..density.base import Values
from ..keys import Purpose, keys_for
from .gaussian import Parameters
from .optimise import Optimised, Optimiser


def finish(
    optimiser: Optimiser, optimised: Optimised, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], xr.Dataset]:
    """Draws (chain, draw, ...), their statistics, and the group `variational`."""
    s, params = optimiser.settings, optimised.params
    keys = keys_for(Purpose.FIT_DRAWS, seed, s.fits)
    draw = jax.jit(lambda both: jax.lax.map(lambda one: _drawn(optimiser, *one), both))
    values, lp, log_q = draw((params, keys))
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
    draws = {name: np.asarray(v) for name, v in values.items()}
    stats = {"lp": np.asarray(lp), "log_q": np.asarray(log_q)}
    return draws, stats, dataset


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


def _drawn(
    optimiser: Optimiser, params: Parameters, key: jax.Array
) -> tuple[Values, jax.Array, jax.Array]:
    family, density = optimiser.family, optimiser.objective.density
    eps = jax.random.normal(
        jax.random.fold_in(key, 0), (optimiser.settings.draws, family.noise), params["loc"].dtype
    )
    vectors = family.transform(params, eps)
    # One after the other: a pass over all data may fill the memory by itself.
    lp = jax.lax.map(density.log_density, vectors)
    return jax.vmap(density.constrain)(vectors), lp, family.log_density(params, vectors)


def _reported(optimiser: Optimiser, params: Parameters, key: jax.Array) -> dict[str, jax.Array]:
    """The numbers at the end, of one fit."""
    s, family = optimiser.settings, optimiser.family
    key_eps, key_layers, key_terms = jax.random.split(jax.random.fold_in(key, 1), 3)
    eps = jax.random.normal(key_eps, (s.report_draws, family.noise), params["loc"].dtype)
    draws = family.transform(params, eps)
    values = optimiser.elbo_values(params, key_layers, draws)
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
