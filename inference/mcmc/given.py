"""Starts, a metric and a step size that a run of NUTS or static HMC is given instead of finding them itself.

Convention: vectors are those of `density.network.density_of(target)`, unconstrained, whatever the engine. A Stan
program's process gets the values at them by name, and the metric in the order of its own coordinates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target
from onebasin.stan.network import pack_unconstrained

from ..contracts.method import STANLI
from ..density.network import density_of
from ..density.stan_vectors import Density, StanVectors

STEP_SIZE_ONLY = 19
"""Maximum number of iterations of Stan's warmup that adapt no metric; the interpreter can keep one in no other way."""


@dataclass(frozen=True, eq=False)
class Start:
    """The points where the chains of a run begin, and what they begin with.

    Every engine of NUTS and of static HMC takes one (nutpie its positions alone), as the `given` of a `Job`. Whoever
    makes one sets what it knows and leaves the rest None: the engine then does what it does without.

    Attributes
    ----------
    positions : array (chain, param)
        A starting point for each chain, in the coordinates of `density_of(target)`. The log density there has to be
        finite; it is not checked again.
    inverse_metric : array (chain, param) or (chain, param, param), or None
        The inverse mass matrix of each chain, that is (an estimate of) the posterior covariance of the same
        coordinates: its diagonal, or all of it. Where it is given, it stays as it is, and the warmup adapts the step
        size alone; its shape decides, whatever `metric` the settings say. Where it is None, the warmup adapts it.
    step_size : array (chain,) or None
        Step size of each chain from which the adaptation begins, and that of all draws with the setting `adapt=False`.
    warmup : int or None
        Iterations of the warmup in place of the settings' own; 0 for none, which needs a step size. The interpreter
        of Stan programs takes at most 19 with a given metric, since Stan adapts a metric in any longer warmup.
    how : mapping or None
        How it was made, in words and numbers that JSON has: the posterior records it in its attribute `start`.

    Raises
    ------
    ValueError
        If shapes do not fit one another, or a number is not finite or, of scales, not positive.
    """

    positions: Float[np.ndarray, "chain param"]
    inverse_metric: np.ndarray | None = None
    step_size: Float[np.ndarray, " chain"] | None = None
    warmup: int | None = None
    how: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check shapes and signs."""
        chains, size = np.shape(self.positions)
        if not np.isfinite(self.positions).all():
            raise ArgumentError(
                "`positions` hold a number that is not finite; give a start for every chain."
            )
        if (metric := self.inverse_metric) is not None:
            if np.shape(metric) not in ((chains, size), (chains, size, size)):
                raise ArgumentError(
                    f"`inverse_metric` has the shape {np.shape(metric)}, and there are {chains} chains of {size} "
                    f"coordinates: give {(chains, size)} or {(chains, size, size)}."
                )
            scales = metric if np.ndim(metric) == 2 else np.diagonal(metric, axis1=1, axis2=2)
            if not (np.isfinite(metric).all() and (scales > 0).all()):
                raise ArgumentError("`inverse_metric` has to be finite, with a positive diagonal.")
        if (steps := self.step_size) is not None and not (
            np.shape(steps) == (chains,) and np.isfinite(steps).all() and (steps > 0).all()
        ):
            raise ArgumentError(
                f"`step_size` has to be a positive number for each of {chains} chains; got {steps!r}."
            )
        if self.warmup == 0 and steps is None:
            raise ArgumentError("`warmup` is 0, which needs a `step_size`.")

    def settle(self, settings: Any, engine: str) -> Any:
        """Return the settings by which an engine runs from here."""
        if (metric := self.inverse_metric) is not None:
            settings = replace(settings, metric="diag" if metric.ndim == 2 else "dense")
        warmup = settings.warmup if self.warmup is None else self.warmup
        if engine == STANLI.name and metric is not None and settings.adapt:
            warmup = min(warmup, STEP_SIZE_ONLY)
        return replace(settings, warmup=warmup, adapt=settings.adapt and warmup > 0)


def stan_places(density: Density) -> Int[np.ndarray, " param"]:
    """Return the place of every coordinate of a density in the vector of the target's Stan program."""
    if isinstance(density, StanVectors):
        return np.concatenate([own.places.ravel() for own in density.own.values()])
    target = cast("NetworkTarget", density.target)
    numbers = jnp.arange(density.size, dtype=float)
    packed = pack_unconstrained(target, density.unravel(numbers))
    order = np.concatenate([packed["weights_raw"], packed["biases_raw"], np.log(packed["sigma"])])
    return np.argsort(np.rint(order).astype(int))


def kernel_places(density: Density) -> Int[np.ndarray, " param"]:
    """Return the place in a density's vector of every coordinate as NumPyro's kernels order them: by sorted names."""
    places = density.places()
    return np.concatenate([places[name].ravel() for name in sorted(places)])


def reordered(metric: np.ndarray, places: Int[np.ndarray, " param"]) -> np.ndarray:
    """Take the coordinates of metrics, (chain, param) or (chain, param, param), in another order."""
    return metric[:, places] if metric.ndim == 2 else metric[:, places[:, None], places]


def for_stan(
    target: Target, start: Start
) -> tuple[list[Mapping[str, np.ndarray]], np.ndarray | None]:
    """Return by chain the values of a Stan program's parameters at a start, and its metric in the program's order."""
    with precision("float64"):
        density = density_of(target)
        points = jnp.asarray(start.positions)
        if isinstance(density, StanVectors):
            values: Any = [density.constrain(point) for point in points]
        else:
            network = cast("NetworkTarget", target)
            values = [pack_unconstrained(network, density.unravel(point)) for point in points]
        metric = start.inverse_metric
        if metric is not None:
            metric = reordered(metric, np.argsort(stan_places(density)))
    return [{n: np.asarray(v) for n, v in each.items()} for each in values], metric


def constrained(target: Target, start: Start) -> dict[str, np.ndarray]:
    """Return the values (chain, ...) of every variable at the starts."""
    with precision("float64"):
        found = [density_of(target).constrain(point) for point in jnp.asarray(start.positions)]
    return {name: np.stack([np.asarray(each[name]) for each in found]) for name in found[0]}
