"""Public functions and classes, called with what they cannot take: one error of ours, which names the argument.

The texts of errors are tested where they are raised. Here every public door is tried with what people hand in.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr

import onebasin as ob

from ..each import lines
from . import files as f
from .cases import Call

LABELS = (ob.Exchangeable({"mu": 0, "sigma": 0}),)
SHORT = ob.Nuts(chains=1, warmup=5, draws=5)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


def three() -> None:
    """State a model of three exchangeable numbers."""
    numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))


def one(name: Any = "x", scale: float = 1.0) -> None:
    """State a model of one number."""
    numpyro.sample(name, dist.Normal(0, scale))


def discrete() -> None:
    """State a model with a count."""
    numpyro.sample("k", dist.Poisson(3))


def nothing() -> None:
    """State no variable at all."""


def twice() -> None:
    """State two variables of one name."""
    one()
    one()


def pair() -> None:
    """State a tuple of values."""
    one()
    numpyro.deterministic("pair", (1.0, 2.0))


def nowhere() -> None:
    """State a density that is zero everywhere."""
    one()
    numpyro.factor("never", -jnp.inf)


def target(model: Any = three, **more: Any) -> Any:
    return ob.Target("t", numpyro_model=model, **more)


def network(**more: Any) -> Any:
    return ob.networks.BayesianNetwork(ob.networks.Network(1, (2,)), **more)


def classes() -> Any:
    """A classifier of two classes."""
    network = ob.networks.Network(1, (2,), out_dim=2)
    return ob.networks.BayesianNetwork(network, likelihood=ob.networks.Categorical())


def nuts(model: Any = three, **more: Any) -> Any:
    return ob.infer(target(model), method=SHORT, **more)


def align(*arguments: Any, **more: Any) -> Any:
    return ob.align(f.mixture(), *(arguments or (LABELS,)), **more)


NAMES = {**globals(), "nan": np.nan, "inf": np.inf, "xr": xr}
"""What the tables name; calls are strings, so that no checker of types sees what they hand in."""


def calls(text: str) -> list[Call]:
    """Read a table of calls."""
    return [Call(typed, partial(eval, typed, NAMES), says) for typed, says in lines(text)]


def test_networks_data_and_symmetries(refuse_calls):
    refuse_calls(calls(MODELS))


MODELS = """
ob.networks.Network(0, (2,))                             | `in_dim`
ob.networks.Network(1, (0,))                             | `hidden`
ob.networks.Network(1, (2.5,))                           | `hidden`
ob.networks.Network(1, ("a",))                           | `hidden`
ob.networks.Network(1, 3)                                | `hidden`
ob.networks.Network(1, (2,), activation="x")             | `activation` ~ tanh
ob.networks.Network(1, (2,), skip="x")                   | `skip`
ob.networks.BayesianNetwork(3)                           | `network`
network(likelihood="normal")                    | `likelihood`
network(prior=1.0)                              | `prior`
network(parametrisation="givens")               | `parametrisation`
network(likelihood=ob.networks.Categorical())            | `out_dim`
ob.networks.NormalPrior(0)                               | `weight_scale`
ob.networks.NormalPrior(nan)                             | `weight_scale`
ob.networks.NormalPrior("1")                             | `weight_scale`
ob.networks.Gaussian(-1)                                 | `noise_sd`
ob.networks.Gaussian(inf)                                | `noise_sd`
ob.networks.Gaussian("1")                                | `noise_sd`
ob.networks.Parametrisation("x")                         | givens
# Data
network().condition(np.zeros(3), Y)             | `x`
network().condition(np.zeros((3, 2)), Y)        | `x`
network().condition(np.full((3, 1), nan), Y)    | `x`
network().condition([["a"], ["b"], ["c"]], Y)   | `x`
network().condition([[1], [1, 2]], Y)           | `x`
network().condition(None, Y)                    | `x`
network().condition(np.zeros((0, 1)), np.zeros((0, 1)))   | `x`
network().condition(1j * X, Y)                  | `x`
network().condition(X, np.zeros((2, 1)))        | `y`
network().condition(X, np.full((3, 1), inf))    | `y`
network().condition(X, ["a", "b", "c"])         | `y`
classes().condition(X, [0, 1, 2])              | `y` ~ 0 to 1
ob.networks.load_data("bosten")                          | `name` ~ boston
ob.networks.load_data(None)                              | `name` ~ boston
# Targets
ob.Target(3, numpyro_model=three)               | `name`
target(3)                                       | `numpyro_model`
target(lambda y: y)                             | `numpyro_model` ~ arguments
target(symmetry=3)                              | `symmetry`
target(symmetry=LABELS[0])                      | `symmetry` ~ tuple
target(symmetry=("mu",))                        | `symmetry`
target(dims=["a"])                              | `dims`
ob.stan_program("no.stan")                      | `path`
ob.stan_program("")                             | `path`
ob.stan_program(3)                              | `path`
ob.stan_program("a\\0b.stan")                   | `path`
# Symmetries
ob.Exchangeable({})                             | `axes`
ob.Exchangeable(3)                              | `axes`
ob.Exchangeable(["mu"])                         | `axes`
ob.Exchangeable({"mu": "x"})                    | `axes`
ob.Exchangeable({"mu": 0.5})                    | `axes`
ob.Exchangeable({"mu": 0}, flips=("nu",))       | `flips` ~ nu
ob.Exchangeable({"mu": 0}, complements=("mu",))   | mu
ob.Complement({})                               | `names`
ob.Complement(3)                                | `names`
ob.networks.Rescalable(3)                                | `incoming`
"""


def test_methods(refuse_calls):
    for method in (
        *("nuts", "hmc", "advi", "symmetrised_vi", "ensemble", "check_symmetry"),
        *("optimize", "laplace", "pathfinder"),
    ):
        handed = "3", "None", "three"
        refuse_calls(calls("\n".join(f"ob.{method}({word})  | `target`" for word in handed)))
    refuse_calls(calls(METHODS))


METHODS = """
ob.infer(target(), "gibbs")                     | `method` ~ gibbs ~ nuts
ob.infer(target(), ob.Nuts)                     | `method` ~ Nuts
ob.infer(target(), ob.Nuts(), draws=5)          | `draws` ~ Nuts
ob.nuts(target(), draw=5)                       | `draw` ~ draws
ob.optimize(target(), draws=5)                  | `draws` ~ optimize ~ starts
ob.networks.ensemble(network().condition(X, Y), chains=4)    | `chains` ~ ensemble ~ members
nuts(engine="jags")                             | numpyro, stan
nuts(engine=3)                                  | `engine`
nuts(engine="stan")                             | no Stan program
nuts(seed=-1)                                   | 4294967295
nuts(seed=2**32)                                | 4294967295
nuts(seed=1.5)                                  | `seed`
nuts(seed=True)                                 | `seed`
nuts(seed="1")                                  | `seed`
nuts(checkpoint=3)                              | `checkpoint`
nuts(checkpoint="")                             | `checkpoint`
nuts(checkpoint="a\\0b")                        | `checkpoint`
# Models
nuts(nothing)                                   | nothing to infer
nuts(discrete)                                  | k ~ no gradient
nuts(twice)                                     | x
nuts(pair)                                      | pair ~ tuple
nuts(nowhere)                                   | starting point
nuts(lambda: one("draw"))                       | variable
nuts(lambda: one("chain"))                      | variable
nuts(lambda: one("a/b"))                        | variable
nuts(lambda: one(""))                           | variable
nuts(lambda: one("."))                          | variable
nuts(lambda: one("a\\0"))                       | variable
nuts(lambda: one("\\ud800"))                    | variable
ob.infer(target(dims={"mu": ("a", "b")}), method=SHORT)   | `dims`
ob.infer(target(dims={"mu": ("draw",)}), method=SHORT)    | `dims`
ob.infer(target(dims={"nu": ("a",)}), method=SHORT)       | `dims`
ob.infer(target(dims={"mu": ("a/b",)}), method=SHORT)     | `dims`
ob.infer(target(dims={"mu": ("mu",)}), method=SHORT)      | `dims`
# Other methods
ob.advi(target(), family="x")                   | meanfield, fullrank
ob.advi(target(), start={"nu": 0})              | nu ~ mu
ob.advi(target(), start={"mu": np.zeros(2)})    | (3,)
ob.advi(target(), start={"mu": np.full(3, nan)})   | mu
ob.symmetrised_vi(target())                     | no exchangeable
ob.networks.ensemble(target())                           | no network
ob.networks.train(target(), {})                          | `target`
ob.check_symmetry(target(), points=0)           | `points`
ob.check_symmetry(target(symmetry=(ob.Exchangeable({"nu": 0}),)))   | nu ~ mu
ob.check_symmetry(target(symmetry=(ob.Exchangeable({"mu": 4}),)))   | axis 4
"""


def test_settings(refuse_calls):
    refuse_calls(calls(SETTINGS))


SETTINGS = """
ob.Nuts(chains=0)                       | `chains`
ob.Nuts(chains=2.0)                     | `chains`
ob.Nuts(chains=True)                    | `chains`
ob.Nuts(chains=None)                    | `chains`
ob.Nuts(draws=0)                        | `draws`
ob.Nuts(warmup=-1)                      | `warmup`
ob.Nuts(target_acceptance=1)            | `target_acceptance`
ob.Nuts(target_acceptance=nan)          | `target_acceptance`
ob.Nuts(metric="round")                 | `metric`
ob.Nuts(init_radius=inf)                | `init_radius`
ob.Nuts(init="prior")                   | `init`
ob.Nuts(init_starts=0)                  | `init_starts`
ob.Nuts(dtype="float16")                | `dtype`
ob.Nuts(max_tree_depth=0)               | `max_tree_depth`
ob.Nuts(no_such_field=1)                | `no_such_field`
ob.Hmc(trajectory_length=-1.0)          | `trajectory_length`
ob.Advi(learning_rate=0)                | `learning_rate`
ob.Advi(iterations=0)                   | `iterations`
ob.Advi(batch_size=-5)                  | `batch_size`
ob.Optimize(starts=0)                   | `starts`
ob.Optimize(jacobian=1)                 | `jacobian`
ob.Laplace(draws=0)                     | `draws`
ob.Pathfinder(paths=0)                  | `paths`
ob.networks.Train(epochs=-1)                     | `epochs`
ob.networks.Ensemble(members=0)                  | `members`
ob.Symmetrised(rank=-1)                 | `rank`
ob.approximations.DistillationSettings(samples=0)              | `samples`
"""


def test_posteriors(refuse_calls):
    for reader in ("diagnose", "align", "fit_gaussian"):
        handed = "3", "None", "xr.DataTree()", "xr.Dataset()", "xr.Dataset({'mu': ('x', Y[0])})"
        refuse_calls(calls("\n".join(f"ob.{reader}({word})  | `posterior`" for word in handed)))
    refuse_calls(calls(POSTERIORS))


POSTERIORS = """
ob.diagnose(f.mixture(), var_names=["nu"])      | nu ~ mu
ob.diagnose(f.mixture(), rhat_max=0.5)          | `rhat_max`
ob.diagnose(f.mixture(), ess_threshold=nan)     | `ess_threshold`
ob.align(f.mixture())                           | `symmetry` ~ mu,sigma
align(3)                                        | `symmetry`
align(LABELS[0])                                | `symmetry` ~ tuple
align((ob.Exchangeable({"nu": 0}),))            | nu ~ mu
align(reference="median")                       | mean
align(reference=3)                              | `reference`
align(cost="x")                                 | `cost`
align(cost="activations")                       | network
align(restarts=0)                               | `restarts`
align(max_sweeps=-1)                            | `max_sweeps`
align(seed=-1)                                  | `seed`
ob.compare({}, truth="a")                       | `posteriors`
ob.compare([f.mixture()], truth="a")            | `posteriors`
ob.compare({"a": f.mixture()}, truth="a")       | `posteriors` ~ two
ob.compare({"a": f.mixture(), "b": 3}, truth="a")             | b
ob.compare({"a": f.mixture(), "b": f.network()}, truth="a")   |
ob.compare({"a": f.mixture(), "b": f.mixture(seed=2)}, truth="a", permutations=0)   | `permutations`
ob.report({}, "page.html")                      | `posteriors`
ob.report(3, "page.html")                       |
ob.report(f.mixture(), 3)                       | `path`
ob.approximations.distil(f.mixture(), X)                       | network
ob.approximations.fit_gaussian(f.mixture(), covariance="round")   | `covariance`
ob.networks.score_predictions(np.zeros(3), Y)            | `draws`
ob.open_posterior("no.nc")                      | `path`
ob.open_posterior("")                           | `path`
ob.open_posterior(".")                          | `path`
ob.open_posterior(None)                         | `path`
ob.open_posterior("a\\0b")                      | `path`
ob.save(3, "a.nc")                              | `tree`
ob.save(xr.DataTree(), "a.nc")                  | `tree`
ob.save(f.mixture(), 3)                         | `path`
ob.save(f.mixture(), "")                        | `path`
ob.save(f.mixture(), ".")                       | a folder
ob.truth.PlantedComponents(components=1)              | `components`
ob.truth.PlantedComponents(draws=0)                   | `draws`
ob.truth.failure_rates([-1.0])                        | `separations`
"""
