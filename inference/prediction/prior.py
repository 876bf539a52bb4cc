"""Prior and prior predictive draws of a model."""

from __future__ import annotations

import xarray as xr

from onebasin.base.arguments import checks_arguments
from onebasin.base.checks import check_count, check_seed
from onebasin.base.errors import ArgumentError
from onebasin.models.target import Target, check_target
from onebasin.posteriors import schema

from ..runs.origin import origin_of
from .numpyro import prior_draws


@checks_arguments
def prior(target: Target, *, draws: int = 1000, seed: int = 0) -> xr.DataTree:
    """Draw a model's variables and data from its prior.

    Parameters
    ----------
    target : Target
        A NumPyro model or a network. A Stan program states one log density and does not say which part of it is the
        prior: sample a program whose data switch its likelihood off instead.
    draws : int
        How many.
    seed : int
        Of random numbers.

    Returns
    -------
    DataTree
        ArviZ's groups `prior` (every variable) and `prior_predictive` (what the model observes), both (chain, draw,
        ...) of one chain, and the data. `ob.plot.prior(tree, posterior)` compares them with a posterior.

    Raises
    ------
    ValueError
        If the target has no NumPyro model, or a prior is improper.
    TypeError
        If `target` is no target.

    Examples
    --------
    >>> found = ob.prior(target, draws=100, seed=1)
    >>> found["prior"]["mu"].sizes["draw"]
    100
    """
    check_target(target)
    check_count("draws", draws)
    check_seed(seed)
    if target.numpyro_model is None:
        raise ArgumentError(
            f"`target` {target.name!r} has no NumPyro model, and another density does not say which part of it is the "
            "prior: sample a Stan program whose data switch the likelihood off (`if (!prior_only) y ~ ...`)."
        )
    origin = origin_of(target, "numpyro")
    data = {schema.OBSERVED_DATA: {**origin.observed, **target.outputs}}
    data[schema.CONSTANT_DATA] = {**origin.constant, **target.inputs}
    drawn, predictive = prior_draws(target, draws, seed)
    groups = {schema.PRIOR: drawn, schema.PRIOR_PREDICTIVE: predictive}
    groups |= {name: xr.Dataset(dict(arrays)) for name, arrays in data.items() if arrays}
    tree = xr.DataTree.from_dict({name: group for name, group in groups.items() if group})
    tree.attrs = {schema.TARGET: target.name, schema.SEED: seed, schema.CREATED_AT: schema.now()}
    return tree
