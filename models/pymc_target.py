"""PyMC models as densities in JAX: the log density over values on their supports, deterministics, names of axes.

PyMC's log density is over transformed values. Here it is over values on the support, and NumPyro's transforms replace
PyMC's. So a parameter keeps its support, and the densities of the two frameworks differ at most by a constant. A
parameter whose support NumPyro lacks keeps PyMC's transform and its name (`x_chain__`), and its value is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision

from .numpyro_target import Site, stated_by
from .target import Target


@dataclass(frozen=True, kw_only=True, repr=False)
class PymcTarget(Target):
    """A target from a PyMC model, which draws its own predictions."""

    pymc_model: Any = None


_SUPPORTS = {
    "LogTransform": "positive",
    "LogExpM1": "positive",
    "CircularTransform": "circular",
    "LogOddsTransform": "unit_interval",
    "SimplexTransform": "simplex",
    "Ordered": "ordered_vector",
    "CholeskyCorrTransform": "corr_cholesky",
    "CholeskyCovTransform": "positive_definite",
}
"""NumPyro's constraints, by the classes of PyMC's transforms."""


def definition_of(
    model: Any,
) -> tuple[Callable[[], None], dict[str, tuple[str, ...]], dict[str, Any]]:
    """Convert a PyMC model to a NumPyro model, with the names and labels of its axes.

    Reject a model without parameters or with discrete ones.
    """
    if not model.free_RVs:
        raise ArgumentError("`model` is a PyMC model without parameters. Add a parameter.")
    if discrete := [variable.name for variable in model.discrete_value_vars]:
        raise ArgumentError(
            f"`model` has discrete parameters ({', '.join(discrete)}), but inference needs gradients. Sum over the "
            "values of these parameters in the model, for example with `pymc_extras.marginalize`."
        )
    from pymc.logprob import transformed_conditional_logp
    from pymc.logprob.utils import replace_rvs_by_values
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor import as_tensor, tensor
    from pytensor.tensor.random.type import RandomType

    start = model.initial_point()
    sites: dict[str, Site] = {}
    held, as_it_is = [], []
    symbols, transforms = dict(model.rvs_to_values), dict(model.rvs_to_transforms)
    for variable in model.free_RVs:
        value, transform = model.rvs_to_values[variable], model.rvs_to_transforms[variable]
        constraint = _constraint(model, variable, transform)
        at_start, there = as_tensor(start[value.name]), value
        if constraint is None:
            as_it_is.append(variable)
        elif transform is not None:
            at_start, there = transform.backward(at_start, *variable.owner.inputs), variable
            transforms[variable] = None
        shape = np.shape(at_start.eval())
        # JAX needs the sizes, but PyMC leaves those of named axes open.
        symbols[variable] = tensor(there.name, dtype=there.dtype, shape=shape)
        held.append(symbols[variable])
        sites[there.name] = (constraint, shape)

    def at_values(graphs: Sequence[Any]) -> list[Any]:
        found: list[Any] = replace_rvs_by_values(
            list(graphs), rvs_to_values=symbols, rvs_to_transforms=transforms
        )
        return found

    terms = transformed_conditional_logp(
        model.basic_RVs, rvs_to_values=symbols, rvs_to_transforms=transforms
    )
    of_data = dict(zip(model.basic_RVs, terms, strict=True))
    seen = {v.name: of_data.pop(v) for v in model.observed_RVs}
    outside = [*of_data.values(), *at_values(model.potentials)]
    if any(isinstance(v.type, RandomType) for v in ancestors([*terms, *outside])):
        raise ArgumentError(
            "The log density of `model` contains random numbers, for example from `pm.Minibatch`. Use all data "
            "instead."
        )
    density = _differentiable(sum(term.sum() for term in outside), held)
    likelihood = _differentiable(sum(term.sum() for term in seen.values()), held, [*seen.values()])
    shown = [*as_it_is, *model.deterministics]
    computed = _in_jax(at_values(shown), held) if shown else None
    names = [variable.name for variable in shown]

    def results(values: Mapping[str, Any]) -> dict[str, Any]:
        in_order = [values[name] for name in sites]  # JAX sorts the names of a mapping.
        return dict(zip(names, computed(*in_order), strict=True)) if computed else {}

    import numpyro

    constraints = numpyro.distributions.constraints
    stated = stated_by(
        lambda of: density(*(of[n] for n in sites))[0],
        {n: (constraints.real if c is None else c, shape) for n, (c, shape) in sites.items()},
        results,
        {v.name: np.asarray(model.rvs_to_values[v].eval()) for v in model.observed_RVs},
        lambda of: likelihood(*(of[n] for n in sites)),
    )
    # Names of the variables' axes, and the labels of those axes.
    own = {*sites, *names, *seen}
    dims = {n: tuple(a) for n, a in model.named_vars_to_dims.items() if n in own and all(a)}
    used = {axis for axes in dims.values() for axis in axes}
    labels = model.coords.items()
    coords = {axis: list(given) for axis, given in labels if axis in used and given is not None}
    return stated, dims, coords


def _constraint(model: Any, variable: Any, transform: Any) -> Any:
    """Return NumPyro's constraint of a parameter, the real line if PyMC does not transform it, or None."""
    import numpyro

    constraints = numpyro.distributions.constraints
    kind = type(transform).__name__
    if transform is None:
        return constraints.real
    if kind in _SUPPORTS:
        return getattr(constraints, _SUPPORTS[kind])
    if kind == "ZeroSumTransform":
        count = len(transform.zerosum_axes)
        last = {*range(-count, 0)} == {a - variable.ndim * (a >= 0) for a in transform.zerosum_axes}
        return constraints.zero_sum(count) if last else None
    if kind not in ("Interval", "IntervalTransform"):
        return None
    from pytensor.graph.traversal import ancestors

    bounds = transform.args_fn(*variable.owner.inputs)
    symbolic = [bound for bound in bounds if bound is not None and hasattr(bound, "owner")]
    if not {*ancestors(symbolic)}.isdisjoint(model.basic_RVs):  # Bounds that depend on parameters.
        return None
    low, high = (
        None if b is None else np.asarray(b.eval() if hasattr(b, "eval") else b) for b in bounds
    )
    if high is None:
        return constraints.greater_than(low)
    return constraints.less_than(high) if low is None else constraints.interval(low, high)


