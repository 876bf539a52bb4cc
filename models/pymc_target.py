"""PyMC models as densities in JAX: the log density over values on their supports, deterministics, names of axes.

PyMC's log density is over transformed values. Here its transforms are applied to values on the support, so that the
density is over these and NumPyro's transforms take over: a parameter has its own support, and densities of two
frameworks differ by a constant at most. A parameter whose support NumPyro lacks stays as PyMC transforms it, under
PyMC's name for that (`x_chain__`), and its value is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .stated import Site, stated_by

_SUPPORTS = {
    "LogTransform": "positive",
    "LogOddsTransform": "unit_interval",
    "SimplexTransform": "simplex",
    "Ordered": "ordered_vector",
}
"""NumPyro's constraints, by the classes of PyMC's transforms."""


def definition_of(
    model: Any,
) -> tuple[Callable[[], None], dict[str, tuple[str, ...]], dict[str, Any]]:
    """State a PyMC model as a NumPyro model; give the names and labels of its axes too.

    Raises
    ------
    ArgumentError
        If it has no parameters, or discrete ones.
    """
    if not model.free_RVs:
        raise ArgumentError("`model` is a PyMC model without parameters.")
    if discrete := [variable.name for variable in model.discrete_value_vars]:
        raise ArgumentError(
            f"`model` has discrete parameters ({', '.join(discrete)}), and methods need gradients: sum over their "
            "values in the model (pymc_extras.marginalize)."
        )
    start = model.initial_point()
    sites: dict[str, Site] = {}
    held, forward, as_it_is = [], {}, []
    for variable in model.free_RVs:
        value, transform = model.rvs_to_values[variable], model.rvs_to_transforms[variable]
        constraint = _constraint(variable, transform)
        there = value if transform is None or constraint is None else variable
        symbol = there.type(name=there.name)
        if there is value:
            shape, forward[value] = np.shape(start[value.name]), symbol
        else:
            backward = transform.backward(start[value.name], *variable.owner.inputs)
            shape = np.shape(backward.eval())
            forward[value] = transform.forward(symbol, *variable.owner.inputs)
        if constraint is None:
            as_it_is.append(variable)
        held.append(symbol)
        sites[there.name] = (constraint, tuple(shape))
    terms = model.logp(jacobian=False)
    for variable in as_it_is:  # whose transform is not NumPyro's to account for
        terms += model.logp([variable], jacobian=True) - model.logp([variable], jacobian=False)
    density = _in_jax([terms], held, forward)
    shown = [*as_it_is, *model.deterministics]
    computed = _in_jax(model.replace_rvs_by_values(shown), held, forward) if shown else None
    names = [variable.name for variable in shown]

    def results(values: Mapping[str, Any]) -> dict[str, Any]:
        in_order = [values[name] for name in sites]  # JAX sorts the names of a mapping
        return dict(zip(names, computed(*in_order), strict=True)) if computed else {}

    stated = stated_by(lambda of: density(*(of[n] for n in sites))[0], _real(sites), results)
    return stated, *_axes(model, [*sites, *names])


def _constraint(variable: Any, transform: Any) -> Any:
    """NumPyro's constraint of a parameter; the real line where PyMC transforms nothing, None where there is none."""
    import numpyro

    constraints = numpyro.distributions.constraints
    kind = type(transform).__name__
    if transform is None:
        return constraints.real
    if kind in _SUPPORTS:
        return getattr(constraints, _SUPPORTS[kind])
    if kind not in ("Interval", "IntervalTransform"):
        return None
    from pytensor.graph.traversal import explicit_graph_inputs

    bounds = transform.args_fn(*variable.owner.inputs)
    symbolic = [bound for bound in bounds if bound is not None and hasattr(bound, "owner")]
    if any(True for _ in explicit_graph_inputs(symbolic)) or _random(symbolic):
        return None
    low, high = (
        None if b is None else np.asarray(b.eval() if hasattr(b, "eval") else b) for b in bounds
    )
    if high is None:
        return constraints.greater_than(low)
    return constraints.less_than(high) if low is None else constraints.interval(low, high)


def _random(graph: Sequence[Any]) -> bool:
    """Tell whether bounds depend on other parameters."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.op import RandomVariable

    return any(
        node.owner is not None and isinstance(node.owner.op, RandomVariable)
        for node in ancestors(graph)
    )


def _real(sites: Mapping[str, Site]) -> dict[str, Site]:
    import numpyro

    constraints = numpyro.distributions.constraints
    return {n: (constraints.real if c is None else c, shape) for n, (c, shape) in sites.items()}


def _in_jax(
    graph: Sequence[Any], inputs: Sequence[Any], forward: Mapping[Any, Any]
) -> Callable[..., Any]:
    """Compile a graph of PyMC's values into a function of values on the supports."""
    from pymc.sampling.jax import get_jaxified_graph
    from pytensor.graph.replace import graph_replace

    outputs = graph_replace(list(graph), dict(forward), strict=False)
    return get_jaxified_graph(inputs=list(inputs), outputs=outputs)


def _axes(
    model: Any, names: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[Any]]]:
    """Names of the axes of these variables, and the labels of those axes."""
    dims = {
        name: tuple(axes)
        for name, axes in model.named_vars_to_dims.items()
        if name in names and all(axes)
    }
    used = {axis for axes in dims.values() for axis in axes}
    labels = model.coords.items()
    return dims, {axis: list(given) for axis, given in labels if axis in used and given is not None}
