"""Which priors of a NumPyro model are at its top level: those that power-scaling may scale.

The prior of a latent variable of a hierarchy is a part of the model, and scaling it changes the model (Kallioinen,
Paananen, Bürkner and Vehtari 2024, Statistics and Computing 34:57). Two kinds are told from what the model computes: a
variable whose distribution depends on another one, and a real or positive one that takes effect only after a product
with fewer scales, as the standard normals of a non-centred hierarchy do. Scales are variables of bounded support, and
variables that the model is linear in. What cannot be followed counts as top level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpyro  # noqa: F401 - whole, before a part of it
from jax.extend.core import Literal
from numpyro.distributions import constraints

_LINEAR = {
    *("reshape", "broadcast_in_dim", "transpose", "squeeze", "expand_dims", "slice"),
    *("dynamic_slice", "gather", "concatenate", "rev", "neg", "copy"),
    *("convert_element_type", "cumsum", "reduce_sum", "pad"),
}
"""Operations that reorder or add up what they are given."""

Names = frozenset[str]


@dataclass(frozen=True)
class _Flow:
    """The values that a number depends on."""

    of: Names = frozenset()  # every variable that it depends on
    linear: Names = frozenset()  # those that it is linear in, before any product with a scale

    @classmethod
    def union(cls, flows: Iterable[_Flow]) -> _Flow:
        flows = list(flows)
        return cls(
            frozenset().union(*(flow.of for flow in flows)),
            frozenset().union(*(flow.linear for flow in flows)),
        )


@dataclass
class _Tracing:
    """A walk through what a model computes."""

    sizes: Mapping[str, int]  # entries of each variable
    scales: Names  # variables of bounded support
    used: set[str] = field(default_factory=set)  # variables that take effect without a scale
    # Variables that take effect after a product with a scale.
    scaled: set[str] = field(default_factory=set)

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
            if name == "scan":  # whose later steps may depend on all that the first is given
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
        """Variables that a factor is linear in, and so is its product with another one."""
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
    """Name the variables whose priors are at the top level of a model, in the model's order.

    `distributions` gives the distribution of every site, by its name, at values of the variables; `like` has their
    shapes.
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
    names = sorted(like)  # as a mapping's leaves come
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
