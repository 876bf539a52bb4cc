"""Predictions at new data from a posterior's draws, for any model, and a table of their intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.diagnostics.diagnose import Carried, carried
from onebasin.base.card import MOST, Card, FactList, Shown, Words, in_brief
from onebasin.base.checks import check_inputs, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError, ModelDataError
from onebasin.base.precision import precision
from onebasin.base.table import frame_table
from onebasin.models.pymc_target import PymcTarget
from onebasin.models.target import Named, Target
from onebasin.posteriors import schema
from onebasin.posteriors.draws import entry_names, lay_out_columns
from onebasin.posteriors.pointwise import DrawGroup
from onebasin.posteriors.view import Posterior, View, as_view

from .models import Model, is_same, model_of, read_new_data


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Shown):
    """Predictions at new data, returned by `ob.predict`.

    Attributes
    ----------
    tree : DataTree
        The posterior with ArviZ's groups `predictions` and `predictions_constant_data`, for `ob.save` and ArviZ. Its
        draws are aligned if the predictions come from aligned draws.
    judged : Carried
        The posterior's verdict (`answer`) and its meaning for the predictions (`sentence`).
    """

    tree: xr.DataTree
    judged: Carried = field(default_factory=Carried)

    @property
    def predictions(self) -> xr.Dataset:
        """The group `predictions`, with every predicted variable as (chain, draw, ...)."""
        return self.tree[schema.PREDICTIONS].to_dataset()

    @property
    def predictions_constant_data(self) -> xr.Dataset:
        """The group `predictions_constant_data`, which has the new data and the old data that they do not replace."""
        return self.tree[schema.PREDICTIONS_CONSTANT_DATA].to_dataset()

    def intervals(self, prob: float = 0.9) -> pd.DataFrame:
        """Summarise every predicted number.

        Parameters
        ----------
        prob : float
            Probability of the central interval, above 0 and below 1.

        Returns
        -------
        DataFrame
            One row per number, such as ``y[0]``. The columns are ``mean``, ``sd``, ``median`` and the two ends of the
            interval, such as ``5%`` and ``95%``, in the units of the data. Values are NaN if a draw is not finite.

        Raises
        ------
        ValueError
            If `prob` is not above 0 and below 1.
        """
        if not 0 < prob < 1:
            raise ArgumentError(f"`prob` must be above 0 and below 1; got {prob!r}.")
        low, high = (1 - prob) / 2, (1 + prob) / 2
        columns = ["mean", "sd", f"{100 * low:.4g}%", "median", f"{100 * high:.4g}%"]
        rows = [np.empty((len(columns), 0))]
        draws = lay_out_columns(self._arrays)
        for block in draws.blocks():
            flat = block.reshape(-1, block.shape[-1])
            spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan)
            rows.append(
                np.stack([flat.mean(axis=0), spread, *np.quantile(flat, [low, 0.5, high], axis=0)])
            )
        table = pd.DataFrame(np.concatenate(rows, axis=1).T, index=draws.names, columns=columns)
        return table.reindex([entry for v in self._arrays for entry in entry_names(v)])

    @property
    def _arrays(self) -> list[xr.DataArray]:
        held = self.predictions
        return [held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in held]

    def _card(self) -> Card:
        held = self.predictions
        names = list(map(str, held.data_vars))
        count = held.sizes["chain"] * held.sizes["draw"]
        table = self.intervals()
        more = f", the first {MOST} of {len(table)}" if len(table) > MOST else ""
        given = list(map(str, self.predictions_constant_data.data_vars))
        finite = [np.isfinite(v.values).all(axis=tuple(range(2, v.ndim))) for v in self._arrays]
        broken = count - int(np.all(finite, axis=0).sum())
        said = (
            f"At {broken:,} of {count:,} draws a prediction is not finite, so it has no mean or interval. Check that "
            "the draws and the data fit the model."
        )
        return Card(
            f"Predictions of {in_brief(names)}",
            (
                *self.judged.words,
                Words(f"{count:,} draws of the posterior at new data; 90 % intervals."),
                *([Words(said, flag="warn")] if broken else []),
                FactList.of(("data", in_brief(given))),
                frame_table(table.head(MOST), f"Predictions{more}"),
            ),
        )


New = Mapping[str, Any]  # New data by name.
Found = tuple[xr.Dataset, Mapping[str, Named]]
"""The predictions and their data."""
Stored = np.ndarray | None
"""Mask of the draws (chain, draw) that alignment left unchanged; None if all are unchanged."""


@checks_arguments
def predict(
    posterior: Posterior,
    new_data: Any,
    *,
    model: Model = None,
    seed: int = 0,
    batch_size: int = 256,
    progress: Callable[[str], None] | None = None,
    diagnosis: Any = None,
) -> Predictions | Float[np.ndarray, "chain draw obs out"]:
    """Predict at new data with all draws of a posterior, aligned if `ob.diagnose` says "usable after alignment".

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        A posterior, in any form that `ob.diagnose` takes.
    new_data : mapping, path or array (obs, in)
        New data by name, or a JSON file. They replace arguments of a NumPyro model, data of a Stan program, or a
        network's ``x``; other data are kept. For a network, an array of inputs in the units of its data is enough.
    model : Target, callable, path or str, optional
        The model: a target, a NumPyro function or a Stan program. It is not needed for networks, or if the run
        recorded its Stan program and that file has not changed. "recorded" runs the program text stored in the
        posterior. Use it only if you trust the file.
    seed : int
        Seed of the random numbers. With the same data and seed as in the run, predictions equal those of the run.
    batch_size : int
        Number of draws of a network that are evaluated at a time, which limits the memory.
    progress : callable, optional
        Called with a line of text before a long computation.
    diagnosis : Diagnosis, optional
        The result of `ob.diagnose` for this posterior, if you have it; otherwise it is computed here.

    Returns
    -------
    Predictions or array (chain, draw, obs, out)
        For new data by name: an object with `tree` (ArviZ's groups) and `intervals()`, for the data that the model
        observes and the quantities that depend on the new data. For an array of network inputs: the outputs without
        noise, which are means in the units of `y` for regression and logits for classification.

    Raises
    ------
    ValueError
        If the model is unknown or predicts nothing, or if the data do not match it or change the sizes of parameters.
    TypeError
        If an argument has the wrong type.
    StanError
        If a Stan program does not compile or rejects the data.

    Examples
    --------
    >>> ob.predict(weights, np.zeros((5, 1))).shape
    (4, 300, 5, 1)
    >>> found = ob.predict(weights, {"x": np.zeros((5, 1))})
    >>> found.predictions["y"].dims
    ('chain', 'draw', 'obs', 'out')
    """
    view = as_view(posterior)
    check_seed(seed)
    network = view.network if model is None else getattr(model, "model", None)
    if network is not None and not isinstance(new_data, Mapping | str | Path):
        from onebasin.models.networks.bayesian import (
            predict as of_model,
        )  # Imported here, because it loads JAX.

        return of_model(network, view.arrays, new_data, batch_size=batch_size)
    new = read_new_data(new_data)
    judged = carried(view, diagnosis, "predictions", label_free=False)
    if network is not None:
        return _as_predictions(view, *_of_network(network, view, new, seed), judged)
    target = model_of(view, model, new)
    stored = None
    if judged.answer == "aligned" and judged.diagnosis and (aligned := judged.diagnosis.aligned):
        view = replace(view, tree=aligned.alignment.posterior)
        stored = ~aligned.alignment.relabelled
    if isinstance(target, PymcTarget):
        found = _of_pymc(target, view, new, seed, stored)
    elif target.numpyro_model is None:
        found = _of_stan(target, view, new, seed, stored, progress)
    else:
        found = _of_numpyro(target, view, new, seed, stored)
    if not found[0].data_vars:
        at = "these new data" if new else "the data of the run"
        raise ArgumentError(
            f"`model` {target.name!r} has nothing to predict for {at}: the model cannot draw its observed data "
            "again, and no quantity depends on the data. Add the quantity that you need as a deterministic site "
            "(`numpyro.deterministic`) or as a generated quantity."
        )
    return _as_predictions(view, *found, judged)


def _as_predictions(
    view: View, drawn: xr.Dataset, data: Mapping[str, Named], judged: Carried
) -> Predictions:
    own = view.posterior
    numbers = {dim: own[dim] for dim in schema.SAMPLE_DIMS if dim in own.coords}
    groups = {
        schema.POSTERIOR: own,
        schema.PREDICTIONS: drawn.assign_coords(numbers),
        schema.PREDICTIONS_CONSTANT_DATA: xr.Dataset(dict(data)),
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = dict(view.tree.attrs)
    return Predictions(tree, judged)


def _of_network(network: Any, view: View, new: New, seed: int) -> Found:
    from onebasin.posteriors.pointwise import network_groups

    if set(new) - {schema.OUTPUTS} != {schema.INPUTS}:
        raise ModelDataError(
            f"`new_data` contains {', '.join(map(str, new)) or 'nothing'}. For a network, give only the inputs `x`, "
            "with shape (obs, in)."
        )
    x = check_inputs(new[schema.INPUTS], network.network.in_dim)
    shape = (len(x),) if network.is_classifier else (len(x), network.network.out_dim)
    # placeholder; its log likelihood is not used.
    y = np.zeros(shape, int if network.is_classifier else float)
    draws = {name: view.values(name) for name in view.variables}
    with precision(_dtype(view)):
        groups = network_groups(network, draws, x, y, seed=seed, limit_mb=np.inf)
    assert groups is not None  # It is None only if a limit is exceeded.
    return groups[schema.POSTERIOR_PREDICTIVE].to_dataset(), {schema.INPUTS: (("obs", "in"), x)}


def _of_numpyro(target: Target, view: View, new: New, seed: int, stored: Stored) -> Found:
    from .numpyro import numpyro_predictions

    kept = view.data.get(schema.OBSERVED_DATA)
    observed = {} if kept is None else {str(n): v.values for n, v in kept.data_vars.items()}
    draws = {name: view.values(name) for name in view.variables}
    return numpyro_predictions(
        target, draws, new, observed, seed=seed, dtype=_dtype(view), stored=stored
    )


def _dtype(view: View) -> str:
    """Return the precision of the run."""
    return str((view.parsed(schema.SETTINGS) or {}).get("dtype", "float64"))


def _of_stan(
    target: Target,
    view: View,
    new: New,
    seed: int,
    stored: Stored,
    progress: Callable[[str], None] | None,
) -> Found:
    from onebasin.base.errors import StanDataError
    from onebasin.stan.program import definition, find_roles
    from onebasin.stan.run import declarations

    from ..density.evaluate import generated_quantities
    from ..runs.posterior import arrays_of, axes_of, with_axes

    program = definition(target)
    info = declarations(program, progress)
    if unknown := [name for name in new if name not in info.inputs]:
        raise ModelDataError(
            f"`new_data` contains {', '.join(map(str, unknown))}, but the program {target.name!r} declares only "
            f"these data: {', '.join(info.inputs) or '(none)'}. Use only declared names."
        )
    try:
        found = generated_quantities(target, view.posterior, new, seed=seed, progress=progress)
    except StanDataError as error:
        rest = [name for name in info.inputs if name not in new]
        why = str(error).rpartition("rejects its data:\n")[2].rstrip(".")
        raise ModelDataError(
            f"The program {target.name!r} rejects `new_data`: {why}. Unchanged data: {', '.join(rest) or 'none'}. "
            "Correct `new_data`."
        ) from error
    data = arrays_of({n: v for n, v in {**program.data, **new}.items() if n in info.inputs})
    shapes = {name: found[name].shape[2:] for name in info.generated if name in found}
    roles = find_roles(program.roles, data, shapes, priors=map(str, found))
    names = {own: of for of, own in roles.posterior_predictive.items()}
    kept: dict[str, np.ndarray] = {}
    for own, values in found.data_vars.items():
        name = names.get(str(own), str(own))
        same = own in view.posterior and is_same(values.values, view.values(str(own)), stored)
        if own in names or not (own in roles.moved or same):
            kept[name] = values.values
    axes = {n: d for n in kept if (d := axes_of(target, roles, n)) and len(d) == kept[n].ndim - 2}
    return DrawGroup(kept, axes).to_dataset(), with_axes(data, target.dims)


def _of_pymc(target: PymcTarget, view: View, new: New, seed: int, stored: Stored) -> Found:
    """Let PyMC draw the observed data and compute deterministic variables; afterwards restore the model's data."""
    import pymc

    from ..runs.posterior import with_axes

    model = target.pymc_model
    held = {each.name: each for each in model.data_vars}
    if unknown := [name for name in new if name not in held]:
        raise ModelDataError(
            f"`new_data` contains {', '.join(map(str, unknown))}, but the model {target.name!r} declares only these "
            f"data (`pm.Data`): {', '.join(held) or '(none)'}. Use only declared names."
        )
    before = {name: held[name].get_value() for name in new}
    seen = [each.name for each in model.observed_RVs]
    names = [*seen, *(each.name for each in model.deterministics)]
    axes = {n: tuple(d or "" for d in model.named_vars_to_dims.get(n, ())) for n in {*held, *names}}
    labels = {a: model.coords[a] for n in new for a in axes[n] if model.coords.get(a) is not None}
    sizes = {a: n for name in new for a, n in zip(axes[name], np.shape(new[name]), strict=False)}
    coords = {a: range(sizes[a]) for a in labels if sizes.get(a) != len(labels[a])}
    try:
        with model:
            pymc.set_data({n: np.asarray(v) for n, v in new.items()}, coords=coords or None)
            drawn = pymc.sample_posterior_predictive(
                view.posterior,
                var_names=names,
                random_seed=seed,
                predictions=True,
                progressbar=False,
            )[schema.PREDICTIONS].to_dataset()
        data = {name: each.get_value() for name, each in held.items()}
    except (ValueError, TypeError, IndexError, KeyError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ModelDataError(
            f"`new_data` does not fit the PyMC model {target.name!r}: {why}. Define observations with "
            "`shape=x.shape`, so that they have as many entries as the inputs."
        ) from error
    finally:
        with model:
            pymc.set_data(before, coords=labels or None)
    kept = {
        str(n): v.transpose(*schema.SAMPLE_DIMS, ...)
        for n, v in drawn.data_vars.items()
        if n in seen
        or not is_same(v.values, view.values(str(n)) if n in view.variables else None, stored)
    }
    return xr.Dataset(kept), with_axes(data, axes)
