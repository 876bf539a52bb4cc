"""Measure distances of draws from the exact posterior, and bounds of the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import arviz_stats
import numpy as np
import xarray as xr

import onebasin as ob
from onebasin.models.symmetry.blocks import Group, from_json

from .case import Case

TAILS = (0.05, 0.95)
LEAST_ESS = 100.0
SYMMETRISED = "symmetrised-vi"
MOST_ERRORS = 5.0
"""Largest allowed error of a sampler, in Monte Carlo standard errors."""


@dataclass(frozen=True)
class Compared:
    """One statistic of one quantity: its estimate from draws and its exact value."""

    quantity: str
    statistic: str
    found: float
    exact: float
    mcse: float

    @property
    def errors(self) -> float:
        """The difference between both in Monte Carlo standard errors."""
        return abs(self.found - self.exact) / self.mcse


@dataclass(frozen=True)
class Difference:
    """One quantity under an approximation: the error of its mean in exact sds, and the ratio of its sds."""

    quantity: str
    bias: float
    spread: float


def quantities(case: Case, tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the compared quantities of draws (chain, draw)."""
    group = tree["posterior"]
    names = [name for name in case.exact.values if name in group]
    names += [name for name in ("W2", "b2") if name in group and name not in names]
    shape = (group.sizes["chain"], group.sizes["draw"])
    values = {n: group[n].values for n in names}
    if tree.attrs["method"] == SYMMETRISED:
        values = relabelled(tree, values)
    flat = {n: value.reshape(-1, *value.shape[2:]) for n, value in values.items()}
    return {name: value.reshape(shape) for name, value in case.quantities(flat).items()}


def relabelled(tree: xr.DataTree, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return draws of the fitted average over the symmetry, made by relabelling each draw at random."""
    symmetry = from_json(tree.attrs["symmetry"])
    group = Group(symmetry, {n: value.shape[2:] for n, value in values.items()})
    lead = next(iter(values.values())).shape[:2]
    return group.act(group.random(np.random.default_rng(0), lead), values)


def compare(case: Case, tree: xr.DataTree) -> Iterator[Compared]:
    """Return the means and standard deviations of all quantities with their exact values."""
    exact, at_nodes = case.exact, case.quantities(case.exact.values)
    for name, draws in quantities(case, tree).items():
        of = at_nodes[name]
        mcse = float(arviz_stats.mcse(draws))
        yield Compared(name, "mean", float(draws.mean()), exact.mean(of), mcse)
        mcse = float(arviz_stats.mcse(draws, method="sd"))
        yield Compared(name, "sd", float(draws.std()), exact.sd(of), mcse)


def least_ess(case: Case, tree: xr.DataTree) -> float:
    """Return the smallest bulk or tail ESS of all quantities."""
    found = quantities(case, tree).values()
    bulk = [float(arviz_stats.ess(draws)) for draws in found]
    tail = [float(arviz_stats.ess(draws, method="tail", prob=TAILS)) for draws in found]
    return min(bulk + tail)


def differences(case: Case, tree: xr.DataTree) -> list[Difference]:
    """Return every quantity under an approximation."""
    exact, at_nodes = case.exact, case.quantities(case.exact.values)
    found = []
    for name, draws in quantities(case, tree).items():
        mean, sd = exact.mean(at_nodes[name]), exact.sd(at_nodes[name])
        found.append(Difference(name, (float(draws.mean()) - mean) / sd, float(draws.std()) / sd))
    return found


def bound(tree: xr.DataTree) -> tuple[float, float] | None:
    """Return the lower bound of the log evidence and its Monte Carlo error, for methods with a normalised density."""
    method, engine = tree.attrs["method"], tree.attrs.get("engine")
    if method == "laplace":
        ratio = (tree["sample_stats"]["lp"] - tree["sample_stats"]["log_q"]).values.ravel()
        return float(ratio.mean()), float(ratio.std() / math.sqrt(ratio.size))
    if engine == "numpyro" and (method.startswith("advi") or method == SYMMETRISED):
        found = ob.approximations.elbo(tree)
        return found.value, found.mcse
    return None
