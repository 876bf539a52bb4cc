"""Posteriors with interchangeable components: mixtures, hidden Markov, topics, factors, item responses, networks."""

from __future__ import annotations

import numpy as np

from .simulation import NUTS, Posterior, Walk, logistic, orders, relabelled, signs, softmax


def mixture(
    rng: np.random.Generator,
    *,
    parts: int = 3,
    labels: str = "chains",
    apart: float = 8.0,
    lost: bool = False,
    generated: bool = False,
    stats: bool = True,
    chains: int = 4,
    draws: int = 1000,
    slow: tuple[float, float] = (0.0, 0.6),
    covariates: bool = False,
) -> Posterior:
    """Simulate a normal mixture; `apart` is the distance between adjacent means in posterior standard deviations."""
    walk = Walk(rng, 4 * parts, chains=chains, draws=draws, autocorrelation=slow)
    spread = rng.uniform(0.05, 0.3) * rng.uniform(0.7, 1.5, size=parts)
    centre = np.cumsum(apart * spread * rng.uniform(0.9, 1.4, size=parts))
    values = {
        "mu": centre - centre.mean() + spread * walk.take(parts),
        "sigma": np.exp(rng.normal(0, 0.3, size=parts) + 0.08 * walk.take(parts)),
        "theta": softmax(rng.normal(0, 0.4, size=parts) + 0.1 * walk.take(parts)),
    }
    shift = np.zeros((chains, draws))
    if lost:  # A lost component: little weight, mean and scale from the prior, and others that explain the data.
        chain, part = rng.integers(chains), rng.integers(parts)
        weights = values["theta"][chain]
        weights[:, part] *= 0.03 * rng.gamma(1.0, size=draws)
        values["theta"][chain] = weights / weights.sum(axis=-1, keepdims=True)
        values["mu"][chain, :, part] = rng.normal(0, 10 * apart * spread.mean(), size=draws)
        values["mu"][chain, :, part - 1] -= 0.4 * apart * spread.mean()
        values["sigma"][chain, :, part] = np.exp(rng.normal(0, 1, size=draws))
        values["sigma"][chain, :, part - 1] *= 1.7
        shift[chain] -= rng.uniform(20, 80)
    where = orders(rng, labels, chains, draws, parts)
    values = relabelled(values, {"mu": (0,), "sigma": (0,), "theta": (0,)}, where)
    if covariates:  # Unrelated coefficients, as many as there are components.
        values["beta"] = rng.normal(0, 1, size=parts) + 0.2 * walk.take(parts)
    if generated:
        y = rng.normal(0, 3, size=60)
        log_lik = -0.5 * y**2 + 0.1 * rng.normal(size=(chains, draws, 60))
        values |= {"log_lik": log_lik, "y_rep": y + rng.normal(size=log_lik.shape)}
        values["z"] = rng.integers(1, parts + 1, size=(chains, draws, 40))
    return Posterior(values, walk.stats(shift) if stats else {}, dict(NUTS))


def two_mixtures(rng: np.random.Generator, *, labels: str = "chains") -> Posterior:
    """Simulate two mixtures in one model, with three and two components."""
    one, other = mixture(rng, labels=labels), mixture(rng, labels=labels, parts=2)
    names = {"mu": "nu", "sigma": "omega", "theta": "phi"}
    one.values |= {names[name]: array for name, array in other.values.items()}
    for name in ("lp", "energy"):
        one.stats[name] = one.stats[name] + other.stats[name]
    return one


def two_weights(rng: np.random.Generator, *, labels: str = "chains") -> Posterior:
    """Simulate a mixture of two components whose weight is a single number."""
    walk = Walk(rng, 5)
    mu = np.array([-1.5, 1.5]) * rng.uniform(0.8, 1.5) + 0.15 * walk.take(2)
    values = {"mu": mu, "sigma": np.exp(np.array([-0.4, 0.4]) + 0.1 * walk.take(2))}
    theta = logistic(rng.choice([-1, 1]) * rng.uniform(0.8, 1.5) + 0.15 * walk.take(1))[..., 0]
    where = orders(rng, labels, 4, 1000, 2)
    values = relabelled(values, {"mu": (0,), "sigma": (0,)}, where)
    values["theta"] = np.where(where[..., 0] == 0, theta, 1 - theta)
    return Posterior(values, walk.stats(), dict(NUTS))


