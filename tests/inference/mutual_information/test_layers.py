"""Bounds for two hidden layers against the sum over both layers' permutations, literally on whole networks."""

from functools import lru_cache
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from onebasin.inference.mutual_information.estimators import Estimate, exact, information
from onebasin.inference.mutual_information.interval import layered_interval
from onebasin.inference.mutual_information.ratios import LogRatios, log_ratios

from ...each import each
from .cases import in_mcse

WIDTHS = (2, 4, 4, 1)
EXACT = jax.jit(exact())


class Network:
    """Independent normal weights of a net with two hidden layers; draws from them."""

    def __init__(self, spread: float, draws: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        shapes = {
            "W1": WIDTHS[:2],
            "b1": WIDTHS[1:2],
            "W2": WIDTHS[1:3],
            "b2": WIDTHS[2:3],
            "W3": WIDTHS[2:],
        }
        self.loc = {name: spread * rng.standard_normal(shape) for name, shape in shapes.items()}
        self.scale = {name: rng.uniform(0.4, 0.8, shape) for name, shape in shapes.items()}
        self.draws = {
            name: self.loc[name] + self.scale[name] * rng.standard_normal((draws, *shape))
            for name, shape in shapes.items()
        }

    def log_q(self, weights: dict[str, np.ndarray]) -> np.ndarray:
        terms = [norm.logpdf(w, self.loc[n], self.scale[n]) for n, w in weights.items()]
        return sum(term.reshape(len(term), -1).sum(1) for term in terms)

    def by_group(self) -> np.ndarray:
        """I of every draw, from both layers' relabellings of the whole network."""
        w = self.draws
        moved = [
            self.log_q(
                {
                    "W1": w["W1"][:, :, one],
                    "b1": w["b1"][:, one],
                    "W2": w["W2"][:, one][:, :, two],
                    "b2": w["b2"][:, two],
                    "W3": w["W3"][:, two],
                }
            )
            for one in map(list, permutations(range(WIDTHS[1])))
            for two in map(list, permutations(range(WIDTHS[2])))
        ]
        return np.log(len(moved)) + self.log_q(w) - logsumexp(moved, axis=0)

    def ratios(self, *names: str, layer: int) -> LogRatios:
        """Of a layer whose units keep the weights of the names."""

        def units(arrays: dict[str, np.ndarray]) -> np.ndarray:
            """(..., unit, param): the columns of what comes in, the rows of what goes out."""
            each = []
            for name in names:
                array = arrays[name]
                if name.startswith("b"):
                    each.append(array[..., None])
                else:
                    each.append(np.swapaxes(array, -1, -2) if name == f"W{layer}" else array)
            return np.concatenate(each, -1)

        draws, loc, scale = units(self.draws), units(self.loc), units(self.scale)
        terms = norm.logpdf(draws[:, None], loc[None, :, None], scale[None, :, None])
        return log_ratios(jnp.asarray(terms.sum(-1)))

    def full(self) -> list[LogRatios]:
        return [self.ratios("W1", "b1", "W2", layer=1), self.ratios("W2", "b2", "W3", layer=2)]

    def chains(self) -> list[list[LogRatios]]:
        """From the output and from the input."""
        first, second = self.full()
        return [
            [self.ratios("b2", "W3", layer=2), first],
            [self.ratios("W1", "b1", layer=1), second],
        ]


@lru_cache
def case(spread: float) -> tuple[Network, np.ndarray]:
    network = Network(spread, 400, seed=4)
    return network, network.by_group()


def exact_values(ratios: list[LogRatios], *, control: bool = False) -> np.ndarray:
    """Sum over layers of the exact information, draw by draw."""

    def one(r: LogRatios) -> np.ndarray:
        found: Estimate = EXACT(jax.random.key(0), r)
        return np.asarray(information(r, found, control_variate=control))

    return sum(one(r) for r in ratios)


@each("spread", [0.2, 0.4])
def test_chains_and_full_layers_hold_the_sum_over_both_groups(spread):
    """On their sides by more than chance; a chain that kept the shared weights twice would be the upper side."""
    network, truth = case(spread)
    for chain in network.chains():
        assert in_mcse(exact_values(chain) - truth) < -5
    assert in_mcse(exact_values(network.full()) - truth) > 5
    for layer in network.full():
        assert in_mcse(exact_values([layer]) - truth) < -5
    assert 0 < truth.mean() < 2 * np.log(24)


def test_few_parts_have_the_exact_sums():
    network, truth = case(0.4)
    found = layered_interval(jax.random.key(1), network.full(), network.chains())
    sums = [exact_values(chain, control=True) for chain in network.chains()]
    best = max(sums, key=np.mean)
    upper = exact_values(network.full(), control=True)
    np.testing.assert_allclose([found.lower, found.upper], [best.mean(), upper.mean()], rtol=1e-9)
    errors = [values.std(ddof=1) / np.sqrt(400) for values in (best, upper)]
    np.testing.assert_allclose([found.lower_mcse, found.upper_mcse], errors, rtol=1e-9)
    assert found.lower - 5 * errors[0] < truth.mean() < found.upper + 5 * errors[1]
    assert found.upper - found.lower < 1.5
    order = layered_interval(jax.random.key(1), network.full(), network.chains()[::-1])
    assert order.lower == found.lower


@pytest.mark.slow
def test_sampled_sides_hold_the_sum_over_both_groups():
    network, truth = case(0.4)
    arguments = network.full(), network.chains()
    found = layered_interval(jax.random.key(1), *arguments, num_permutations=20, max_exact=2)
    closed = layered_interval(jax.random.key(1), *arguments)
    assert found.lower < truth.mean() + 5 * found.lower_mcse
    assert found.upper > truth.mean() - 5 * found.upper_mcse
    np.testing.assert_allclose([found.lower, found.upper], [closed.lower, closed.upper], atol=0.1)
    assert 1 < found.effective < 20
