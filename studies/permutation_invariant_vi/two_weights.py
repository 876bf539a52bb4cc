"""The network of two weights: its posterior by quadrature, the best mean-field Gaussians, and trained Gaussians.

f(x) = relu(w1 x) + relu(w2 x), y ~ N(f(x), noise^2), w1 and w2 ~ N(0, 1). The data follow f(x) = alpha |x| with
x ~ N(0, 1). The weights (alpha, -alpha) and (-alpha, alpha) both produce this function. One data set has the same x and
the same standardised errors for every alpha and every noise.

The posterior: f is linear on each side of zero, f(x) = |x| s(w), with the slopes

    s_+(w) = relu(w1) + relu(w2)  where x > 0,    s_-(w) = relu(-w1) + relu(-w2)  where x < 0.

The likelihood therefore depends on five numbers of the data (`Statistics`), and the log posterior is quadratic in each
quadrant of the weights. The quadrature is Gauss-Legendre on equal panels in both weights. A panel edge lies at zero,
because the log density has kinks there. Panels are halved until the log evidence converges.

The Gaussians: q(w) = N(w1; m1, s1^2) N(w2; m2, s2^2); q^G is the mean of q and of q with the weights swapped. The ELBO
has a closed form, because the moments of relu(w) have one, and it includes all constants. So the log evidence minus the
ELBO is KL(q || p). The log evidence minus the ELBO and the mutual information I is KL(q^G || p). With w = m + s e,

    I = log 2 - E_e[log(1 + e^d)],   d = log q(w2, w1) - log q(w1, w2).

The trapezoidal rule in both e converges geometrically for this integrand.

The error of a prediction is the expected squared distance of its mean from the true function over x ~ N(0, 1): half the
sum of the squared errors of the two slopes. The expected test MSE is this error plus the noise variance. For trained
approximations, lists have one entry per fit. Predictions are averaged over the draws of a fit; divergences are computed
from the Gaussian.

Source: Gelberg et al. 2024, section 5, Tables 2 and 3, Theorem 4.1. The text available to us lacks the paper's settings
(points, noise, alphas, K, steps, batches), so we chose them. L-BFGS from several starts finds the optima; the paper
uses Adam on noisy gradients.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.stats import norm
from jaxtyping import Array, Float
from scipy.optimize import minimize
from scipy.special import logsumexp

from onebasin.base.errors import InferenceError
from onebasin.base.settings import Count, Positive, Seed, Several, settings
from onebasin.inference import Symmetrised
from onebasin.models import BayesianNetwork, Gaussian, Network, NetworkTarget, NormalPrior, predict

from ..lab.study import Frames, Row, frame_of

METHODS = {"mfvi": "none", "sgm-exact": "exact", "sgm-infonce": "infonce"}
"""Estimator of the mutual information in training, by method."""
WORDS = {"mfvi": "MFVI", "sgm-exact": "SGM, exact", "sgm-infonce": "SGM, InfoNCE"}
"""Labels of the methods. SGM is the paper's name for the symmetrised mean field."""
REPORT_DRAWS = 2000  # Number of draws for the ELBO and mutual information that a fit reports.
_STREAMS = {"train": 0, "test": 1}


@settings
class TwoWeightSettings:
    """Settings of the experiment with two weights."""

    alphas: tuple[Positive, ...] = (0.1, 0.25, 0.5, 0.75, 1.0, 2.0)
    """Weights of the true function, ascending."""
    noise: Positive = 1.0  # Standard deviation of the noise in the fitted data.
    noises: tuple[Positive, ...] = (1.0, 0.3)
    """Noises for which the best approximations are computed by quadrature; they include `noise`."""
    num_obs: Count = 20
    num_test: Count = 1000  # `num_obs`, `num_test`: numbers of training and test points.
    data_seed: Seed = 0  # Seed of the data sets.
    data_sets: Several = 40
    """Number of data sets, at least 2, over which the errors of the best approximations are averaged."""
    fits: Count = 5  # Number of independent fits per method.
    steps: Count = 4000
    learning_rate: Positive = 0.01  # `steps`, `learning_rate`: settings of Adam.
    permutations: Several = 10  # K of InfoNCE.
    draws: Count = 1000  # Number of draws per fit over which predictions are averaged.


