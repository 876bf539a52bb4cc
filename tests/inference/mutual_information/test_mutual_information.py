"""Mutual information: exact permanents, messages, log ratios of parts, estimators and their intervals."""

import math
from collections import OrderedDict
from functools import lru_cache, partial
from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from scipy.stats import norm

from onebasin.inference.mutual_information.estimators import (
    Estimate,
    Interval,
    LogRatios,
    exact,
    infonce,
    information,
    layered_interval,
    log_permanent,
    log_permanent_and_marginals,
    log_ratios,
    marginals,
    mean_field,
    permanent_bounds,
    training_marginals,
)


class Parts:
    """H components with D features each, component i at loc_i with scale_i, and draws from them."""

    def __init__(self, loc: np.ndarray, scale: np.ndarray, draws: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.loc, self.scale = loc, scale
        self.draws = loc + scale * rng.standard_normal((draws, *loc.shape))

    def log_density(self, sign: float | np.ndarray = 1.0) -> jax.Array:
        """Return entries (w, i, j) = log q_i(sign u_j), with one sign, or one per feature."""
        loc, scale = (array[None, :, None, :] for array in (self.loc, self.scale))
        terms = norm.logpdf(sign * self.draws[:, None, :, :], loc, scale)
        return jnp.asarray(terms.sum(-1))

    def ratios(self, *, flips: bool = False) -> LogRatios:
        return log_ratios(self.log_density(), self.log_density(-1.0) if flips else None)


def parts(num_parts, delta, *, features=4, draws=50, seed=0):
    """Return components with unequal scales; the mean log ratio of a transposition is about -2 delta."""
    rng = np.random.default_rng(1000 + seed)
    loc = rng.standard_normal((num_parts, features)) * np.sqrt(delta / features)
    return Parts(loc, rng.uniform(0.7, 1.4, (num_parts, features)), draws, seed)


def brute_force(case: Parts, *, flips: bool) -> np.ndarray:
    """Compute l(w) as the explicit sum of q(g w) / q(w) over the group."""
    densities = np.stack([case.log_density(1.0), case.log_density(-1.0)])
    size = densities.shape[-1]
    rows = np.arange(size)
    signs = product((0, 1), repeat=size) if flips else [(0,) * size]
    elements = product(signs, permutations(range(size)))
    terms = [densities[list(sign), :, rows, list(c)].sum(0) for sign, c in elements]
    own = densities[0][:, rows, rows].sum(1)
    return logsumexp(terms, axis=0) - own


def all_permutations(size: int) -> np.ndarray:
    return np.array(list(permutations(range(size))))


def marginals_by_sum(matrix: np.ndarray) -> np.ndarray:
    """Compute P of one matrix by summing over all permutations."""
    each = all_permutations(len(matrix))
    logs = matrix[np.arange(len(matrix)), each].sum(1)
    weights = np.exp(logs - logsumexp(logs))
    found = np.zeros_like(matrix)
    for weight, columns in zip(weights, each, strict=True):
        found[np.arange(len(matrix)), columns] += weight
    return found


def assert_derivative(function, matrix, entries, *, step=1e-05, rtol=1e-06):
    """Compare entries of the gradient with central differences."""
    found = jax.grad(function)(jnp.asarray(matrix))
    for entry in entries:
        bump = np.zeros(matrix.shape)
        bump[entry] = step
        rise = function(jnp.asarray(matrix + bump)) - function(jnp.asarray(matrix - bump))
        np.testing.assert_allclose(2 * found[entry], rise / step, rtol=rtol)


def in_mcse(values: np.ndarray) -> float:
    """Return the mean in units of its standard error."""
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))


RANGES = [1.0, 30.0, 1e3, 1e6]


