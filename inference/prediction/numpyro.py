"""Draws of a NumPyro model's sites: predictions with new arguments, and draws from the prior."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import xarray as xr
from numpyro.handlers import seed as seeded
from numpyro.handlers import substitute, trace, uncondition

from onebasin.base.checks import check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, ModelDataError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.numpyro_target import NumpyroTarget
from onebasin.models.target import Named, Target, check_target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import DrawGroup

from ..density.numpyro import check_whole, is_observation, is_variable, sites_of
from ..runs.groups_numpyro import Arrays, Groups, Sites, filled, plate_dims, reason
from ..runs.posterior import origin_of, unobserved, with_axes
from .models import is_same, with_arguments


def numpyro_predictions(
    target: Target,
    draws: Mapping[str, np.ndarray],
    new: Mapping[str, Any],
    observed: Mapping[str, np.ndarray],
    *,
    seed: int,
    dtype: str,
    stored: np.ndarray | None = None,
) -> tuple[xr.Dataset, dict[str, Named]]:
    """Predict the observed sites of a model with `new` arguments from draws (chain, draw, ...) of its variables.

    `observed` are the observed data in the posterior, if any. Return the numeric arguments and predictions of observed
    sites, and of deterministic sites whose values differ from the posterior's at the draws `stored`.
    """
    with precision(dtype):
        with suppress(Exception):  # The function may fail without data.
            there = sites_of(target, data=True).items()
            own = {n: np.asarray(s["value"]) for n, s in there if is_observation(s)}
            observed = {**observed, **own}
        moved = with_arguments(target, new, observed) if new else target
        sites = _run(moved, new)
        check_whole(target, sites)
        latent = [name for name, site in sites.items() if is_variable(site) and name in draws]
        for name in latent:
            due, given = jnp.shape(sites[name]["value"]), draws[name].shape[2:]
            if due != given:
                raise ArgumentError(
                    f"The variable {name} has shape {given} per draw in `posterior`, but shape {due} in the model "
                    "with `new_data`. Give data that do not change the shapes of variables."
                )
        drawn = [
            name
            for name, site in sites.items()
            if is_observation(site) or (is_variable(site) and name not in draws)
        ]
        known = set(observed) or (set(drawn) if new else set())
        if lost := [n for n in drawn if n not in known and not is_observation(sites[n])]:
            raise ArgumentError(
                f"`posterior` lacks the variable(s) {', '.join(lost)} of the model {target.name!r}. Give a posterior "
                "of this model."
            )
        values = {name: draws[name] for name in latent}
        keys = keys_for(Purpose.PREDICTIVE, seed, len(next(iter(draws.values()))))
        found = _all_draws(moved, values, drawn, keys)
        dims = plate_dims(sites, target.dims)
    kept = {n: v for n, v in found.items() if n in drawn or not is_same(v, draws.get(n), stored)}
    seen = [np.asarray(site["value"]) for site in sites.values() if is_observation(site)]
    data = moved.data if isinstance(moved, NumpyroTarget) else {}
    return _labelled(target, kept, dims), with_axes(unobserved(data, seen), dims)


def prior_draws(target: Target, draws: int, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Draw a model's variables (group `prior`) and its observed sites (group `prior_predictive`) in one chain."""
    with precision("float64"):
        sites = sites_of(target)
        seen = [name for name, site in sites.items() if is_observation(site)]
        free = [name for name, site in sites.items() if is_variable(site)]
        numbers = {"": np.zeros((1, draws))}  # Only for the shape.
        try:
            found = _all_draws(target, numbers, seen, keys_for(Purpose.PRIOR, seed, 1), free)
        except NotImplementedError as error:
            raise ArgumentError(
                f"The prior of `target` {target.name!r} cannot be sampled ({reason(error)}). Give every variable a "
                "proper prior."
            ) from error
        dims = plate_dims(sites, target.dims)
    groups = ({n: v for n, v in found.items() if (n in seen) == of} for of in (False, True))
    prior, predictive = (_labelled(target, group, dims) for group in groups)
    return prior, predictive


def _run(target: Target, new: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return sites_of(target, data=True)
    except Exception as error:
        data = target.data if isinstance(target, NumpyroTarget) else {}
        empty = [name for name, value in data.items() if value is None]
        as_is = f", without {', '.join(empty)}" if empty else ""
        rest = [name for name in data if name not in new and name not in empty]
        as_is += f", and with {', '.join(rest)} unchanged" if rest else ""
        raise ModelDataError(
            f"`new_data` does not fit the model {target.name!r}. With {', '.join(new) or 'no new data'}{as_is}, the "
            f"model fails ({reason(error).rstrip('.')}). Correct the data."
        ) from error


def _all_draws(
    target: Target,
    values: Mapping[str, np.ndarray],
    drawn: list[str],
    keys: jax.Array,
    free: list[str] | None = None,
) -> dict[str, np.ndarray]:
    """Run the model at all draws; return drawn data in single precision, free variables and deterministic sites."""
    model = Sites.of(target).model
    substituted = set(values) - {""}

    def at(draw: Mapping[str, Any], key: jax.Array) -> Groups:
        own = {name: draw[name] for name in substituted}
        sites = trace(uncondition(seeded(substitute(model, data=own), key))).get_trace()
        if fixed := [n for n in drawn if n in sites and sites[n]["is_observed"]]:
            raise ModelDataError(
                f"The model {target.name!r} cannot draw {', '.join(fixed)} again, because `scan` fixes observed "
                "values. Write the model without `scan`."
            )
        found: Arrays = {}
        for name, site in sites.items():
            if name in drawn or name in (free or ()) or site["type"] == "deterministic":
                value = jnp.asarray(site["value"])
                single = name in drawn and value.dtype == jnp.float64
                found[name] = value.astype(jnp.float32) if single else value
        return {schema.PREDICTIONS: found}

    like = {n: jax.ShapeDtypeStruct(v.shape[2:], v.dtype) for n, v in values.items()}
    shapes = jax.eval_shape(at, like, jax.random.key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    room = filled(at, values, keys, size)
    return {name: np.asarray(value) for name, value in room.group(schema.PREDICTIONS).items()}


def _labelled(
    target: Target, values: Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]]
) -> xr.Dataset:
    axes = {name: named for name, (named, _) in target.outputs.items()} | dict(dims)
    dataset = DrawGroup(values, axes).to_dataset()
    fitting = {a: c for a, c in target.coords.items() if dataset.sizes.get(a) == len(c)}
    return dataset.assign_coords(fitting)


@checks_arguments
def prior(target: Target, *, draws: int = 1000, seed: int = 0) -> xr.DataTree:
    """Draw a model's variables and data from its prior.

    Parameters
    ----------
    target : Target
        A NumPyro model or a network. A Stan program does not separate its prior from the likelihood. Instead, sample a
        program in which data switch off the likelihood.
    draws : int
        Number of draws.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    DataTree
        ArviZ's groups `prior` (all variables) and `prior_predictive` (the observed variables), both (chain, draw, ...)
        with one chain, and the data. `ob.plot.prior(tree, posterior)` compares them with a posterior.

    Raises
    ------
    ValueError
        If the target has no NumPyro model, or a prior is improper.
    TypeError
        If `target` is not a Target.

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
            f"`target` {target.name!r} has no NumPyro model, and Stan does not separate the prior from the "
            "likelihood. Use a Stan program in which a data variable switches off the likelihood (`if (!prior_only) y "
            "~ ...`)."
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