QUICK = TwoWeightSettings(
    alphas=(1.0,), noises=(1.0,), num_test=300, data_sets=4, fits=2, steps=500, draws=200
)
"""Settings that take less than a minute on one core."""


@dataclass(frozen=True)
class WeightsProblem:
    """A data set: the weight of its true function, the standard deviation of its noise, and its number.

    Methods are fitted to data set 0.
    """

    settings: TwoWeightSettings
    alpha: float
    noise: float
    data_set: int = 0

    def points(self, which: str) -> tuple[np.ndarray, np.ndarray]:
        """Make x and y for training (``"train"``) or testing (``"test"``). The two sets are disjoint."""
        rng = np.random.default_rng([self.settings.data_seed, self.data_set, _STREAMS[which]])
        size = self.settings.num_obs if which == "train" else self.settings.num_test
        x, error = rng.standard_normal((2, size))
        return x, self.alpha * np.abs(x) + self.noise * error


def model(settings: TwoWeightSettings) -> BayesianNetwork:
    """Make the network that sums two ReLU units without biases."""
    network = Network(1, (2,), 1, "relu", biases=False, readout="sum")
    return BayesianNetwork(network, Gaussian(noise_sd=settings.noise), NormalPrior())


def target(settings: TwoWeightSettings, alpha: float) -> NetworkTarget:
    """Condition the network on the training points of an alpha."""
    x, y = WeightsProblem(settings, alpha, settings.noise).points("train")
    return model(settings).condition(x[:, None], y[:, None], name=f"two-weights-{alpha:g}")


def fit_settings(settings: TwoWeightSettings) -> Symmetrised:
    """Make the settings shared by the fits of all methods."""
    names = ("fits", "steps", "learning_rate", "permutations", "draws")
    shared = {name: getattr(settings, name) for name in names}
    return Symmetrised(report_draws=REPORT_DRAWS, tolerance=0.0, **shared)


BEYOND = 8.5  # Standard deviations from the mean of a slope to the edge of the grid.
ORDER = 8  # Number of nodes per panel.
PANELS = (16, 32, 64, 128, 256)  # Numbers of panels per axis to try, all even.
STILL = 1e-8  # Largest change of the log evidence, in nats, that counts as converged.


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics: log p(y | w) = constant + sum over sides of b s - a s^2 / 2."""

    a: Float[np.ndarray, " side"]
    """Sums of x^2 / noise^2 over the points with x > 0 and over the points with x < 0."""
    b: Float[np.ndarray, " side"]  # Sums of |x| y / noise^2 over the same points.
    constant: float  # Log likelihood of f = 0.


@dataclass(frozen=True, eq=False)
class GridPosterior:
    """The posterior on a grid."""

    node: Float[np.ndarray, " node"]
    weight: Float[np.ndarray, " node"]  # `node`, `weight`: quadrature rule of each axis.
    log_density: Float[np.ndarray, "node node_bis"]
    """Normalised log posterior density; w1 varies along the first axis."""
    log_evidence: float  # In nats.

    @property
    def mass(self) -> Float[np.ndarray, "node node_bis"]:
        """Probabilities of the nodes, which add up to 1."""
        return np.exp(self.log_density) * np.outer(self.weight, self.weight)

    @property
    def separation(self) -> float:
        """Posterior mean of |w1 - w2|, a label-free distance between the weights.

        The relative error is about 1e-5, because the kink of the integrand is not on panel edges.
        """
        return self.mean(np.abs(self.node[:, None] - self.node[None, :]))

    def mean(self, values: Float[np.ndarray, "node node_bis"]) -> float:
        """Return the posterior mean of a function of the weights, from its values at the nodes."""
        return float(np.sum(self.mass * values))

    def mean_slopes(self) -> Float[np.ndarray, " side"]:
        """Return the posterior means of s_+ and s_-; the mean prediction is |x| times one of them."""
        return np.array([self.mean(s) for s in slopes(self.node[:, None], self.node[None, :])])


def statistics(x: np.ndarray, y: np.ndarray, noise: float) -> Statistics:
    """Compute the sufficient statistics of points for this standard deviation of the noise."""
    sides = (x > 0, x < 0)
    rest = float(y @ y) / (2 * noise**2) + len(y) * math.log(noise * math.sqrt(2 * math.pi))
    return Statistics(
        a=np.array([np.sum(x[side] ** 2) for side in sides]) / noise**2,
        b=np.array([np.abs(x[side]) @ y[side] for side in sides]) / noise**2,
        constant=-rest,
    )


def slopes(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes s_+ and s_- of f, for weights that broadcast."""
    up, down = (np.maximum(s * first, 0) + np.maximum(s * second, 0) for s in (1, -1))
    return up, down


