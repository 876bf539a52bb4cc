"""Models of known posteriors, and programs of them with planted errors, whose own posteriors are drawn exactly."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr

from onebasin.base.precision import precision
from onebasin.inference import Family
from onebasin.models.numpyro_target import numpyro_model
from onebasin.models.target import Target

OBSERVATIONS = 2
GRID = np.linspace(-9.0, 3.0, 2000)


def simulate(rng: np.random.Generator) -> tuple[dict, dict]:
    """sigma ~ Exponential(1), y ~ Normal(0, sigma), by the logarithm of sigma."""
    z = np.log(rng.exponential())
    return {"z": z}, {"y": rng.normal(0, np.exp(z), size=OBSERVATIONS)}


def program(*, jacobian: bool = True, rate: float = 1.0, scale: float = 1.0) -> Callable[..., None]:
    """The model by its log density over z; each argument plants an error."""

    def stated(y=None):
        z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real, (), ()))
        sigma = jnp.exp(z)
        prior = dist.Exponential(rate).log_prob(sigma) + (z if jacobian else 0.0)
        numpyro.factor("prior", prior)
        numpyro.sample("y", dist.Normal(0, scale * sigma).expand([OBSERVATIONS]), obs=y)

    return stated


def family(stated: Callable[..., None]) -> Family:
    """What a program is given, whatever it states."""
    return Family(
        "scale",
        simulate,
        lambda data: numpyro_model(stated, data),
        model=lambda data: lambda: stated(**data),
    )


def by_grid(stated: Callable[..., None], draws: int = 250) -> Callable[[Target, int], xr.DataTree]:
    """A method that draws from a program's posterior exactly, on a fine grid of z."""

    @jax.jit
    def densities(y):
        def one(z):
            return numpyro.infer.util.log_density(stated, (), {"y": y}, {"z": z})[0]

        return jax.vmap(one)(jnp.asarray(GRID))

    def method(target: Target, seed: int) -> xr.DataTree:
        with precision("float64"):
            log = np.asarray(densities(target.data["y"]))
        rng, weight = np.random.default_rng(seed), np.exp(log - log.max())
        z = rng.choice(GRID, size=(1, draws), p=weight / weight.sum())
        z += rng.uniform(-0.5, 0.5, size=z.shape) * (GRID[1] - GRID[0])
        return xr.DataTree.from_dict({"posterior": xr.Dataset({"z": (("chain", "draw"), z)})})

    return method
