"""Conditions on an aligned posterior: the log density of the draws as they came, and nothing left behind."""

from __future__ import annotations

import numpy as np

from onebasin.base.card import in_brief
from onebasin.models.symmetry.elements import labels_of, on_arrays
from onebasin.models.symmetry.group import Group

from ..discovery.density import LeavesPosterior, advice, parameters_of, spelt
from ..discovery.partial import followers, recorded_companions, tied
from ..discovery.resolve import Resolved
from ..discovery.slots import numbered
from ..summaries.deciding import every_few, looked_at
from .result import Alignment

NAMED = 6
"""Names that a sentence lists."""


def check_alignment(alignment: Alignment, resolved: Resolved) -> None:
    """Refuse an alignment that leaves the posterior: by its log density, else by what the draws show.

    Raises
    ------
    LeavesPosterior
        If the log density changes; or if nobody has checked the symmetry on a density, and quantities that it does not
        move change with the labels.
    """
    checked = alignment.density is not None and alignment.density.compared
    if checked or resolved.known or resolved.source == "found" or alignment.source.network:
        return
    view = alignment.source
    moved = {name for block in alignment.symmetry for name in block.variables}
    moved |= {*alignment.allocations}
    drawn = {n for n, v in view.arrays.items() if v.dtype.kind in "biuf" and "draw" in v.dims}
    names = [name for name in parameters_of(view) if name in drawn - moved]
    every = [*names, *sorted(drawn & moved)]
    step = every_few(view, every)
    thin = tuple(on_arrays(part, lambda a: a[:, ::step]) for part in alignment.element)
    rows = [labels_of(part) for part in thin]
    labels = [numbered(each.reshape(*each.shape[:2], -1)) for each in rows if each.size]
    values = {n: np.where(np.isfinite(v), v, 0.0) for n, v in looked_at(view, every).items()}
    others = {name: values.pop(name) for name in names}
    left = recorded_companions(view, moved) or followers(labels, others, sure=True)
    if labels and not left:
        shapes = {name: value.shape[2:] for name, value in values.items()}
        aligned = Group(alignment.symmetry, shapes).act(thin, values)
        left = tuple(name for own in labels for name in tied(own, aligned, others))
    if left:
        raise LeavesPosterior(
            view.argument,
            spelt(alignment.symmetry),
            f"Alignment would leave what changes with the labels behind: {in_brief(left, NAMED)}.",
            advice(view),
        )
