"""Small simulated data for the programs, the same on every machine.

Numbers are rounded to six digits, so that both engines read the same decimal text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

type Data = dict[str, Any]
type Maker = Callable[[np.random.Generator], Data]

SEED = 20_261


def data_of(name: str) -> Data:
    """Return the data of a program.

    Parameters
    ----------
    name : str
        A file in `programs`, without its suffix.

    Returns
    -------
    dict
        The variables of the data block. Each program has its own random numbers.
    """
    generator = np.random.default_rng([SEED, crc32(name.encode())])
    return {key: _plain(value) for key, value in MAKERS[name](generator).items()}


def _plain(value: Any) -> Any:
    array = np.asarray(value)
    return (np.round(array, 6) if array.dtype.kind == "f" else array).tolist()


def _index(g: np.random.Generator, high: int, size: Any) -> np.ndarray:
    """Draw indices 1 to `high`."""
    return g.integers(1, high + 1, size)


def _schools(g: np.random.Generator) -> Data:
    error = g.uniform(8, 18, 8)
    return {"J": 8, "effect": g.normal(6, error), "error": error}


def _linear(g: np.random.Generator, n: int = 30, p: int = 4) -> Data:
    x = g.normal(size=(n, p))
    y = 1 + x @ np.linspace(-1, 1, p) + g.normal(0, 0.7, n)
    return {"N": n, "P": p, "X": x, "y": y}


def _logistic(g: np.random.Generator) -> Data:
    data = _linear(g, 40, 3)
    return data | {"y": (data["y"] > 1).astype(int)}


def _simple(g: np.random.Generator, n: int = 25) -> Data:
    x = g.normal(size=n)
    return {"N": n, "x": x, "y": 0.5 + 1.2 * x + g.normal(0, 0.6, n)}


def _counts(g: np.random.Generator, n: int = 30) -> Data:
    x = g.normal(size=n)
    return {"N": n, "x": x, "y": g.poisson(np.exp(0.6 + 0.4 * x))}


def _poisson_offset(g: np.random.Generator) -> Data:
    return _counts(g) | {"exposure": g.uniform(0.5, 4, 30)}


def _negative_binomial(g: np.random.Generator) -> Data:
    return _counts(g) | {"G": 5, "group": _index(g, 5, 30)}


def _graded(g: np.random.Generator) -> Data:
    x = g.normal(size=40)
    grade = np.digitize(x + g.logistic(size=40), [-1, 0.5, 1.5]) + 1
    return {"K": 4, "N": 40, "x": x, "y": grade}


def _classes(g: np.random.Generator) -> Data:
    return {"K": 3, "N": 30, "P": 2, "X": g.normal(size=(30, 2)), "y": _index(g, 3, 30)}


def _slopes(g: np.random.Generator) -> Data:
    n, groups = 48, 6
    x = np.column_stack([np.ones(n), g.normal(size=n)])
    return {
        **{"N": n, "G": groups, "K": 2, "X": x},
        "group": np.arange(n) % groups + 1,
        "y": x @ [1, 0.5] + g.normal(size=n),
    }


def _irt_long(g: np.random.Generator) -> Data:
    persons, items = np.meshgrid(np.arange(1, 11), np.arange(1, 7))
    y = g.integers(0, 2, persons.size)
    return {
        **{"I": 6, "J": 10, "N": persons.size},
        **{"item": items.ravel(), "person": persons.ravel(), "y": y},
    }


def _irt_wide(g: np.random.Generator) -> Data:
    return {"I": 6, "J": 12, "y": g.integers(0, 2, (12, 6))}


def _mixture(g: np.random.Generator) -> Data:
    y = np.concatenate([g.normal(-2, 0.7, 15), g.normal(0.5, 0.5, 15), g.normal(3, 1, 10)])
    return {"K": 3, "N": 40, "y": y}


def _mixture_multivariate(g: np.random.Generator) -> Data:
    return {"K": 2, "D": 3, "N": 20, "y": g.normal(np.repeat([[-1.0], [1.0]], 10, 0), 1, (20, 3))}


def _lda(g: np.random.Generator) -> Data:
    return {
        **{"T": 3, "W": 8, "D": 6, "N": 60},
        **{"word": _index(g, 8, 60), "document": np.repeat(np.arange(1, 7), 10)},
    }


def _raters(g: np.random.Generator) -> Data:
    true = _index(g, 3, (15, 1))
    return {
        **{"K": 3, "I": 15, "R": 4},
        "rating": np.where(g.random((15, 4)) < 0.7, true, _index(g, 3, (15, 4))),
    }


def _hmm(g: np.random.Generator) -> Data:
    return {"K": 2, "T": 30, "y": g.normal(np.repeat([-1.0, 1.5, -1.0], 10), 0.8)}


def _hmm_counts(g: np.random.Generator) -> Data:
    return {"K": 2, "T": 25, "y": g.poisson(np.repeat([1, 6, 1, 6, 1], 5))}


def _process(g: np.random.Generator) -> Data:
    x = np.linspace(-2, 2, 15)
    return {"N": 15, "x": x, "y": np.sin(2 * x) + g.normal(0, 0.2, 15)}


def _process_counts(g: np.random.Generator) -> Data:
    x = np.linspace(-2, 2, 12)
    return {"N": 12, "x": x, "y": g.poisson(np.exp(np.sin(x)))}


def _hilbert(g: np.random.Generator) -> Data:
    return _process(g) | {"M": 8, "half_width": 3.0}


def _autoregression(g: np.random.Generator) -> Data:
    y = g.normal(size=40)
    for t in range(2, 40):
        y[t] += 0.5 * y[t - 1] - 0.2 * y[t - 2]
    return {"K": 2, "T": 40, "y": y}


def _returns(g: np.random.Generator) -> Data:
    return {"T": 40, "r": g.normal(0.05, g.uniform(0.5, 1.5, 40)), "first": 1.0}


def _volatility(g: np.random.Generator) -> Data:
    return {"T": 30, "y": g.normal(0, np.exp(np.linspace(-1, 1, 30) / 2))}


def _walk(g: np.random.Generator) -> Data:
    return {"T": 30, "y": np.cumsum(g.normal(0, 0.3, 30)) + g.normal(0, 0.5, 30)}


def _survival(g: np.random.Generator) -> Data:
    return {
        **{"N_seen": 20, "N_censored": 8},
        **{"seen": g.weibull(1.5, 20) + 0.01, "censored": g.uniform(0.5, 2, 8)},
        **{"x_seen": g.normal(size=20), "x_censored": g.normal(size=8)},
    }


def _zeros(g: np.random.Generator) -> Data:
    return {"N": 40, "y": g.poisson(3, 40) * g.integers(0, 2, 40)}


def _hurdle(g: np.random.Generator) -> Data:
    data = _counts(g)
    return data | {"y": data["y"] * g.integers(0, 2, 30)}


def _captures(g: np.random.Generator) -> Data:
    history = (g.random((20, 5)) < 0.5).astype(int)
    history[:3, 1:] = 0
    return {"T": 5, "M": 20, "history": history}


def _occupancy(g: np.random.Generator) -> Data:
    seen = g.binomial(4, 0.5, 25) * g.integers(0, 2, 25)
    return {"sites": 25, "visits": 4, "x": g.normal(size=25), "seen": seen}


def _predators(g: np.random.Generator) -> Data:
    ts = np.arange(1, 9) * 0.5
    u = np.column_stack([1.5 + np.sin(ts), 1.5 + np.cos(ts)])
    return {"N": 8, "ts": ts, "first": [1.4, 2.2], "y": u * np.exp(g.normal(0, 0.1, (8, 2)))}


def _epidemic(g: np.random.Generator) -> Data:
    ts = np.arange(1, 11)
    return {"T": 10, "N": 500.0, "ts": ts * 1.0, "cases": g.poisson(np.exp(ts * 0.5))}


def _missing(g: np.random.Generator) -> Data:
    return {
        **{"D": 3, "N": 12, "N_missing": 4, "y": g.normal(size=(12, 3))},
        "where": [[1, 1], [4, 2], [4, 3], [9, 1]],
    }


def _probit(g: np.random.Generator) -> Data:
    return {"D": 3, "N": 10, "y": g.integers(0, 2, (10, 3)), "x": g.normal(size=10)}


def _factors(g: np.random.Generator) -> Data:
    y = g.normal(size=(20, 2)) @ g.normal(size=(2, 5)) + g.normal(0, 0.5, (20, 5))
    return {"P": 5, "K": 2, "N": 20, "y": y}


def _map(g: np.random.Generator) -> Data:
    edges = np.array([[i, i + 1] for i in range(1, 12)] + [[i, i + 3] for i in range(1, 10)])
    return {
        **{"N": 12, "E": len(edges), "node1": edges[:, 0], "node2": edges[:, 1]},
        **{"expected": g.uniform(2, 8, 12), "y": g.poisson(5, 12)},
    }


def _car(g: np.random.Generator) -> Data:
    weights = np.zeros((8, 8), int)
    for i in range(8):
        weights[i, (i + 1) % 8] = weights[(i + 1) % 8, i] = 1
    return {"N": 8, "W": weights, "y": g.normal(size=8)}


def _shares(g: np.random.Generator) -> Data:
    return {"N": 10, "K": 4, "y": g.multinomial(15, [0.4, 0.3, 0.2, 0.1], 10)}


def _softmax(g: np.random.Generator) -> Data:
    return _shares(g) | {"x": g.normal(size=10)}


def _matches(g: np.random.Generator) -> Data:
    home = _index(g, 6, 40)
    away = (home + g.integers(0, 5, 40)) % 6 + 1
    return {"K": 6, "N": 40, "home": home, "away": away, "home_wins": g.integers(0, 2, 40)}


def _table(g: np.random.Generator) -> Data:
    return {"R": 4, "C": 3, "y": g.normal(2, 1, (4, 3))}


def _truncated(g: np.random.Generator) -> Data:
    y = 0.5 + np.abs(g.normal(0, 1, 15))
    return {
        "N": 15,
        "low": 0.5,
        "y": y,
        "z": g.normal(size=15),
        "counts": 1 + g.poisson(2, 15),
    }


def _angles(g: np.random.Generator) -> Data:
    return {"N": 25, "angle": g.vonmises(0.7, 2, 25)}


def _own(g: np.random.Generator) -> Data:
    return {"N": 12, "y": g.gumbel(1, 0.8, 12), "counts": np.minimum(3, g.poisson(2, 12))}


def _projected(g: np.random.Generator) -> Data:
    return {"N": 15, "M": 6, "X": g.normal(size=(15, 6)), "y": g.normal(size=15)}


def _matrices(g: np.random.Generator) -> Data:
    return {
        **{"A": 2, "B": 3, "R": 2, "C": 4},
        **{"Y": g.normal(size=(2, 3, 2, 4)), "shift": g.normal(size=(2, 4))},
    }


def _positive(g: np.random.Generator) -> Data:
    return {"N": 15, "y": g.gamma(2, 1, 15) + 0.01}


def _nothing(g: np.random.Generator) -> Data:
    return {"P": 0, "N": 10, "X": np.zeros((10, 0)), "y": g.normal(size=10), "nothing": []}


def _normal(g: np.random.Generator, n: int = 15) -> Data:
    return {"N": n, "y": g.normal(0.3, 1, n)}


def _signal(g: np.random.Generator) -> Data:
    return {"N": 8, "signal": g.normal(size=(8, 2))}


def _prices(g: np.random.Generator) -> Data:
    return {"N": 10, "price": g.normal(0.6, 0.1, 10)}


def _moves(g: np.random.Generator) -> Data:
    return {"K": 3, "moves": g.poisson(5, (3, 3))}


def _generalised(g: np.random.Generator) -> Data:
    return {
        **{"N": 20, "P": 2, "K": 3, "X": g.normal(size=(20, 2)), "y": g.normal(size=20)},
        **{"binary": g.integers(0, 2, 20), "count": g.poisson(2, 20), "grade": _index(g, 3, 20)},
    }


def _crossed(g: np.random.Generator) -> Data:
    return {
        **{"N": 30, "S": 5, "I": 6, "subject": np.repeat(np.arange(1, 6), 6)},
        **{"item": np.tile(np.arange(1, 7), 5), "rt": 0.3 + g.lognormal(0, 0.4, 30)},
    }


def _hits(g: np.random.Generator) -> Data:
    return {
        **{"N": 8, "trials": np.full(8, 12), "hits": g.binomial(12, 0.4, 8)},
        "levels": [0.05, 0.25, 0.5, 0.75, 0.95],
    }


def _changes(g: np.random.Generator) -> Data:
    return {"T": 25, "y": g.poisson(np.repeat([2, 5], [12, 13]))}


def _none(g: np.random.Generator) -> Data:
    return {}


MAKERS: dict[str, Maker] = {
    "schools_centred": _schools,
    "schools_noncentred": _schools,
    "linear_regression": _linear,
    "logistic": _logistic,
    "poisson_offset": _poisson_offset,
    "negative_binomial": _negative_binomial,
    "ordered_logistic": _graded,
    "categorical_logit": _classes,
    "robust_regression": _simple,
    "horseshoe": lambda g: _linear(g, 20, 6) | {"scale": 0.5},
    "varying_slopes": _slopes,
    "irt_1pl": _irt_long,
    "irt_2pl": _irt_wide,
    "mixture": _mixture,
    "mixture_multivariate": _mixture_multivariate,
    "lda": _lda,
    "dawid_skene": _raters,
    "hmm_forward": _hmm,
    "hmm_marginal": _hmm_counts,
    "gaussian_process": _process,
    "gaussian_process_latent": _process_counts,
    "gaussian_process_hilbert": _hilbert,
    "autoregression": _autoregression,
    "garch": _returns,
    "stochastic_volatility": _volatility,
    "local_level": _walk,
    "changepoint": _changes,
    "survival_weibull": _survival,
    "zero_inflated": _zeros,
    "hurdle": _hurdle,
    "cormack_jolly_seber": _captures,
    "occupancy": _occupancy,
    "lotka_volterra": _predators,
    "sir": _epidemic,
    "missing_normal": _missing,
    "multivariate_probit": _probit,
    "factor_analysis": _factors,
    "icar": _map,
    "car_sparse": _car,
    "dirichlet_multinomial": _shares,
    "multinomial_softmax": _softmax,
    "bradley_terry": _matches,
    "sum_to_zero": _table,
    "reduce_sum": _counts,
    "truncated": _truncated,
    "von_mises": _angles,
    "own_distribution": _own,
    "data_rng": _projected,
    "matrix_arrays": _matrices,
    "change_of_variables": _positive,
    "zero_sizes": _nothing,
    "control_flow": _normal,
    "profiles": _simple,
    "complex_numbers": _signal,
    "algebra_solver": _prices,
    "integral": _positive,
    "stochastic_matrices": _moves,
    "generalised_linear": _generalised,
    "random_effects_crossed": _crossed,
    "beta_binomial_quantiles": _hits,
    "bad_tuple": _none,
    "bad_syntax": _none,
    "bad_distribution": _none,
    "bad_type": _none,
    "bad_data_missing": lambda g: {"N": 3},
    "bad_data_shape": lambda g: {"N": 3, "y": [0.1, 0.2]},
    "bad_data_bound": lambda g: {"N": 2, "y": [0.1, -0.2]},
    "bad_fatal_error": lambda g: {"N": 2},
    "bad_fatal_in_model": _none,
    "bad_index": lambda g: {"K": 5, "y": [0.1, 0.2, 0.3]},
}
"""Makers of the data, by program."""