def by_sum(matrix: np.ndarray) -> float:
    each = all_permutations(len(matrix))
    return logsumexp(matrix[np.arange(len(matrix)), each].sum(1))


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_permanent_and_marginals_are_those_of_the_sum(rng, size):
    matrix = 3 * rng.standard_normal((size, size))
    value, marginals = jax.jit(log_permanent_and_marginals)(jnp.asarray(matrix))
    np.testing.assert_allclose(value, by_sum(matrix), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(marginals, marginals_by_sum(matrix), rtol=1e-10, atol=1e-14)


def test_equal_entries_give_the_number_of_permutations():
    value, marginals = log_permanent_and_marginals(jnp.zeros((11, 11)))
    np.testing.assert_allclose(value, math.lgamma(12), rtol=1e-10)
    np.testing.assert_allclose(marginals, 1 / 11, rtol=1e-10)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_large_ranges_end_at_the_best_assignment(rng, dtype):
    matrices = np.stack([r * rng.uniform(-1, 1, (7, 7)) for r in RANGES])
    value, marginals = jax.jit(jax.vmap(log_permanent_and_marginals))(jnp.asarray(matrices, dtype))
    assert value.dtype == dtype
    assert np.isfinite(value).all() and np.isfinite(marginals).all()
    best = matrices[-1][linear_sum_assignment(-matrices[-1])].sum()
    rtol = 1e-10 if dtype == jnp.float64 else 1e-5
    np.testing.assert_allclose(value[-1], best, rtol=rtol)
    np.testing.assert_allclose(value, [by_sum(m) for m in matrices], rtol=rtol)
    # Entries near the diagonal's end round at 0.06 in single precision at 1e6, and P with them: sums still hold.
    np.testing.assert_allclose(marginals.sum(1), 1.0, rtol=rtol)
    np.testing.assert_allclose(marginals.sum(2), 1.0, rtol=rtol)


MEAN_FIELD = jax.jit(mean_field)
FLIPS = np.array([True, True, False, True])


def wide_parts(seed: int, spread: float, dtype: type) -> list[np.ndarray]:
    """Draws, means and scales of six parts, two of them twins; representable in `dtype`."""
    rng = np.random.default_rng(seed)
    loc = 3.0 + spread * rng.standard_normal((6, 4))
    scale = rng.uniform(0.5, 2.0, (6, 4))
    loc[1], scale[1] = loc[0], scale[0]
    loc, scale = (array.astype(dtype).astype(float) for array in (loc, scale))
    draws = (loc + scale * rng.standard_normal((5, 6, 4))).astype(dtype)
    return [draws, loc, scale]


def naive(draws: np.ndarray, loc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Entry (w, i, j) of log q_i(u_j), by SciPy in double precision."""
    dist = norm(loc[None, :, None], scale[None, :, None])
    return dist.logpdf(draws.astype(float)[:, None]).sum(-1)


def turned(draws: np.ndarray) -> np.ndarray:
    return np.where(FLIPS, -draws, draws)


def assert_same(found: LogRatios, expected: LogRatios, **tolerance: float) -> None:
    for name in ("total", "mean", "flip_probability"):
        if getattr(expected, name) is not None:
            one, other = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(one, other, **tolerance, err_msg=name)
    assert (found.flip_probability is None) == (expected.flip_probability is None)


@pytest.mark.parametrize("flips", [False, True])
def test_mean_field_is_the_density_written_out(flips):
    case = wide_parts(1, 1.0, np.float64)
    plus, minus = naive(*case), naive(turned(case[0]), *case[1:])
    expected = log_ratios(jnp.asarray(plus), jnp.asarray(minus) if flips else None)
    mask = jnp.asarray(FLIPS) if flips else None
    found = MEAN_FIELD(*map(jnp.asarray, case), flips=mask)
    assert_same(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_field_keeps_its_digits_at_any_range(spread, dtype):
    """Log ratios of up to 2e7 nats: errors in proportion to the largest; own entries are exactly zero."""
    case = wide_parts(3, spread, dtype)
    expected = log_ratios(jnp.asarray(naive(*case))).total
    found = MEAN_FIELD(*(jnp.asarray(array, dtype) for array in case)).total
    assert found.dtype == dtype
    unit = np.finfo(dtype).eps
    error = np.abs(np.asarray(found, float) - expected)
    assert (np.diagonal(np.asarray(found), axis1=1, axis2=2) == 0.0).all()
    assert error.max() < 20 * unit * max(np.abs(expected).max(), 20.0)
    # Single entries lose what the squares of their own part and distribution are as numbers.
    size = (((case[0].astype(float) - case[1].mean(0)) / case[2].min()) ** 2).sum(-1)
    assert (error < 20 * unit * (size[:, None, :] + size[:, :, None] + 20.0)).all()


@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_flips_keep_their_digits_in_single_precision(spread):
    case = wide_parts(4, spread, np.float32)
    plus, minus = naive(*case), naive(turned(case[0]), *case[1:])
    expected = log_ratios(jnp.asarray(plus), jnp.asarray(minus))
    found = MEAN_FIELD(*(jnp.asarray(a, np.float32) for a in case), flips=jnp.asarray(FLIPS))
    largest = np.abs(plus).max() + np.abs(minus).max()
    np.testing.assert_allclose(found.total, expected.total, rtol=1e-5, atol=1e-6 * largest)
    own = np.diagonal(np.asarray(found.total), axis1=1, axis2=2)
    truth = np.diagonal(np.asarray(expected.total), axis1=1, axis2=2)
    np.testing.assert_allclose(own, truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("flips", [False, True])
def test_derivatives_are_those_of_the_density_written_out(flips):
    """All three derivatives of a random mean of the entries, against a plain formula's."""
    draws, loc, scale = map(jnp.asarray, wide_parts(5, 1.0, np.float64))
    mask = jnp.asarray(FLIPS) if flips else None
    signs = jnp.where(jnp.asarray(FLIPS), -1.0, 1.0)
    weights = jax.random.normal(jax.random.key(0), (5, 6, 6))

    def plain(draws: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
        def density(u: jax.Array) -> jax.Array:
            standard = (u[:, None, :, :] - loc[None, :, None, :]) / scale[None, :, None, :]
            return jnp.sum(-0.5 * standard**2 - jnp.log(scale)[None, :, None, :], -1)

        ratios = log_ratios(
            density(draws), density(draws * signs[None, None, :]) if flips else None
        )
        return jnp.sum(weights * ratios.total) + jnp.sum(weights * ratios.mean)

    def found(draws: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
        ratios = mean_field(draws, loc, scale, flips=mask)
        return jnp.sum(weights * ratios.total) + jnp.sum(weights * ratios.mean)

    expected = jax.jit(jax.grad(plain, argnums=(0, 1, 2)))(draws, loc, scale)
    mine = jax.jit(jax.grad(found, argnums=(0, 1, 2)))(draws, loc, scale)
    for ours, theirs in zip(mine, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_flips_sum_over_signs():
    """And the mean is that over the sign's posterior, written out."""
    case = parts(2, 1.0, draws=4)
    plus, minus = (np.asarray(case.log_density(sign)) for sign in (1.0, -1.0))
    own = np.diagonal(plus, axis1=1, axis2=2)[:, None, :]
    ratios = case.ratios(flips=True)
    np.testing.assert_allclose(ratios.total, np.log(np.exp(plus) + np.exp(minus)) - own)
    share = np.exp(plus) / (np.exp(plus) + np.exp(minus))
    mean = share * (plus - own) + (1 - share) * (minus - own)
    np.testing.assert_allclose(ratios.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ratios.flip_probability, 1 - share, rtol=1e-9, atol=1e-12)
    assert case.ratios().flip_probability is None
    np.testing.assert_allclose(ratios.log_group_order, math.log(8))


def test_derivative_through_sweeps_is_that_of_finite_differences(rng):
    matrix = rng.standard_normal((4, 4))
    weights = jnp.asarray(rng.standard_normal((4, 4)))

    @jax.jit
    def total(matrix: jax.Array) -> jax.Array:
        return jnp.sum(weights * marginals(matrix, sweeps=4))

    assert_derivative(total, matrix, [(0, 0), (3, 1)])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_training_marginals_are_near_the_exact_ones(dtype):
    """The error of the fraction c, measured: 0.136 at worst; neither the identity nor uniform would do."""
    ratios = parts(8, 5.0, draws=100, seed=3).ratios()
    truth = jax.jit(exact)(jax.random.key(0), ratios).marginals
    found = jax.jit(training_marginals)(jax.tree.map(lambda x: x.astype(dtype), ratios))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, truth, atol=0.15)
    assert np.abs(truth - jnp.eye(8)[None]).max() > 0.5 and np.abs(truth - 1 / 8).max() > 0.5


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3, 1e6])
def test_training_marginals_are_doubly_stochastic_at_any_range(rng, spread, dtype):
    """Columns of any matrix; rows too of matrices below their diagonals, as those of draws from q are."""
    matrix = jnp.asarray(spread * rng.standard_normal((6, 7, 7)), dtype)
    for density in (matrix, -jnp.abs(matrix) * (1.0 - jnp.eye(7, dtype=dtype))[None]):
        found = jax.jit(training_marginals)(log_ratios(density))
        assert found.dtype == dtype and (found >= 0).all()
        np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found.sum(2), 1.0, rtol=1e-5)
    # The last one at the largest ranges is the identity.
    if spread > 1e5:
        np.testing.assert_allclose(found, np.broadcast_to(np.eye(7), found.shape), atol=1e-6)


DRAWS = 6_000
COUNTS = {"infonce2": 2, "infonce": 6, "infonce100": 100}
ESTIMATORS = {n: partial(infonce, num_permutations=k) for n, k in COUNTS.items()}
ESTIMATORS["exact"] = exact
COMPILED = {name: jax.jit(estimator) for name, estimator in ESTIMATORS.items()}


@lru_cache
def case(flips: bool) -> tuple[Parts, LogRatios, np.ndarray]:
    """Parts that overlap, and l(w) by the literal sum."""
    found = parts(4, 4.0, features=1, draws=DRAWS) if flips else parts(4, 1.5, draws=DRAWS)
    return found, found.ratios(flips=flips), brute_force(found, flips=flips)


@lru_cache
def estimate(name: str, flips: bool) -> Estimate:
    """Estimators do not look at `flips`: one compilation serves both."""
    ratios = case(flips)[1]._replace(flip_probability=None)
    return COMPILED[name](jax.random.key(5), ratios)


def errors(name: str) -> np.ndarray:
    """Error of I, draw by draw."""
    found = np.asarray(estimate(name, False).log_sum)
    return case(False)[2][: len(found)] - found


@pytest.mark.parametrize(("size", "flips"), [(1, True), (2, False), (4, True), (7, False)])
def test_exact_is_the_literal_sum(size, flips):
    found = parts(min(size, 5) if flips else size, 1.0, draws=7, seed=size)
    value = jax.jit(exact)(jax.random.key(0), found.ratios(flips=flips)).log_sum
    np.testing.assert_allclose(value, brute_force(found, flips=flips), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["infonce2", "infonce"])
def test_infonce_is_a_lower_bound_in_expectation(name):
    """By more than chance, so that a bound turned round would show."""
    assert in_mcse(-errors(name)) > 5


def test_infonce_rises_to_the_truth():
    """As long as log K is far above the information."""
    few, some, many = map(errors, ("infonce2", "infonce", "infonce100"))
    assert in_mcse(some - few) > 5
    assert in_mcse(many - some) > 5
    assert in_mcse(many) < 5
    np.testing.assert_allclose(many.mean(), 0.0, atol=0.1)


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize("name", ["exact", "infonce"])
def test_control_variate_has_mean_zero_and_takes_noise_away(name, flips):
    found, ratios = estimate(name, flips), case(flips)[1]
    control = np.asarray(found.control)
    assert control.std() > 0.1
    assert abs(in_mcse(control)) < 5
    plain = information(ratios, found, control_variate=False)
    if name == "exact":
        assert information(ratios, found).std() < 0.8 * plain.std()


@pytest.mark.parametrize("delta", [0.0, 0.3, 1e4])
@pytest.mark.parametrize("flips", [False, True])
def test_information_is_between_zero_and_the_groups_order(delta, flips):
    """Equal parts gain nothing without flips, far ones everything; a literal check at both ends."""
    found = parts(4, delta, draws=200)
    found = Parts(found.loc, np.ones_like(found.loc), 200, 3)
    ratios = found.ratios(flips=flips)
    value = information(ratios, jax.jit(exact)(jax.random.key(0), ratios), control_variate=False)
    order = np.log(24) + flips * 4 * np.log(2)
    np.testing.assert_allclose(ratios.log_group_order, order, rtol=1e-12)
    assert -1e-9 < value.mean() < order + 1e-9
    if delta != 0.3:
        np.testing.assert_allclose(value, order if delta else 0.0, atol=1e-9)


def wide(dtype: type) -> jax.Array:
    """Alike, near twins, usual, and far: log densities of ranges up to 1e6."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((5, 6, 6))
    twins = np.kron(np.eye(3), np.ones((2, 2))) * 1e3
    kinds = [0 * noise[0], twins, noise[1], 1e3 * noise[2], 1e6 * noise[3]]
    return jnp.asarray(np.stack(kinds), dtype)


FEW = {"exact": exact, "infonce": partial(infonce, num_permutations=3)}


@pytest.mark.parametrize("name", FEW)
def test_values_and_gradients_are_finite_at_any_range(name):
    """In single precision. P times a cotangent of one is the gradient.

    Flips are taken into the ratios, before any estimator, and tried with the exact one.
    """

    def gradient_of(density: jax.Array, *, flips: bool = False) -> tuple[jax.Array, Estimate]:
        def total(density: jax.Array) -> tuple[jax.Array, Estimate]:
            found = FEW[name](jax.random.key(0), log_ratios(density, -density if flips else None))
            return found.log_sum.sum(), found

        gradient, found = jax.jit(jax.grad(total, has_aux=True))(density)
        assert found.log_sum.dtype == jnp.float32
        for array in (gradient, *jax.tree.leaves(found)):
            assert np.isfinite(array).all()
        return gradient, found

    gradient, found = gradient_of(wide(jnp.float32))
    if name == "exact":
        gradient_of(wide(jnp.float32), flips=True)
    own = np.eye(6)[None] * np.asarray(found.marginals).sum(1)[:, None, :]
    # Single precision: rounded at the scale of a probability, not of the entry.
    np.testing.assert_allclose(gradient, found.marginals - own, atol=2e-6)


def interval(key: jax.Array, ratios: LogRatios, **how: int) -> Interval:
    return layered_interval(key, [ratios], [OrderedDict({0: ratios})], **how)


@pytest.mark.full
def test_few_parts_have_a_closed_interval():
    """The literal sum with the same control variate: both are means over the same draws."""
    case = parts(5, 1.5, draws=300)
    ratios = case.ratios()
    found = interval(jax.random.key(2), ratios)
    assert found.lower == found.upper
    control = [(marginals_by_sum(m) * m).sum() for m in np.asarray(ratios.total)]
    values = np.log(120) - brute_force(case, flips=False) + control
    np.testing.assert_allclose(found.lower, values.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.upper_mcse, values.std(ddof=1) / np.sqrt(300), rtol=1e-9)


@pytest.mark.full
def test_bounds_of_permanents_hold_matrix_by_matrix(rng):
    """A third normal, a third Cauchy, a third near 0 and 1; converged or not."""
    shape = (20, 6, 6)
    near = np.where(rng.uniform(size=shape) < 0.5, 0.0, -30.0) + 1e-3 * rng.standard_normal(shape)
    kinds = [2 * rng.standard_normal(shape), rng.standard_cauchy(shape), near]
    cases = jnp.asarray(np.concatenate(kinds))
    truth = jax.jit(jax.vmap(log_permanent))(cases)
    slack = 1e-9 * np.abs(truth).max()
    for sweeps in (1, 100):
        below, above = jax.jit(jax.vmap(partial(permanent_bounds, sweeps=sweeps)))(cases)
        assert (below <= truth + slack).all() and (below < truth - 0.1).any()
        assert (above >= truth - slack).all() and (above > truth + 0.1).any()


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.3, 1.5, 10.0])
def test_interval_holds_the_truth(delta):
    """Of the same draws, so that the bounds' own bias and noise are all that is left."""
    case = parts(5, delta, draws=600)
    truth = np.log(120) - brute_force(case, flips=False).mean()
    found = interval(jax.random.key(2), case.ratios(), num_permutations=10, max_exact=2)
    assert found.lower < truth + 5 * found.lower_mcse
    assert found.upper > truth - 5 * found.upper_mcse
    assert abs(found.upper - found.lower) < 2.1


@pytest.mark.full
def test_separated_parts_earn_the_whole_group():
    case = parts(5, 1e4, draws=600)
    case = Parts(case.loc, np.ones_like(case.loc), 600, 0)
    found = interval(jax.random.key(0), case.ratios(), num_permutations=10, max_exact=2)
    np.testing.assert_allclose([found.lower, found.upper], np.log(120), rtol=1e-9)