def planes(rng: np.random.Generator, *, labels: str = "chains") -> Posterior:
    """Simulate a mixture in two dimensions, with Cholesky factors of covariances that are zero above the diagonal."""
    parts = 3
    walk = Walk(rng, 6 * parts)
    centre = 3 * np.array([[-1, 0], [1, 0.5], [0, 2]]) + rng.normal(0, 0.3, size=(3, 2))
    root = np.zeros((4, 1000, parts, 2, 2))
    for i, j in ((0, 0), (1, 1)):
        root[..., i, j] = np.exp(rng.normal(0, 0.4, size=parts) + 0.1 * walk.take(parts))
    root[..., 1, 0] = rng.normal(0, 0.5, size=parts) + 0.1 * walk.take(parts)
    values = {
        "mu": centre + 0.2 * walk.take(parts, 2),
        "L": root,
        "theta": softmax(0.1 * walk.take(parts) + rng.normal(0, 0.3, size=parts)),
    }
    axes = {"mu": (0,), "L": (0,), "theta": (0,)}
    return Posterior(
        relabelled(values, axes, orders(rng, labels, 4, 1000, parts)), walk.stats(), dict(NUTS)
    )


def regressions(rng: np.random.Generator, *, labels: str = "chains") -> Posterior:
    """Simulate a mixture of regressions, with coefficients for every component."""
    parts, covariates = 3, 4
    walk = Walk(rng, parts * (covariates + 2) + 2)
    values = {
        "beta": rng.normal(0, 1.5, size=(parts, covariates)) + 0.2 * walk.take(parts, covariates),
        "tau": np.exp(rng.normal(0, 0.5, size=parts) + 0.1 * walk.take(parts)),
        "weight": softmax(0.1 * walk.take(parts) + rng.normal(0, 0.3, size=parts)),
        "gamma": rng.normal(0, 1, size=2) + 0.1 * walk.take(2),
    }
    axes = {"beta": (0,), "tau": (0,), "weight": (0,)}
    return Posterior(
        relabelled(values, axes, orders(rng, labels, 4, 1000, parts)), walk.stats(), dict(NUTS)
    )


def hidden_markov(
    rng: np.random.Generator, *, states: int = 3, labels: str = "chains"
) -> Posterior:
    """Simulate a hidden Markov model, in which rows and columns of the transition matrix move together."""
    walk = Walk(rng, states * (states + 3))
    stay = 2.0 * np.eye(states) + rng.normal(0, 0.4, size=(states, states))
    values = {
        "mu": 2.0 * np.arange(states) + rng.normal(0, 0.2, size=states) + 0.15 * walk.take(states),
        "sigma": np.exp(rng.normal(0, 0.4, size=states) + 0.08 * walk.take(states)),
        "pi": softmax(rng.normal(0, 0.5, size=states) + 0.6 * walk.take(states)),
        "A": softmax(stay + 0.15 * walk.take(states, states)),
    }
    axes = {"mu": (0,), "sigma": (0,), "pi": (0,), "A": (0, 1)}
    where = orders(rng, labels, 4, 1000, states)
    return Posterior(relabelled(values, axes, where), walk.stats(), dict(NUTS))


def topics(rng: np.random.Generator, *, topics_: int = 4, labels: str = "chains") -> Posterior:
    """Simulate a topic model, with topics in the columns of the documents' shares and in the rows of the words."""
    documents, words = 20, 30
    walk = Walk(rng, topics_ * (documents + words))
    shares = rng.normal(0, 1.5, size=(documents, topics_))
    values = {
        "theta": softmax(shares + 0.4 * walk.take(documents, topics_)),
        "phi": softmax(rng.normal(0, 1.5, size=(topics_, words)) + 0.3 * walk.take(topics_, words)),
    }
    where = orders(rng, labels, 4, 1000, topics_)
    return Posterior(relabelled(values, {"theta": (1,), "phi": (0,)}, where), walk.stats(), NUTS)


def factors(
    rng: np.random.Generator,
    *,
    parts: int = 2,
    labels: str = "one",
    flips: str = "chains",
    rotate: str = "",
) -> Posterior:
    """Simulate a factor analysis with loadings of 8 items and scores of 25 persons."""
    items, persons = 8, 25
    walk = Walk(rng, parts * (items + persons) + items)
    load = rng.normal(0, 0.9, size=(items, parts)) + 0.12 * walk.take(items, parts)
    scores = rng.normal(size=(persons, parts)) + 0.3 * walk.take(persons, parts)
    if rotate:
        turns = rotations(rng, rotate, parts)
        load, scores = load @ turns, scores @ turns
    values = {
        "L": load,
        "F": scores,
        "psi": np.exp(-0.5 + 0.15 * walk.take(items) + rng.normal(0, 0.3, size=items)),
    }
    where = orders(rng, labels, 4, 1000, parts)
    values = relabelled(values, {"L": (1,), "F": (1,)}, where)
    sign = signs(rng, flips, 4, 1000, parts)[:, :, None]
    return Posterior(
        values | {"L": values["L"] * sign, "F": values["F"] * sign}, walk.stats(), dict(NUTS)
    )


