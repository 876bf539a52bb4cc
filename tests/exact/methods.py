"""All combinations of methods and cases, with their settings and one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import xarray as xr

import onebasin as ob
from onebasin.models import Target

from .cases import ALL, NETWORKS, case

SEED = 20
FEW = ("free-plane", "unit-inferred", "ordered-known", "correlation")
"""Cases for methods that differ from another one only in the engine, because each case is compiled again."""
SOME = (*FEW, "free-two-units", "free-classes", "skip-predicted", "simplex")
"""Cases for slow methods, with each likelihood and each kind of constraint once."""
SYMMETRIC = ("free-two-units", "simplex", "interval")
"""Cases with interchangeable components."""

Method = Callable[[Target], xr.DataTree]
_CHAINS = {"chains": 4, "warmup": 1000, "draws": 2000}
_NUTS = ob.Nuts(**_CHAINS, target_acceptance=0.95)
_HMC = ob.Hmc(**_CHAINS, target_acceptance=0.9, trajectory_length=2.0, max_steps=200)
_ADVI = ob.Advi(tolerance=0, iterations=5000, draws=4000)
_COMMON = {"seed": SEED, "predictive_mb": 0}


def _starting[Settings: (ob.Nuts, ob.Hmc)](target: Target, settings: Settings) -> Settings:
    """Start at an optimum if the network has skips, since a chain may stay in a mode of negligible probability."""
    skips = target.is_network and target.model.network.skip
    return replace(settings, init="optimum") if skips else settings


def _nuts(target: Target, engine: str) -> xr.DataTree:
    return ob.infer(target, _starting(target, _NUTS), engine=engine, **_COMMON)


def _hmc(target: Target, engine: str) -> xr.DataTree:
    return ob.infer(target, _starting(target, _HMC), engine=engine, **_COMMON)


def _mclmc(target: Target, *, adjusted: bool) -> xr.DataTree:
    settings = ob.Mclmc(draws=4000, adjusted=adjusted, energy_variance=None if adjusted else 5e-4)
    return ob.infer(target, method=settings, **_COMMON)


def _symmetrised(target: Target) -> xr.DataTree:
    settings = ob.Symmetrised(fits=2, steps=5000, draws=2000, report_draws=4000)
    return ob.infer(target, method=settings, **_COMMON)


def _distilled(target: Target) -> xr.DataTree:
    posterior = _nuts(target, "numpyro")
    return ob.approximations.distil(posterior, target.x, seed=SEED).sample(
        4000, seed=SEED, predictive_mb=0
    )


def _ensemble(target: Target) -> xr.DataTree:
    settings = ob.networks.Ensemble(members=200, epochs=500)
    return ob.infer(target, method=settings, **_COMMON)


SAMPLERS: dict[str, Method] = {
    "nuts numpyro": lambda t: _nuts(t, "numpyro"),
    "nuts stan": lambda t: _nuts(t, "stan"),
    "nuts nutpie": lambda t: _nuts(t, "nutpie"),
    "hmc numpyro": lambda t: _hmc(t, "numpyro"),
    "hmc stan": lambda t: _hmc(t, "stan"),
    "mclmc adjusted": lambda t: _mclmc(t, adjusted=True),
}
"""Methods whose draws come from the posterior, up to Monte Carlo error."""
APPROXIMATIONS: dict[str, Method] = {
    "mean-field ADVI numpyro": lambda t: ob.infer(t, engine="numpyro", method=_ADVI, **_COMMON),
    "full-rank ADVI numpyro": lambda t: ob.infer(
        t, replace(_ADVI, family="fullrank"), engine="numpyro", **_COMMON
    ),
    "mean-field ADVI stan": lambda t: ob.advi(t, engine="stan", draws=4000, **_COMMON),
    "full-rank ADVI stan": lambda t: ob.advi(
        t, family="fullrank", engine="stan", draws=4000, **_COMMON
    ),
    "symmetrised VI": _symmetrised,
    "Laplace": lambda t: ob.laplace(t, engine="numpyro", draws=4000, **_COMMON),
    "Pathfinder": lambda t: ob.pathfinder(t, draws=4000, **_COMMON),
    "mclmc unadjusted": lambda t: _mclmc(t, adjusted=False),
    "distilled Gaussian": _distilled,
    "ensemble": _ensemble,
}
"""Approximate methods, whose error the tests measure."""
ON_SOME = ("mclmc adjusted", "mclmc unadjusted", "distilled Gaussian", "ensemble")
ON_FEW = ("nuts nutpie", "hmc numpyro")
FITTED = ("mean-field ADVI numpyro", "full-rank ADVI numpyro", "Laplace")
EVERY_CHART = ("nuts numpyro", "nuts stan")
"""Methods that run in every chart of a case; others do so only for `unit-known`, and else use one without a seam."""


@dataclass(frozen=True)
class Job:
    """A method for a case in one of its charts."""

    case: str
    chart: str
    method: str

    @property
    def name(self) -> str:
        """The name of the combination, also of its file."""
        return f"{self.case}, {self.chart}, {self.method}"

    def run(self) -> xr.DataTree:
        """Return the posterior by this method."""
        return (SAMPLERS | APPROXIMATIONS)[self.method](case(self.case).target(self.chart))


def jobs(methods: Iterable[str]) -> Iterator[Job]:
    """Return the combinations to run for some methods."""
    for name in ALL:
        charts = case(name).charts
        one = charts[1:2] or charts
        for method in methods:
            everywhere = method in EVERY_CHART or (name == "unit-known" and method in FITTED)
            if applies(method, name):
                yield from (Job(name, chart, method) for chart in (charts if everywhere else one))


def applies(method: str, name: str) -> bool:
    """Return whether a method runs on a case."""
    if (method in ON_FEW and name not in FEW) or (method in ON_SOME and name not in SOME):
        return False
    if method == "symmetrised VI":
        return name in SYMMETRIC
    if method == "distilled Gaussian":  # Only networks with free weights and biases.
        return name.startswith(("free", "skip"))
    if method.endswith("stan") or method in ("Pathfinder", "ensemble"):
        return name in NETWORKS
    return True
