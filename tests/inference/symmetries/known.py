"""Models with known symmetries: mixtures, topics, factors, hidden Markov, networks, and many without a symmetry."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, xlogy

from .functions import FunctionDensity, Point, in_jax, parameters


@dataclass(frozen=True)
class Known:
    """A model and its answer: valid blocks, other blocks or moves by status, and whether ascents are needed."""

    parameters: Mapping[str, tuple[tuple[int, ...], str]]
    function: Callable[[Point], float]
    live: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    ascents: bool = False
    as_read: Mapping[str, str] = field(default_factory=dict)
    """What reading says in other words, by those of the search: another generator, or more exactly."""

    @staticmethod
    def of(function: Callable[..., float], text: str, live: str = "", **more) -> "Known":
        """Make a model from a function, a text with its parameters, and one with valid blocks, separated by `;`."""
        words = tuple(live.split("; ")) if live else ()
        return Known(parameters(text), lambda p: function(**p), words, **more)

    def density(self, more: Callable[[Point], float] = lambda p: 0.0) -> FunctionDensity:
        """Return the model as the search takes it, with additions."""
        whole = lambda p: self.function(p) + more(p)  # noqa: E731
        return FunctionDensity(self.parameters, whole, ascents=self.ascents)

    def readable(self) -> FunctionDensity:
        """Return the model as the search takes it, with its JAX program to be read first."""
        density = self.density()
        density.program = in_jax(density.terms, sys.modules[__name__])
        return density


MODELS: dict[str, Known] = {}
RNG = np.random.default_rng(7)
Y = np.concatenate([RNG.normal(-2, 1, 15), RNG.normal(1, 0.7, 12), RNG.normal(4, 1, 8)])
X = RNG.normal(size=(25, 3))
OUT = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=25)
RNG.uniform(size=25)  # Two persons of `ANSWERS` must have the same answers.
ANSWERS = RNG.uniform(size=(9, 5)) < expit(RNG.normal(size=(9, 1)) + RNG.normal(size=5))
WORDS = RNG.integers(0, 6, size=(4, 12))
RNG.poisson(3.0, size=20)  # The random numbers below must not change.
LABELS = RNG.integers(0, 3, size=(8, 4))
TABLE = RNG.normal(size=(8, 5))
GRAPH = np.triu((RNG.uniform(size=(7, 7)) < 0.4).astype(float), 1)
GROUPS = RNG.normal(size=(4, 10))
TENSOR = RNG.normal(size=(4, 5, 6))


logsumexp = np.logaddexp.reduce
"""As SciPy's, which takes ten times as long for the few numbers here."""


def normal(x, mean=0.0, sd=1.0):
    return np.sum(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd))


def logs(y, mean, sd):
    return -0.5 * ((y - mean) / sd) ** 2 - np.log(sd)


def bernoulli(y, p):
    return xlogy(y, p) + xlogy(1 - y, 1 - p)


def mixed(weights, mean, sd, y=Y):
    """Return the log likelihood of a mixture of normal components."""
    return logsumexp(np.log(weights) + logs(y[:, None], mean, sd), axis=1).sum()


def filtered(start, moves, mean, sd):
    """Return the log likelihood of a hidden Markov model."""
    level = np.log(start) + logs(Y[0], mean, sd)
    for y in Y[1:]:
        level = logsumexp(level[:, None] + np.log(moves), axis=0) + logs(y, mean, sd)
    return logsumexp(level)


def process(kernel):
    """Return the log likelihood of a Gaussian process."""
    return -0.5 * OUT @ np.linalg.solve(kernel, OUT) - 0.5 * np.linalg.slogdet(kernel)[1]


def known(name, text, live="", **more):
    """Register the decorated function of the parameters in this text as a model with this name."""

    def keep(function):
        MODELS[name] = Known.of(function, text, live, **more)
        return function

    return keep


