"""Log likelihoods, predictions and log priors of a NumPyro model at each draw.

The group of log priors names the priors at the model's top level, which power-scaling may scale. The prior of a latent
variable in a hierarchy is part of the model, so scaling it would change the model (Kallioinen, Paananen, Bürkner and
Vehtari 2024, Statistics and Computing 34:57). Two kinds of latent variables are found from the computation. One is a
variable whose distribution depends on another variable. The other is a real or positive variable that has an effect
only after multiplication by scales with fewer entries, like the standard normals of a non-centred hierarchy. Scales
are variables with bounded support, and variables in which the model is linear. Any other variable counts as top level.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
from jax.extend.core import Literal
from numpyro.distributions import constraints
from numpyro.handlers import seed as seeded
from numpyro.handlers import substitute, trace, uncondition

from onebasin.base.errors import ArgumentError
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.pymc_target import PymcTarget
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import DrawGroup, Values, every_which, why_left_out
from onebasin.posteriors.schema import (
    LOG_LIKELIHOOD,
    LOG_PRIOR,
    POSTERIOR_PREDICTIVE,
    SAMPLE_DIMS,
    TOP_LEVEL,
)
from onebasin.posteriors.scratch import Room

from ..density.numpyro import FIXED, is_observation, is_variable, require_numpyro, sites_of

_LINEAR = {
    *("reshape", "broadcast_in_dim", "transpose", "squeeze", "expand_dims", "slice"),
    *("dynamic_slice", "gather", "concatenate", "rev", "neg", "copy"),
    *("convert_element_type", "cumsum", "reduce_sum", "pad"),
}
"""Operations that reorder or add up their inputs."""

Names = frozenset[str]


@dataclass(frozen=True)
class _Flow:
    """The variables on which a number depends."""

    of: Names = frozenset()  # All variables on which the number depends.
    linear: Names = frozenset()  # Those in which it is linear before any product with a scale.

    @classmethod
    def union(cls, flows: Iterable[_Flow]) -> _Flow:
        flows = list(flows)
        return cls(
            frozenset().union(*(flow.of for flow in flows)),
            frozenset().union(*(flow.linear for flow in flows)),
        )


@dataclass
class _Tracing:
    """A traversal of the program of a model."""

    sizes: Mapping[str, int]  # Number of entries of each variable.
    scales: Names  # Variables with bounded support.
    used: set[str] = field(default_factory=set)  # Variables with an effect without a scale.
    scaled: set[str] = field(default_factory=set)
    """Variables with an effect after a product with a scale."""

    def through(self, jaxpr: Any, flows: Sequence[_Flow]) -> list[_Flow]:
        """Follow the inputs of a program to its results."""
        known = dict(zip(jaxpr.invars, flows, strict=True))

        def flow(atom: Any) -> _Flow:
            return _Flow() if isinstance(atom, Literal) else known.get(atom, _Flow())

        for step in jaxpr.eqns:
            found = self._after(step, [flow(atom) for atom in step.invars])
            known |= dict(zip(step.outvars, found, strict=True))
        return [flow(atom) for atom in jaxpr.outvars]

    def _after(self, step: Any, flows: list[_Flow]) -> list[_Flow]:
        name, both = step.primitive.name, _Flow.union(flows)
        inner = step.params.get("jaxpr", step.params.get("call_jaxpr"))
        inner = getattr(inner, "jaxpr", inner)
        if inner is not None and len(inner.invars) == len(flows):
            found = self.through(inner, flows)
            if name == "scan":  # Later steps may depend on all inputs.
                found = [_Flow(both.of, flow.linear) for flow in found]
            return found
        if name in _LINEAR:
            return [both]
        if name in ("add", "sub", "add_any") and all(flow.of for flow in flows):
            return [both]
        if name in ("mul", "dot_general"):
            return [_Flow(both.of, self._left(*flows) | self._left(*flows[::-1]))]
        if name == "div":
            self.used |= flows[1].linear
            return [_Flow(both.of, self._left(*flows))]
        self.used |= both.linear
        return [_Flow(both.of)] * len(step.outvars)

    def _left(self, own: _Flow, other: _Flow) -> Names:
        """Return the variables in which both a factor and its product with another factor are linear."""
        if not other.of:
            return own.linear
        left = set()
        for name in own.linear:
            factors = ((other.of & self.scales) | other.linear) - {name}
            if any(self.sizes[factor] < self.sizes[name] for factor in factors):
                self.scaled.add(name)
            elif other.linear - {name}:
                left.add(name)
            else:
                self.used.add(name)
        return frozenset(left)


def top_level(
    distributions: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    like: Mapping[str, jax.ShapeDtypeStruct],
) -> tuple[str, ...]:
    """Return the names of variables with priors at the top level of a model, in the model's order.

    `distributions` returns the distribution of every site at values of the variables. `like` has their shapes.
    """
    owners: list[str] = []
    scales: set[str] = set()
    free: set[str] = set()

    def parameters(values: Mapping[str, Any]) -> list[Any]:
        leaves = []
        for name, distribution in distributions(values).items():
            own = [leaf for leaf in jax.tree.leaves(distribution) if hasattr(leaf, "dtype")]
            owners.extend([name] * len(own))
            leaves += own
            support = distribution.support
            while hasattr(support, "base_constraint"):
                support = support.base_constraint
            if support is not constraints.real:
                scales.add(name)
            if support in (constraints.real, constraints.positive):
                free.add(name)
        return leaves

    jaxpr = jax.make_jaxpr(parameters)(dict(like)).jaxpr
    names = sorted(like)  # The order of a mapping's leaves.
    tracing = _Tracing({name: like[name].size for name in names}, frozenset(scales))
    start = [_Flow(frozenset({n}), frozenset({n} & free)) for n in names]
    below = set()
    for owner, result in zip(owners, tracing.through(jaxpr, start), strict=True):
        tracing.used |= result.linear - {owner}
        if result.of - {owner}:
            below.add(owner)
    return tuple(
        n for n in like if n not in below and (n not in tracing.scaled or n in tracing.used)
    )


Site = Mapping[str, Any]
Axes = tuple[str, ...]  # Names of axes.


def plate_dims(sites: Mapping[str, Site], given: Mapping[str, Axes]) -> dict[str, Axes]:
    """Name the axes of sites: use given names, or the names of plates.

    An axis without a plate has the name from `infer={"event_dims": [...]}`, or ArviZ's default name. The name of a
    plate is not used if a site has the same name, or if the plate has another size elsewhere.
    """
    taken = {name for name, site in sites.items() if site["type"] != "plate"} | set(SAMPLE_DIMS)
    sizes: dict[str, int] = {}
    for name, axes in given.items():
        if name in sites:
            shape = jnp.shape(sites[name]["value"])
            sizes |= dict(zip(axes, shape, strict=False))
    found = dict(given)
    for name, site in sites.items():
        if name in given or site["type"] not in ("sample", "deterministic"):
            continue
        shape = jnp.shape(site["value"])
        named = {
            place: axis
            for place, axis in _named(site, shape).items()
            if axis not in taken and sizes.setdefault(axis, shape[place]) == shape[place]
        }
        if named:
            found[name] = tuple(named.get(i, f"{name}_dim_{i}") for i in range(len(shape)))
    return found


def _named(site: Site, shape: tuple[int, ...]) -> dict[int, str]:
    """Return the names of a site's axes by position."""
    frames = site["cond_indep_stack"]
    if site["type"] == "deterministic":  # Its number of event axes is unknown.
        events = range(len(shape) + 1)
    else:
        events = range(site["fn"].event_dim, site["fn"].event_dim + 1)
    for event_dim in events:
        batch = len(shape) - event_dim
        places = {batch + frame.dim: frame for frame in frames}
        if all(p >= 0 and shape[p] == frame.size for p, frame in places.items()):
            last = list(site.get("infer", {}).get("event_dims", []))
            names = dict(zip(range(len(shape) - len(last), len(shape)), last, strict=True))
            return names | {place: frame.name for place, frame in places.items()}
    return {}


