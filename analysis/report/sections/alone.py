"""The page about one posterior: the answer card with its key figures, and the sections in their order."""

from __future__ import annotations

import math

from onebasin.base.table import decimals_beside, format_number

from ...diagnostics.verdict import FLAGS, Extreme
from ...page.page import AnswerCard, Section, Stat
from ..subject import Subject
from .chains import chains
from .fits import fits
from .labels import labels
from .modes import modes
from .parameters import parameters
from .predictions import predictions
from .sampler import sampler


def answer_card(subject: Subject, *, named: bool) -> AnswerCard:
    """Give the card that a page begins with."""
    return AnswerCard(subject.verdict, subject.name if named else "", tuple(key_figures(subject)))


def key_figures(subject: Subject) -> list[Stat]:
    """The numbers that the answer rests on, aligned where parameters are shown so."""
    diagnosis, fit = subject.diagnosis, subject.diagnosis.variational
    chains, draws = diagnosis.num_chains, diagnosis.num_draws
    if subject.diagnosis.has_chains:
        note = f"{chains} chain{'s' if chains > 1 else ''} of {format_number(draws)}"
    else:
        note = "members" if subject.view.is_ensemble else "of the fit"
    stats = [Stat("draws", chains * draws, note=note)]
    if fit is not None:
        limit = fit.khat_limit
        places = 2 if math.isnan(fit.khat) else decimals_beside(fit.khat, (limit,), 2)
        khat, at_most = (format_number(value, decimals=places) for value in (fit.khat, limit))
        flag = FLAGS[diagnosis.outcome_of("k-hat") or "passed"]
        stats.append(Stat("k-hat", khat, flag, f"limit {at_most}"))
        stats.append(Stat("ELBO", fit.elbo, note="nats, last"))
        return stats
    if not subject.diagnosis.has_chains:
        return stats
    numbers = diagnosis.numbers
    aligned = "aligned" if subject.diagnosis.is_shown_aligned else "largest"
    for label, column, note in (("R-hat", "rhat", aligned), ("bulk ESS", "ess_bulk", "smallest")):
        worst = Extreme.of(numbers.decisive[column], smallest=column != "rhat")
        if worst.parameter is not None:
            flag = FLAGS[numbers.outcome(column, worst.value, worst.parameter)]
            value = numbers.written(column, worst.value)
            stats.append(Stat(label, value, flag, f"{note}, `{worst.parameter}`"))
    sampler = diagnosis.sampler
    if sampler is not None:
        count = "not recorded" if sampler.divergences is None else sampler.divergences
        stats.append(
            Stat("divergences", count, FLAGS[diagnosis.outcome_of("divergences") or "passed"])
        )
        if not math.isnan(sampler.min_bfmi):
            places = decimals_beside(sampler.min_bfmi, (diagnosis.limits.bfmi,), 2)
            value = format_number(sampler.min_bfmi, decimals=places)
            flag = FLAGS[diagnosis.outcome_of("E-BFMI") or "passed"]
            stats.append(Stat("E-BFMI", value, flag, "smallest"))
    return stats


def sections_of(subject: Subject) -> list[Section | None]:
    """Show one posterior; a network's predictions come first: they have no labels, and its weights say little."""
    parts = (modes, labels, fits, parameters, sampler, chains)
    is_network = subject.view.network is not None
    order = (predictions, *parts) if is_network else (*parts, predictions)
    return [part(subject) for part in order]
