"""Small simulated data for the programs, equal on every machine.

Numbers are rounded to six digits, so both engines read the same decimal text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

type Data = dict[str, Any]
type Maker = Callable[[np.random.Generator], Data]


def plain(value: Any) -> Any:
    """Convert arrays to lists and numbers for JSON."""
    array = np.asarray(value)
    return (np.round(array, 6) if array.dtype.kind == "f" else array).tolist()


def index(g: np.random.Generator, high: int, size: Any) -> np.ndarray:
    """Draw indices 1 to `high`."""
    return g.integers(1, high + 1, size)


def schools(g: np.random.Generator) -> Data:
    """Simulate effects of eight schools."""
    error = g.uniform(8, 18, 8)
    return {"J": 8, "effect": g.normal(6, error), "error": error}


def linear(g: np.random.Generator, n: int = 30, p: int = 4) -> Data:
    """Simulate a linear regression."""
    x = g.normal(size=(n, p))
    y = 1 + x @ np.linspace(-1, 1, p) + g.normal(0, 0.7, n)
    return {"N": n, "P": p, "X": x, "y": y}


def logistic(g: np.random.Generator) -> Data:
    """Simulate a logistic regression."""
    data = linear(g, 40, 3)
    return data | {"y": (data["y"] > 1).astype(int)}


def simple(g: np.random.Generator, n: int = 25) -> Data:
    """Simulate a line with noise."""
    x = g.normal(size=n)
    return {"N": n, "x": x, "y": 0.5 + 1.2 * x + g.normal(0, 0.6, n)}


def counts(g: np.random.Generator, n: int = 30) -> Data:
    """Simulate a Poisson regression."""
    x = g.normal(size=n)
    return {"N": n, "x": x, "y": g.poisson(np.exp(0.6 + 0.4 * x))}


def poisson_offset(g: np.random.Generator) -> Data:
    """Simulate counts with exposures."""
    return counts(g) | {"exposure": g.uniform(0.5, 4, 30)}


def negative_binomial(g: np.random.Generator) -> Data:
    """Simulate counts in groups."""
    return counts(g) | {"G": 5, "group": index(g, 5, 30)}


def graded(g: np.random.Generator) -> Data:
    """Simulate four ordered grades."""
    x = g.normal(size=40)
    grade = np.digitize(x + g.logistic(size=40), [-1, 0.5, 1.5]) + 1
    return {"K": 4, "N": 40, "x": x, "y": grade}


def classes(g: np.random.Generator) -> Data:
    """Draw three classes, independent of the predictors."""
    return {"K": 3, "N": 30, "P": 2, "X": g.normal(size=(30, 2)), "y": index(g, 3, 30)}


def slopes(g: np.random.Generator) -> Data:
    """Simulate a regression in six groups."""
    n, groups = 48, 6
    x = np.column_stack([np.ones(n), g.normal(size=n)])
    return {
        **{"N": n, "G": groups, "K": 2, "X": x},
        "group": np.arange(n) % groups + 1,
        "y": x @ [1, 0.5] + g.normal(size=n),
    }


def irt_long(g: np.random.Generator) -> Data:
    """Draw answers, one per row."""
    persons, items = np.meshgrid(np.arange(1, 11), np.arange(1, 7))
    y = g.integers(0, 2, persons.size)
    return {
        **{"I": 6, "J": 10, "N": persons.size},
        **{"item": items.ravel(), "person": persons.ravel(), "y": y},
    }


def irt_wide(g: np.random.Generator) -> Data:
    """Draw answers, one person per row."""
    return {"I": 6, "J": 12, "y": g.integers(0, 2, (12, 6))}


def mixture(g: np.random.Generator) -> Data:
    """Simulate three normal components."""
    y = np.concatenate([g.normal(-2, 0.7, 15), g.normal(0.5, 0.5, 15), g.normal(3, 1, 10)])
    return {"K": 3, "N": 40, "y": y}


def mixture_multivariate(g: np.random.Generator) -> Data:
    """Simulate two components in three dimensions."""
    return {"K": 2, "D": 3, "N": 20, "y": g.normal(np.repeat([[-1.0], [1.0]], 10, 0), 1, (20, 3))}


def lda(g: np.random.Generator) -> Data:
    """Draw words of six documents."""
    return {
        **{"T": 3, "W": 8, "D": 6, "N": 60},
        **{"word": index(g, 8, 60), "document": np.repeat(np.arange(1, 7), 10)},
    }


def raters(g: np.random.Generator) -> Data:
    """Simulate four raters who are right 70 percent of the time."""
    true = index(g, 3, (15, 1))
    return {
        **{"K": 3, "I": 15, "R": 4},
        "rating": np.where(g.random((15, 4)) < 0.7, true, index(g, 3, (15, 4))),
    }


def hmm(g: np.random.Generator) -> Data:
    """Simulate a series with two levels."""
    return {"K": 2, "T": 30, "y": g.normal(np.repeat([-1.0, 1.5, -1.0], 10), 0.8)}


def hmm_counts(g: np.random.Generator) -> Data:
    """Simulate counts with two rates."""
    return {"K": 2, "T": 25, "y": g.poisson(np.repeat([1, 6, 1, 6, 1], 5))}


def process(g: np.random.Generator) -> Data:
    """Simulate a smooth function with noise."""
    x = np.linspace(-2, 2, 15)
    return {"N": 15, "x": x, "y": np.sin(2 * x) + g.normal(0, 0.2, 15)}


def process_counts(g: np.random.Generator) -> Data:
    """Simulate counts with a smooth rate."""
    x = np.linspace(-2, 2, 12)
    return {"N": 12, "x": x, "y": g.poisson(np.exp(np.sin(x)))}


def hilbert(g: np.random.Generator) -> Data:
    """Add the basis to a smooth function."""
    return process(g) | {"M": 8, "half_width": 3.0}


def autoregression(g: np.random.Generator) -> Data:
    """Simulate an autoregression of order 2."""
    y = g.normal(size=40)
    for t in range(2, 40):
        y[t] += 0.5 * y[t - 1] - 0.2 * y[t - 2]
    return {"K": 2, "T": 40, "y": y}


def returns(g: np.random.Generator) -> Data:
    """Simulate returns with a changing scale."""
    return {"T": 40, "r": g.normal(0.05, g.uniform(0.5, 1.5, 40)), "first": 1.0}


def volatility(g: np.random.Generator) -> Data:
    """Simulate returns with a growing scale."""
    return {"T": 30, "y": g.normal(0, np.exp(np.linspace(-1, 1, 30) / 2))}


def walk(g: np.random.Generator) -> Data:
    """Simulate a random walk with noise."""
    return {"T": 30, "y": np.cumsum(g.normal(0, 0.3, 30)) + g.normal(0, 0.5, 30)}


def survival(g: np.random.Generator) -> Data:
    """Simulate survival times with censoring."""
    return {
        **{"N_seen": 20, "N_censored": 8},
        **{"seen": g.weibull(1.5, 20) + 0.01, "censored": g.uniform(0.5, 2, 8)},
        **{"x_seen": g.normal(size=20), "x_censored": g.normal(size=8)},
    }


def zeros(g: np.random.Generator) -> Data:
    """Simulate counts with too many zeros."""
    return {"N": 40, "y": g.poisson(3, 40) * g.integers(0, 2, 40)}


def hurdle(g: np.random.Generator) -> Data:
    """Simulate a Poisson regression with too many zeros."""
    data = counts(g)
    return data | {"y": data["y"] * g.integers(0, 2, 30)}


def captures(g: np.random.Generator) -> Data:
    """Draw capture histories."""
    history = (g.random((20, 5)) < 0.5).astype(int)
    history[:3, 1:] = 0
    return {"T": 5, "M": 20, "history": history}


def occupancy(g: np.random.Generator) -> Data:
    """Simulate visits to sites."""
    seen = g.binomial(4, 0.5, 25) * g.integers(0, 2, 25)
    return {"sites": 25, "visits": 4, "x": g.normal(size=25), "seen": seen}


def predators(g: np.random.Generator) -> Data:
    """Simulate two oscillating populations."""
    ts = np.arange(1, 9) * 0.5
    u = np.column_stack([1.5 + np.sin(ts), 1.5 + np.cos(ts)])
    return {"N": 8, "ts": ts, "first": [1.4, 2.2], "y": u * np.exp(g.normal(0, 0.1, (8, 2)))}


def epidemic(g: np.random.Generator) -> Data:
    """Simulate growing case counts."""
    ts = np.arange(1, 11)
    return {"T": 10, "N": 500.0, "ts": ts * 1.0, "cases": g.poisson(np.exp(ts * 0.5))}


def missing(g: np.random.Generator) -> Data:
    """Draw a table with four missing entries."""
    return {
        **{"D": 3, "N": 12, "N_missing": 4, "y": g.normal(size=(12, 3))},
        "where": [[1, 1], [4, 2], [4, 3], [9, 1]],
    }


def probit(g: np.random.Generator) -> Data:
    """Draw three binary outcomes per row."""
    return {"D": 3, "N": 10, "y": g.integers(0, 2, (10, 3)), "x": g.normal(size=10)}


def factors(g: np.random.Generator) -> Data:
    """Simulate two factors."""
    y = g.normal(size=(20, 2)) @ g.normal(size=(2, 5)) + g.normal(0, 0.5, (20, 5))
    return {"P": 5, "K": 2, "N": 20, "y": y}


def districts(g: np.random.Generator) -> Data:
    """Draw counts on a small map."""
    edges = np.array([[i, i + 1] for i in range(1, 12)] + [[i, i + 3] for i in range(1, 10)])
    return {
        **{"N": 12, "E": len(edges), "node1": edges[:, 0], "node2": edges[:, 1]},
        **{"expected": g.uniform(2, 8, 12), "y": g.poisson(5, 12)},
    }


def car(g: np.random.Generator) -> Data:
    """Draw values on a ring."""
    weights = np.zeros((8, 8), int)
    for i in range(8):
        weights[i, (i + 1) % 8] = weights[(i + 1) % 8, i] = 1
    return {"N": 8, "W": weights, "y": g.normal(size=8)}


def shares(g: np.random.Generator) -> Data:
    """Simulate multinomial counts."""
    return {"N": 10, "K": 4, "y": g.multinomial(15, [0.4, 0.3, 0.2, 0.1], 10)}


def softmax(g: np.random.Generator) -> Data:
    """Add a predictor to multinomial counts."""
    return shares(g) | {"x": g.normal(size=10)}


def matches(g: np.random.Generator) -> Data:
    """Draw matches of six teams."""
    home = index(g, 6, 40)
    away = (home + g.integers(0, 5, 40)) % 6 + 1
    return {"K": 6, "N": 40, "home": home, "away": away, "home_wins": g.integers(0, 2, 40)}


def table(g: np.random.Generator) -> Data:
    """Draw a two-way table."""
    return {"R": 4, "C": 3, "y": g.normal(2, 1, (4, 3))}


def truncated(g: np.random.Generator) -> Data:
    """Draw values above a limit."""
    y = 0.5 + np.abs(g.normal(0, 1, 15))
    return {"N": 15, "low": 0.5, "y": y, "z": g.normal(size=15), "counts": 1 + g.poisson(2, 15)}


def angles(g: np.random.Generator) -> Data:
    """Draw angles."""
    return {"N": 25, "angle": g.vonmises(0.7, 2, 25)}


def own(g: np.random.Generator) -> Data:
    """Draw extremes and capped counts."""
    return {"N": 12, "y": g.gumbel(1, 0.8, 12), "counts": np.minimum(3, g.poisson(2, 12))}


def projected(g: np.random.Generator) -> Data:
    """Draw a regression with six predictors."""
    return {"N": 15, "M": 6, "X": g.normal(size=(15, 6)), "y": g.normal(size=15)}


def matrices(g: np.random.Generator) -> Data:
    """Draw an array of matrices."""
    return {
        **{"A": 2, "B": 3, "R": 2, "C": 4},
        **{"Y": g.normal(size=(2, 3, 2, 4)), "shift": g.normal(size=(2, 4))},
    }


def positive(g: np.random.Generator) -> Data:
    """Draw positive numbers."""
    return {"N": 15, "y": g.gamma(2, 1, 15) + 0.01}


def nothing(g: np.random.Generator) -> Data:
    """Draw outcomes without predictors."""
    return {"P": 0, "N": 10, "X": np.zeros((10, 0)), "y": g.normal(size=10), "nothing": []}


def normal(g: np.random.Generator, n: int = 15) -> Data:
    """Draw normal numbers."""
    return {"N": n, "y": g.normal(0.3, 1, n)}


def signal(g: np.random.Generator) -> Data:
    """Draw complex numbers as pairs."""
    return {"N": 8, "signal": g.normal(size=(8, 2))}


def prices(g: np.random.Generator) -> Data:
    """Draw prices."""
    return {"N": 10, "price": g.normal(0.6, 0.1, 10)}


def moves(g: np.random.Generator) -> Data:
    """Draw counts of moves between states."""
    return {"K": 3, "moves": g.poisson(5, (3, 3))}


def generalised(g: np.random.Generator) -> Data:
    """Draw outcomes of four kinds."""
    return {
        **{"N": 20, "P": 2, "K": 3, "X": g.normal(size=(20, 2)), "y": g.normal(size=20)},
        **{"binary": g.integers(0, 2, 20), "count": g.poisson(2, 20), "grade": index(g, 3, 20)},
    }


def crossed(g: np.random.Generator) -> Data:
    """Simulate response times of subjects and items."""
    return {
        **{"N": 30, "S": 5, "I": 6, "subject": np.repeat(np.arange(1, 6), 6)},
        **{"item": np.tile(np.arange(1, 7), 5), "rt": 0.3 + g.lognormal(0, 0.4, 30)},
    }


def hits(g: np.random.Generator) -> Data:
    """Simulate hits out of twelve trials."""
    return {
        **{"N": 8, "trials": np.full(8, 12), "hits": g.binomial(12, 0.4, 8)},
        "levels": [0.05, 0.25, 0.5, 0.75, 0.95],
    }


def changes(g: np.random.Generator) -> Data:
    """Simulate counts whose rate changes."""
    return {"T": 25, "y": g.poisson(np.repeat([2, 5], [12, 13]))}


def none(g: np.random.Generator) -> Data:
    """Return no data."""
    return {}
