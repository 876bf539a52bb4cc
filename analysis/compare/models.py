"""Models, chains or modes compared by leave-one-out prediction, and stacked.

Stacking gives the predictive densities of models the weights under which their mixture predicts best what was left out
(Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13). Chains that disagree are stacked in the same way (Yao,
Vehtari and Gelman 2022, JMLR 23).
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import logsumexp

from onebasin.base.card import Card, Shown, Words, in_brief, measured, number
from onebasin.base.checks import checks_arguments, choose
from onebasin.base.errors import ArgumentError
from onebasin.base.run_log import notice
from onebasin.base.table import Table, frame_table
from onebasin.posteriors import schema
from onebasin.posteriors.leave_one_out import (
    NAMED,
    LogLikelihood,
    leave_one_out,
    names_of,
    stored_log_likelihood,
    why_none,
)
from onebasin.posteriors.rhat_ess import rhat
from onebasin.posteriors.view import View, as_view

from ..alignment import align
from ..diagnostics.diagnose import Carried, carried

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData


class Answered:
    """An ArviZ estimate that shows what it is worth before its numbers.

    `answer` is ``usable``, ``partly`` (a Pareto k is too large, or unknown) or ``unusable`` (the posterior is);
    `sentences` say it, the answer first; `judged` is the posterior's verdict.
    """

    answer: str
    sentences: tuple[str, ...]
    judged: Carried

    def __str__(self) -> str:
        return "\n".join((*self.sentences, "", super().__str__()))

    __repr__ = __str__


def answered(found: ELPDData, terms: LogLikelihood, judged: Carried, remedy: str = "") -> ELPDData:
    """Put the answer in front of an estimate; `remedy` says what to do where a Pareto k is too large."""
    computed = found.elpd_i.notnull().values.ravel()  # of a subsample, some
    known = found.pareto_k.values.ravel()[computed]
    places = np.flatnonzero(computed)[~(known <= found.good_k)]
    names = [names_of(found.elpd_i)[place] for place in places] if len(places) else []
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
    if terms.masked:
        said.append(
            f"Not counted: masked observations, with a log likelihood of 0 in every draw ({terms.masked})."
        )
    made: ELPDData = replace(found)
    made.__class__ = type(type(found).__name__, (Answered, type(found)), {})
    vars(made).update(answer=answer, sentences=tuple(said), judged=judged)
    return made


def paired(found: Mapping[str, ELPDData]) -> np.ndarray:
    """Return the densities (obs, model) of each observation under all models, paired by name where names are there.

    Numbers from 0 in order are places, not names.
    """
    dims = next(iter(found.values())).elpd_i.dims
    each = {name: _by_name(one.elpd_i, dims) for name, one in found.items()}
    (first, base), *others = each.items()
    if len({column.size for column in each.values()}) > 1:
        told = ", ".join(f"{name} of {column.size}" for name, column in each.items())
        raise ArgumentError(
            f"`models` are of different numbers of observations ({told}): compare models of one data set."
        )
    columns = [base.to_numpy()]
    for name, own in others:
        places = any(isinstance(column.index, pd.RangeIndex) for column in (base, own))
        lacks = [] if places else [str(label) for label in base.index.difference(own.index)]
        if lacks:
            raise ArgumentError(
                f"`models` are of different observations: {name} lacks {in_brief(lacks, NAMED)} of {first}. "
                "Compare models of one data set, with the same names (coordinates) of observations."
            )
        columns.append((own if places else own.reindex(base.index)).to_numpy())
    return np.stack(columns, axis=1)


def _by_name(values: xr.DataArray, dims: tuple[Hashable, ...]) -> pd.Series:
    """Give densities by the names of the observations; by places where these are numbers, or some share a name."""
    values = values.transpose(*dims) if {*values.dims} == {*dims} else values
    flat = values.stack(obs=values.dims) if values.ndim != 1 else values
    axes = [values.indexes.get(dim) for dim in values.dims]
    named = any(a is not None and list(a) != list(range(len(a))) for a in axes)
    index = flat.indexes[flat.dims[0]] if named else None
    return pd.Series(flat.values, index if index is not None and index.is_unique else None)


SHOWN = 5
"""Observations that a card lists."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Shown):
    """A comparison of models, or of the parts of one posterior; made by `ob.compare_models`.

    Attributes
    ----------
    table : DataFrame
        As of `arviz_stats.compare`, not rounded: a row a model, the best first, in nats.
    loo : mapping of str to ELPDData
        What the comparison rests on.
    pointwise : DataFrame
        The log predictive density of each observation that is left out, in nats: a column a model, `stack` by the
        weights, and `unweighted` with every model, or every draw of one posterior, counting the same.
    judged : mapping of str to Carried
        The verdict on each model's posterior, where it is at hand.
    """

    table: pd.DataFrame
    loo: Mapping[str, ELPDData]
    pointwise: pd.DataFrame
    judged: Mapping[str, Carried] = field(default_factory=dict)

    @property
    def weights(self) -> pd.Series:
        """The weight of each model, the best model first."""
        return self.table["weight"]

    def gain(self, over: str = "unweighted") -> tuple[float, float]:
        """Return by how much the stack predicts better.

        Parameters
        ----------
        over : str
            A model, or ``unweighted`` for their mixture without weights.

        Returns
        -------
        tuple of float
            The difference in elpd, summed over observations, and its standard error, in nats. The weights were chosen
            for these observations, so that it is optimistic.

        Raises
        ------
        ValueError
            If there is no such model.
        """
        if over not in self.pointwise:
            known = ", ".join(map(str, self.pointwise))
            raise ArgumentError(f"`over` is {over!r}; choose among {known}.")
        gap = (self.pointwise["stack"] - self.pointwise[over]).to_numpy()
        return float(gap.sum()), float(np.sqrt(len(gap)) * gap.std(ddof=1))

    @property
    def alike(self) -> tuple[str, ...]:
        """The best model, and those that predict worse by less than two standard errors."""
        apart = -self.table["elpd_diff"] >= CLEAR * self.table["dse"].fillna(0.0)
        return tuple(map(str, self.table.index[~apart | (self.table["elpd_diff"] == 0)]))

    @property
    def answer(self) -> str:
        """Which model predicts better, or that no difference can be seen, in a sentence."""
        place = max(1, len(self.alike) - 1)
        value, error = (
            -float(self.table["elpd_diff"].iloc[place]),
            float(self.table["dse"].iloc[place]),
        )
        gap = measured(value, error)
        if len(self.alike) > 1:
            rest = in_brief([str(name) for name in self.table.index if name not in self.alike])
            who = f"No difference can be seen between {in_brief(self.alike)}"
            said = f"{who} (at most {gap}, below two standard errors)."
            return f"{said} Worse: {rest}." if rest else said
        few = ", which few observations make too small" if len(self.pointwise) < FEW else ""
        times = f" ({number(value / error, 2)} standard errors{few})" if error > 0 else ""
        best, second = self.table.index[:2]
        return f"`{best}` predicts better than `{second}` by {gap}{times}."

    @property
    def unusable(self) -> list[str]:
        """Sentences on posteriors that cannot be used."""
        bad = {name: each for name, each in self.judged.items() if each.answer == "unusable"}
        return [f"`{name}`: {each.sentence}" for name, each in bad.items()]

    @property
    def sentences(self) -> list[str]:
        """The findings, a sentence each, the answer first."""
        told = ", ".join(f"{name} {number(weight, 2)}" for name, weight in self.weights.items())
        best = str(self.table.index[0])
        gap = (self.pointwise["stack"] - self.pointwise["unweighted"]).to_numpy()
        bad = [name for name, word in self.table["diag_elpd"].items() if word]
        caution = " They rest on a difference that cannot be seen: choose no model by them."
        said = [
            *self.unusable,
            self.answer,
            f"Weights: {told}.{caution * (len(self.alike) > 1)}",
            f"The stack predicts better than {best} alone by {measured(*self.gain(best))}.",
            f"It predicts better than the mixture without weights by {measured(*self.gain())}: {int((gap > 0).sum())} "
            f"of {len(gap)} observations are predicted better.",
        ]
        if bad:
            said.append(
                f"Pareto k is too large for some observations of {', '.join(map(str, bad))}: give "
                "`ob.loo(posterior, model=...)`, which matches moments."
            )
        return said

    @property
    def summary(self) -> Table:
        """The main columns of the table."""
        names = ("elpd", "se", "elpd_diff", "dse", "p", "weight")
        return frame_table(self.table, "Leave-one-out prediction, in nats", names)

    def _card(self) -> Card:
        gap = self.pointwise["stack"] - self.pointwise["unweighted"]
        most = gap.sort_values(ascending=False).head(SHOWN)
        heading = (
            "No difference can be seen" if self.alike[1:] else f"{self.alike[0]} predicts best"
        )
        bad = len(self.unusable)
        return Card(
            "Not usable" if bad else heading,
            (
                *(Words(each, flag="bad") for each in self.sentences[:bad]),
                *map(Words, self.sentences[bad:]),
                self.summary,
                frame_table(most.to_frame("nats"), "What the stack predicts better"),
            ),
            "bad" if bad else "",
        )


