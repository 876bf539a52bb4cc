"""Synthetic posteriors in the documented format, so that tests need no sampler."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

from onebasin.models import BayesianNetwork
from onebasin.models.symmetry.blocks import to_json

DIMS = {
    "W1": ("in", "hidden1"),
    "b1": ("hidden1",),
    "W2": ("hidden1", "out"),
    "b2": ("out",),
    "y": ("obs", "out"),
}
ATTRS = {
    "target": "toy",
    "engine": "numpyro",
    "method": "nuts",
    "seed": 7,
    "settings": json.dumps({"warmup": 500, "target_accept": 0.8}),
    "versions": json.dumps({"onebasin": "0.1.0", "jax": "0.10.2"}),
    "machine": "a processor, 2 cores, cpu",
    "wall_time": 12.5,
    "sampling_seconds": json.dumps([2.0, 2.0, 3.0, 3.0]),
    "warmup_seconds": json.dumps([0.5, 0.5, 0.5, 0.5]),
    "max_tree_depth": 10,
    "model": "",
    "symmetry": "[]",
}


def dataset(variables: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Give arrays (chain, draw, ...) the documented dimension names."""
    return xr.Dataset({name: _labelled(name, np.asarray(v)) for name, v in variables.items()})


def _labelled(name: str, values: np.ndarray) -> xr.DataArray:
    rest = DIMS.get(name, tuple(f"{name}_dim_{axis}" for axis in range(values.ndim - 2)))
    return xr.DataArray(values, dims=("chain", "draw", *rest))


def mcmc_tree(
    variables: Mapping[str, np.ndarray],
    *,
    stats: Mapping[str, np.ndarray] | None = None,
    attrs: Mapping[str, Any] | None = None,
    **groups: xr.Dataset,
) -> xr.DataTree:
    """Build a posterior as NUTS returns it; `stats` replaces or adds sampler statistics."""
    chains, draws = next(iter(variables.values())).shape[:2]
    rng = np.random.default_rng(2)
    shape = (chains, draws)
    recorded = {
        "diverging": np.zeros(shape, bool),
        "tree_depth": np.full(shape, 3),
        "n_steps": np.full(shape, 7),
        "acceptance_rate": np.full(shape, 0.8),
        "energy": rng.normal(size=shape),
        "step_size": np.full(shape, 0.25),
        "lp": -0.5 * rng.chisquare(3, size=shape),
    }
    recorded |= dict(stats or {})
    tree = xr.DataTree.from_dict(
        {
            "posterior": dataset(variables),
            "sample_stats": dataset({k: v for k, v in recorded.items() if v is not None}),
            **groups,
        }
    )
    tree.attrs.update(ATTRS | {"gradient_evaluations": 7 * chains * draws} | dict(attrs or {}))
    return tree


def variational_tree(
    variables: Mapping[str, np.ndarray],
    *,
    lp: np.ndarray,
    log_q: np.ndarray,
    elbo: np.ndarray | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Build a variational posterior: one chain of independent draws."""
    trace = np.asarray([-90.0, -12.0, -10.5, -10.25]) if elbo is None else elbo
    fit = xr.Dataset(
        {
            "elbo": ("evaluation", trace),
            "iteration": ("evaluation", 100 * np.arange(1, len(trace) + 1)),
        }
    )
    stats = dataset({"lp": lp, "log_q": log_q})
    tree = xr.DataTree.from_dict(
        {"posterior": dataset(variables), "sample_stats": stats, "variational": fit}
    )
    kept = ("target", "engine", "seed", "settings", "versions", "machine", "wall_time", "symmetry")
    own = {"method": "advi-meanfield", "converged": 1, "attempts": "[]"}
    tree.attrs.update({k: ATTRS[k] for k in kept} | own | {"gradient_evaluations": 4000})
    tree.attrs.update(dict(attrs or {}))
    return tree


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a random generator with a fixed seed."""
    return np.random.default_rng(20170101)


@pytest.fixture(scope="session")
def make_mcmc() -> Callable[..., xr.DataTree]:
    """Return the builder of NUTS posteriors."""
    return mcmc_tree


@pytest.fixture
def make_variational() -> Callable[..., xr.DataTree]:
    """Return the builder of variational posteriors."""
    return variational_tree


@pytest.fixture
def make_network() -> Callable[..., xr.DataTree]:
    """Return the builder of posteriors of two ReLU units."""
    return relu_tree


@pytest.fixture
def network_tree(rng: np.random.Generator) -> xr.DataTree:
    """Return draws of two ReLU units on 1-D data: weights, sigma and data."""
    return relu_tree(rng)


def network_posterior(
    model: BayesianNetwork,
    values: Mapping[str, np.ndarray],
    data: tuple[np.ndarray, np.ndarray] | None = None,
    **groups: xr.Dataset,
) -> xr.DataTree:
    """Build a posterior from draws (chain, draw, ...) of a network, with its description, symmetry and data (x, y)."""
    dims = model.network.dims
    variables = {n: (("chain", "draw", *dims.get(n, ())), np.asarray(v)) for n, v in values.items()}
    if data is not None:
        x, y = data
        groups["constant_data"] = xr.Dataset({"x": (("obs", "in"), x)})
        groups["observed_data"] = xr.Dataset({"y": (("obs", "out")[: y.ndim], y)})
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables), **groups})
    tree.attrs = {"model": model.describe(), "symmetry": to_json(model.symmetry)}
    return tree