BLOCK = 2**22  # Maximum bytes of draws, and of results, in memory at once.

Arrays = dict[str, jax.Array]
Groups = dict[str, Arrays]


@dataclass(frozen=True)
class Sites:
    """The variables and data of a model."""

    model: Callable[[], None]  # The model with all other sites fixed.
    latent: tuple[str, ...]  # Names of the variables.
    observed: tuple[str, ...]  # Names of the data.
    draws: bool = True  # Whether it can draw data.
    priors: bool = True  # Whether each variable has a prior.

    @classmethod
    def of(cls, target: Target) -> Sites:
        """Find the variables and data in a target's model."""
        sites = sites_of(target)
        latent = [name for name, site in sites.items() if is_variable(site)]
        fixed = {n: s["value"] for n, s in sites.items() if s["type"] in FIXED}
        model = require_numpyro(target)
        return cls(
            substitute(model, data=fixed) if fixed else model,
            tuple(latent),
            tuple(name for name, site in sites.items() if is_observation(site)),
            *(not isinstance(target, PymcTarget),)
            * 2,  # PyMC draws the data, and has one joint prior.
        )

    def at(self, values: Mapping[str, Any], key: jax.Array) -> Groups:
        """Compute all groups at one draw."""
        sites = self._traced(values)
        prior = {n: jnp.sum(sites[n]["fn"].log_prob(sites[n]["value"])) for n in self.latent}
        groups = {LOG_LIKELIHOOD: self._terms(sites)} | ({LOG_PRIOR: prior} if self.priors else {})
        return groups | ({POSTERIOR_PREDICTIVE: self.predicted(values, key)} if self.draws else {})

    def log_likelihood(self, values: Mapping[str, Any]) -> Arrays:
        """Return the log likelihoods of all observations at one draw."""
        return self._terms(self._traced(values))

    def distributions(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the distribution of every site at one draw."""
        sites = self._traced(values)
        return {name: site["fn"] for name, site in sites.items() if site["type"] == "sample"}

    def _traced(self, values: Mapping[str, Any]) -> Mapping[str, Site]:
        run = substitute(seeded(self.model, jax.random.key(0)), data=dict(values))
        return trace(run).get_trace()

    def _terms(self, sites: Mapping[str, Site]) -> Arrays:
        return {n: sites[n]["fn"].log_prob(sites[n]["value"]) for n in self.observed}

    def log_prior_attributes(self, like: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, str]:
        """Return the names of priors at the top level, if JAX can trace the model's distributions."""
        try:
            return {TOP_LEVEL: json.dumps(top_level(self.distributions, like))}
        except Exception:  # An error of the model must not lose the draws.
            return {}

    def predicted(self, values: Mapping[str, Any], key: jax.Array) -> Arrays:
        """Draw data, in single precision."""
        run = uncondition(seeded(substitute(self.model, data=dict(values)), key))
        sites = trace(run).get_trace()
        if fixed := [name for name in self.observed if sites[name]["is_observed"]]:
            raise ArgumentError(f"the model cannot draw {', '.join(fixed)} again")
        drawn = {name: jnp.asarray(sites[name]["value"]) for name in self.observed}
        return {n: v.astype(jnp.float32) if v.dtype == jnp.float64 else v for n, v in drawn.items()}

    def trying(self, like: Mapping[str, Any]) -> tuple[Sites, str]:
        """Return these sites, without predictions if the model cannot compute them, and the reason."""
        if not self.draws:
            return self, ""
        try:
            jax.eval_shape(self.predicted, like, jax.random.key(0))
        except Exception as error:
            return replace(self, draws=False), reason(error)
        return self, ""


def reason(error: Exception) -> str:
    """Describe an error of a user's model in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def numpyro_groups(
    target: Target,
    draws: Mapping[str, Values],
    dims: Mapping[str, tuple[str, ...]],
    *,
    seed: int,
    limit_mb: float,
    folder: Path | None = None,
) -> tuple[dict[str, DrawGroup], dict[str, str]]:
    """Compute log likelihoods, predictions and log priors at draws (chain, draw, ...) of a NumPyro model.

    `dims` names the axes of the sites. If the groups need more than `limit_mb` megabytes in total, draws or groups are
    left out. Large groups are stored in `folder`, if given. Return the groups by name, and reasons for missing groups.
    """
    sites = Sites.of(target)
    values = {name: draws[name] for name in sites.latent}
    chains, num_draws = next(iter(values.values())).shape[:2]
    like = {n: jax.ShapeDtypeStruct(v.shape[2:], v.dtype) for n, v in values.items()}
    sites, why = sites.trying(like)
    shapes = jax.eval_shape(sites.at, like, jax.random.key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    every = every_which(chains, num_draws, size, limit_mb)
    if every is None:
        why = why_left_out(size, limit_mb)
        return {}, dict.fromkeys((LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE), why)
    kept = {name: value[:, ::every] for name, value in values.items()}
    keys = keys_for(Purpose.PREDICTIVE, seed, chains)
    room = filled(sites.at, kept, keys, size, every, folder)
    groups = {}
    for group in shapes:
        arrays = room.group(group)
        axes = {name: dims[name][: arrays[name].ndim - 2] for name in arrays if name in dims}
        own, attrs = (axes, {}) if group != LOG_PRIOR else ({}, sites.log_prior_attributes(like))
        groups[group] = DrawGroup(arrays, own, every, room.filed, attrs)
    return groups, {POSTERIOR_PREDICTIVE: why} if why else {}


def filled(
    at: Callable[[Mapping[str, Any], jax.Array], Groups],
    values: Mapping[str, Values],
    keys: jax.Array,
    size: int,
    every: int = 1,
    folder: Path | None = None,
) -> Room:
    """Compute groups at all draws (chain, draw, ...) in blocks, with one key per chain.

    `at` returns the groups, of `size` bytes, for the values of one draw and a key. `values` are every `every`-th draw
    of the run; the random numbers of a draw do not depend on `every`. Large groups are stored in `folder`, if given.
    """
    chains, kept = next(iter(values.values())).shape[:2]
    taken = sum(v.nbytes // (chains * kept) for v in values.values())
    step = min(kept, max(1, BLOCK // max(size + taken, 1)))
    room = Room(chains, kept, folder)

    @jax.jit
    def block(part: Arrays, key: jax.Array, numbers: jax.Array) -> Groups:
        def one(both: tuple[Arrays, jax.Array]) -> Groups:
            return at(both[0], jax.random.fold_in(key, both[1]))

        return jax.lax.map(one, (part, numbers))

    for chain in range(chains):
        for first in range(0, kept, step):
            # All blocks have the same length, because JAX would compile again for every other length.
            rows = slice(first := min(first, kept - step), first + step)
            part = {n: jnp.asarray(np.asarray(v[chain, rows])) for n, v in values.items()}
            found = block(part, keys[chain], jnp.arange(first, first + step) * every)
            room.put(chain, first, jax.tree.map(np.asarray, found))
    return room