@known("mixture with ordered means", "mu 3 ordered, sigma 3 positive, theta 3 simplex")
@known("mixture of three", "mu 3, sigma 3 positive, theta 3 simplex", "mu,sigma,theta")
def _(mu, sigma, theta):
    return mixed(theta, mu, sigma) + normal(mu, 0, 5) + normal(np.log(sigma))


@known("mixture of two with a scalar weight", "mu 2, sigma 2 positive, w unit", "mu,sigma,1-w")
def _(mu, sigma, w):
    return mixed(np.stack([w, 1 - w]), mu, sigma) + normal(mu, 0, 5) + normal(sigma, 0, 2)


@known("mixture of two, means alone", "mu 2, w unit", "mu,1-w")
def _(mu, w):
    return mixed(np.stack([w, 1 - w]), mu, 1.0) + normal(mu, 0, 10)


@known("mixture with prior means apart", "mu 2, w unit")
def _(mu, w):
    return mixed(np.stack([w, 1 - w]), mu, 1.0) + normal(mu, np.array([-20.0, 20.0]), 1)


@known("mixture with prior means a little apart", "mu 2, w unit")
def _(mu, w):
    return mixed(np.stack([w, 1 - w]), mu, 1.0) + normal(mu, np.array([-0.05, 0.05]), 3)


PLANE = "mu 3x2, Sigma 3x2x2 covariance, theta 3 simplex"


@known("mixture in the plane with covariances", PLANE, "mu,Sigma,theta")
def _(mu, Sigma, theta):
    inverse, apart = np.linalg.inv(Sigma), TABLE[:, None, :2] - mu
    square = np.einsum("nki,kij,nkj->nk", apart, inverse, apart)
    parts = np.log(theta) - 0.5 * square - 0.5 * np.linalg.slogdet(Sigma)[1]
    prior = normal(mu, 0, 3) - np.trace(inverse, axis1=1, axis2=2).sum()
    return logsumexp(parts, axis=1).sum() + prior


SQUARE = "mu 2x2, L 2x2x2 cholesky, theta 2 simplex"


@known("mixture of as many parts as dimensions", SQUARE, "mu,L,theta")
def _(mu, L, theta):
    apart = TABLE[:, None, :2] * np.array([1.0, 3.0]) - mu
    square = (np.linalg.solve(L[None], apart[..., None]) ** 2).sum((2, 3))
    size = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
    parts = np.log(theta) - 0.5 * square - size
    return logsumexp(parts, axis=1).sum() + normal(mu, 0, 3) + normal(L)


LINES = "alpha 2, beta 2x3, sigma 2 positive, theta 2 simplex"


@known("mixture of regressions", LINES, "alpha,beta,sigma,theta")
def _(alpha, beta, sigma, theta):
    prior = normal(alpha) + normal(beta) - sigma.sum()
    return mixed(theta, alpha + X @ beta.T, sigma, OUT) + prior


TWO = "mu 3, theta 3 simplex, nu 3, phi 3 simplex"


@known("two mixtures", TWO, "mu,theta; nu,phi")
def _(mu, theta, nu, phi):
    return mixed(theta, mu, 1.0) + mixed(phi, nu, 0.5, OUT) + normal(mu, 0, 3) + normal(nu, 0, 2)


WITHIN = (("incomplete", "mu:1 and theta:1 within each place"),)


@known(
    "a mixture in each of four groups", "mu 4x3, theta 4x3 simplex", "mu:1,theta:1", others=WITHIN
)
def _(mu, theta):
    part = np.log(theta)[:, None] + logs(GROUPS[:, :, None], mu[:, None], 1.0)
    return logsumexp(part, axis=2).sum() + normal(mu, 0, 3)


@known("topics", "theta 4x3 simplex, phi 3x6 simplex", "theta:1,phi")
@known("topics, all axes alike", "theta 3x3 simplex, phi 3x3 simplex", "theta:1,phi")
def _(theta, phi):
    documents, words = len(theta), phi.shape[1]
    seen = (theta @ phi)[np.arange(documents)[:, None], WORDS[:documents] % words]
    return np.log(seen).sum() + 0.5 * np.log(phi).sum()