CLEAR, FEW = 2.0, 100
"""Standard errors from which on a difference is said to be seen; observations below which they come out too small
(Sivula, Magnusson, Matamoros and Vehtari 2025)."""
AGREE = 1.1
"""R-hat of two chains up to which they are of one mode."""
METHODS = ("stacking", "bb-pseudo-bma", "pseudo-bma")


@checks_arguments
def compare_models(
    models: Any, *, by: str | None = None, var_name: str | None = None, method: str = "stacking"
) -> ModelComparison:
    """Compare models by how well they predict observations that are left out, and give them weights.

    Parameters
    ----------
    models : mapping of str to posterior or ELPDData; or a posterior
        Posteriors of one data set with the group `log_likelihood`, in any form that `ob.diagnose` takes, or what
        `ob.loo` gives of them. With `by`, one posterior whose parts are compared.
    by : {"chain", "mode"}, optional
        Which parts of one posterior: every chain; or chains that agree once labels are aligned together, as one mode
        (for a posterior of `ob.sample_modes`, its modes).
    var_name : str, optional
        The observed variable, where there are several.
    method : {"stacking", "BB-pseudo-BMA", "pseudo-BMA"}
        How weights are found, as of `arviz_stats.compare`.

    Returns
    -------
    ModelComparison
        ArviZ's table of elpd, differences with standard errors and weights, in nats; and which observations the stack
        predicts better.

    Raises
    ------
    ValueError
        If there are fewer than two models or parts, log likelihoods are missing or not finite, or the models are of
        different numbers of observations.
    TypeError
        If an argument is of another class.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman 2018, Bayesian Analysis 13(3). Yao, Vehtari and Gelman 2022, JMLR 23(79).

    Examples
    --------
    >>> found = ob.compare_models({"whole": posterior, "half": posterior.isel(draw=slice(None, None, 2))})
    >>> list(found.table.columns[:3])
    ['rank', 'elpd_diff', 'dse']
    """
    choose("method", method.lower(), METHODS)
    several = isinstance(models, Mapping) and not isinstance(models, xr.DataTree | xr.Dataset)
    if by is None:
        if not several or len(models) < 2:
            raise ArgumentError(
                "`models` must map two names or more to posteriors, or be one posterior with `by='chain'` or "
                "`by='mode'`."
            )
        found, judged = {}, {}
        for name, held in models.items():
            if not (hasattr(held, "elpd") and hasattr(held, "elpd_i")):
                view = as_view(held, f"models[{str(name)!r}]")
                pointwise = LogLikelihood.of(_terms(view, var_name))
                found[str(name)] = leave_one_out(pointwise, view.posterior)
                judged[str(name)] = carried(view, None, "estimates", label_free=True)
            elif held.elpd_i is not None:
                found[str(name)] = held
                judged |= {str(name): held.judged} if isinstance(held, Answered) else {}
            else:
                raise ArgumentError(
                    f"`models[{str(name)!r}]` has no values of single observations: give `ob.loo(posterior)`."
                )
        return _compared(found, method, judged=judged)
    choose("by", by, ("chain", "mode"))
    view = as_view(models)
    if view.declares_equal_modes:
        view = as_view(align(view).to_tree())
    masks = _parts(view, by)
    terms = _terms(view, var_name)
    shares = {name: _part_of(view, terms, mask) for name, mask in masks.items()}
    return _compared(shares, method, {name: int(mask.sum()) for name, mask in masks.items()})


