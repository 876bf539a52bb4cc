"""Synthetic data sets of the papers, each from a seed, with its true function.

Inputs, noise and test points come from separate streams of the seed: more observations, or other
noise, leave the test points as they are.

Every generator has the options `seed`; `num_obs` and `num_test`, the numbers of training and of test
points (`held_out`); and `noise_sd`, the standard deviation of the noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import check_count, check_not_negative, check_positive, check_seed

from .dataset import Dataset, Truth

_HALF = 1 / math.sqrt(2)


def _read_only(values: list[Any]) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, kw_only=True)
class ReluTeacher:
    """The teacher network: two inputs, two hidden ReLU units, one output.

    Weights are stored as in a network here, `W1 (in, hidden)` and `W2 (hidden, out)`, so that the
    hidden units are ReLU((x1 + x2) / sqrt 2) and ReLU((x2 - x1) / sqrt 2 + 1): each has incoming
    weights of norm 1, and the biases are in order.
    """

    noise_sd: float
    W1: ClassVar[np.ndarray] = _read_only([[_HALF, -_HALF], [_HALF, _HALF]])
    b1: ClassVar[np.ndarray] = _read_only([0, 1])
    W2: ClassVar[np.ndarray] = _read_only([[_HALF], [_HALF]])
    b2: ClassVar[np.ndarray] = _read_only([0.5])

    def __call__(self, x: Float[np.ndarray, "obs in"]) -> Float[np.ndarray, "obs out"]:
        """Give the teacher's noise-free output."""
        hidden = np.maximum(x @ self.W1 + self.b1, 0)
        return hidden @ self.W2 + self.b2


@dataclass(frozen=True, kw_only=True)
class Sinc:
    """sin(pi f x) / (pi f x), with f the `frequency`: zeros at the multiples of 1 / f except 0."""

    noise_sd: float
    frequency: float

    def __call__(self, x: Float[np.ndarray, "obs 1"]) -> Float[np.ndarray, "obs 1"]:
        """Give the noise-free output."""
        return np.sinc(self.frequency * x)


def relu_teacher(
    *,
    seed: int = 0,
    num_obs: int = 100,
    num_test: int = 100,
    noise_sd: float = 1.0,
    x_sd: float = 1.0,
) -> Dataset:
    """Draw two inputs and one output from the teacher network of Pourzanjani, Jiang and Petzold 2017, section 4.1.

    The paper gives the weights and the number of points. It is silent on the inputs and the noise, and b2, printed as
    "[5]" in the text that we have, is taken as 0.5: that text drops leading points (its tables have "008" for 0.08),
    and 5 would lie five standard deviations out in the paper's own N(0, 1) prior. Inputs are independent N(0,
    `x_sd`^2).

    The defaults, standard normal both, are the plainest reading, and the one under which chains of every
    parametrisation move between all modes: the largest R-hat of predictions at 20 test points, of eight NUTS chains
    (NumPyro, seed 1, data seed 0), was 1.002 to 1.016. With `x_sd` 2 and `noise_sd` 0.5 it was 1.002 for free weights,
    1.003 and 1.011 in charts without a seam, else 1.4 to 1.8: chains of `givens` stay on the side of the
    longitude's seam that they start on, and chains with ordered biases in the order they start in.
    """
    check_positive("x_sd", x_sd)
    return _draw(
        "relu-teacher",
        ReluTeacher(noise_sd=noise_sd),
        lambda rng, n: x_sd * rng.standard_normal((n, 2)),
        seed=seed,
        sizes=(num_obs, num_test),
        origin=f"Teacher of Pourzanjani, Jiang and Petzold 2017, section 4.1, x ~ N(0, {x_sd:g}^2)",
    )


def sinc(
    *,
    seed: int = 0,
    num_obs: int = 128,
    num_test: int = 128,
    noise_sd: float = 0.2,
    frequency: float = 3.0,
) -> Dataset:
    """Draw from a scaled sinc function of one input, as in Kurle et al. 2021, section 4.

    The paper gives the number of points, 128. The scale of the function is not stated there: the default `frequency`,
    zeros per unit of x, has three zeros on each side of the peak. Inputs are uniform in (-1, 1).
    """
    check_positive("frequency", frequency)
    return _draw(
        "sinc",
        Sinc(noise_sd=noise_sd, frequency=frequency),
        lambda rng, n: rng.uniform(-1, 1, size=(n, 1)),
        seed=seed,
        sizes=(num_obs, num_test),
        origin="Scaled sinc after Kurle et al. 2021, section 4, x ~ U(-1, 1), "
        f"frequency {frequency:g}",
    )


def _draw(
    name: str,
    truth: Truth,
    inputs: Callable[[np.random.Generator, int], np.ndarray],
    *,
    seed: int,
    sizes: tuple[int, int],
    origin: str,
) -> Dataset:
    check_count("num_obs", sizes[0])
    check_count("num_test", sizes[1])
    check_not_negative("noise_sd", truth.noise_sd)
    check_seed(seed)
    streams = iter(np.random.SeedSequence(seed).spawn(4))

    def part(num_obs: int, held_out: Dataset | None) -> Dataset:
        rng_x, rng_noise = (np.random.default_rng(next(streams)) for _ in range(2))
        x = inputs(rng_x, num_obs)
        mean = truth(x)
        return Dataset(
            name=name,
            x=x,
            y=mean + truth.noise_sd * rng_noise.standard_normal(mean.shape),
            feature_names=tuple(f"x{i + 1}" for i in range(x.shape[1])),
            target_names=("y",),
            task="regression",
            source=f"{origin}, noise sd {truth.noise_sd:g}, seed {seed}",
            truth=truth,
            held_out=held_out,
        )

    return part(sizes[0], part(sizes[1], None))
