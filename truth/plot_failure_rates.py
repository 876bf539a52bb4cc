"""How often alignment is wrong, against how far components lie apart."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.figures.picture import Picture
from onebasin.analysis.figures.style import new_figure
from onebasin.base.checks import check_class
from onebasin.base.numbers import format_number

from .alignment_failures import RULES, FailureRates
from .failure_rates_figure import plot_failure_rates as draw


def plot_failure_rates(rates: FailureRates) -> Picture:
    """Draw what `failure_rates` found: the share of draws that each rule labels wrong, and the least there can be.

    Parameters
    ----------
    rates : FailureRates
        What `failure_rates` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Means over repeats, the least and the largest as whiskers, against the separation of neighbouring means in
        standard deviations.

    Examples
    --------
    >>> planted = ob.PlantedComponents(components=2, draws=100, repeats=2)
    >>> figure = ob.plot_failure_rates(ob.failure_rates([1.0, 3.0], planted))
    """
    check_class("rates", rates, FailureRates, remedy="give what `failure_rates` returned")
    figure = new_figure(6.4, 3.6)
    draw(rates, ax=figure.subplots())
    told = [
        f"{words}: {_in_words(rates.rates[rule].mean(axis=0), rates.separations)}"
        for rule, words in RULES.items()
        if rule in rates.rates
    ]
    best = _in_words(rates.optimal.mean(axis=0), rates.separations)
    return figure.on_paper(
        f"Share of draws labelled wrong. {'; '.join(told)}; best possible: {best}."
    )


def _in_words(wrong: np.ndarray, separations: np.ndarray) -> str:
    return ", ".join(
        f"{format_number(float(rate), decimals=3)} at {separation:g} sds"
        for rate, separation in zip(wrong, separations, strict=True)
    )
