"""The quadrature itself, and the library's densities and charts against it."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from scipy.stats import dirichlet, gamma, norm

import onebasin as ob
from onebasin.studies.permutation_invariant_vi.two_weights import solve, statistics

from .cases import ALL, NETWORKS, case
from .mixtures import CONCENTRATION, COUNTS
from .networks import LIKELIHOODS
from .quadrature import Axis, Exact, axis, entries, integrate

pytestmark = pytest.mark.full

WIDE, LOG, REAL = axis(-16, 16, 64), axis(-7, 2.5, 30), axis(-6, 6, 24)
PLANE = axis(-3, 3, 40, order=6)
UNCONSTRAINED = {
    ("unit-known", "givens"): (WIDE, REAL),
    ("correlation", "correlation"): (axis(-9, 9, 36), LOG),
    ("proportions", "proportions"): (WIDE, WIDE),
    ("free-inferred", "free"): (REAL, REAL, LOG),
    ("unit-known", "givens_seamless"): (PLANE, PLANE, REAL),
    ("unit-known", "unit_vector"): (axis(-6, 6, 40, order=6),) * 2 + (REAL,),
    ("ordered", "ordered"): (axis(-8, 8, 16), axis(-14, 3, 30), axis(-12, 12, 24)),
    ("interval", "interval"): (axis(-8, 8, 16), axis(-8, 8, 16), axis(-12, 12, 24)),
    ("simplex", "simplex"): (axis(-8, 8, 16), axis(-8, 8, 16), axis(-12, 12, 24)),
}
"""Axes of unconstrained vectors, by case and chart; kinks of a ReLU lie anywhere on them."""
QUICK = [pair for pair, axes in UNCONSTRAINED.items() if len(axes) == 2]


def test_integral_of_a_known_density():
    """A normal and a Gamma variable: evidence, moments, quantiles and the joint density are in closed form."""

    def log_density(values):
        return (
            math.log(3) + norm.logpdf(values["x"], 1, 0.5) + gamma.logpdf(values["s"], 3, scale=0.5)
        )

    axes = (axis(-4, 6, 20), axis(0, 15, 30))
    found = integrate(log_density, lambda x, s: ({"x": x, "s": s}, np.zeros(len(x))), axes)
    assert found.log_evidence == pytest.approx(math.log(3), abs=1e-9)
    assert found.error < 1e-9
    assert found.mean(found.values["s"]) == pytest.approx(1.5, abs=1e-7)
    assert found.sd(found.values["x"]) == pytest.approx(0.5, abs=1e-7)
    at = (0.05, 0.5, 0.95)
    for name, truth in (("x", norm(1, 0.5)), ("s", gamma(3, scale=0.5))):
        np.testing.assert_allclose(
            truth.cdf(found.quantiles(found.values[name], at)[0]), at, atol=2e-3
        )
    joint = np.outer(norm.pdf(found.nodes[0], 1, 0.5), gamma.pdf(found.nodes[1], 3, scale=0.5))
    np.testing.assert_allclose(found.marginal(0, 1), joint, atol=1e-9)
    np.testing.assert_array_equal(found.marginal(1, 0), found.marginal(0, 1).T)


def test_axis_has_an_edge_at_every_kink():
    assert axis(-1, 1, 2, kinks=[0.3, 5.0, 1e-12]).edges == (-1, 0, 0.3, 1)
    nodes, weights = Axis((0, 1, 4), order=3).rule()
    assert weights @ nodes**5 == pytest.approx(4**6 / 6, rel=1e-12)


def test_entries_leave_out_what_never_changes():
    factor = np.array([[[1.0, 0.0], [0.2, 0.9]], [[1.0, 0.0], [0.5, 0.8]]])
    assert list(entries({"L": factor, "tau": np.array([1.0, 2.0])})) == [
        "L[1, 0]",
        "L[1, 1]",
        "tau",
    ]


def test_proportions_are_those_of_the_closed_form():
    exact = case("proportions").exact
    truth = dirichlet(COUNTS + CONCENTRATION)
    np.testing.assert_allclose(exact.mass @ exact.values["p"], truth.mean(), rtol=1e-6)
    np.testing.assert_allclose(exact.sd(exact.values["p"][:, 0]), truth.var()[0] ** 0.5, rtol=1e-6)


def test_two_units_are_those_of_the_study():
    """Another quadrature of the same network: the likelihood by five numbers of the data."""
    target = case("free-two-units").target("free")
    other = solve(statistics(target.x[:, 0], target.y[:, 0], 1.0))
    exact = case("free-two-units").exact
    assert exact.log_evidence == pytest.approx(other.log_evidence, abs=1e-5)
    apart = np.abs(np.diff(exact.values["W1"][:, 0], axis=1)[:, 0])
    assert exact.mean(apart) == pytest.approx(other.separation, rel=1e-3)


def _log_densities(name: str, chart: str) -> tuple[np.ndarray, np.ndarray]:
    """The library's log density and ours, at values that carry the posterior's mass."""
    this, rng = case(name), np.random.default_rng(3)
    some = rng.choice(len(this.exact.mass), 40, p=this.exact.mass)
    points = {word: value[some] for word, value in this.exact.values.items()}
    density = ob.jax_density(this.target(chart))

    @jax.jit
    @jax.vmap
    def log_density(values):
        vector = density.unconstrain(values)
        return density.log_density(vector) - density.log_jacobian(vector)

    theirs = log_density(points)
    return np.asarray(theirs), this.log_density(points)


def test_plain_density_is_the_library_s():
    for name in ("unit-known", "correlation"):
        theirs, ours = _log_densities(name, case(name).charts[0])
        np.testing.assert_allclose(theirs, ours, rtol=1e-10, err_msg=name)


@pytest.mark.slow
def test_plain_density_is_the_library_s_in_every_chart():
    pairs = [(name, chart) for name in ALL for chart in case(name).charts]
    for name, chart in pairs:
        if name != "unit-ordered-known":
            theirs, ours = _log_densities(name, chart)
            shift = theirs - ours  # the likelihood of counts leaves out a constant
            np.testing.assert_allclose(shift, 0.0, atol=1e-8, err_msg=f"{name} {chart}")


def unconstrained(name: str, chart: str) -> tuple[Exact, dict[str, np.ndarray]]:
    """The library's density integrated over unconstrained vectors, and the values at its nodes."""
    density = ob.jax_density(case(name).target(chart))
    log_density = jax.jit(jax.vmap(density.log_density))

    def place(*coordinates: np.ndarray):
        return {"vector": np.stack(coordinates, 1)}, np.zeros(len(coordinates[0]))

    found = integrate(
        lambda v: np.asarray(log_density(v["vector"])), place, UNCONSTRAINED[name, chart]
    )
    values = jax.jit(jax.vmap(density.constrain))(found.values["vector"])
    return found, {name: np.asarray(value) for name, value in values.items()}