def log_joint(found: Statistics, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the log prior plus the log likelihood with all constants, for weights that broadcast."""
    value = found.constant - math.log(2 * math.pi) - (first**2 + second**2) / 2
    for a, b, slope in zip(found.a, found.b, slopes(first, second), strict=True):
        value = value + b * slope - a * slope**2 / 2
    return value


def solve(found: Statistics) -> GridPosterior:
    """Integrate the posterior, halving the panels until the log evidence converges."""
    before = math.inf
    # If two weights share a slope, its prior is narrowest at equal weights: precision 1/2.
    precision = found.a + 0.5
    edge = float(np.max(np.abs(found.b) / precision + BEYOND / np.sqrt(precision)))
    on_panel, weight_on_panel = np.polynomial.legendre.leggauss(ORDER)
    for panels in PANELS:
        bounds, half = np.linspace(-edge, edge, panels + 1), edge / panels
        middle = (bounds[1:] + bounds[:-1]) / 2
        node = (middle[:, None] + half * on_panel[None, :]).ravel()
        weight = np.tile(half * weight_on_panel, panels)
        values = log_joint(found, node[:, None], node[None, :])
        evidence = float(logsumexp(values, b=np.outer(weight, weight)))
        moved = abs(evidence - before)
        if moved < STILL:
            return GridPosterior(node, weight, values - evidence, evidence)
        before = evidence
    raise InferenceError(
        f"The log evidence is not accurate: doubling the number of panels to {panels} changed it by {moved:.2g} "
        f"nats, but at most {STILL:g} is allowed. The likelihood is too narrow for the grid. Use fewer points or "
        "more noise."
    )


REACH, STEP, COARSE = 8.5, 0.1, 0.25
"""Quadrature rule for the mutual information: range in standard deviations, step for reports, step for optimisation.

The error grows with the ratio of the two scales. The largest errors over 40 pairs of means, in nats, at ratios of 3, 5,
10 and 20 are 2e-12, 2e-12, 1e-6, 6e-4, and with the coarse step 3e-8, 4e-5, 1e-3, 4e-2. The ratios of the best
Gaussians are below 2.
"""
_TINY, _HUGE = 1e-3, 10.0  # Bounds of standard deviations in optimisation; no optimum lies on them.
_DESCENT = {"gtol": 1e-9, "ftol": 1e-15, "maxiter": 500}


@dataclass(frozen=True, eq=False)
class Approximation:
    """A mean-field Gaussian of w1 and w2, with its ELBO and mutual information in nats."""

    loc: Float[np.ndarray, " param"]
    scale: Float[np.ndarray, " param"]
    elbo: float
    information: float

    @property
    def symmetrised_elbo(self) -> float:
        """ELBO of q^G."""
        return self.elbo + self.information

    @property
    def separation(self) -> float:
        """Distance between the two means."""
        return float(abs(self.loc[0] - self.loc[1]))

    def mean_slopes(self) -> Float[np.ndarray, " side"]:
        """Return the means of s_+ and s_-; the mean prediction is |x| times one of them."""
        loc, scale = jnp.asarray(self.loc), jnp.asarray(self.scale)
        return np.array([float(jnp.sum(_moments(s * loc, scale)[0])) for s in (1.0, -1.0)])


def approximation(loc: np.ndarray, scale: np.ndarray, found: Statistics) -> Approximation:
    """Evaluate the mean-field Gaussian with these means and standard deviations."""
    loc, scale = np.asarray(loc, np.float64), np.asarray(scale, np.float64)
    where = jnp.asarray(np.concatenate([loc, np.log(scale)]))
    elbo, information = _evaluate(where, jnp.asarray(found.a), jnp.asarray(found.b))
    return Approximation(loc, scale, float(elbo) + found.constant, float(information))


def log_density(
    loc: Sequence[float],
    scale: Sequence[float],
    first: np.ndarray,
    second: np.ndarray,
    *,
    symmetrised: bool = False,
) -> np.ndarray:
    """Return the log density of q or, if `symmetrised`, of q^G, for weights that broadcast."""
    if symmetrised:
        both = (log_density(loc, scale, *w) for w in ((first, second), (second, first)))
        return np.logaddexp(*both) - math.log(2)
    one, other = (
        -(((w - m) / s) ** 2) / 2 - math.log(s * math.sqrt(2 * math.pi))
        for w, m, s in zip((first, second), loc, scale, strict=True)
    )
    return one + other


def optimum(found: Statistics, *, symmetrised: bool) -> Approximation:
    """Find the mean-field Gaussian with the highest ELBO, or the highest symmetrised ELBO, from several starts."""
    a, b = jnp.asarray(found.a), jnp.asarray(found.b)

    def loss(where: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _loss(jnp.asarray(where), a, b, symmetrised)
        return float(value), np.asarray(slope, np.float64)

    bounds = [(None, None)] * 2 + [(math.log(_TINY), math.log(_HUGE))] * 2
    how: dict[str, Any] = {"method": "L-BFGS-B", "jac": True, "bounds": bounds, "options": _DESCENT}
    ends = (minimize(loss, start, **how) for start in starts(found))
    known = [end for end in ends if np.isfinite(end.fun)]
    if not known:
        raise InferenceError(
            "The optimiser found no optimum of the ELBO from any starting point. Check that the data are finite, "
            "and that `alphas` and `noises` are neither very small nor very large."
        )
    best = min(known, key=lambda end: float(end.fun)).x
    return approximation(best[:2], np.exp(best[2:]), found)


def starts(found: Statistics) -> list[Float[np.ndarray, " four"]]:
    """Return starting means and log standard deviations: a mode, the midpoint, a distant point, and one unit off.

    The two weights always differ, because the mutual information is stationary at equal weights for any data.
    """
    up, down = found.b / (found.a + 1)
    middle = 1 / math.sqrt(1 + float(np.mean(found.a)))
    means = ((up, -down), (0.02, -0.02), (1.5, -1.5), (up, 0.0))
    return [np.array([m1, m2, math.log(middle), math.log(1.1 * middle)]) for m1, m2 in means]


Four = Float[Array, " four"]  # Means and log standard deviations.
Sides = Float[Array, " side"]


@partial(jax.jit, static_argnames="symmetrised")
def _loss(where: Four, a: Sides, b: Sides, symmetrised: bool) -> tuple[jax.Array, jax.Array]:
    def value(where: jax.Array) -> jax.Array:
        elbo = _elbo(where, a, b)
        return -(elbo + _information(where, COARSE) if symmetrised else elbo)

    return jax.value_and_grad(value)(where)


@jax.jit
def _evaluate(where: Four, a: Sides, b: Sides) -> tuple[jax.Array, jax.Array]:
    return _elbo(where, a, b), _information(where, STEP)


def _elbo(where: Four, a: Sides, b: Sides) -> jax.Array:
    """Return the ELBO without `Statistics.constant`."""
    loc, scale = where[:2], jnp.exp(where[2:])
    likelihood = jnp.asarray(0.0)
    for side, sign in enumerate((1.0, -1.0)):
        mean, square = _moments(sign * loc, scale)
        slope_square = jnp.sum(square) + 2 * mean[0] * mean[1]
        likelihood += b[side] * jnp.sum(mean) - a[side] * slope_square / 2
    prior = -math.log(2 * math.pi) - jnp.sum(loc**2 + scale**2) / 2
    return likelihood + prior + math.log(2 * math.pi * math.e) + jnp.sum(where[2:])


def _moments(loc: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the means of relu(w) and of its square."""
    share, peak = norm.cdf(loc / scale), norm.pdf(loc / scale)
    return loc * share + scale * peak, (loc**2 + scale**2) * share + loc * scale * peak


def _information(where: Four, step: float) -> jax.Array:
    loc, scale = where[:2], jnp.exp(where[2:])
    e = jnp.arange(-REACH, REACH + step / 2, step)
    weight = jnp.exp(-(e**2) / 2) * step / math.sqrt(2 * math.pi)
    to_second = _log_ratio(loc[0] + scale[0] * e, loc, scale)
    to_first = _log_ratio(loc[1] + scale[1] * e, loc, scale)
    d = to_second[:, None] - to_first[None, :]  # The constant cancels.
    return math.log(2) - weight @ jax.nn.softplus(d) @ weight


def _log_ratio(w: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    """Return the log density ratio of the second Gaussian to the first, up to a constant."""
    z = (w[None, :] - loc[:, None]) / scale[:, None]
    return (z[0] ** 2 - z[1] ** 2) / 2


def run(settings: TwoWeightSettings) -> Frames:
    """Solve every case by quadrature and optimisation; return one row per noise and alpha."""
    pairs = [(noise, alpha) for noise in settings.noises for alpha in settings.alphas]
    return {"cases": frame_of(solve_case(settings, noise, alpha) for noise, alpha in pairs)}


def solve_case(settings: TwoWeightSettings, noise: float, alpha: float) -> dict[str, Any]:
    """Find the posterior (`exact`), the best Gaussian by each objective, and the errors of all three over data sets."""
    truth, best = _solve(WeightsProblem(settings, alpha, noise))
    row: dict[str, Any] = {
        "noise": noise,
        "alpha": alpha,
        "log_evidence": truth.log_evidence,
        "exact": {"separation": truth.separation},
    }
    for name, q in best.items():
        row[name] = {
            "loc": q.loc,
            "scale": q.scale,
            "separation": q.separation,
            "kl": truth.log_evidence - q.elbo,
            "kl_symmetrised": truth.log_evidence - q.symmetrised_elbo,
        }
    errors: dict[str, list[float]] = {}
    for number in range(settings.data_sets):
        exact, found = _solve(WeightsProblem(settings, alpha, noise, number))
        slopes = {"exact": exact.mean_slopes()}
        slopes |= {name: one.mean_slopes() for name, one in found.items()}
        for name, mean in slopes.items():
            errors.setdefault(name, []).append(error_of(mean, alpha))
    return {**row, "errors": errors}


def error_of(slopes: Float[np.ndarray, " side"], alpha: float) -> float:
    """Return the expected squared error of |x| times the slope of its side for alpha |x|, over x ~ N(0, 1)."""
    return float(np.sum((slopes - alpha) ** 2) / 2)


def _solve(problem: WeightsProblem) -> tuple[GridPosterior, dict[str, Approximation]]:
    found = statistics(*problem.points("train"), problem.noise)
    return solve(found), {n: optimum(found, symmetrised=n == "sgm") for n in ("mfvi", "sgm")}


def score_fits(
    settings: TwoWeightSettings, case: Row, method: str, tree: xr.DataTree
) -> dict[str, Any]:
    """Measure the fits of one method; `case` is the solved problem from `solve_case`.

    Lists have one entry per fit: `mse` at the test points; `elbo`, the estimate that the method reports; `loc` and
    `scale` of the fitted Gaussians; `kl` and `kl_symmetrised`, the divergences of q and q^G from the posterior. `truth`
    is the separation of the posterior. `best` is the smallest possible value of the trained divergence.
    """
    problem = WeightsProblem(settings, case["alpha"], case["noise"])
    found, evidence = statistics(*problem.points("train"), problem.noise), case["log_evidence"]
    fitted = tree["variational"].to_dataset().transpose("chain", ...)
    pairs = zip(fitted["loc"].values, fitted["scale"].values, strict=True)
    gaussians = [approximation(loc, scale, found) for loc, scale in pairs]
    (x, y), draws = problem.points("test"), {"W1": tree["posterior"].to_dataset()["W1"].values}
    function = predict(model(settings), draws, x[:, None])[..., 0]
    return {
        "alpha": case["alpha"],
        "method": method,
        "label": WORDS[method],
        "truth": case["exact"]["separation"],
        "best": case["mfvi"]["kl"] if method == "mfvi" else case["sgm"]["kl_symmetrised"],
        "mse": np.mean((y[None, :] - function.mean(axis=1)) ** 2, axis=-1),
        "elbo": np.asarray(fitted["final_elbo"].values, float),
        "kl": [evidence - q.elbo for q in gaussians],
        "kl_symmetrised": [evidence - q.symmetrised_elbo for q in gaussians],
        "loc": [q.loc for q in gaussians],
        "scale": [q.scale for q in gaussians],
    }


def separations(fit: Row) -> Float[np.ndarray, " fit"]:
    """Return the distance between the two means, fit by fit."""
    loc = np.array(fit["loc"])
    return np.abs(loc[:, 0] - loc[:, 1])
