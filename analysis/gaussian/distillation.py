"""A diagonal Gaussian over a network's weights that predicts like a whole posterior.

A Gaussian that matches the moments of (aligned) draws ignores how weights depend on one another, so it predicts poorly.
`distil` instead chooses means and standard deviations by the predictions. It matches not only the mean prediction, like
a student trained on averaged probabilities, but also the spread.

For classifiers, f are square roots of probabilities, whose Euclidean distance is the root of 2 times Hellinger's. For
regressions, f are outputs divided by their standard deviation. No targets are needed. The distribution of the weights
is not the posterior, because its standard deviations serve the predictions.

The energy score judges a distribution by its draws and can be differentiated through them:

    S(q, y) = E |f - y| - 1/2 E |f - f'|,   f, f' independent from q.

Smaller is better. Its expectation over y is smallest if q is the distribution of y. Source: Gneiting and Raftery
2007, "Strictly proper scoring rules, prediction, and estimation", equation 21 (there with the opposite sign).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float
from pydantic import Field

from onebasin.base.card import Card, Shown, Words, number
from onebasin.base.checks import (
    check_class,
    check_count,
    check_inputs,
    check_seed,
    checks_arguments,
)
from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.settings import Count, Positive, settings
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork, all_heads
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit
from onebasin.posteriors.view import Posterior, View, as_view

from .gaussian import of_target, parameter_table, prediction_groups

CHUNK = 100
"""Number of iterations in a compiled loop, after which progress is reported."""
_LEAST = 1e-12
"""Small number added to probabilities, because the square root has no gradient at 0."""
Pair = Annotated[int, Field(ge=2), "be a whole number of at least 2"]
Weights = dict[str, jax.Array]
Progress = Callable[[int, int], None]


@settings
class DistillationSettings:
    """Settings of the distillation of a Gaussian.

    Parameters
    ----------
    iterations : int
        Number of Adam steps. The step size decays to 0 along a cosine.
    learning_rate : float
        Initial step size.
    batch_size : int
        Number of inputs per step.
    samples : int
        Number of draws of the Gaussian and of the posterior at each of these inputs, at least 2.
    points : int
        Number of inputs: a random choice of the given inputs, and mixtures of two of them with uniform weights, which
        reveal the posterior's spread away from the data.
    draws : int
        Number of training draws from the posterior, evenly spaced over its chains.
    initial_sd : float
        Initial standard deviation of every weight.

    Examples
    --------
    >>> ob.approximations.DistillationSettings(iterations=1000).samples
    16
    """

    iterations: Count = 6000
    learning_rate: Positive = 0.02
    batch_size: Count = 256
    samples: Pair = 16
    points: Count = 16_000
    draws: Pair = 250
    initial_sd: Positive = 0.5


class _Lesson(NamedTuple):
    """Training data: inputs, features of the posterior at these inputs, and scales of the outputs."""

    points: Float[Array, "point in"]
    features: Float[Array, "point draw out"]
    scale: Float[Array, " out"]


class _State(NamedTuple):
    key: jax.Array
    mean: Weights
    log_sd: Weights
    optimiser: optax.OptState


@checks_arguments
def distil(
    posterior: Posterior,
    x: Any,
    *,
    start: Mapping[str, Any] | None = None,
    settings: DistillationSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Distilled:
    """Distil a network's posterior into one diagonal Gaussian over the weights that predicts like the posterior.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        Draws of a network's weights, aligned or not, in any form that `ob.diagnose` accepts.
    x : array (obs, in)
        Inputs such as the training inputs, in the units of the data on which the network was conditioned.
    start : mapping of str to array, optional
        Initial mean of every weight (`W1 (in, hidden1)` and so on), such as the mean of the aligned draws. By default
        the last draw of the first chain.
    settings : DistillationSettings, optional
        Numbers of steps, batches and draws; ``DistillationSettings()`` by default.
    seed : int
        Seed for the choice of inputs and for the gradients.
    progress : callable, optional
        Called with the number of finished iterations and the total.

    Returns
    -------
    Distilled
        Mean and standard deviation of every weight, by name, and the loss during training.

    Raises
    ------
    TypeError
        If `settings` has the wrong type.
    ValueError
        If the posterior does not belong to a network with free weights and biases, if `x` does not fit the network, or
        if `start` lacks a variable or has the wrong shape.
    RuntimeError
        If the loss becomes infinite or NaN.

    Notes
    -----
    At every input, the distribution of outputs over draws of the Gaussian is fitted to the distribution over draws of
    the posterior. The fit uses stochastic gradients of the energy score, whose expectation is smallest if both
    distributions are equal. The standard deviations serve the predictions; they are not the posterior's.

    References
    ----------
    Gneiting and Raftery 2007, Strictly proper scoring rules, JASA 102(477), section 4.3 (energy score).

    Examples
    --------
    >>> settings = ob.approximations.DistillationSettings(iterations=100, points=200, batch_size=16)
    >>> fit = ob.approximations.distil(weights, x, settings=settings, seed=1)
    >>> fit.mean["W1"].shape, fit.loss.shape
    ((1, 2), (1,))
    """
    settings = DistillationSettings() if settings is None else settings
    check_class("settings", settings, DistillationSettings, remedy="give DistillationSettings(...)")
    view = as_view(posterior)
    model = view.network
    if model is None:
        raise ArgumentError(
            "`posterior` is not the posterior of a network, but only networks can be distilled. For other models, "
            "use `ob.approximations.fit_gaussian`."
        )
    if model.parametrisation.unit_norm or model.parametrisation.biases != "free":
        raise ArgumentError(
            f"The parametrisation of `posterior` ({model.parametrisation.label}) constrains the weights, so no "
            "Gaussian can represent the posterior. Distil a posterior with free weights and biases."
        )
    rng = np.random.default_rng(seed)
    x, num = check_inputs(x, model.network.in_dim), settings.points
    # At most half of the points are inputs from `x`. The others are mixtures of two inputs.
    kept = x if len(x) <= num // 2 else x[rng.choice(len(x), max(num // 2, 1), replace=False)]
    left, right = rng.integers(len(x), size=(2, num - len(kept)))
    weight = rng.uniform(size=(num - len(kept), 1))
    points = np.concatenate([kept, weight * x[left] + (1 - weight) * x[right]])
    total = view.num_chains * view.num_draws
    rows = np.unique(np.linspace(0, total - 1, min(settings.draws, total)).round().astype(int))
    chains, draws = np.divmod(rows, view.num_draws)
    spread = {name: view.values(name)[chains, draws][None] for name in view.variables}
    lesson = _teach(model, spread, points)
    mean = _check_start(start, view, model.network)
    state, losses = _optimise(model, settings, lesson, mean, jax.random.key(seed), progress)
    return Distilled(
        mean={name: np.asarray(v, np.float64) for name, v in state.mean.items()},
        sd={name: np.exp(np.asarray(v, np.float64)) for name, v in state.log_sd.items()},
        loss=np.asarray(losses),
        source=view,
    )


def _teach(
    model: BayesianNetwork, draws: dict[str, np.ndarray], points: np.ndarray, batch: int = 2000
) -> _Lesson:
    """Compute the features of every draw at every point. Predicted noise counts as another output."""
    slices = [points[at : at + batch] for at in range(0, len(points), batch)]
    outputs = [all_heads(model.network, draws, rows)[0].astype(np.float32) for rows in slices]
    inputs = jnp.asarray(points, jnp.float32)
    whole = jnp.asarray(np.concatenate(outputs, axis=1).transpose(1, 0, 2))
    if model.is_classifier:
        features, scale = jnp.sqrt(jax.nn.softmax(whole)), jnp.ones(whole.shape[-1], jnp.float32)
        return _Lesson(inputs, features, scale)
    scale = jnp.std(whole, axis=(0, 1))
    scale = jnp.where(scale > 0, scale, 1.0)
    return _Lesson(inputs, whole / scale[None, None, :], scale)


def _check_start(
    start: Mapping[str, Any] | None, view: View, network: Network
) -> dict[str, np.ndarray]:
    if start is None:
        start = {name: view.values(name)[0, -1] for name in network.shapes}
    absent = [name for name in network.shapes if name not in start]
    if absent:
        raise ArgumentError(
            f"`start` lacks the array(s) {', '.join(absent)}. Give an array for each of {', '.join(network.shapes)}."
        )
    arrays = {name: np.asarray(start[name], np.float32) for name in network.shapes}
    for name, shape in network.shapes.items():
        if arrays[name].shape != shape:
            raise ArgumentError(
                f"The array {name} in `start` has shape {arrays[name].shape}, but the network needs shape {shape}."
            )
    return arrays


def _optimise(
    model: BayesianNetwork,
    settings: DistillationSettings,
    lesson: _Lesson,
    mean: dict[str, np.ndarray],
    key: jax.Array,
    progress: Progress | None,
) -> tuple[_State, list[float]]:
    """Run all steps, and return the final state and the losses."""
    start = {name: jnp.asarray(value) for name, value in mean.items()}
    log_sd = {n: jnp.full_like(v, np.log(settings.initial_sd)) for n, v in start.items()}
    state = _State(key, start, log_sd, _adam(settings).init((start, log_sd)))
    total, losses = settings.iterations, []
    for done in range(0, total, CHUNK):
        num = min(CHUNK, total - done)
        state, loss = _advance(model, settings, num, lesson, state)
        losses.append(float(loss))
        if not np.isfinite(losses[-1]):
            raise InferenceError(
                f"The distillation failed: the loss is {losses[-1]} after {done + num} steps. Use a `learning_rate` "
                f"below {settings.learning_rate:g}."
            )
        if progress:
            progress(done + num, total)
    return state, losses


def _adam(settings: DistillationSettings) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.iterations))


@partial(jax.jit, static_argnames=("model", "settings", "num"))
def _advance(
    model: BayesianNetwork, settings: DistillationSettings, num: int, lesson: _Lesson, state: _State
) -> tuple[_State, jax.Array]:
    """Run `num` steps, and return the state and the mean loss."""
    adam = _adam(settings)

    def step(state: _State, _: None) -> tuple[_State, jax.Array]:
        key, key_batch, key_draws, key_weights = jax.random.split(state.key, 4)
        batch = jax.random.randint(key_batch, (settings.batch_size,), 0, len(lesson.points))
        # Use the same posterior draws for all inputs in a batch.
        draws = jax.random.permutation(key_draws, lesson.features.shape[1])[: settings.samples]
        y = lesson.features[batch][:, draws]

        def loss(q: tuple[Weights, Weights]) -> jax.Array:
            mean, sd = q[0], {name: jnp.exp(value) for name, value in q[1].items()}
            x, num = lesson.points[batch], settings.samples
            ours = sample_outputs(key_weights, model.network, mean, sd, x, num).transpose(1, 0, 2)
            if model.is_classifier:
                ours = jnp.sqrt(jax.nn.softmax(ours) + _LEAST)
            else:
                ours = ours / lesson.scale[None, None, :]
            return jnp.mean(energy_score(ours, y))

        value, slope = jax.value_and_grad(loss)((state.mean, state.log_sd))
        change, optimiser = adam.update(slope, state.optimiser)
        mean, log_sd = optax.apply_updates((state.mean, state.log_sd), change)
        return _State(key, mean, log_sd, optimiser), value

    state, losses = jax.lax.scan(step, state, None, length=num)
    return state, losses.mean()


def sample_outputs(
    rng_key: jax.Array,
    network: Network,
    mean: Weights,
    sd: Weights,
    x: Float[Array, "obs in"],
    num_samples: int,
) -> Float[Array, "sample obs out"]:
    """Draw outputs, without observation noise, of networks with independent normal weights and biases.

    The values of each layer are drawn instead of its weights, because they are normal given the previous layer. Each
    input gets different weights, so the distribution at each input is correct, but the joint distribution over inputs
    is not. Source: Kingma, Salimans and Welling 2015, section 2.2.
    """
    f, skips = network.nonlinearity.function, network.skip_matrices()
    before = h = jnp.broadcast_to(x[None], (num_samples, *x.shape))
    keys = jax.random.split(rng_key, len(network.layers))
    for i, (layer, key) in enumerate(zip(network.layers, keys, strict=True)):
        if layer.weight is None:
            return jnp.sum(before, -1, keepdims=True)
        # All samples share the inputs, so compute the moments of the first layer only once.
        shared = before[:1] if i == 0 else before
        centre = shared @ mean[layer.weight]
        variance = shared**2 @ sd[layer.weight] ** 2
        if layer.bias:
            centre = centre + mean[layer.bias][None, None, :]
            variance = variance + sd[layer.bias][None, None, :] ** 2
        # Without biases the variance may be 0, where the gradient of the square root is infinite.
        variance = jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)
        eps = jax.random.normal(key, (num_samples, *centre.shape[1:]), centre.dtype)
        after = centre + jnp.sqrt(variance) * eps
        if skips:
            after = after + h @ jnp.asarray(skips[i], x.dtype)
        h, before = after, f(after)
    return h


_CLOSEST = 1e-12
"""Small number added to squared distances, because the square root has no gradient at 0."""


def energy_score(
    ours: Float[Array, "point sample out"], y: Float[Array, "point draw out"]
) -> Float[Array, " point"]:
    """Return an unbiased estimate of the energy score of two or more draws relative to draws `y`, at every point.

    The score is the mean distance to `y` minus half the mean distance between two different draws.
    """
    num = ours.shape[1]
    own = _distances(ours, ours) * (1 - jnp.eye(num, dtype=ours.dtype))[None]
    return _distances(ours, y).mean((1, 2)) - own.sum((1, 2)) / (2 * num * (num - 1))


def _distances(
    a: Float[Array, "point sample out"], b: Float[Array, "point draw out"]
) -> Float[Array, "point sample draw"]:
    squares = jnp.square(a[:, :, None, :] - b[:, None, :, :]).sum(-1)
    return jnp.sqrt(squares + _CLOSEST)


PURPOSE = 1002
"""Number that, together with the seed, gives the random stream of the noise `sigma`."""


@dataclass(frozen=True, eq=False, repr=False)
class Distilled(Shown):
    """A diagonal Gaussian over a network's weights, distilled from a posterior.

    Attributes
    ----------
    mean, sd : mapping of str to array
        Mean and standard deviation of each weight and bias: `W1 (in, hidden1)`, `b1 (hidden1)`, ...
    loss : array (evaluation,)
        Mean energy score of every 100 iterations, without unit.
    source : View
        The posterior that was distilled, with its axis names, data and attributes.
    """

    mean: Mapping[str, np.ndarray]
    sd: Mapping[str, np.ndarray]
    loss: Float[np.ndarray, " evaluation"]
    source: View

    def _card(self) -> Card:
        first, last = float(self.loss[0]), float(self.loss[-1])
        of, size = of_target(self.source.attributes), sum(map(np.size, self.mean.values()))
        lead = (
            f"A Gaussian with a diagonal covariance over {size:,} weights, trained to predict like the posterior{of}: "
            f"the energy score of its predictions fell from {number(first)} to {number(last)}. Compare `.sample(1000)` "
            "with the posterior by `ob.compare`."
        )
        return Card("Distilled Gaussian", (Words(lead), parameter_table(self.mean, self.sd)))

    def sample(
        self, num_draws: int, *, seed: int = 0, predictive_mb: float = LIMIT_MB
    ) -> xr.DataTree:
        """Draw independent samples, stored as one chain.

        Parameters
        ----------
        num_draws : int
            Number of draws.
        seed : int
            Seed of the draws.
        predictive_mb : float
            Memory limit in megabytes for log likelihoods and predictions, as in `nuts`; 0 leaves them out.

        Returns
        -------
        DataTree
            A posterior with the groups `posterior`, `distilled` (`mean_W1`, `sd_W1`, ..., `loss`), `log_likelihood`
            and `posterior_predictive`, method `distilled`. Inferred noise `sigma` is resampled from the source's draws.

        Raises
        ------
        ValueError
            If `num_draws` or `predictive_mb` is invalid, or the seed is out of range.
        """
        check_count("num_draws", num_draws)
        check_seed(seed)
        first = self.source.posterior.transpose(*schema.SAMPLE_DIMS, ...)
        draws = weights_of(self.mean, self.sd, num_draws, seed)
        model = self.source.network
        if model is not None and model.infers_noise and "sigma" in self.source.variables:
            there = self.source.values("sigma").reshape(-1)
            rng = np.random.default_rng((seed, PURPOSE))
            draws["sigma"] = rng.choice(there, (1, num_draws))
        variables = {name: (first[name].dims, values) for name, values in draws.items()}
        fit: dict[str, Any] = {"loss": ("evaluation", self.loss)}
        for name in self.mean:
            dims = first[name].dims[2:]
            fit[f"mean_{name}"], fit[f"sd_{name}"] = (dims, self.mean[name]), (dims, self.sd[name])
        groups = {schema.POSTERIOR: xr.Dataset(variables), schema.DISTILLED: xr.Dataset(fit)}
        limit = check_limit(predictive_mb)
        groups |= self.source.data
        groups |= prediction_groups(self.source, draws, seed=seed, limit_mb=limit)
        tree = xr.DataTree.from_dict(groups)
        kept = {n: v for n, v in self.source.attributes.items() if n in schema.OF_A_TARGET}
        tree.attrs = kept | {schema.METHOD: "distilled", schema.SEED: seed}
        return tree


def weights_of(
    mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray], num_draws: int, seed: int
) -> dict[str, Float[np.ndarray, "chain draw ..."]]:
    """Draw independent normal weights (chain, draw, ...), as one chain."""
    rng = np.random.default_rng(seed)
    return {
        name: (centre + sd[name] * rng.standard_normal((num_draws, *centre.shape)))[None]
        for name, centre in mean.items()
    }