def _terms(view: View, var_name: str | None) -> xr.DataArray:
    terms = stored_log_likelihood(view, var_name)
    if terms is None:
        raise ArgumentError(
            f"{why_none(view)}: give `ob.loo(posterior, model=...)` in its place, which computes it."
        )
    return terms


def _parts(view: View, by: str) -> dict[str, np.ndarray]:
    """Return which draws (chain, draw) are of each chain or mode."""
    from scipy.sparse.csgraph import connected_components

    chains, draws = view.num_chains, view.num_draws
    stat = view.stat(schema.MODE)
    if by == "mode" and stat is not None:
        labels = stat
    elif by == "mode":
        # Chains are linked where every parameter has a small R-hat in both.
        names = [name for name in view.variables if view.kinds.of.get(name) == "parameter"]
        rows = np.moveaxis(view.draws(names or None).values, -1, 0)
        linked = np.zeros((chains, chains), bool)
        for first, second in combinations(range(chains), 2):
            found = rhat(rows[:, [second, first]])
            linked[second, first] = np.nanmax(found, initial=1.0) <= AGREE
        modes = connected_components(linked, directed=False)[1]
        labels = np.repeat(modes[:, None], draws, axis=1)
    else:
        labels = np.repeat(np.arange(chains)[:, None], draws, axis=1)
    kinds = np.unique(labels)
    if len(kinds) < 2:
        one = "one chain" if chains == 1 else "chains that agree, modulo labels"
        raise ArgumentError(
            f"`{view.argument}` has {one}: there is nothing to stack"
            + ("." if by == "chain" or chains == 1 else "; `by='chain'` compares its chains.")
        )
    return {f"{by} {int(kind)}": labels == kind for kind in kinds}


