"""Generated quantities of a Stan program at stored draws, with its own data or with new data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import check_class, check_seed
from onebasin.base.errors import ArgumentError
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..contracts.engines import named


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

    With new data, these are predictions: nothing is sampled again.

    Parameters
    ----------
    target : Target
        With a Stan program.
    draws : DataTree or Dataset
        A posterior, or its group `posterior`, that holds every parameter with the axes `chain` and `draw`.
    data : mapping or path, optional
        New values of the data block's variables, or a JSON file of them. They replace the target's; the others stay.
    engine : {"stanli", "cmdstan"}, optional
        The library that evaluates the program; the interpreter where that takes it.
    seed : int
        Of random numbers. Each chain has its own stream.
    progress : callable, optional
        Called with a line of text before something that takes long.

    Returns
    -------
    Dataset
        Every quantity as (chain, draw, ...); NaN where the program cannot compute a draw's.

    Raises
    ------
    TypeError
        If an argument is of another class.
    ValueError
        If the target has no Stan program, a parameter is missing from the draws, or one has another shape.
    StanError
        If the program does not compile, or refuses the data.

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
    values = {name: _values(held, name, shape) for name, shape in parameters.items()}
    points = library.unconstrain(library.pack(values))
    rows = np.stack(
        [
            library.constrain(chain, generator=library.generator(seed, chain=number), **everything)
            for number, chain in enumerate(points, 1)
        ]
    )
    found = library.unpack(rows, **everything)
    return xr.Dataset(
        {
            name: (_axes(target, name, array.ndim - 2), array)
            for name, array in found.items()
            if name not in parameters
        },
        coords={dim: held[dim] for dim in schema.SAMPLE_DIMS if dim in held.coords},
    )


def _values(draws: xr.Dataset, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Take a parameter's draws.

    Raises
    ------
    ValueError
        If it is missing, or has another shape.
    """
    if name not in draws:
        raise ArgumentError(
            f"`draws` lack the parameter {name}; give a posterior of this program, with every parameter."
        )
    array = draws[name].transpose(*schema.SAMPLE_DIMS, ...).values
    if array.shape[2:] != shape:
        raise ArgumentError(
            f"`draws` have {name} of shape {array.shape[2:]}, but the program with these data declares {shape}; "
            "give data under which the parameters keep their sizes."
        )
    return np.asarray(array, dtype=np.float64)


def _axes(target: Target, name: str, count: int) -> tuple[str, ...]:
    own = tuple(target.dims.get(name, ()))
    axes = own if len(own) == count else tuple(f"{name}_dim_{place}" for place in range(count))
    return (*schema.SAMPLE_DIMS, *axes)
