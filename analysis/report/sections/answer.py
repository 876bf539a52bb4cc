"""The answer card of one posterior, with its key figures."""

from __future__ import annotations

import math

from onebasin.base.numbers import format_number
from onebasin.base.table import Flag

from ...diagnostics.measure import DECIDES
from ...page.page import AnswerCard, Stat
from ..subject import Subject


def answer_card(subject: Subject, *, named: bool) -> AnswerCard | None:
    """Give the card that a page begins with; None where nobody asked for an answer."""
    if subject.verdict is None:
        return None
    return AnswerCard(subject.verdict, subject.name if named else "", tuple(key_figures(subject)))


def key_figures(subject: Subject) -> list[Stat]:
    """The numbers that the answer rests on, aligned where parameters are shown so."""
    diagnosis, fit = subject.diagnosis, subject.diagnosis.variational
    stats = [_size(subject)]
    if fit is not None:
        known = not math.isnan(fit.khat)
        flag: Flag = "" if not known else "good" if fit.khat <= fit.khat_limit else "bad"
        stats.append(
            Stat("k-hat", fit.khat, flag, f"limit {format_number(fit.khat_limit, decimals=2)}")
        )
        stats.append(Stat("ELBO", fit.elbo, note="nats, last"))
        return stats
    if not subject.has_chains:
        return stats
    worst = subject.table.loc[list(subject.worst)]
    aligned = "aligned" if subject.is_shown_aligned else "largest"
    if not worst["rhat"].dropna().empty:
        rhat = float(worst["rhat"].max())
        stats.append(
            Stat(
                "R-hat",
                _digits(rhat),
                _rhat_flag(subject, rhat),
                f"{aligned}, `{worst['rhat'].idxmax()}`",
            )
        )
    if not worst["ess_bulk"].dropna().empty:
        ess = float(worst["ess_bulk"].min())
        flag = "good" if ess >= diagnosis.min_ess else "bad"
        stats.append(
            Stat("bulk ESS", round(ess), flag, f"smallest, `{worst['ess_bulk'].idxmin()}`")
        )
    sampler = diagnosis.sampler
    if sampler is not None:
        stats.append(_divergences(sampler.divergences))
        if not math.isnan(sampler.min_bfmi):
            good = sampler.min_bfmi >= diagnosis.limits.bfmi
            stats.append(
                Stat(
                    "E-BFMI",
                    format_number(sampler.min_bfmi, decimals=2),
                    "good" if good else "bad",
                    "smallest",
                )
            )
    return stats


def _size(subject: Subject) -> Stat:
    chains, draws = subject.diagnosis.num_chains, subject.diagnosis.num_draws
    if subject.has_chains:
        note = f"{chains} chain{'s' if chains > 1 else ''} of {format_number(draws)}"
    else:
        note = "members" if subject.view.is_ensemble else "of the fit"
    return Stat("draws", chains * draws, note=note)


def _divergences(count: int | None) -> Stat:
    if count is None:
        return Stat("divergences", "not recorded", "warn")
    return Stat("divergences", count, "bad" if count else "good")


def _digits(value: float) -> str:
    return format_number(value, decimals=3 if value < 10 else 1)


def _rhat_flag(subject: Subject, rhat: float) -> Flag:
    if rhat <= subject.diagnosis.limits.rhat:
        return "good"
    return "warn" if rhat <= DECIDES else "bad"
