"""Any density as a target: a JAX function of named parameters, a PyMC model, or a model of BridgeStan.

Models of BridgeStan become densities in JAX by callbacks to Python. A compiled library does not report the supports of
its parameters, so the target's parameter is the vector of unconstrained values; the program's variables are computed
from it. `ob.stan_program` with the program's text has the variables as parameters, and is faster.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError, ArgumentTypeError

from .numpyro_target import Site, stated_by
from .symmetry.blocks import Symmetry, as_symmetry
from .target import Target

SUPPORTS = {
    "real": "real",
    "positive": "positive",
    "unit_interval": "unit_interval",
    "simplex": "simplex",
    "ordered": "ordered_vector",
    "positive_ordered": "positive_ordered_vector",
    "unit_vector": "sphere",
    "cholesky_factor_corr": "corr_cholesky",
    "cholesky_factor_cov": "lower_cholesky",
    "corr_matrix": "corr_matrix",
    "cov_matrix": "positive_definite",
}
"""NumPyro's constraints by the names of supports, which are Stan's if possible."""


@checks_arguments
def target(
    model: Any,
    parameters: Mapping[str, Any] | None = None,
    *,
    symmetry: Symmetry | str | Sequence[str] = (),
    name: str | None = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Target:
    """Make a target of any density: a JAX function, a PyMC model, or a model of BridgeStan.

    Parameters
    ----------
    model : callable, pymc.Model, bridgestan.StanModel or Target
        A function that JAX can trace: it maps a mapping of names to arrays to the log density (nats) up to a constant.
        Or a PyMC model; or a BridgeStan model opened with its data, whose parameter is the vector ``unconstrained``. A
        target is returned unchanged.
    parameters : mapping of str to str, constraint or tuple, optional
        Each parameter's support, with its shape if it is not a scalar: ``"positive"``, ``("simplex", 3)``,
        ``("real", (4, 2))``. Supports are real, positive, unit_interval, simplex, ordered, positive_ordered,
        unit_vector, cholesky_factor_corr, cholesky_factor_cov, corr_matrix, cov_matrix, or a constraint of NumPyro.
        The density is that of the constrained values; methods add the Jacobian of their transform where they need it.
    symmetry : tuple of blocks, str or sequence of str, optional
        Which axes of which parameters move together, as blocks or strings such as ``"mu,sigma,1-theta"``.
    name : str, optional
        The target's name; by default that of the function or the model.
    dims, coords : mapping, optional
        Names of axes and their labels, as in `Target`; by default those of a PyMC model.

    Returns
    -------
    Target
        A target with a NumPyro definition, for every method and check that accepts NumPyro models.

    Raises
    ------
    TypeError
        If `model` has none of these types, or `parameters` is missing for a function.
    ValueError
        If a support is unknown, a shape does not fit it, or a PyMC model has discrete parameters.

    See Also
    --------
    numpyro_model, stan_program : targets of models in these languages.

    Examples
    --------
    >>> def banana(p):
    ...     return -0.5 * p["x"] ** 2 - 0.5 * (p["y"] - p["x"] ** 2) ** 2
    >>> ob.target(banana, {"x": "real", "y": "real"}).name
    'banana'
    """
    if isinstance(model, Target):
        return model
    where = type(model).__module__.partition(".")[0]
    if where == "pymc":
        from .pymc_target import PymcTarget, definition_of

        stated, own_dims, own_coords = definition_of(model)
        own_name = model.name or "pymc"
    elif where == "bridgestan":
        stated, own_name, own_dims, own_coords = _of_library(model), model.name(), {}, {}
    elif callable(model):
        if not parameters:
            raise ArgumentTypeError(
                "`parameters` is missing. For a log density function, give a mapping from parameter names to "
                "supports, for example {'mu': 'real', 'sigma': 'positive', 'theta': ('simplex', 3)}. For a function "
                "that defines a NumPyro model, use onebasin.numpyro_model(model, data)."
            )
        stated = stated_by(model, {n: _site(n, given) for n, given in parameters.items()})
        own_name, own_dims, own_coords = getattr(model, "__name__", "density"), {}, {}
    else:
        raise ArgumentTypeError(
            "`model` must be a target, a PyMC model, a bridgestan.StanModel or a JAX log density function; got "
            f"{type(model).__name__}. For a Stan program, use onebasin.stan_program(path, data)."
        )
    kind = partial(PymcTarget, pymc_model=model) if where == "pymc" else Target
    return kind(
        name=name or own_name,
        numpyro_model=stated,
        symmetry=as_symmetry(symmetry),
        dims=dims or own_dims,
        coords=coords or own_coords,
    )


def _site(name: str, given: Any) -> Site:
    import numpyro

    constraints = numpyro.distributions.constraints
    support, shape = given if isinstance(given, tuple) else (given, ())
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if isinstance(support, str):
        if support not in SUPPORTS:
            raise ArgumentError(
                f"`parameters` gives {name} the unknown support {support!r}. Use one of {', '.join(SUPPORTS)}."
            )
        support = getattr(constraints, SUPPORTS[support])
    if not isinstance(support, constraints.Constraint):
        raise ArgumentTypeError(
            f"`parameters` gives {name} the invalid support {support!r}. Use the name of a support, such as "
            "'positive', or a NumPyro constraint."
        )
    if len(shape) < support.event_dim:
        raise ArgumentError(
            f"`parameters` gives {name} the shape {shape}, but the support of {name} needs more axes (at least "
            f"{support.event_dim}). Add the missing sizes, as in ('simplex', 3)."
        )
    if min(shape, default=1) < 1:
        raise ArgumentError(
            f"`parameters` gives {name} the shape {shape}, but every size must be at least 1."
        )
    return support, tuple(int(size) for size in shape)


UNCONSTRAINED = "unconstrained"  # Name of the parameter.


def _of_library(model: Any) -> Callable[[], None]:
    """Make a NumPyro model of a `bridgestan.StanModel`."""
    import jax
    import jax.numpy as jnp
    import numpyro

    size = model.param_unc_num()
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in model.param_names(include_tp=True):  # Such as theta.2.1, the largest index last.
        variable, *places = entry.split(".")
        shapes[variable] = tuple(map(int, places))

    def of_gradient(point: Any) -> tuple[np.ndarray, np.ndarray]:
        try:
            value, gradient = model.log_density_gradient(np.array(point, np.float64))
        except RuntimeError:  # The program rejects this point.
            value, gradient = -np.inf, np.zeros(size)
        return np.asarray(value, point.dtype), np.asarray(gradient, point.dtype)

    def called(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        like = (jax.ShapeDtypeStruct((), point.dtype), jax.ShapeDtypeStruct((size,), point.dtype))
        return jax.pure_callback(of_gradient, like, point, vmap_method="sequential")

    @jax.custom_vjp
    def density(point: jax.Array) -> jax.Array:
        return called(point)[0]

    density.defvjp(called, lambda gradient, above: (above * gradient,))

    def constrained(point: Any) -> np.ndarray:
        values = model.param_constrain(np.array(point, np.float64), include_tp=True)
        return np.asarray(values, point.dtype)

    def computed(values: dict[str, Any]) -> dict[str, Any]:
        point = jax.lax.stop_gradient(values[UNCONSTRAINED])  # Callbacks have no gradient.
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        like = jax.ShapeDtypeStruct((sum(sizes),), point.dtype)
        flat = jax.pure_callback(constrained, like, point, vmap_method="sequential")
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        # Stan's first index varies fastest.
        return {
            name: jnp.reshape(part, shape[::-1]).transpose()
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    sites = {UNCONSTRAINED: (numpyro.distributions.constraints.real, (size,))}
    return stated_by(lambda values: density(values[UNCONSTRAINED]), sites, computed)
