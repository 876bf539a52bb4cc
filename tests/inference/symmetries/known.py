"""Models with known symmetries: mixtures, topics, factors, hidden Markov, networks, and many without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, xlogy

from .functions import FunctionDensity


@dataclass(frozen=True)
class Known:
    """A model and its answer: words of live blocks; words or moves of others by status; whether ascents are needed."""

    parameters: Mapping[str, tuple[tuple[int, ...], str]]
    function: Callable
    live: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    ascents: bool = False

    def density(self) -> FunctionDensity:
        """As it is searched."""
        return FunctionDensity(self.parameters, self.function, ascents=self.ascents)


MODELS: dict[str, Known] = {}
RNG = np.random.default_rng(7)
Y = np.concatenate([RNG.normal(-2, 1, 15), RNG.normal(1, 0.7, 12), RNG.normal(4, 1, 8)])
X = RNG.normal(size=(25, 3))
OUT = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=25)
BINARY = (RNG.uniform(size=25) < expit(X[:, 0] - 0.5)).astype(float)
ANSWERS = (RNG.uniform(size=(9, 5)) < expit(RNG.normal(size=(9, 1)) + RNG.normal(size=5))).astype(
    float
)
WORDS = RNG.integers(0, 6, size=(4, 12))
COUNTS = RNG.poisson(3.0, size=20)
LABELS = RNG.integers(0, 3, size=(8, 4))
TABLE = RNG.normal(size=(8, 5))
GRAPH = np.triu((RNG.uniform(size=(7, 7)) < 0.4).astype(float), 1)
GROUPS = RNG.normal(size=(4, 10))
TENSOR = RNG.normal(size=(4, 5, 6))


def normal(x, mean=0.0, sd=1.0):
    return float(np.sum(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd)))


def logs(y, mean, sd):
    return -0.5 * ((y - mean) / sd) ** 2 - np.log(sd)


def bernoulli(y, p):
    return xlogy(y, p) + xlogy(1 - y, 1 - p)


def known(name, parameters, *, live=(), others=(), ascents=False):
    def keep(function):
        MODELS[name] = Known(parameters, function, live, others, ascents)
        return function

    return keep


@known(
    "mixture of three",
    {"mu": ((3,), "real"), "sigma": ((3,), "positive"), "theta": ((3,), "simplex")},
    live=("mu,sigma,theta",),
)
def _(p):
    part = np.log(p["theta"]) + logs(Y[:, None], p["mu"], p["sigma"])
    return logsumexp(part, axis=1).sum() + normal(p["mu"], 0, 5) + normal(np.log(p["sigma"]))


@known(
    "mixture of two with a scalar weight",
    {"mu": ((2,), "real"), "sigma": ((2,), "positive"), "w": ((), "unit")},
    live=("mu,sigma,1-w",),
)
def _(p):
    part = np.log([p["w"], 1 - p["w"]]) + logs(Y[:, None], p["mu"], p["sigma"])
    return logsumexp(part, axis=1).sum() + normal(p["mu"], 0, 5) + normal(p["sigma"], 0, 2)


@known("mixture of two, means alone", {"mu": ((2,), "real"), "w": ((), "unit")}, live=("mu,1-w",))
def _(p):
    part = np.log([p["w"], 1 - p["w"]]) + logs(Y[:, None], p["mu"], 1.0)
    return logsumexp(part, axis=1).sum() + normal(p["mu"], 0, 10)


@known("mixture with fixed weights", {"mu": ((2,), "real"), "sigma": ((2,), "positive")})
def _(p):
    part = np.log([0.3, 0.7]) + logs(Y[:, None], p["mu"], p["sigma"])
    return logsumexp(part, axis=1).sum() + normal(p["mu"], 0, 5) + normal(p["sigma"], 0, 2)


@known(
    "mixture with ordered means",
    {"mu": ((3,), "ordered"), "sigma": ((3,), "positive"), "theta": ((3,), "simplex")},
)
def _(p):
    part = np.log(p["theta"]) + logs(Y[:, None], p["mu"], p["sigma"])
    return logsumexp(part, axis=1).sum() + normal(p["mu"], 0, 5) + normal(np.log(p["sigma"]))


@known("mixture with prior means apart", {"mu": ((2,), "real"), "w": ((), "unit")})
def _(p):
    part = np.log([p["w"], 1 - p["w"]]) + logs(Y[:, None], p["mu"], 1.0)
    return logsumexp(part, axis=1).sum() + normal(p["mu"], np.array([-20.0, 20.0]), 1)


@known(
    "mixture with prior means a little apart",
    {"mu": ((2,), "real"), "w": ((), "unit")},
    others=(("near", "mu,1-w"),),
)
def _(p):
    part = np.log([p["w"], 1 - p["w"]]) + logs(Y[:, None], p["mu"], 1.0)
    return logsumexp(part, axis=1).sum() + normal(p["mu"], np.array([-0.05, 0.05]), 3)


@known(
    "mixture in the plane with covariances",
    {"mu": ((3, 2), "real"), "Sigma": ((3, 2, 2), "covariance"), "theta": ((3,), "simplex")},
    live=("mu,Sigma,theta",),
)
def _(p):
    total = []
    for k in range(3):
        r = TABLE[:, :2] - p["mu"][k]
        total.append(
            np.log(p["theta"][k])
            - 0.5 * np.einsum("ni,ij,nj->n", r, np.linalg.inv(p["Sigma"][k]), r)
            - 0.5 * np.linalg.slogdet(p["Sigma"][k])[1]
        )
    return (
        logsumexp(np.array(total), axis=0).sum()
        + normal(p["mu"], 0, 3)
        - sum(np.trace(np.linalg.inv(p["Sigma"][k])) for k in range(3))
    )


@known(
    "mixture of as many parts as dimensions",
    {"mu": ((2, 2), "real"), "L": ((2, 2, 2), "cholesky"), "theta": ((2,), "simplex")},
    live=("mu,L,theta",),
)
def _(p):
    total = []
    scale = np.array([1.0, 3.0])
    for k in range(2):
        r = np.linalg.solve(p["L"][k], (TABLE[:, :2] * scale - p["mu"][k]).T)
        total.append(
            np.log(p["theta"][k]) - 0.5 * (r**2).sum(0) - np.log(np.diagonal(p["L"][k])).sum()
        )
    return logsumexp(np.array(total), axis=0).sum() + normal(p["mu"], 0, 3) + normal(p["L"])


@known(
    "mixture of Poissons",
    {"rate": ((2,), "positive"), "theta": ((2,), "simplex")},
    live=("rate,theta",),
)
def _(p):
    part = np.log(p["theta"]) + COUNTS[:, None] * np.log(p["rate"]) - p["rate"]
    return logsumexp(part, axis=1).sum() - p["rate"].sum()


@known(
    "mixture of regressions",
    {
        "alpha": ((2,), "real"),
        "beta": ((2, 3), "real"),
        "sigma": ((2,), "positive"),
        "theta": ((2,), "simplex"),
    },
    live=("alpha,beta,sigma,theta",),
)
def _(p):
    part = np.log(p["theta"]) + logs(OUT[:, None], p["alpha"] + X @ p["beta"].T, p["sigma"])
    return logsumexp(part, axis=1).sum() + normal(p["alpha"]) + normal(p["beta"]) - p["sigma"].sum()


@known(
    "two mixtures",
    {
        "mu": ((3,), "real"),
        "theta": ((3,), "simplex"),
        "nu": ((3,), "real"),
        "phi": ((3,), "simplex"),
    },
    live=("mu,theta", "nu,phi"),
)
def _(p):
    one = np.log(p["theta"]) + logs(Y[:, None], p["mu"], 1.0)
    two = np.log(p["phi"]) + logs(OUT[:, None], p["nu"], 0.5)
    return (
        logsumexp(one, axis=1).sum()
        + logsumexp(two, axis=1).sum()
        + normal(p["mu"], 0, 3)
        + normal(p["nu"], 0, 2)
    )


@known(
    "a mixture in each of four groups",
    {"mu": ((4, 3), "real"), "theta": ((4, 3), "simplex")},
    live=("mu:1,theta:1",),
    others=(("incomplete", "mu:1 and theta:1 within each place"),),
)
def _(p):
    part = np.log(p["theta"])[:, None] + logs(GROUPS[:, :, None], p["mu"][:, None], 1.0)
    return logsumexp(part, axis=2).sum() + normal(p["mu"], 0, 3)


@known("topics", {"theta": ((4, 3), "simplex"), "phi": ((3, 6), "simplex")}, live=("theta:1,phi",))
def _(p):
    return (
        np.log((p["theta"] @ p["phi"])[np.arange(4)[:, None], WORDS]).sum()
        + 0.5 * np.log(p["phi"]).sum()
    )


@known(
    "topics, all axes alike",
    {"theta": ((3, 3), "simplex"), "phi": ((3, 3), "simplex")},
    live=("theta:1,phi",),
)
def _(p):
    return (
        np.log((p["theta"] @ p["phi"])[np.arange(3)[:, None], WORDS[:3] % 3]).sum()
        + 0.5 * np.log(p["phi"]).sum()
    )


@known("factors", {"L": ((5, 2), "real"), "F": ((8, 2), "real")}, live=("+-L:1,+-F:1",))
def _(p):
    return normal(TABLE, p["F"] @ p["L"].T, 0.5) - np.abs(p["L"]).sum() + normal(p["F"])


@known(
    "factors of numbers above zero",
    {"W": ((8, 2), "positive"), "H": ((2, 5), "positive")},
    live=("W:1,H",),
)
def _(p):
    return normal(np.abs(TABLE), p["W"] @ p["H"], 0.5) - p["W"].sum() - p["H"].sum()


@known(
    "factors with a triangle of loadings",
    {"l": ((4,), "real"), "d": ((2,), "positive"), "F": ((8, 2), "real")},
)
def _(p):
    load = np.zeros((5, 2))
    load[0, 0], load[1, 1], load[1, 0], load[2:, 0], load[3, 1] = (
        *p["d"],
        p["l"][0],
        p["l"][1],
        p["l"][2],
    )
    return normal(TABLE, p["F"] @ load.T, 0.5) + normal(p["l"]) + normal(p["d"]) + normal(p["F"])


@known(
    "item response",
    {"theta": ((9,), "real"), "a": ((5,), "real"), "b": ((5,), "real")},
    live=("+-theta:,+-a:",),
    others=(("harmless", "theta:0"),),
)
def _(p):
    eta = p["a"] * p["theta"][:, None] - p["b"]
    return (
        bernoulli(ANSWERS, expit(eta)).sum() + normal(p["theta"]) + normal(p["a"]) + normal(p["b"])
    )


@known(
    "item response with slopes above zero",
    {"theta": ((9,), "real"), "a": ((5,), "positive"), "b": ((5,), "real")},
    others=(("harmless", "theta:0"),),
)
def _(p):
    eta = p["a"] * (p["theta"][:, None] - p["b"])
    return (
        bernoulli(ANSWERS, expit(eta)).sum()
        + normal(p["theta"])
        + normal(np.log(p["a"]))
        + normal(p["b"])
    )


@known("latent classes", {"pi": ((3,), "simplex"), "q": ((3, 5), "unit")}, live=("pi,q",))
def _(p):
    part = np.log(p["pi"]) + bernoulli(ANSWERS[:, None], p["q"]).sum(-1)
    return logsumexp(part, axis=1).sum() + np.log(p["q"]).sum() + np.log1p(-p["q"]).sum()


@known(
    "hidden Markov",
    {
        "pi": ((3,), "simplex"),
        "A": ((3, 3), "simplex"),
        "mu": ((3,), "real"),
        "s": ((), "positive"),
    },
    live=("pi,A:0:1,mu",),
)
def _(p):
    level = np.log(p["pi"]) + logs(Y[0], p["mu"], p["s"])
    for y in Y[1:]:
        level = logsumexp(level[:, None] + np.log(p["A"]), axis=0) + logs(y, p["mu"], p["s"])
    return logsumexp(level) + normal(p["mu"], 0, 5) - p["s"] + np.log(p["A"]).sum()


@known("hidden Markov with ordered means", {"A": ((2, 2), "simplex"), "mu": ((2,), "ordered")})
def _(p):
    level = np.log(0.5) + logs(Y[0], p["mu"], 1.0)
    for y in Y[1:]:
        level = logsumexp(level[:, None] + np.log(p["A"]), axis=0) + logs(y, p["mu"], 1.0)
    return logsumexp(level) + normal(p["mu"], 0, 5)


def _net(p, activation):
    hidden = activation(X @ p["W1"] + p["b1"])
    return normal(OUT, hidden @ p["W2"] + p["b2"], 0.3) + sum(normal(v) for v in p.values())


NET = {"W1": ((3, 4), "real"), "b1": ((4,), "real"), "W2": ((4,), "real"), "b2": ((), "real")}


@known("network with relu", NET, live=("W1:1,b1,W2",))
def _(p):
    return _net(p, lambda h: np.maximum(h, 0))


@known("network with tanh", NET, live=("+-W1:1,+-b1,+-W2",))
def _(p):
    return _net(p, np.tanh)


@known(
    "deep network with tanh",
    {
        "W1": ((3, 4), "real"),
        "b1": ((4,), "real"),
        "W2": ((4, 4), "real"),
        "b2": ((4,), "real"),
        "W3": ((4,), "real"),
    },
    live=("+-W1:1,+-b1,+-W2", "+-W2:1,+-b2,+-W3"),
)
def _(p):
    hidden = np.tanh(np.tanh(X @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
    return normal(OUT, hidden @ p["W3"], 0.3) + sum(normal(v) for v in p.values())


@known(
    "radial basis with spreads",
    {"c": ((3, 3), "real"), "r": ((3,), "positive"), "w": ((3,), "real")},
    live=("c,r,w",),
)
def _(p):
    d = ((X[:, None] - p["c"]) ** 2).sum(-1)
    return (
        normal(OUT, np.exp(-d / p["r"]) @ p["w"], 0.3)
        + normal(p["c"])
        + normal(p["w"])
        - p["r"].sum()
    )


@known(
    "stochastic blocks",
    {"pi": ((2,), "simplex"), "z": ((7, 2), "simplex"), "B": ((2, 2), "unit")},
    live=("pi,z:1,B:0:1",),
)
def _(p):
    rate = p["z"] @ p["B"] @ p["z"].T
    return bernoulli(GRAPH, rate)[np.triu_indices(7, 1)].sum() + (np.log(p["z"]) * p["pi"]).sum()


@known(
    "a product of two kernels' sum",
    {"alpha": ((2,), "positive"), "rho": ((2,), "positive"), "s": ((), "positive")},
    live=("alpha,rho",),
)
def _(p):
    d = (X[:, :1] - X[:, :1].T) ** 2
    k = sum(p["alpha"][j] ** 2 * np.exp(-0.5 * d / p["rho"][j] ** 2) for j in range(2)) + (
        p["s"] ** 2 + 1e-3
    ) * np.eye(25)
    return (
        -0.5 * OUT @ np.linalg.solve(k, OUT)
        - 0.5 * np.linalg.slogdet(k)[1]
        - p["alpha"].sum()
        - (1 / p["rho"]).sum()
        - p["s"]
    )


@known(
    "Gaussian process",
    {"alpha": ((), "positive"), "rho": ((3,), "positive"), "s": ((), "positive")},
)
def _(p):
    d = ((X[:, None] - X) ** 2 / p["rho"] ** 2).sum(-1)
    k = p["alpha"] ** 2 * np.exp(-0.5 * d) + (p["s"] ** 2 + 1e-3) * np.eye(25)
    return (
        -0.5 * OUT @ np.linalg.solve(k, OUT)
        - 0.5 * np.linalg.slogdet(k)[1]
        - p["alpha"]
        - p["rho"].sum()
        - p["s"]
    )


@known("linear regression", {"a": ((), "real"), "b": ((3,), "real"), "s": ((), "positive")})
def _(p):
    return normal(OUT, p["a"] + X @ p["b"], p["s"]) + normal(p["b"]) - p["s"]


@known("softmax regression", {"W": ((3, 3), "real"), "b": ((3,), "real")})
def _(p):
    eta = X @ p["W"] + p["b"]
    return (
        eta[np.arange(25), COUNTS.sum() % 3 * 0 + (np.arange(25) % 3)].sum()
        - logsumexp(eta, axis=1).sum()
        + normal(p["W"])
        + normal(p["b"])
    )


@known("eight schools", {"mu": ((), "real"), "tau": ((), "positive"), "eta": ((8,), "real")})
def _(p):
    return (
        normal(TABLE[:, 0] * 10, p["mu"] + p["tau"] * p["eta"], 5 + np.arange(8))
        + normal(p["eta"])
        + normal(p["mu"], 0, 5)
        - p["tau"]
    )


@known(
    "eight schools, three without data",
    {"mu": ((), "real"), "tau": ((), "positive"), "eta": ((11,), "real")},
    others=(("harmless", "eta:0"),),
)
def _(p):
    return (
        normal(TABLE[:, 0] * 10, p["mu"] + p["tau"] * p["eta"][:8], 5 + np.arange(8))
        + normal(p["eta"])
        + normal(p["mu"], 0, 5)
        - p["tau"]
    )


@known(
    "effects without data",
    {"mu": ((), "real"), "tau": ((), "positive"), "eta": ((500,), "real")},
    others=(("harmless", "eta"), ("harmless", "+-eta:")),
)
def _(p):
    return (
        normal(OUT, p["mu"], p["tau"]) + normal(p["eta"], 0, p["tau"]) + normal(p["mu"]) - p["tau"]
    )


@known(
    "regression with equal columns",
    {"b": ((2,), "real"), "s": ((), "positive")},
    others=(("harmless", "b"),),
    ascents=True,
)
def _(p):
    return normal(OUT, X[:, 0] * p["b"].sum(), p["s"]) + normal(p["b"]) - p["s"]


@known("ordered cutpoints", {"c": ((4,), "ordered"), "b": ((3,), "real")})
def _(p):
    level = np.concatenate([[-40.0], p["c"], [40.0]])
    k = np.arange(25) % 5
    eta = X @ p["b"]
    return (
        np.log(expit(level[k + 1] - eta) - expit(level[k] - eta) + 1e-300).sum()
        + normal(p["b"])
        + normal(p["c"], 0, 3)
    )


@known(
    "multivariate effects",
    {"mu": ((3,), "real"), "Sigma": ((3, 3), "covariance"), "u": ((8, 3), "real")},
)
def _(p):
    r = p["u"] - p["mu"]
    return (
        -0.5 * np.einsum("ni,ij,nj->", r, np.linalg.inv(p["Sigma"]), r)
        - 4 * np.linalg.slogdet(p["Sigma"])[1]
        + normal(TABLE[:, :3], p["u"], 0.5)
        - np.trace(p["Sigma"])
        + normal(p["mu"])
    )


@known(
    "sinusoids",
    {"amp": ((2,), "positive"), "freq": ((2,), "positive"), "phase": ((2,), "real")},
    live=("amp,freq,phase",),
)
def _(p):
    t = np.linspace(0, 4, 25)
    return (
        normal(OUT, (p["amp"] * np.sin(p["freq"] * t[:, None] + p["phase"])).sum(1), 0.3)
        - p["amp"].sum()
        - p["freq"].sum()
        + normal(p["phase"])
    )


@known("annotators", {"pi": ((3,), "simplex"), "conf": ((4, 3, 3), "simplex")}, live=("pi,conf:1",))
def _(p):
    labels = LABELS
    part = np.log(p["pi"]) + np.log(p["conf"])[np.arange(4)[:, None], :, labels.T[:, :]].sum(0)
    return logsumexp(part, axis=1).sum() + 0.5 * np.log(p["conf"]).sum()


@known(
    "two scales with a free sign",
    {"tau": ((), "real"), "z": ((8,), "real"), "mu": ((), "real")},
    live=("+-tau:,+-z:",),
)
def _(p):
    return (
        normal(TABLE[:, 0] * 3, p["mu"] + p["tau"] * p["z"], 0.5)
        + normal(p["tau"], 0, 2)
        + normal(p["z"])
        + normal(p["mu"])
    )


@known(
    "a difference with a free sign",
    {"m": ((2,), "real"), "s": ((), "real")},
    live=("m,+-s:",),
)
def _(p):
    apart = np.exp(p["m"][0]) - np.exp(p["m"][1])
    return normal(OUT, p["s"] * apart, 0.5) + normal(p["m"]) + normal(p["s"])


@known(
    "three factors of a tensor",
    {"A": ((4, 3), "real"), "B": ((5, 3), "real"), "C": ((6, 3), "real")},
    live=("+-A:1,+-B:1,C:1", "+-A:,+-C:"),
    others=(("incomplete", "signs of parts of +-A:1 and +-C:1"),),
)
def _(p):
    mean = np.einsum("ik,jk,lk->ijl", p["A"], p["B"], p["C"])
    return normal(TENSOR, mean, 0.5) + sum(normal(p[name]) for name in "ABC")


@known(
    "moving average",
    {"mu": ((), "real"), "phi": ((), "unit"), "theta": ((), "real"), "s": ((), "positive")},
)
def _(p):
    err, total = 0.0, 0.0
    for t in range(1, len(Y)):
        err = Y[t] - (p["mu"] + p["phi"] * Y[t - 1] + p["theta"] * err)
        total += logs(err, 0.0, p["s"])
    return total + normal(p["mu"]) + normal(p["theta"]) - p["s"]


@known("bounds that depend on another parameter", {"low": ((), "real"), "b": ((3,), "real")})
def _(p):
    if (p["b"] < p["low"]).any():
        return -np.inf
    return normal(OUT, X @ p["b"], 1.0) + normal(p["low"]) + normal(p["b"])


@known(
    "experts whose gate is one to rounding far away",
    {"gate": ((2,), "real"), "line": ((2, 2), "real"), "s": ((2,), "positive")},
    live=("line:1,s,+-gate:",),
)
def _(p):
    with np.errstate(divide="ignore"):
        share = expit(6 * X[:, :2] @ p["gate"])
        weights = np.log(np.stack([share, 1 - share], axis=1))
    part = weights + logs(OUT[:, None], X[:, :2] @ p["line"], p["s"])
    prior = normal(6 * p["gate"], 0, 3) + normal(p["line"]) - p["s"].sum()
    return logsumexp(part, axis=1).sum() + prior
