"""The figures of a posterior report: which quantities are drawn, and what the captions say."""

from collections.abc import Mapping

import numpy as np

from onebasin.base.numbers import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.result import Diagnosis
from ..figures.elbo import ElboTrace, plot_elbo
from ..figures.trace_rank import plot_trace_rank, trace_rank
from ..figures.tree_depth import DepthShares, depth_shares, plot_tree_depth
from ..page.page import FigureItem
from ..summaries.variational import elbo_trace
from . import seen
from .tables import worst_parameters

WORST_TRACED = 3
_USUAL = ("sigma",)  # traced whether or not they are among the worst


def trace_figure(posterior: Posterior, diagnosis: Diagnosis) -> FigureItem | None:
    """Draw traces and ranks of `lp` and the worst parameters of a Markov chain."""
    if diagnosis.variational is not None:
        return None
    view = as_view(posterior)
    draws = view.draws()
    names = list(worst_parameters(diagnosis).index[:WORST_TRACED])
    names += [name for name in _USUAL if name in draws.names and name not in names]
    quantities = [trace_rank(name, draws.of(name)) for name in names]
    lp = view.stat(schema.LP)
    if lp is not None and np.isfinite(lp).all():
        quantities.insert(0, trace_rank(schema.LP, lp))
    if not quantities:
        return None
    listed = ", ".join(f"`{quantity.name}`" for quantity in quantities)
    return FigureItem(
        plot_trace_rank(quantities),
        caption=f"Left, traces of {listed}; right, how each chain's draws rank among all draws. "
        "Where the chains agree, every chain's histogram lies near the dashed line.",
        alt=seen.traces({quantity.name: quantity.draws for quantity in quantities}),
    )


def elbo_figure(posteriors: Mapping[str, Posterior]) -> FigureItem | None:
    """Draw the ELBO of all variational fits that recorded it."""
    recorded = {name: elbo_trace(as_view(posterior)) for name, posterior in posteriors.items()}
    traces = {
        name: ElboTrace(*trace)
        for name, trace in recorded.items()
        if trace is not None and trace[1].size
    }
    if not traces:
        return None
    return FigureItem(
        plot_elbo(traces),
        caption="ELBO during optimisation; larger is better, and only fits of the same model can "
        "be compared.",
        alt=" ".join(elbo_in_words(name, trace) for name, trace in traces.items()),
    )


def depth_figure(posteriors: Mapping[str, Posterior]) -> FigureItem | None:
    """Draw the tree depths of all posteriors made by NUTS."""
    depths, limits = {}, set()
    for name, posterior in posteriors.items():
        view = as_view(posterior)
        depth = view.stat(schema.TREE_DEPTH)
        if depth is not None and not view.is_variational:
            depths[name] = depth_shares(depth)
            limits.add(view.attribute(schema.MAX_TREE_DEPTH))
    if not depths:
        return None
    return FigureItem(
        plot_tree_depth(depths, max_tree_depth=_common_limit(limits)),
        caption="NUTS tree depths. One level more costs twice the gradients; bars at the limit, "
        "where trajectories were cut short, are orange.",
        alt=" ".join(_depths_in_words(name, shares) for name, shares in depths.items()),
    )


def _common_limit(limits: set) -> int | None:
    known = {int(limit) for limit in limits if limit is not None}
    return known.pop() if len(known) == 1 else None


def elbo_in_words(name: str, trace: ElboTrace) -> str:
    """Say where an ELBO begins, and where it ends."""
    known = np.asarray(trace.elbo)[np.isfinite(trace.elbo)]
    if not known.size:
        return f"{name}: no ELBO is finite."
    first, last = format_number(float(known[0])), format_number(float(known[-1]))
    return f"{name}: the ELBO goes from {first} to {last} in {format_number(int(trace.iteration[-1]))} iterations."


def _depths_in_words(name: str, shares: DepthShares) -> str:
    told = ", ".join(
        f"{100 * s:.0f} % at depth {d}" for d, s in zip(shares.depth, shares.share, strict=True)
    )
    return f"{name}: {told}."
