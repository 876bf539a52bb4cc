"""Small runs of every method in the registry, on targets that suit all of them, for the conformance tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist

import onebasin as ob
from onebasin.inference.contracts.method import ENGINES, Method, implemented
from onebasin.inference.infer import METHODS
from onebasin.models import Exchangeable, Target

FREE_MIXTURE = Path(__file__).parents[1] / "stan" / "programs" / "known" / "free_mixture.stan"
Y = np.array([-2.3, -1.9, -2.0, -1.6, 1.7, 2.2, 2.0, 2.4])
EVERY_POSTERIORS = (
    "target model symmetry kinds program program_name data_sha256 method engine settings seed"
    " versions machine command created_at wall_time attempts"
)
"""Attributes that all posteriors have."""


@dataclass(frozen=True, eq=False)
class Example:
    """A small run of a method, and the additional content of its posterior."""

    name: str  # Name in the registry.
    settings: Mapping[str, Any]
    engines: str = "numpyro"
    """Engines that run it here; `test_stan_by_jax.py` tests methods that use JAX for a Stan program."""
    several: str = ""
    """The setting for the number of independent chains, fits or members; empty if there is only one."""
    axis: str = "chain"  # The axis of these chains, fits or members.
    statistics: str = "lp log_q"
    attributes: str = "gradient_evaluations"
    group: str = ""
    fit: str = ""  # in the group `variational`
    recorded: str = ""  # The attribute `method`, if it differs from `name`.
    gradients: int = 1  # Gradients per step of a chain.

    @property
    def kind(self) -> type[Method]:
        """The class of the method."""
        return METHODS[self.name]


_SHORT = {"chains": 2, "warmup": 60, "draws": 40}
_DRAWN = {"draws": 40, "weights": False}
_FITS = {"fits": 2, "steps": 60, "evaluate_every": 20, "report_draws": 20, "draws": 40}
_ALL = "numpyro stanli cmdstan"
_MOVES = "lp step_size n_steps diverging"
_HMC = f"{_MOVES} energy acceptance_rate"
_NUTS = f"{_HMC} tree_depth"
_TIMES = "warmup_seconds sampling_seconds gradient_evaluations"
_DEEP = f"{_TIMES} max_tree_depth"
_END = "gradient_evaluations converged"
EXAMPLES = (
    Example("nuts", _SHORT, f"{_ALL} nutpie", "chains", statistics=_NUTS, attributes=_DEEP),
    Example("hmc", _SHORT, "numpyro cmdstan", "chains", statistics=_HMC, attributes=_TIMES),
    Example(
        "mclmc",
        {**_SHORT, "thin": 2},
        several="chains",
        statistics=f"{_MOVES} length energy_variance",
        attributes=f"{_TIMES} stein_identities blackjax",
        gradients=2,
    ),
    Example(
        "modes",
        {**_SHORT, "starts": 4},
        statistics=f"{_NUTS} mode",
        attributes=_DEEP,
        group="modes",
    ),
    Example(
        "advi",
        {"iterations": 200, **_DRAWN},
        _ALL,
        attributes=_END,
        fit="elbo iteration",
        recorded="advi-meanfield",
    ),
    Example(
        "symmetrised",
        _FITS,
        several="fits",
        attributes=f"{_END} information_side",
        fit="elbo iteration information loc scale",
        recorded="symmetrised-vi",
    ),
    Example(
        "ensemble",
        {"members": 3, "epochs": 8, "batch_size": 4},
        several="members",
        axis="draw",
        statistics="lp",
        group="training",
    ),
    Example("laplace", _DRAWN, _ALL, attributes="converged", fit="loc scale_tril"),
    Example("optimize", {"starts": 1}, _ALL, statistics="lp", attributes="converged"),
    Example(
        "dadvi",
        {"starts": 4, **_DRAWN},
        attributes=f"{_END} log_density_evaluations",
        fit="loc scale_tril elbo",
    ),
    Example(
        "pathfinder",
        _DRAWN,
        "stanli cmdstan",
        statistics="lp log_q path",
        attributes="converged",
        fit="log_ratio",
    ),
)


@dataclass(frozen=True)
class Case:
    """A method with one of its engines."""

    method: Example
    engine: str

    @property
    def by_stan(self) -> bool:
        """Whether the engine runs a Stan program, with one process per run."""
        return self.engine in ("stanli", "cmdstan")

    def __str__(self) -> str:
        return f"{self.method.name}-{self.engine}"


def run(case: Case, *, target: Target | None = None, **arguments: Any) -> xr.DataTree:
    """Run the method; arguments with the names of its fields set these fields.

    By default, skip predictions and the check of the symmetry.
    """
    arguments = {"predictive_mb": 0.0, "check_symmetry": False} | arguments
    own = case.method.kind.__dataclass_fields__
    fields = {n: arguments.pop(n) for n in [*arguments] if n in own}
    method = made(case.method, **fields)
    return ob.infer(target or target_of(case), method, engine=case.engine, **arguments)


def made(example: Example, **own: Any) -> Method:
    """Make the method of an example with different values of some fields."""
    return example.kind(**{**example.settings, **own})


@cache
def pair(weights: tuple[float, float] = (1.0, 1.0)) -> Target:
    """Return a model of a weighted sum of two means, which are interchangeable if their weights are equal."""

    def model(y: Any) -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 2).expand([2]).to_event(1))
        tau = numpyro.sample("tau", dist.LogNormal(0, 1))
        with numpyro.plate("point", len(Y)):
            numpyro.sample("y", dist.Normal(weights[0] * mu[0] + weights[1] * mu[1], tau), obs=y)

    return ob.numpyro_model(model, {"y": Y}, symmetry=(Exchangeable({"mu": 0}),), name="pair")


@cache
def stan_mixture(*variables: str) -> Target:
    """Return the program that other tests use too, whose components are interchangeable in weight, mu and sigma."""
    block = Exchangeable(dict.fromkeys(variables or ("weight", "mu", "sigma"), 0))
    data = {"N": len(Y), "K": 2, "y": Y}
    return ob.stan_program(FREE_MIXTURE, data, symmetry=(block,), name="mixture")


@cache
def network() -> Target:
    x = np.linspace(-1, 1, 8)[:, None]
    model = ob.networks.BayesianNetwork(ob.networks.Network(1, (2,), 1, "tanh"))
    return model.condition(x, np.sin(2 * x))


def engines_of(method: type[Method]) -> tuple[str, ...]:
    return tuple(name for name in ENGINES if implemented(method, name))


def target_of(case: Case) -> Target:
    if case.method.name == "ensemble":
        return network()
    return stan_mixture() if case.by_stan else pair()


CASES = [Case(example, engine) for example in EXAMPLES for engine in example.engines.split()]


COSTLY = ("modes", "symmetrised", "mclmc", "ensemble")
"""Methods whose compilation takes seconds. Only `make test-all` tests laws that need another run of them."""


def parametrised(cases: list[Case], *, runs_again: bool = False) -> pytest.MarkDecorator:
    def marks(case: Case) -> list[pytest.MarkDecorator]:
        costly = runs_again and case.method.name in COSTLY
        return [pytest.mark.stan] * (case.engine == "cmdstan") + [pytest.mark.full] * costly

    marked = [pytest.param(case, marks=marks(case)) for case in cases]
    return pytest.mark.parametrize("case", marked, ids=str)
