"""Comparison of models by leave-one-out prediction, and stacking weights.

Stacking weights the predictive densities of models so that their mixture predicts the left-out observations best (Yao,
Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13).
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.base.card import Card, Part, Shown, Words, in_brief, measured, number
from onebasin.base.checks import checks_arguments, choose
from onebasin.base.errors import ArgumentError
from onebasin.base.run_log import notice
from onebasin.base.table import Table, frame_table
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import (
    NAMED,
    leave_one_out,
    names_of,
    no_log_likelihood,
    stored_log_likelihood,
)
from onebasin.posteriors.view import as_view

from ..diagnostics.diagnose import Carried, carried

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData


class Answered:
    """An ArviZ estimate that states, above its numbers, whether it can be used.

    `answer` is ``usable``, ``partly`` (a Pareto k is too large or unknown) or ``unusable`` (the posterior is not
    usable). `sentences` explain it. `judged` is the verdict on the posterior.
    """

    answer: str
    sentences: tuple[str, ...]
    judged: Carried

    def __str__(self) -> str:
        return "\n".join((*self.sentences, "", super().__str__()))

    __repr__ = __str__


def answered(found: ELPDData, terms: xr.DataArray, judged: Carried, remedy: str = "") -> ELPDData:
    """Add an answer to an estimate. `remedy` says what to do if a Pareto k is too large."""
    known = found.pareto_k.values.ravel()
    bad = ~(known <= found.good_k)
    names = list(compress(names_of(found.elpd_i), bad)) if bad.any() else []
    answer = "partly" if names or judged.answer == "partly" else "usable"
    answer = "unusable" if judged.answer == "unusable" else answer
    said = [judged.sentence] if judged.sentence else []
    if names:
        said.append(
            f"The sum cannot be trusted: Pareto k is above {found.good_k:.2f} or unknown for {len(names)} of "
            f"{known.size} observations ({in_brief(names, NAMED)}). {remedy}".rstrip()
        )
        notice(said[-1])
    else:
        lead = "Usable: " if answer == "usable" else ""
        said.append(
            f"{lead}Pareto k is at most {number(known.max(), 2)} for {known.size} observations (limit "
            f"{found.good_k:.2f})."
        )
    if masked := terms[0, 0].size - known.size:
        said.append(
            f"Left out: masked observations, whose log likelihood is 0 in every draw ({masked})."
        )
    made: ELPDData = replace(found)
    made.__class__ = type(type(found).__name__, (Answered, type(found)), {})
    vars(made).update(answer=answer, sentences=tuple(said), judged=judged)
    return made


def paired(found: Mapping[str, ELPDData]) -> np.ndarray:
    """Return the densities (obs, model) of each observation under all models, paired by observation names.

    Observations without names or numbered from 0 are paired by position.
    """
    dims = next(iter(found.values())).elpd_i.dims
    each = {name: _by_name(one.elpd_i, dims) for name, one in found.items()}
    (first, base), *others = each.items()
    if len({column.size for column in each.values()}) > 1:
        told = ", ".join(f"{name} has {column.size}" for name, column in each.items())
        raise ArgumentError(
            f"The models have different numbers of observations ({told}). Compare models of the same data."
        )
    columns = [base.to_numpy()]
    for name, own in others:
        places = any(isinstance(column.index, pd.RangeIndex) for column in (base, own))
        lacks = [] if places else [str(label) for label in base.index.difference(own.index)]
        if lacks:
            raise ArgumentError(
                f"The models have different observations: {name} lacks {in_brief(lacks, NAMED)}, which {first} has. "
                "Compare models of the same data, and use the same names (coordinates) for the observations."
            )
        columns.append((own if places else own.reindex(base.index)).to_numpy())
    return np.stack(columns, axis=1)


def _by_name(values: xr.DataArray, dims: tuple[Hashable, ...]) -> pd.Series:
    """Index densities by the names of the observations, or by position if names are not unique."""
    values = values.transpose(*dims) if {*values.dims} == {*dims} else values
    flat = values.stack(obs=values.dims) if values.ndim != 1 else values
    axes = [values.indexes.get(dim) for dim in values.dims]
    named = any(a is not None and list(a) != list(range(len(a))) for a in axes)
    index = flat.indexes[flat.dims[0]] if named else None
    return pd.Series(flat.values, index if index is not None and index.is_unique else None)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Shown):
    """The result of `ob.compare_models`.

    Attributes
    ----------
    table : DataFrame
        Same as the result of `arviz_stats.compare`, but not rounded: one row per model, the best first, in nats.
    loo : mapping of str to ELPDData
        The estimate of each model.
    judged : mapping of str to Carried
        The verdicts on those posteriors that are available.
    one_model : bool
        Whether all posteriors record the same Stan program and data, so that they are fits of one model.
    """

    table: pd.DataFrame
    loo: Mapping[str, ELPDData]
    judged: Mapping[str, Carried] = field(default_factory=dict)
    one_model: bool = False

    @property
    def weights(self) -> pd.Series:
        """The weight of each model, the best model first."""
        return self.table["weight"]

    @property
    def alike(self) -> tuple[str, ...]:
        """The best model and the models that are worse by less than two standard errors."""
        apart = -self.table["elpd_diff"] >= CLEAR * self.table["dse"].fillna(0.0)
        return tuple(map(str, self.table.index[~apart | (self.table["elpd_diff"] == 0)]))

    @property
    def answer(self) -> str:
        """A sentence that names the better model or states that no difference was detected."""
        row = self.table.iloc[max(1, len(self.alike) - 1)]
        value, error = -float(row["elpd_diff"]), float(row["dse"])
        gap = measured(value, error)
        if self.one_model:
            worst = -float(self.table["elpd_diff"].min())
            return (
                f"These are fits of one model to the same data: differences in elpd (at most {number(worst, 2)} nats) "
                "are errors of the fits, not differences between models. Compare the fits with `ob.compare` "
                "(`onebasin compare`)."
            )
        if len(self.alike) > 1:
            rest = in_brief([str(name) for name in self.table.index if name not in self.alike])
            who = f"No difference was detected between {in_brief(self.alike)}"
            said = f"{who} (at most {gap}, below two standard errors)."
            return f"{said} Worse: {rest}." if rest else said
        small = next(iter(self.loo.values())).elpd_i.size < FEW
        few = ", which are too small with few observations" if small else ""
        times = f" ({number(value / error, 2)} standard errors{few})" if error > 0 else ""
        best, second = self.table.index[:2]
        return f"`{best}` predicts better than `{second}` by {gap}{times}."

    @property
    def unusable(self) -> list[str]:
        """Sentences that name posteriors that cannot be used, and say why."""
        bad = {name: each for name, each in self.judged.items() if each.answer == "unusable"}
        return [f"`{name}`: {each.sentence}" for name, each in bad.items()]

    @property
    def sentences(self) -> list[str]:
        """The findings, one sentence each."""
        told = ", ".join(
            f"{name} {number(weight, 2) if weight >= 0.001 else 'below 0.001'}"
            for name, weight in self.weights.items()
        )
        bad = [name for name, word in self.table["diag_elpd"].items() if word]
        caution = " They rest on a difference that was not detected: do not choose a model by them."
        weights = f"Weights: {told}.{caution * (len(self.alike) > 1)}"
        said = [*self.unusable, self.answer, *([] if self.one_model else [weights])]
        if bad:
            said.append(
                f"Pareto k is too large for some observations of {', '.join(map(str, bad))}: give `ob.loo(posterior, "
                "model=...)`, which uses moment matching."
            )
        return said

    @property
    def summary(self) -> Table:
        """The main columns of the table."""
        names = ("elpd", "se", "elpd_diff", "dse", "p", "weight")
        return frame_table(self.table, "Leave-one-out prediction, in nats", names)

    def _card(self) -> Card:
        heading = (
            "No difference was detected" if self.alike[1:] else f"{self.alike[0]} predicts best"
        )
        heading = "Fits of one model" if self.one_model else heading
        bad = len(self.unusable)
        flagged = [Words(each, flag="bad") for each in self.sentences[:bad]]
        parts: list[Part] = [*flagged, *map(Words, self.sentences[bad:]), self.summary]
        return Card("Not usable" if bad else heading, tuple(parts), "bad" if bad else "")


CLEAR, FEW = 2.0, 100
"""Number of standard errors above which a difference counts, and number of observations below which standard errors are
too small (Sivula, Magnusson, Matamoros and Vehtari 2025)."""
METHODS = ("stacking", "bb-pseudo-bma", "pseudo-bma")


@checks_arguments
def compare_models(
    models: Any, *, var_name: str | None = None, method: str = "stacking"
) -> ModelComparison:
    """Compare models by leave-one-out prediction and compute their weights.

    Parameters
    ----------
    models : mapping of str to posterior or ELPDData
        Posteriors of the same data set with the group `log_likelihood`, in any form that `ob.diagnose` accepts, or
        results of `ob.loo`.
    var_name : str, optional
        The observed variable, if there are several.
    method : {"stacking", "BB-pseudo-BMA", "pseudo-BMA"}
        Weighting method, as in `arviz_stats.compare`.

    Returns
    -------
    ModelComparison
        ArviZ's table of elpd in nats, with differences, their standard errors and weights, and the answer in words.

    Raises
    ------
    ValueError
        If there are fewer than two models, if log likelihoods are missing or not finite, or if the models have
        different observations.
    TypeError
        If an argument has the wrong type.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13(3).

    Examples
    --------
    >>> found = ob.compare_models({"whole": posterior, "half": posterior.isel(draw=slice(None, None, 2))})
    >>> list(found.table.columns[:3])
    ['rank', 'elpd_diff', 'dse']
    """
    choose("method", method.lower(), METHODS)
    several = isinstance(models, Mapping) and not isinstance(models, xr.DataTree | xr.Dataset)
    if not several or len(models) < 2:
        raise ArgumentError("`models` must be a mapping from at least two names to posteriors.")
    found: dict[str, ELPDData] = {}
    judged, origins = dict[str, Carried](), set[tuple[str, ...]]()
    for name, held in ((str(key), value) for key, value in models.items()):
        origin: tuple[str, ...] = (name, "")
        if not (hasattr(held, "elpd") and hasattr(held, "elpd_i")):
            view = as_view(held, f"models[{name!r}]")
            terms = stored_log_likelihood(view, var_name)
            if terms is None:
                raise no_log_likelihood(
                    view,
                    "pass the result of `ob.loo(posterior, model=...)`, which computes the log likelihood.",
                )
            # The source of a NumPyro function does not show the values in its closure, so only Stan programs count.
            if schema.stan_program_of(view.tree.attrs):
                known = (schema.PROGRAM, schema.DATA_SHA256)
                origin = tuple(str(view.attribute(fact) or name) for fact in known)
            found[name] = leave_one_out(terms, view.posterior)
            judged[name] = carried(view, None, "estimates", label_free=True)
        elif held.elpd_i is not None:
            found[name] = held
            judged |= {name: held.judged} if isinstance(held, Answered) else {}
        else:
            raise ArgumentError(
                f"`models[{name!r}]` has no pointwise values: give the result of `ob.loo(posterior)`."
            )
        origins.add(origin)
    from arviz_stats import compare

    each = paired(found)
    first = next(iter(found.values())).elpd_i
    alike = {
        name: replace(one, elpd_i=first.copy(data=own.reshape(first.shape)))
        for (name, one), own in zip(found.items(), each.T, strict=True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The table has columns for these warnings.
        table = compare(alike, method=method, round_to="none")
    return ModelComparison(table, found, judged, len(origins) == 1)
