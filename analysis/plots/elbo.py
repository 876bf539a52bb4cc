"""The ELBO of variational fits while they were optimised."""

from __future__ import annotations

from collections.abc import Mapping

from ..figures.elbo import ElboTrace
from ..figures.elbo import plot_elbo as draw
from ..figures.picture import Picture
from ..report.posterior_figures import elbo_in_words
from ..summaries.elbo import Elbo, elbo
from .given import Posteriors, named


def plot_elbo(posteriors: Posteriors | Elbo | Mapping[str, Elbo]) -> Picture:
    """Draw the ELBO of variational fits against the optimiser's iteration.

    Parameters
    ----------
    posteriors : Elbo, posterior, or mapping of str to these
        A posterior by `advi` or `symmetrised_vi`, or several by name; or what `elbo` made of them. Every fit of one
        has a line.

    Returns
    -------
    matplotlib.figure.Figure
        In nats; larger is better, and only fits of the same model of the same data can be compared. Of symmetrised
        VI it is the symmetrised ELBO, which is what was maximised.

    Raises
    ------
    ValueError
        If a posterior recorded no ELBO.

    Examples
    --------
    >>> fit = ob.advi(target, iterations=2000, seed=1)
    >>> figure = ob.plot_elbo(fit)
    """
    several = named(posteriors)
    traces: dict[str, ElboTrace] = {}
    for name, given in several.items():
        found = given if isinstance(given, Elbo) else elbo(given)
        for k, values in enumerate(found.trace):
            fit = f"fit {k}" if len(several) == 1 else f"{name}, fit {k}"
            traces[fit if len(found.trace) > 1 else name] = ElboTrace(found.iteration, values)
    told = [elbo_in_words(name, trace) for name, trace in traces.items()]
    return draw(traces).on_paper(" ".join(told))
