"""All methods against the exact posteriors: samplers within Monte Carlo error, bounds on their side.

Approximations are not held to be near, but to what they promise; how near they come is recorded
(docs/explanations/exact-cases.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize

import onebasin as ob
from onebasin import diagnose

from .case import Case
from .cases import case
from .measure import LEAST_ESS, MOST_ERRORS, bound, compare, differences, least_ess
from .methods import APPROXIMATIONS, FITTED, SAMPLERS, Job, jobs

pytestmark = pytest.mark.full

BOUNDED = (*FITTED, "symmetrised VI")
FAR = 4.0
"""Standard deviations that a mean may be off; of a fit that is farther away, `diagnose` has to say so."""
NOISE = 0.02
"""Nats that the best Gaussian may lie below a fit: errors of its quadrature."""


def _methods(names: Iterable[str]) -> list:
    """Methods, each with all of its cases, marked where they need Stan."""
    stan = [name.endswith("stan") or name == "Pathfinder" for name in names]
    return [
        pytest.param(name, marks=[pytest.mark.stan, pytest.mark.cmdstan] if needed else [])
        for name, needed in zip(names, stan, strict=True)
    ]


def _faults(job: Job) -> list[str]:
    """What is wrong with a job's draws."""
    this, tree = case(job.case), job.run()
    check = _of_sampler if job.method in SAMPLERS else _of_approximation
    return [f"{job.name}: {fault}" for fault in check(job, this, tree)]


def _of_sampler(job: Job, this: Case, tree: xr.DataTree) -> Iterator[str]:
    if not least_ess(this, tree) > LEAST_ESS:
        yield f"ESS {least_ess(this, tree):.0f}"
    yield from (str(one) for one in compare(this, tree) if not one.errors < MOST_ERRORS)


def _of_approximation(job: Job, this: Case, tree: xr.DataTree) -> Iterator[str]:
    far = [one for one in differences(this, tree) if not abs(one.bias) < FAR]
    if far and diagnose(tree).verdict != "unusable":
        yield f"far off, and not said to be: {far}"
    of = bound(tree)
    if (of is not None) != (job.method in BOUNDED):
        yield f"bound {of}"
    if of is None:
        return
    value, mcse = of
    evidence = this.exact.log_evidence
    if not value < evidence + 5 * mcse + this.exact.error:
        yield f"{value} above the evidence {evidence}"
    if job.method == "symmetrised VI":
        fit = tree["variational"]
        plain, lower = fit["final_elbo"].values, fit["symmetrised_elbo_lower"].values
        if not (plain <= lower + 5 * fit["information_lower_mcse"].values).all():
            yield f"symmetrised ELBO {lower} below the ELBO {plain}"
    if job.method.endswith("ADVI numpyro") and this.size < 7:
        reached = best(job, tree)
        if not value < reached + 5 * mcse + NOISE:
            yield f"{value} above the best Gaussian's {reached}"
        if not reached < evidence + NOISE:
            yield f"the best Gaussian's {reached} above the evidence {evidence}"


def best(job: Job, tree: xr.DataTree) -> float:
    """ELBO of the best Gaussian of the family that ADVI was fitted in."""
    fit = tree["variational"]
    scale = fit["scale_tril" if "scale_tril" in fit else "scale"].values
    with jax.enable_x64(True):
        density = ob.jax_density(case(job.case).target(job.chart))
        return best_elbo(density, np.asarray(fit["loc"].values), np.asarray(scale))


def test_nuts_is_exact():
    """One case of those below."""
    assert _faults(Job("free-two-units", case("free-two-units").charts[-1], "nuts numpyro")) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", _methods(SAMPLERS | APPROXIMATIONS))
def test_every_method_is_what_it_promises_in_every_case(method):
    assert [fault for job in jobs([method]) for fault in _faults(job)] == []


REACH = 5.5
STEPS = {1: (0.1, 0.05), 2: (0.25, 0.1), 3: (0.5, 0.25), 4: (0.8, 0.5)}
"""By the number of parameters: steps of the rule in optimisation, and for the reported value."""


def _rule(size: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    count = round(REACH / step)
    one = step * np.arange(-count, count + 1)
    nodes = np.stack([a.ravel() for a in np.meshgrid(*[one] * size, indexing="ij")], 1)
    mass = np.exp(-0.5 * (nodes**2).sum(1))
    kept = mass > 1e-9
    return nodes[kept], mass[kept] / mass[kept].sum()


def best_elbo(density: Any, loc: np.ndarray, scale: np.ndarray) -> float:
    """Return the ELBO in nats of the best Gaussian, from a start with diagonal (param,) or triangular scale (param,
    param).

    With z = m + L e the ELBO of N(m, L L') is E[log p(z)] + log |L| + const, e standard normal; the trapezoidal rule in
    every e computes the expectation. L-BFGS starts from the given Gaussian and finds the optimum in its basin.
    """
    size, full = len(loc), scale.ndim == 2
    rows, columns = np.tril_indices(size, -1)
    diagonal = np.diag(scale) if full else scale
    start = np.concatenate([loc, np.log(diagonal), scale[rows, columns] if full else []])

    def elbo(where: jax.Array, nodes: jax.Array, mass: jax.Array) -> jax.Array:
        m, log_scale, below = where[:size], where[size : 2 * size], where[2 * size :]
        lower = jnp.diag(jnp.exp(log_scale))
        if full:
            lower = lower.at[rows, columns].set(below)
        values = jax.vmap(density.log_density)(m[None, :] + nodes @ lower.T)
        entropy = jnp.sum(log_scale) + 0.5 * size * (1 + jnp.log(2 * jnp.pi))
        return jnp.sum(mass * values) + entropy

    both = jax.jit(jax.value_and_grad(elbo))
    coarse, fine = (tuple(map(jnp.asarray, _rule(size, step))) for step in STEPS[size])

    def loss(where: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = both(jnp.asarray(where), *coarse)
        return -float(value), -np.asarray(gradient, np.float64)

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return float(both(jnp.asarray(found.x), *fine)[0])
