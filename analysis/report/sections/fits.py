"""The course of a fit: the ELBO of a variational one, the training loss of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ...page.page import FigureItem, Section
from ...plots.optimisation import draw_elbo, draw_loss, elbo_in_words
from ...summaries.variational import elbo_trace
from ..subject import Subject, findings


def fits(subject: Subject) -> Section | None:
    """Show how a fit was optimised or trained; None for Markov chains."""
    items = [
        item
        for item in (elbo_figure({subject.name: subject.view}), _loss(subject))
        if item is not None
    ]
    notes = () if subject.diagnosis.has_chains else findings(subject)
    if not items and not notes:
        return None
    return Section("Optimisation", notes=notes, figures=tuple(items))


def elbo_figure(posteriors: Mapping[str, Posterior]) -> FigureItem | None:
    """Draw the ELBO of all variational fits that recorded it."""
    recorded = {name: elbo_trace(as_view(posterior)) for name, posterior in posteriors.items()}
    traces = {n: trace for n, trace in recorded.items() if trace is not None and trace[1].size}
    if not traces:
        return None
    return FigureItem(
        draw_elbo(traces),
        caption="ELBO during optimisation; larger is better, and only fits of the same model can "
        "be compared.",
        alt=" ".join(elbo_in_words(name, trace) for name, trace in traces.items()),
    )


def _loss(subject: Subject) -> FigureItem | None:
    training = subject.view.group(schema.TRAINING)
    if training is None or "loss" not in training:
        return None
    loss = np.asarray(training["loss"].transpose(..., "epoch").values, dtype=np.float64)
    loss = loss.reshape(-1, loss.shape[-1])
    if not loss.size or not np.isfinite(loss).any():
        return None
    ends = loss[:, -1]
    members = format_number(len(loss))
    low, high = (format_number(float(value)) for value in (np.nanmin(ends), np.nanmax(ends)))
    return FigureItem(
        draw_loss(loss),
        caption=f"Training loss of {members} members, in nats an observation or as it was trained; smaller is better.",
        alt=f"{members} members start between {format_number(float(np.nanmin(loss[:, 0])))} and "
        f"{format_number(float(np.nanmax(loss[:, 0])))} and end between {low} and {high} after "
        f"{format_number(loss.shape[1])} epochs.",
    )