def modes_table(
    weights: np.ndarray | list[float], errors: list[float], **changes: Any
) -> xr.Dataset:
    """Return a group `modes` with these weights, accurate to 0.1; `changes` replace columns and attributes."""
    weights = np.asarray(weights, float)
    log = np.log(weights)
    columns = {
        "log_weight": log,
        "weight": weights,
        "weight_low": weights * 0.9,
        "weight_high": np.minimum(weights * 1.1, 1),
        "log_evidence": log - log[0],
        "log_evidence_error": errors,
        "starts": np.full(len(weights), 40 // len(weights)),
        "rhat": np.ones(len(weights)),
    }
    said = {
        "known": 1,
        "starts": 40,
        "unseen": 0.0,
        "not_sampled": 0,
        "nearest_not_sampled": np.nan,
    }
    rows = columns | {name: v for name, v in changes.items() if np.ndim(v)}
    said |= {name: v for name, v in changes.items() if not np.ndim(v)}
    return xr.Dataset({n: ("mode", np.asarray(v, float)) for n, v in rows.items()}, attrs=said)


ORDERS = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]])


def switched_mixture(
    rng: np.random.Generator,
    chains: int = 4,
    draws: int = 400,
    *,
    apart: float = 3.0,
    sd: float = 0.3,
    orders: np.ndarray = ORDERS,
    every_draw: bool = False,
) -> dict[str, np.ndarray]:
    """Return means and spreads of three components, with labels that depend on the chain or on the draw."""
    mu = apart * np.arange(-1, 2) + sd * rng.normal(size=(chains, draws, 3))
    sigma = np.array([0.5, 1.0, 2.0]) * np.exp(0.1 * rng.normal(size=(chains, draws, 3)))
    order = np.repeat(orders[np.arange(chains) % len(orders)][:, None], draws, axis=1)
    if every_draw:
        order = rng.permuted(order, axis=2)
    values = {"mu": mu, "sigma": sigma}
    return {name: np.take_along_axis(v, order, axis=2) for name, v in values.items()}


def autoregression(
    rng: np.random.Generator, rho: float | tuple[float, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """Return stationary AR(1) chains (chain, draw, ...) with unit variance; `rho` may differ between parameters."""
    if isinstance(rho, tuple):
        columns = [autoregression(rng, each, (*shape[:-1], 1)) for each in rho]
        return np.concatenate(columns, axis=-1)
    noise = rng.normal(size=shape) * np.sqrt(1 - rho**2)
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=1)


def relu_tree(
    rng: np.random.Generator, *, chains: int = 4, draws: int = 100, swap: bool = False, **attrs: Any
) -> xr.DataTree:
    """Draw weights around a true network with two ReLU units; `swap` swaps the units in half of the chains."""
    x = np.linspace(-2, 2, 30)[:, None]
    scale = np.exp(0.35 * rng.normal(size=(chains, draws, 2)))
    w1 = np.asarray([[0.7, -0.7]]) * scale[:, :, None, :] + 0.02 * rng.normal(
        size=(chains, draws, 1, 2)
    )
    b1 = np.asarray([0.0, 1.0]) * scale + 0.05 * rng.normal(size=(chains, draws, 2))
    w2 = np.asarray([[0.7], [0.7]]) / scale[..., None]
    if swap:
        w1[::2], b1[::2], w2[::2] = w1[::2, ..., ::-1], b1[::2, :, ::-1], w2[::2, :, ::-1]
    b2 = 0.5 + 0.03 * rng.normal(size=(chains, draws, 1))
    sigma = 0.2 * np.exp(0.08 * rng.normal(size=(chains, draws)))
    hidden = np.maximum(np.einsum("oi,cdih->cdoh", x, w1) + b1[:, :, None, :], 0)
    mean = np.einsum("cdoh,cdhk->cdok", hidden, w2) + b2[:, :, None, :]
    truth = mean.mean(axis=(0, 1))
    y = truth + 0.2 * rng.normal(size=truth.shape)
    return mcmc_tree(
        {"W1": w1, "b1": b1, "W2": w2, "b2": b2, "sigma": sigma},
        attrs=attrs,
        stats={"tree_depth": rng.integers(2, 6, size=(chains, draws))},
        observed_data=xr.Dataset({"y": (("obs", "out"), y)}),
        constant_data=xr.Dataset({"x": (("obs", "in"), x)}),
    )


@contextmanager
def without_figures() -> Iterator[None]:
    """Make reports draw empty figures, for tests of their other content."""
    from matplotlib.figure import Figure

    from onebasin.analysis.report import predictions, sections

    def blank(*_: Any, **__: Any) -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.subplots()
        return figure

    with pytest.MonkeyPatch.context() as patch:
        for module in (sections, predictions):
            for name in vars(module):
                if name.startswith("draw_") and name != "draw_aligned":
                    patch.setattr(module, name, blank)
        patch.setattr(sections, "draw_aligned", lambda *_: (blank(), "lies around 0"))
        yield


@pytest.fixture
def blank_figures() -> Iterator[None]:
    """Make reports draw empty figures in one test."""
    with without_figures():
        yield
