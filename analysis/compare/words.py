"""Conclusions from a comparison of posteriors: sentences for a reader, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from onebasin.base.card import in_brief
from onebasin.models.symmetry.words import spelt_options

from .two_sample import MIN_DRAWS

if TYPE_CHECKING:  # brings JAX along, which tables of a report do without
    from ..predictive.points import Points
    from .comparable import Shared

FLOOR = "floor"
"""Name of the row of the truth against itself."""
SMALL = 0.01
"""p-value up to which distributions are called different, of a posterior and of the truth's own halves."""
PREDICTIONS = {
    "total_variation": "class probabilities differ by {} in total variation",
    "mean_distance": "mean predictions lie {} sds away",
}
SHOWN = 6
"""Names listed in a sentence."""


def say(
    table: pd.DataFrame,
    truth: str,
    *,
    points: Points | None,
    own_points: bool,
    rule: str,
    caveat: str,
    permutations: int,
    shared: Shared | None,
    obstacles: Mapping[str, str],
) -> Iterator[str]:
    """Tell what was compared with what.

    Predictions were made at `points`, where there are any, which are the truth's own data or were given; draws were
    aligned by a `rule` in words, of whose symmetry nobody has checked what the `caveat` says, and compared where there
    are `permutations`; `shared` tells which variables, but where they were chosen or are a network's weights;
    `obstacles` say why the weights of some posteriors were not, by name.
    """
    if points is not None:
        where = f"that `{truth}` was fitted to and keeps" if own_points else "given"
        scored = "" if points.y is not None else ", which have no labels or targets to score"
        yield f"Predictions are compared at the {len(points.x)} points {where}{scored}."
    if "total_variation" in table:
        yield "Total variation is half the sum of absolute differences; Xiao et al. 2023, equation 2, is the sum."
    yield (
        f"Baseline (`floor`): the distance between the two halves of `{truth}`. Values this small are noise."
    )
    if rule:
        yield f"{rule} Labels were fitted on the first half of `{truth}`."
    if caveat:
        yield caveat
    if permutations:
        yield (
            f"Distances of draws are between the second half of `{truth}` and the others, in units of "
            "the first half's standard deviations; chains are thinned to nearly independent draws."
        )
        tests = int(table["energy_p"].notna().sum())
        yield (
            f"p-values are by {permutations} permutations, each for itself; there are {tests} of each kind."
        )
    if shared is not None and shared.only_in:
        sides: dict[str, list[str]] = {}
        for variable, name in shared.only_in.items():
            sides.setdefault(name, []).append(variable)
        held = "; ".join(f"`{name}` has {in_brief(names, SHOWN)}" for name, names in sides.items())
        yield f"Not compared, because not every posterior has them in the same shape: {held}."
    for name, why in obstacles.items():
        yield f"Draws of `{name}` are compared in prediction alone: {why.rstrip('.')}."


def warn(
    table: pd.DataFrame,
    truth: str,
    *,
    targets: Mapping[str, str],
    points: Points | None,
    own_points: bool,
    weighed: bool,
    shared: Shared | None,
    labels: Mapping[str, tuple[str, ...]],
    copies: Sequence[str],
) -> Iterator[str]:
    """Tell what to beware of.

    `targets` names each posterior's target, `weighed` says whether draws were compared, and `copies` are the posteriors
    that have a chain of the truth.
    """
    if own_points and points is not None:
        yield "The points are training data, where scores are optimistic; give other points to see predictions."
    ours = targets[truth]
    other = [f"`{name}` ({target})" for name, target in targets.items() if target != ours]
    if other and points is None:  # the data of networks have been compared
        yield (
            f"Targets have other names than that of `{truth}` ({ours}): "
            f"{', '.join(other)}. Are they the same model of the same data?"
        )
    for name in copies:
        yield (
            f"`{name}` and `{truth}` have the same draws in a chain, or many of them: that they agree is no evidence. "
            "Compare runs with seeds of their own."
        )
    for name, words in labels.items():
        if words:
            yield (
                f"Chains of `{name}` and `{truth}` have their labels in different orders, and are compared as they "
                f"came. Compare them modulo the symmetry: {spelt_options(words)}."
            )
    if shared is not None and shared.with_labels:
        yield (
            f"Left out: {in_brief(shared.with_labels, SHOWN)}. They may carry labels of components, and the "
            "symmetry does not move them, so their means depend on the labelling. To compare them, declare them with "
            "the components."
        )
    if not weighed:
        return
    few = table["num_draws"] < MIN_DRAWS
    for name, number in table.loc[few, "num_draws"].items():
        yield (
            f"`{name}` has {number:.0f} nearly independent draws of its own, too few for a p-value: sample "
            "longer, or see whether its chains mix."
        )
    floor = table["energy_p"].iloc[-1]
    if not np.isfinite(floor) and not few.any():
        yield (
            f"Whether the chains of `{truth}` agree among themselves was not judged, since their halves have "
            "no p-value: other p-values cannot be trusted; sample longer."
        )
    if np.isfinite(floor) and floor <= SMALL:
        yield (
            f"The chains of `{truth}` differ among themselves (p = {floor:.3f}): it has not mixed, and "
            "other p-values cannot be trusted."
        )