def _in_jax(graph: Sequence[Any], inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a graph of PyMC's values into a function of them."""
    from pymc.sampling.jax import get_jaxified_graph

    try:
        return get_jaxified_graph(inputs=list(inputs), outputs=list(graph))
    except NotImplementedError as error:
        raise ArgumentError(
            f"PyTensor cannot compile an operation of `model` for JAX ({error}). Replace this operation."
        ) from error


def _differentiable(
    log_density: Any, inputs: Sequence[Any], terms: Sequence[Any] = ()
) -> Callable[..., tuple[Any, list[Any]]]:
    """Compile a log density with PyTensor's gradient, and its terms without one.

    JAX's own is NaN if it multiplies the zero of a branch not taken by its infinite derivative, as in the tails of
    censored data. It is used if PyTensor has no gradient, or none that JAX can compute.
    """
    import jax
    import jax.numpy as jnp
    from pytensor.gradient import grad

    if not hasattr(log_density, "owner"):  # The sum of no terms.
        return lambda *values: (jnp.zeros(()), [])
    count = 1 + len(terms)
    try:
        slopes: Any = grad(log_density, list(inputs), disconnected_inputs="ignore")
        both = _in_jax([log_density, *terms, *slopes], inputs)
        given = [jax.ShapeDtypeStruct(v.type.shape, "float64") for v in inputs]
        with precision("float64"):
            jax.eval_shape(both, *given)
    except (NotImplementedError, TypeError, ValueError, IndexError):
        alone = _in_jax([log_density, *terms], inputs)
        return lambda *values: _split(alone(*values))
    density = jax.custom_jvp(lambda *values: _split(both(*values)[:count]))

    @density.defjvp
    def _(values: Any, along: Any) -> Any:
        found = both(*values)
        slope = sum(jnp.sum(s * a) for s, a in zip(found[count:], along, strict=True))
        own = _split(found[:count])
        return own, (slope, [jnp.zeros_like(term) for term in own[1]])

    return density


def _split(found: Sequence[Any]) -> tuple[Any, list[Any]]:
    return found[0], list(found[1:])
