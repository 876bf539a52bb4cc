"""All methods against the exact posteriors: samplers within Monte Carlo error, bounds on their side.

Approximations are not held to be near, but to what they promise; how near they come is recorded
(docs/explanations/exact-cases.md).
"""

from __future__ import annotations

import pytest

from onebasin import diagnose

from .cases import case
from .measure import LEAST_ESS, MOST_ERRORS, bound, compare, differences, least_ess
from .methods import APPROXIMATIONS, FITTED, SAMPLERS, Job, jobs
from .running import best

BOUNDED = (*FITTED, "symmetrised VI")
FAR = 4.0
"""Standard deviations that a mean may be off; of a fit that is farther away, `diagnose` has to say so."""
NOISE = 0.02
"""Nats that the best Gaussian may lie below a fit: errors of its quadrature."""


def _needs_stan(job: Job) -> list[pytest.MarkDecorator]:
    stan = job.method.endswith("stan") or job.method == "Pathfinder"
    return [pytest.mark.stan] if stan else []


def _jobs(methods) -> list:
    found = list(jobs(methods))
    return [pytest.param(job, id=job.name, marks=_needs_stan(job)) for job in found]


def _hold_sampler(job: Job) -> None:
    this, tree = case(job.case), job.run()
    assert least_ess(this, tree) > LEAST_ESS
    wrong = [one for one in compare(this, tree) if not one.errors < MOST_ERRORS]
    assert wrong == []


@pytest.mark.stan
@pytest.mark.parametrize("name", ["unit-known", "skip-known"])
def test_nuts_is_exact(name):
    _hold_sampler(Job(name, case(name).charts[-1], "nuts stan"))


@pytest.mark.slow
@pytest.mark.parametrize("job", _jobs(SAMPLERS))
def test_sampler_is_exact(job):
    _hold_sampler(job)


def _hold_approximation(job: Job) -> None:
    this, tree = case(job.case), job.run()
    found = differences(this, tree)
    far = [one for one in found if not abs(one.bias) < FAR]
    assert far == [] or diagnose(tree).answer == "unusable"
    of = bound(tree)
    assert (of is not None) == (job.method in BOUNDED)
    if of is None:
        return
    value, mcse = of
    evidence = this.exact.log_evidence
    assert value < evidence + 5 * mcse + this.exact.error
    if job.method == "symmetrised VI":
        fit = tree["variational"]
        plain, lower = fit["final_elbo"].values, fit["symmetrised_elbo_lower"].values
        assert (plain <= lower + 5 * fit["information_lower_mcse"].values).all()
    if job.method.endswith("ADVI numpyro") and this.size < 7:
        reached = best(job, tree)
        assert value < reached + 5 * mcse + NOISE
        assert reached < evidence + NOISE


@pytest.mark.slow
@pytest.mark.parametrize("job", _jobs(APPROXIMATIONS))
def test_approximation_is_on_its_side(job):
    _hold_approximation(job)
