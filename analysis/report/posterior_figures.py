"""The figures of a posterior report: which quantities are drawn, and what the captions say."""

from collections.abc import Mapping

import numpy as np

from onebasin.models import schema

from ..diagnostics.result import Diagnosis
from ..figures.elbo import ElboTrace, plot_elbo
from ..figures.trace_rank import plot_trace_rank, trace_rank
from ..figures.tree_depth import depth_shares, plot_tree_depth
from ..figures.weight_scatter import WeightPair, plot_weight_scatter
from ..posterior.variational import elbo_trace
from ..posterior.view import Posterior, View, as_view
from .page import FigureItem
from .tables import worst_parameters

WORST_TRACED = 3
_USUAL = ("sigma",)  # traced whether or not they are among the worst
_WEIGHTS = ("W1", "W2")


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
        alt=f"Traces and rank histograms, chain by chain, of {listed.replace('`', '')}",
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
        alt=f"ELBO against iteration of {', '.join(traces)}",
    )


def scatter_figure(posteriors: Mapping[str, Posterior]) -> FigureItem | None:
    """Draw the first weight into and out of the first hidden unit, for networks."""
    pairs = {}
    for name, posterior in posteriors.items():
        pair = _weight_pair(as_view(posterior))
        if pair is not None:
            pairs[name] = pair
    if not pairs:
        return None
    return FigureItem(
        plot_weight_scatter(pairs, columns=3 if len(pairs) < 7 else 4),
        caption="Draws of the first hidden unit's weight from the first input, `W1[0,0]`, against "
        "its weight to the first output, `W2[0,0]` (W₁[1,1] and W₂[1] where one counts from 1). "
        "A hyperbola shows scaling freedom, separate clouds show other modes or swapped units.",
        alt=f"Scatter of W1[0,0] against W2[0,0] for {', '.join(pairs)}",
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
        alt=f"Histograms of tree depth of {', '.join(depths)}",
    )


def _common_limit(limits: set) -> int | None:
    known = {int(limit) for limit in limits if limit is not None}
    return known.pop() if len(known) == 1 else None


def _weight_pair(view: View) -> WeightPair | None:
    if any(name not in view.variables for name in _WEIGHTS):
        return None
    first, second = (view.draws(name) for name in _WEIGHTS)
    if not first.names or not second.names:
        return None
    return WeightPair(first.of(first.names[0]), second.of(second.names[0]))
