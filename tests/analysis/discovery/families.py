"""Simulated posteriors of 4 x 500 draws whose symmetry is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CHAINS, DRAWS = 4, 500
LEAD = (CHAINS, DRAWS)
Values = dict[str, np.ndarray]
Rng = np.random.Generator


def orders(rng: Rng, size: int, switch: str) -> np.ndarray:
    """Labels (chain, draw, part): of each ``chain``, of each ``draw``, or ``never`` changed."""
    if switch == "draw":
        return rng.permuted(np.broadcast_to(np.arange(size), (*LEAD, size)), axis=-1)
    each = [np.arange(size)] + [rng.permutation(size) for _ in range(CHAINS - 1)]
    each[1] = np.roll(np.arange(size), 1)  # chains never agree all by chance
    chosen = np.stack(each) if switch == "chain" else np.tile(np.arange(size), (CHAINS, 1))
    return np.broadcast_to(chosen[:, None], (*LEAD, size)).copy()


def signs_of(rng: Rng, size: int, switch: str) -> np.ndarray:
    """Signs (chain, draw, part)."""
    if switch == "draw":
        return rng.choice([-1.0, 1.0], size=(*LEAD, size))
    each = rng.choice([-1.0, 1.0], size=(CHAINS, 1, size))
    each[0], each[1] = 1, -1
    return np.broadcast_to(each if switch == "chain" else np.ones_like(each), (*LEAD, size)).copy()


def placed(values: np.ndarray, order: np.ndarray, axis: int = 0) -> np.ndarray:
    """Parts along an axis of the event put into an order."""
    shape = [1] * values.ndim
    shape[0], shape[1], shape[axis + 2] = order.shape
    return np.take_along_axis(values, order.reshape(shape), axis=axis + 2)


def mixture(rng: Rng, switch: str, size: int = 3) -> Values:
    """Means, scales and weights of a mixture, and a regression on as many covariates."""
    order = orders(rng, size, switch)
    weights = rng.dirichlet(60 * np.arange(1, size + 1), size=LEAD)
    return {
        "mu": placed(rng.normal(size=(*LEAD, size)) * 0.5 + 2 * np.arange(size), order),
        "sigma": placed(
            np.exp(0.1 * rng.normal(size=(*LEAD, size)) + 0.4 * np.arange(size)), order
        ),
        "theta": placed(weights, order),
        "beta": rng.normal(size=(*LEAD, size)) + 1.0,
    }


def two_components(rng: Rng, switch: str) -> Values:
    """A mixture of two with one weight."""
    order = orders(rng, 2, switch)
    theta = rng.beta(60, 40, size=LEAD)
    return {
        "mu": placed(rng.normal(size=(*LEAD, 2)) * 0.3 + [0, 2], order),
        "theta": np.where(order[..., 0] == 1, 1 - theta, theta),
        "scale": np.exp(rng.normal(size=LEAD)),
    }


def mirrored(rng: Rng, switch: str) -> Values:
    """A mixture of two whose means are -m and m: a change of sign would do for them alone."""
    order = orders(rng, 2, switch)
    theta = rng.beta(60, 40, size=LEAD)
    return {
        "mu": placed(rng.normal(size=(*LEAD, 2)) * 0.1 + [-2.0, 2.0], order),
        "sigma": placed(np.exp(rng.normal(size=(*LEAD, 2)) * 0.1 + [0, 0.7]), order),
        "theta": np.where(order[..., 0] == 1, 1 - theta, theta),
    }


def item_response(rng: Rng, switch: str) -> Values:
    """Abilities and discriminations that change sign together; difficulties that do not."""
    sign = signs_of(rng, 1, switch)
    return {
        "theta": (rng.normal(size=60) + 0.3 * rng.normal(size=(*LEAD, 60))) * sign,
        "a": (1 + 0.3 * rng.normal(size=8) + 0.2 * rng.normal(size=(*LEAD, 8))) * sign,
        "b": rng.normal(size=(*LEAD, 8)),
    }


def network(rng: Rng, switch: str, *, odd: bool = True, hidden: int = 6) -> Values:
    """A network with one hidden layer, of an odd activation or another."""
    order = orders(rng, hidden, switch)
    sign = signs_of(rng, hidden, switch if odd else "never")
    incoming = 2 * rng.normal(size=(3, hidden)) + 0.3 * rng.normal(size=(*LEAD, 3, hidden))
    outgoing = 2 * rng.normal(size=(hidden, 1)) + 0.3 * rng.normal(size=(*LEAD, hidden, 1))
    bias = rng.normal(size=hidden) + 0.3 * rng.normal(size=(*LEAD, hidden))
    return {
        "W1": placed(incoming, order, 1) * sign[:, :, None],
        "b1": placed(bias, order) * sign,
        "W2": placed(outgoing, order) * sign[..., None],
        "b2": rng.normal(size=(*LEAD, 1)),
    }


def hidden_markov(rng: Rng, switch: str) -> Values:
    """Transitions, whose rows and columns move together, and means."""
    size, order = 3, orders(rng, 3, switch)
    rows = [np.where(np.arange(size) == k, 80, 10 + 5 * k) for k in range(size)]
    transitions = np.stack([rng.dirichlet(row, size=LEAD) for row in rows], axis=2)
    return {
        "A": placed(placed(transitions, order), order, 1),
        "mu": placed(rng.normal(size=(*LEAD, size)) * 0.5 + 2 * np.arange(size), order),
    }


def factors(rng: Rng, switch: str) -> Values:
    """Loadings of two factors, each with a sign of its own."""
    loadings = 1.5 * rng.normal(size=(10, 2)) + 0.2 * rng.normal(size=(*LEAD, 10, 2))
    sign = signs_of(rng, 2, switch)
    if switch == "chain":
        sign[2:, :, 0], sign[2:, :, 1] = 1, -1  # not both together in all chains
    return {
        "L": placed(loadings, orders(rng, 2, switch), 1) * sign[:, :, None],
        "psi": np.exp(rng.normal(size=(*LEAD, 10))),
    }


def turning_factors(rng: Rng, switch: str) -> Values:
    """Loadings and scores that nothing identifies: turned at random at every draw, or each chain to its own place."""
    angle = rng.uniform(0, 2 * np.pi, size=LEAD)
    if switch == "chain":
        angle = np.array([0.0, 0.7, 2.0, 4.0])[:, None] + 0.1 * rng.normal(size=LEAD)
    cos, sin = np.cos(angle), np.sin(angle)
    turns = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
    loadings, scores = (
        1.5 * rng.normal(size=(rows, 2)) + 0.2 * rng.normal(size=(*LEAD, rows, 2))
        for rows in (10, 25)
    )
    return {"L": loadings @ turns, "F": scores @ turns, "psi": np.exp(rng.normal(size=(*LEAD, 10)))}


def regression(rng: Rng, switch: str) -> Values:
    """Coefficients that differ."""
    return {
        "beta": rng.normal(size=(*LEAD, 12)) + rng.normal(size=12),
        "sigma": np.exp(rng.normal(size=LEAD)),
    }


def schools(rng: Rng, switch: str) -> Values:
    """Exchangeable effects that no data tell apart."""
    tau = np.exp(rng.normal(size=LEAD))
    return {
        "mu": rng.normal(size=LEAD),
        "tau": tau,
        "theta": rng.normal(size=(*LEAD, 8)) * tau[..., None],
    }


def simplexes(rng: Rng, switch: str) -> Values:
    """Weights of equal counts."""
    return {
        "p": rng.dirichlet([20, 20], size=LEAD),
        "q": rng.dirichlet([5] * 4, size=LEAD),
    }


def lost_chain(rng: Rng, switch: str) -> Values:
    """One chain somewhere else."""
    return {"beta": rng.normal(size=(*LEAD, 5)) + np.array([0, 0, 0, 4.0])[:, None, None]}


def unlike_modes(rng: Rng, switch: str) -> Values:
    """Each chain in a mode of its own, which no relabelling joins."""
    modes = np.array([[0, 1, 2], [5, 1, 9], [3, 8, -2], [7, 7, 1.0]])
    return {"beta": 0.3 * rng.normal(size=(*LEAD, 3)) + modes[:, None]}


SYMMETRIC: dict[str, tuple[Callable[..., Values], str]] = {
    "mixture": (mixture, "mu,sigma,theta"),
    "mixture of six": (lambda rng, switch: mixture(rng, switch, 6), "mu,sigma,theta"),
    "two components": (two_components, "mu,1-theta"),
    "mirrored means": (mirrored, "mu,sigma,1-theta"),
    "item response": (item_response, "+-theta:,+-a:"),
    "odd network": (network, "+-W1:1,+-b1,+-W2"),
    "network": (lambda rng, switch: network(rng, switch, odd=False), "W1:1,b1,W2"),
    "hidden Markov": (hidden_markov, "A:0:1,mu"),
    "factors": (factors, "+-L:1"),
}
HONEST: dict[str, Callable[..., Values]] = {
    "mixture in one labelling": mixture,
    "regression": regression,
    "schools": schools,
    "simplexes": simplexes,
    "lost chain": lost_chain,
    "unlike modes": unlike_modes,
}
