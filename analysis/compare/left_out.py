"""The answer in front of a leave-one-out estimate, and observations of several models paired by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.card import in_brief, number
from onebasin.base.errors import ArgumentError
from onebasin.base.notices import notice
from onebasin.posteriors.leave_one_out import NAMED, LogLikelihood, names_of

from ..diagnostics.diagnose import Carried

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
    first, *others = found
    base = found[first].elpd_i
    columns = [base.values.ravel()]
    own = _labels(base)
    for name in others:
        each = found[name].elpd_i
        if each.size != base.size:
            told = ", ".join(f"{n} of {one.elpd_i.size}" for n, one in found.items())
            raise ArgumentError(
                f"`models` are of different numbers of observations ({told}): compare models of one data set."
            )
        if {*each.dims} == {*base.dims}:
            each = each.transpose(*base.dims)
        labels, values = _labels(each), each.values.ravel()
        if own is not None and labels is not None and own != labels:
            if {*own} != {*labels}:
                there = [str(x) for x in own if x not in {*labels}]
                raise ArgumentError(
                    f"`models` are of different observations: {name} lacks {in_brief(there, NAMED)} of {first}. "
                    "Compare models of one data set, with the same names (coordinates) of observations."
                )
            places = {label: place for place, label in enumerate(labels)}
            values = values[[places[label] for label in own]]
        columns.append(values)
    return np.stack(columns, axis=1)


def _labels(values: Any) -> list[Any] | None:
    """Name the observations; None where they have only places, or some share a name."""
    flat = values.stack(obs=values.dims) if values.ndim != 1 else values
    axes = [values.indexes.get(dim) for dim in values.dims]
    named = any(a is not None and list(a) != list(range(len(a))) for a in axes)
    labels = list(flat.indexes[flat.dims[0]]) if named else None
    return labels if labels is not None and len({*labels}) == len(labels) else None