@known("factors", "L 5x2, F 8x2", "+-L:1,+-F:1")
def _(L, F):
    return normal(TABLE, F @ L.T, 0.5) - np.abs(L).sum() + normal(F)


@known("factors of numbers above zero", "W 8x2 positive, H 2x5 positive", "W:1,H")
def _(W, H):
    return normal(np.abs(TABLE), W @ H, 0.5) - W.sum() - H.sum()


@known("factors with a triangle of loadings", "l 4, d 2 positive, F 8x2")
def _(l, d, F):  # noqa: E741
    first = np.stack([d[0], l[0], l[1], l[1], l[1]])
    second = np.stack([0.0 * d[0], d[1], 0.0 * d[0], l[2], 0.0 * d[0]])
    load = np.stack([first, second], axis=1)
    return normal(TABLE, F @ load.T, 0.5) + normal(l) + normal(d) + normal(F)


UNSEEN = (("harmless", "theta:0"),)


@known("item response", "theta 9, a 5, b 5", "+-theta:,+-a:", others=UNSEEN)
def _(theta, a, b):
    eta = a * theta[:, None] - b
    return bernoulli(ANSWERS, expit(eta)).sum() + normal(theta) + normal(a) + normal(b)


@known("latent classes", "pi 3 simplex, q 3x5 unit", "pi,q")
def _(pi, q):
    part = np.log(pi) + bernoulli(ANSWERS[:, None], q).sum(-1)
    return logsumexp(part, axis=1).sum() + np.log(q).sum() + np.log1p(-q).sum()


@known("hidden Markov", "pi 3 simplex, A 3x3 simplex, mu 3, s positive", "pi,A:0:1,mu")
def _(pi, A, mu, s):
    return filtered(pi, A, mu, s) + normal(mu, 0, 5) - s + np.log(A).sum()


@known("hidden Markov with ordered means", "A 2x2 simplex, mu 2 ordered")
def _(A, mu):
    return filtered(0.5, A, mu, 1.0) + normal(mu, 0, 5)


def _net(activation, W1, b1, W2, b2):
    mean = activation(X @ W1 + b1) @ W2 + b2
    return normal(OUT, mean, 0.3) + sum(map(normal, (W1, b1, W2, b2)))


NET = "W1 3x4, b1 4, W2 4, b2"


@known("network with relu", NET, "W1:1,b1,W2")
def _(**p):
    return _net(lambda h: np.maximum(h, 0), **p)


@known("network with tanh", NET, "+-W1:1,+-b1,+-W2")
def _(**p):
    return _net(np.tanh, **p)


DEEP = "W1 3x4, b1 4, W2 4x4, b2 4, W3 4"


@known("deep network with tanh", DEEP, "+-W1:1,+-b1,+-W2; +-W2:1,+-b2,+-W3")
def _(W1, b1, W2, b2, W3):
    hidden = np.tanh(np.tanh(X @ W1 + b1) @ W2 + b2)
    return normal(OUT, hidden @ W3, 0.3) + sum(map(normal, (W1, b1, W2, b2, W3)))


@known("stochastic blocks", "pi 2 simplex, z 7x2 simplex, B 2x2 unit", "pi,z:1,B:0:1")
def _(pi, z, B):
    edges = bernoulli(GRAPH, z @ B @ z.T)[np.triu_indices(7, 1)]
    return edges.sum() + (np.log(z) * pi).sum()


@known("Gaussian process", "alpha positive, rho 3 positive, s positive")
def _(alpha, rho, s):
    d = ((X[:, None] - X) ** 2 / rho**2).sum(-1)
    kernel = alpha**2 * np.exp(-0.5 * d) + (s**2 + 1e-3) * np.eye(25)
    return process(kernel) - alpha - rho.sum() - s


@known("softmax regression", "W 3x3, b 3")
def _(W, b):
    eta, row = X @ W + b, np.arange(25)
    return eta[row, row % 3].sum() - logsumexp(eta, axis=1).sum() + normal(W) + normal(b)


