"""Evaluate the log density and derived quantities of a target, or return the density as JAX functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.base.text import dotted
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..contracts.method import defined_by, density_by, named

if TYPE_CHECKING:
    from ..contracts.density import LogDensity


Points = xr.DataTree | xr.Dataset | Mapping[str, Any]


@checks_arguments
def log_density(
    target: Target,
    points: Points,
    *,
    engine: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> xr.DataArray:
    """Evaluate a target's log density (log prior plus log likelihood) at values of its parameters.

    Two programs define the same model if their log densities differ by a constant. Stan's `~` drops terms that do not
    depend on parameters, whereas NumPyro keeps them. To compare, use differences between points, or subtract the mean.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    points : DataTree, Dataset or mapping
        A posterior, its group `posterior`, or a Dataset of draws with the axes `chain` and `draw`. All draws are
        evaluated; `posterior.posterior.ds.isel(draw=slice(None, None, 50))` takes every 50th. Or the values of a single
        point by name.
    engine : {"numpyro", "stan"}, optional
        Which definition of the target to evaluate; by default NumPyro's if the target has one, else Stan's.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    DataArray (chain, draw), or without axes for one point
        Log density in nats, in double precision, on the constrained scale. It omits the Jacobian that `lp` in the
        group `sample_stats` includes, and is -inf outside the support.

    Raises
    ------
    TypeError
        If `points` have the wrong type.
    ValueError
        If a parameter is missing or the target has no definition for the engine.
    StanError
        If Stan cannot compile or run the program.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> import onebasin as ob
    >>> target = ob.Target("a normal", numpyro_model=lambda: numpyro.sample("x", dist.Normal(0, 1)))
    >>> round(float(ob.log_density(target, {"x": 0.0})), 3)
    -0.919
    """
    check_target(target)
    remedy = "give a posterior, a Dataset of draws, or a mapping of parameters to values"
    check_class("points", points, xr.DataTree | xr.Dataset | Mapping, remedy=remedy)
    with precision("float64"):
        density = density_by(defined_by(target, engine), target, progress)
        names, shape = density.names, dict[str, int]()
        if isinstance(points, xr.DataTree):
            held = points[schema.POSTERIOR] if schema.POSTERIOR in points.children else points
            points = held.to_dataset()
        elif not isinstance(points, xr.Dataset):
            points = dotted(points)
        if absent := [name for name in names if name not in points]:
            raise ArgumentError(
                "`points` must contain every parameter of the target; missing: "
                f"{', '.join(f'`{name}`' for name in absent)}. Give values for {', '.join(names)}."
            )
        if isinstance(points, xr.Dataset):
            shape = {dim: points.sizes[dim] for dim in schema.SAMPLE_DIMS}
            arrays = {n: points[n].transpose(*schema.SAMPLE_DIMS, ...) for n in names}
            values = {n: np.float64(a.values).reshape(-1, *a.shape[2:]) for n, a in arrays.items()}
        else:
            values = {n: np.asarray(points[n], dtype=np.float64)[None] for n in names}
        found = np.asarray(density.log_density(values), dtype=np.float64)
    return xr.DataArray(found.reshape(tuple(shape.values())), dims=tuple(shape), name="log_density")


@checks_arguments
def jax_density(target: Target, *, progress: Callable[[str], None] | None = None) -> LogDensity:
    """Return a target's log density over unconstrained vectors as functions that JAX can differentiate and compile.

    A Stan program's compiled library is called in this process. Inside a compiled JAX program, a gradient takes less
    than a microsecond longer than Stan's automatic differentiation alone, and `jax.vmap` evaluates many points in one
    call. Any sampler or optimiser written for JAX thus works with any Stan program. Stan programs run on the CPU in
    float64.

    Parameters
    ----------
    target : Target
        The model conditioned on data: a NumPyro model (used if there are both), a network or a Stan program.
    progress : callable, optional
        Called with a line of text before a long computation, such as compiling a Stan program.

    Returns
    -------
    LogDensity
        The density. `names` are the names of the parameters, and `size` is the length of a vector.
        `log_density(vector)` is in nats and includes the Jacobian of the transforms; for a Stan program it includes
        all constants, and is -inf if the program rejects a point. `constrain(vector)` maps a vector to values by name,
        and `unconstrain(values)` is its inverse. For a Stan program these two have no derivatives, and second
        derivatives of the log density use differences of gradients.

    Raises
    ------
    ValueError
        If the target has no definition, no parameters or a discrete parameter, or is a Stan program on a GPU.
    TypeError
        If `target` is not a Target, or if JAX uses single precision and the target is a Stan program.
    StanError
        If Stan cannot compile the program, or the program rejects its data.

    See Also
    --------
    log_density : Evaluate the log density at draws, on the constrained scale.

    References
    ----------
    C interface of the library, from BridgeStan: Roualdes, Ward, Carpenter, Seyboldt and Axen 2023, JOSS 8(87), 5236.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> density = ob.jax_density(target)
    >>> value, gradient = jax.value_and_grad(density.log_density)(jnp.zeros(density.size))
    >>> gradient.shape == (density.size,)
    True
    """
    check_target(target)
    from .network import density_of

    return density_of(target, progress)


@checks_arguments
def generated_quantities(
    target: Target,
    draws: xr.DataTree | xr.Dataset,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    engine: str | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Compute transformed parameters and generated quantities of a Stan program at draws of its parameters.

    With new data, the results are predictions. Parameters are not sampled again.

    Parameters
    ----------
    target : Target
        A target with a Stan program.
    draws : DataTree or Dataset
        A posterior or its group `posterior`, with every parameter and the axes `chain` and `draw`.
    data : mapping or path, optional
        New values for variables of the data block, or a JSON file with them. All other data stay as in the target.
    engine : {"stanli", "cmdstan"}, optional
        The library that evaluates the program; by default the interpreter if it accepts the program.
    seed : int
        Seed of the random numbers. Each chain has its own stream.
    progress : callable, optional
        Called with a line of text before a long computation.

    Returns
    -------
    Dataset
        Every quantity as an array (chain, draw, ...), with NaN at draws where the program fails.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the target has no Stan program, or if a parameter is missing from the draws or has the wrong shape.
    StanError
        If the program does not compile or rejects the data.

    Examples
    --------
    >>> schools = ob.stan_program("schools.stan", "schools.json")
    >>> posterior = ob.nuts(schools, draws=200, seed=1)
    >>> found = ob.generated_quantities(schools, posterior, seed=1)
    >>> found["theta"].sizes["draw"]
    200
    """
    from onebasin.stan.data import read_data
    from onebasin.stan.library import open_library
    from onebasin.stan.program import definition, stan_program

    check_target(target)
    check_class("draws", draws, xr.DataTree | xr.Dataset, remedy="give a posterior or a Dataset")
    program = definition(target)
    if data is not None:
        new = read_data(Path(data)) if isinstance(data, str | Path) else dict(data)
        program = definition(stan_program(program.path, {**program.data, **new}))
    library = open_library(
        program, engine=named(engine) if engine else None, seed=check_seed(seed), progress=progress
    )
    held = draws[schema.POSTERIOR].to_dataset() if isinstance(draws, xr.DataTree) else draws
    parameters, everything = library.variables(), {"include_tp": True, "include_gq": True}
    values = {}
    for name, shape in parameters.items():
        if name not in held:
            raise ArgumentError(
                f"`draws` must contain every parameter of the program, but {name} is missing. Give a posterior of "
                "this program."
            )
        array = held[name].transpose(*schema.SAMPLE_DIMS, ...).values
        if array.shape[2:] != shape:
            raise ArgumentError(
                f"The draws of {name} in `draws` have shape {array.shape[2:]}, but with these data the program "
                f"declares shape {shape}. Give data that do not change the shapes of the parameters."
            )
        values[name] = np.asarray(array, dtype=np.float64)
    points = library.unconstrain(library.pack(values))
    rows = np.stack(
        [
            library.constrain(chain, generator=library.generator(seed, chain=number), **everything)
            for number, chain in enumerate(points, 1)
        ]
    )
    variables = {}
    for name, array in library.unpack(rows, **everything).items():
        if name not in parameters:
            own, count = tuple(target.dims.get(name, ())), array.ndim - 2
            axes = own if len(own) == count else tuple(f"{name}_dim_{k}" for k in range(count))
            variables[name] = ((*schema.SAMPLE_DIMS, *axes), array)
    coords = {dim: held[dim] for dim in schema.SAMPLE_DIMS if dim in held.coords}
    return xr.Dataset(variables, coords=coords)