def _part_of(view: View, terms: xr.DataArray, mask: np.ndarray) -> ELPDData:
    """Leave observations out of the draws of one part."""
    own = view.posterior
    whole = mask.all(axis=1)
    if (mask.any(axis=1) == whole).all():
        return leave_one_out(LogLikelihood.of(terms.isel(chain=whole)), own.isel(chain=whole))
    places = np.isin(own["draw"].values, terms["draw"].values)
    some = terms.values[mask[:, places]][None]
    lone = xr.DataArray(some, dims=terms.dims, name=terms.name)
    return leave_one_out(LogLikelihood.of(lone), own, relative=1.0)


def _compared(
    found: Mapping[str, ELPDData],
    method: str,
    counts: Mapping[str, int] | None = None,
    judged: Mapping[str, Carried] | None = None,
) -> ModelComparison:
    from arviz_stats import compare

    each = paired(found)
    first = next(iter(found.values())).elpd_i
    alike = {
        name: replace(one, elpd_i=first.copy(data=own.reshape(first.shape)))
        for (name, one), own in zip(found.items(), each.T, strict=True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say stands in the table
        table = compare(alike, method=method, round_to="none")
    each = each[:, [list(found).index(name) for name in table.index]]
    weights = np.clip(table["weight"].to_numpy(float), 0.0, None)
    with np.errstate(divide="ignore"):
        stack = logsumexp(each + np.log(weights / weights.sum()), axis=1)
    columns = dict(zip(table.index, each.T, strict=True))
    share = np.array([counts[name] if counts else 1 for name in table.index])
    columns |= {"stack": stack, "unweighted": logsumexp(each + np.log(share / share.sum()), axis=1)}
    pointwise = pd.DataFrame(columns, index=names_of(first))
    return ModelComparison(table, dict(found), pointwise, judged or {})