UNOBSERVED = (("harmless", "eta:0"),)


@known("eight schools", "mu, tau positive, eta 8")
@known(
    "eight schools, three without data",
    "mu, tau positive, eta 11",
    others=UNOBSERVED,
    as_read={"eta:0": "eta:0[8:11]"},
)
def _(mu, tau, eta):
    seen = normal(TABLE[:, 0] * 10, mu + tau * eta[:8], 5 + np.arange(8))
    return seen + normal(eta) + normal(mu, 0, 5) - tau


FREE = (("harmless", "eta"), ("harmless", "+-eta:"))


@known("effects without data", "mu, tau positive, eta 500", others=FREE)
def _(mu, tau, eta):
    return normal(OUT, mu, tau) + normal(eta, 0, tau) + normal(mu) - tau


EQUAL = (("harmless", "b"),)


@known("regression with equal columns", "b 2, s positive", others=EQUAL, ascents=True)
def _(b, s):
    return normal(OUT, X[:, 0] * b.sum(), s) + normal(b) - s


@known("ordered cutpoints", "c 4 ordered, b 3")
def _(c, b):
    level, k, eta = (
        np.concatenate([np.full(1, -40.0), c, np.full(1, 40.0)]),
        np.arange(25) % 5,
        X @ b,
    )
    share = expit(level[k + 1] - eta) - expit(level[k] - eta)
    return np.log(share + 1e-300).sum() + normal(b) + normal(c, 0, 3)


@known("multivariate effects", "mu 3, Sigma 3x3 covariance, u 8x3")
def _(mu, Sigma, u):
    square = np.einsum("ni,ij,nj->", u - mu, np.linalg.inv(Sigma), u - mu)
    prior = np.trace(Sigma) - normal(mu) + 4 * np.linalg.slogdet(Sigma)[1]
    return -0.5 * square - prior + normal(TABLE[:, :3], u, 0.5)


@known("annotators", "pi 3 simplex, conf 4x3x3 simplex", "pi,conf:1")
def _(pi, conf):
    part = np.log(pi) + np.log(conf)[np.arange(4)[:, None], :, LABELS.T].sum(0)
    return logsumexp(part, axis=1).sum() + 0.5 * np.log(conf).sum()


@known("a difference with a free sign", "m 2, s", "m,+-s:")
def _(m, s):
    return normal(OUT, s * (np.exp(m[0]) - np.exp(m[1])), 0.5) + normal(m) + normal(s)


SIGNS = (("incomplete", "signs of parts of +-A:1 and +-C:1"),)


@known(
    "three factors of a tensor",
    "A 4x3, B 5x3, C 6x3",
    "+-A:1,+-B:1,C:1; +-A:,+-C:",
    others=SIGNS,
    as_read={
        "+-A:1,+-B:1,C:1": "+-A:1,B:1,+-C:1",
        "+-A:,+-C:": "+-A:,+-B:",
        "signs of parts of +-A:1 and +-C:1": "signs of parts of +-A:1 and +-B:1",
    },
)
def _(A, B, C):
    return normal(TENSOR, np.einsum("ik,jk,lk->ijl", A, B, C), 0.5) + sum(map(normal, (A, B, C)))


@known("bounds that depend on another parameter", "low, b 3")
def _(low, b):
    return np.where((b < low).any(), -np.inf, normal(OUT, X @ b, 1.0) + normal(low) + normal(b))


@known(
    "experts whose gate is one to rounding far away",
    "gate 2, line 2x2, s 2 positive",
    "line:1,s,+-gate:",
)
def _(gate, line, s):
    share = expit(6 * X[:, :2] @ gate)
    weights = np.log(np.stack([share, 1 - share], axis=1))
    part = weights + logs(OUT[:, None], X[:, :2] @ line, s)
    prior = normal(6 * gate, 0, 3) + normal(line) - s.sum()
    return logsumexp(part, axis=1).sum() + prior