def rotations(rng: np.random.Generator, how: str, size: int) -> np.ndarray:
    """Simulate rotations: a new one at every draw (``draws``), or small changes around one per chain (``chains``)."""
    walk = rng.normal(size=(4, 1000, size, size))
    if how == "chains":
        walk = rng.normal(size=(4, 1, size, size)) + 0.2 * walk
    turns, triangle = np.linalg.qr(walk)
    return turns * np.sign(np.einsum("cdii->cdi", triangle))[..., None, :]


def parts_of_a_whole(rng: np.random.Generator, *, labels: str = "chains") -> Posterior:
    """Simulate a non-negative factorisation, which has no sign symmetry."""
    parts, rows, columns = 3, 15, 10
    walk = Walk(rng, parts * (rows + columns))
    values = {
        "W": np.exp(rng.normal(0, 0.8, size=(rows, parts)) + 0.15 * walk.take(rows, parts)),
        "H": np.exp(rng.normal(0, 0.8, size=(parts, columns)) + 0.15 * walk.take(parts, columns)),
    }
    where = orders(rng, labels, 4, 1000, parts)
    return Posterior(relabelled(values, {"W": (1,), "H": (0,)}, where), walk.stats(), dict(NUTS))


def lower_triangle(rng: np.random.Generator) -> Posterior:
    """Simulate identified factors, with zeros above a positive diagonal."""
    walk = Walk(rng, 16 + 50)
    load = rng.normal(0, 0.8, size=(8, 2)) + 0.1 * walk.take(8, 2)
    load[..., 0, 0], load[..., 1, 1] = np.exp(0.2 * load[..., 0, 0]), np.exp(0.2 * load[..., 1, 1])
    load[..., 0, 1] = 0.0
    return Posterior(
        {"L": load, "F": rng.normal(size=(25, 2)) + 0.3 * walk.take(25, 2)}, walk.stats(), NUTS
    )


def item_responses(
    rng: np.random.Generator, *, flips: str = "chains", persons: int = 60, items: int = 8
) -> Posterior:
    """Simulate a two-parameter logistic model, in which abilities and slopes change sign together."""
    walk = Walk(rng, persons + 2 * items + 1)
    slope = rng.uniform(0.6, 1.8, size=items) + 0.2 * walk.take(items)
    ability = rng.normal(size=persons) + 0.45 * walk.take(persons)
    sign = signs(rng, flips, 4, 1000, 1)
    values = {
        "theta": ability * sign,
        "a": slope * sign,
        "b": rng.normal(0, 1, size=items) + 0.2 * walk.take(items),
        "sd_b": np.exp(0.2 * walk.take(1)[..., 0]),
    }
    return Posterior(values, walk.stats(), dict(NUTS))


def network(
    rng: np.random.Generator,
    *,
    units: int = 5,
    labels: str = "chains",
    flips: str = "one",
    modes: bool = False,
) -> Posterior:
    """Simulate a network with one hidden layer; with `modes`, every chain has different weights."""
    walk = Walk(rng, units * 5 + 2)
    shape = (4, 1) if modes else (1, 1)
    w1 = rng.normal(0, 1.5, size=(*shape, 3, units)) + 0.2 * walk.take(3, units)
    b1 = rng.normal(0, 1.0, size=(*shape, units)) + 0.2 * walk.take(units)
    w2 = rng.normal(0, 1.5, size=(*shape, units, 1)) + 0.2 * walk.take(units, 1)
    where = orders(rng, labels, 4, 1000, units)
    values = relabelled({"W1": w1, "b1": b1, "W2": w2}, {"W1": (1,), "b1": (0,), "W2": (0,)}, where)
    sign = signs(rng, flips, 4, 1000, units)
    values["W1"] = values["W1"] * sign[:, :, None]
    values["b1"], values["W2"] = values["b1"] * sign, values["W2"] * sign[..., None]
    values["b2"], values["sigma"] = walk.take(1), np.exp(0.1 * walk.take(1)[..., 0])
    shift = rng.normal(0, 12, size=(4, 1)) if modes else 0.0
    return Posterior(values, walk.stats(shift), dict(NUTS))