def _same_both_ways(name: str, chart: str) -> None:
    this = case(name)
    found, values = unconstrained(name, chart)
    # Kinks of the ReLU that no edge of the unconstrained grid meets: 4e-4 nats at most.
    assert found.log_evidence == pytest.approx(this.exact.log_evidence, abs=2e-3), (name, chart)
    there, here = this.quantities(values), this.quantities(this.exact.values)
    assert there.keys() == here.keys()
    for word, value in here.items():
        for power in (1, 2):
            moment = found.mass @ there[word] ** power
            exact = this.exact.mean(value**power)
            assert moment == pytest.approx(exact, rel=2e-3, abs=2e-3), (name, chart, word)


def test_chart_s_jacobian_both_ways():
    """Over the constrained values in NumPy and over the chart's vectors in JAX: one evidence, the same moments."""
    for name, chart in QUICK:
        _same_both_ways(name, chart)


@pytest.mark.slow
def test_chart_s_jacobian_both_ways_in_three_dimensions():
    for name, chart in UNCONSTRAINED.keys() - set(QUICK):
        _same_both_ways(name, chart)


def test_planted_error_in_a_jacobian_moves_the_evidence(monkeypatch):
    from onebasin.models.transforms.transforms import UnconstrainedGivensTransform as Chart

    right = Chart.log_abs_det_jacobian
    monkeypatch.setattr(Chart, "log_abs_det_jacobian", lambda *a, **k: 0.9 * right(*a, **k))
    with pytest.raises(AssertionError):
        _same_both_ways("unit-known", "givens")


@pytest.mark.slow
def test_quadrature_is_fine_enough():
    """Errors are far below the Monte Carlo errors that samplers are held to."""
    for name in ALL:
        found = case(name).exact
        assert found.error < (2e-2 if case(name).size > 3 else 2e-3), name
        assert found.mass.sum() == pytest.approx(1, abs=1e-9), name


def test_every_parametrisation_and_likelihood_has_its_case():
    for way in ("free", "unit", "skip"):
        assert {f"{way}-{word}" for word in LIKELIHOODS} <= set(NETWORKS)
    assert case("unit-known").charts == ("givens", "givens_seamless", "unit_vector")
    assert {case(name).size for name in ALL} == {2, 3, 4, 7}
