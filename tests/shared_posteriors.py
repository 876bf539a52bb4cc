"""Three posteriors of small targets, sampled by onebasin once per run of the tests.

The first test that needs a posterior computes it. All workers of a run share a folder of files, so each posterior is
computed only once. Tests that need draws from a real method, whatever its settings, use one of these: a sampler call
with other settings costs a compilation.

=============  ============================================================================  =========================
name           target                                                                        made by
=============  ============================================================================  =========================
`mixture`      two components `w`, `mu`, `sigma`, which are declared and switch labels       NUTS, 4 x 500
`network`      3 hidden units (tanh) on one input, noise 0.3 known, with its data            NUTS, 4 x 500
`regression`   `alpha`, `beta` (2), `sigma`; log likelihood, predictions and data            NUTS, 4 x 500
=============  ============================================================================  =========================
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import filelock
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr

import onebasin as ob

SETTINGS = ob.Nuts(chains=4, warmup=300, draws=500)
X = np.random.default_rng(1).normal(size=(20, 2))


def mixture(y: jax.Array | None = None) -> None:
    """Define a mixture of two components that are far apart."""
    w = numpyro.sample("w", dist.Dirichlet(2 * jnp.ones(2)))
    mu = numpyro.sample("mu", dist.Normal(0, 3).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(0, 0.5).expand([2]).to_event(1))
    parts = dist.MixtureSameFamily(dist.Categorical(w), dist.Normal(mu, sigma))
    with numpyro.plate("obs", 30):
        numpyro.sample("y", parts, obs=y)


def regression(x: jax.Array, y: jax.Array | None = None) -> None:
    """Define a linear regression on two inputs."""
    alpha = numpyro.sample("alpha", dist.Normal(0, 2))
    beta = numpyro.sample("beta", dist.Normal(0, 2).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    with numpyro.plate("obs", len(x)):
        numpyro.sample("y", dist.Normal(alpha + x @ beta, sigma), obs=y)


def _mixture_target() -> ob.Target:
    rng = np.random.default_rng(2)
    y = np.concatenate([rng.normal(-2, 0.5, 10), rng.normal(2, 1.0, 20)])
    return ob.numpyro_model(mixture, {"y": y}, symmetry="w,mu,sigma")


def _network_target() -> ob.Target:
    x = np.linspace(-2, 2, 20)[:, None]
    y = np.sin(2 * x) + 0.3 * np.random.default_rng(3).normal(size=x.shape)
    model = ob.networks.BayesianNetwork(
        ob.networks.Network(1, (3,), 1, activation="tanh"),
        likelihood=ob.networks.Gaussian(noise_sd=0.3),
    )
    return model.condition(x, y)


def _regression_target() -> ob.Target:
    noise = 0.5 * np.random.default_rng(4).normal(size=20)
    y = 1.0 + X @ np.array([0.5, -1.0]) + noise
    return ob.numpyro_model(regression, {"x": X, "y": y})


TARGETS: dict[str, Callable[[], ob.Target]] = {
    "mixture": _mixture_target,
    "network": _network_target,
}
"""Targets of posteriors with a symmetry."""

MAKERS: dict[str, Callable[[], xr.DataTree]] = {
    "mixture": lambda: ob.infer(_mixture_target(), SETTINGS, seed=1),
    "network": lambda: ob.infer(_network_target(), engine="numpyro", method=SETTINGS, seed=1),
    "regression": lambda: ob.infer(_regression_target(), method=SETTINGS, seed=1),
}


@dataclass(frozen=True)
class SharedPosteriors:
    """The posteriors of a run of the tests, in a folder that all workers share."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the file of a posterior, and compute it if no worker has done so. Tests may only read it."""
        file = self.folder / f"{name}.nc"
        with filelock.FileLock(self.folder / f"{name}.lock"):
            if not file.exists():
                with jax.numpy_rank_promotion("allow"):  # NumPyro's mixtures broadcast.
                    ob.save(MAKERS[name](), file)
        return file

    def load(self, name: str) -> xr.DataTree:
        """Return a copy of a posterior in memory, which a test may change."""
        with ob.open_posterior(self.path(name)) as tree:
            return tree.load().copy(deep=True)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SharedPosteriors:
    """The three posteriors: `shared.path("mixture")` is a file, `shared.load("mixture")` a tree."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "shared-posteriors"
    folder.mkdir(exist_ok=True)
    return SharedPosteriors(folder)
