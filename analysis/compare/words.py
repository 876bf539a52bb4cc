"""Conclusions from a comparison of posteriors: sentences for a reader, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from onebasin.base.card import in_brief

from .two_sample import MIN_DRAWS

if TYPE_CHECKING:  # brings JAX along, which tables of a report do without
    from ..predictive.points import Points
    from .comparable import Shared

FLOOR = "floor"
"""Name of the row of the truth against itself."""
SMALL = 0.01
"""p-value up to which distributions are called different, of a posterior and of the truth's own halves."""
SHOWN = 6
"""Names listed in a sentence."""


@dataclass(frozen=True)
class Setting:
    """The ingredients of a comparison, for its notes.

    Attributes
    ----------
    truth
        Name of the truth.
    targets
        Name of each posterior's target, by the posterior's name; empty where it has none.
    points
        Where predictions were made, if anywhere.
    own_points
        Whether these are the truth's own data.
    rule
        Of the alignment, in words; empty without one.
    weighed
        Whether draws were compared in weight space.
    permutations
        Behind each p-value.
    obstacles
        Why the weights of some posteriors were not compared, by name.
    shared
        Which variables were compared; None where they were chosen or are a network's weights.
    caveat
        What nobody has checked of the symmetry, in a sentence; empty where nothing is left.
    copies
        Names of the posteriors that have a chain of the truth.
    """

    truth: str
    targets: Mapping[str, str]
    points: Points | None
    own_points: bool
    rule: str
    weighed: bool
    permutations: int
    obstacles: Mapping[str, str]
    shared: Shared | None = None
    caveat: str = ""
    copies: tuple[str, ...] = ()


def say(setting: Setting, table: pd.DataFrame) -> Iterator[str]:
    """Tell what was compared with what."""
    if setting.points is not None:
        number = len(setting.points.x)
        where = f"that `{setting.truth}` was fitted to and keeps" if setting.own_points else "given"
        scored = (
            "" if setting.points.y is not None else ", which have no labels or targets to score"
        )
        yield f"Predictions are compared at the {number} points {where}{scored}."
    if "total_variation" in table:
        yield "Total variation is half the sum of absolute differences; Xiao et al. 2023, equation 2, is the sum."
    yield (
        f"Baseline (`floor`): the distance between the two halves of `{setting.truth}`. Values this small are "
        "noise."
    )
    if setting.rule:
        yield f"{setting.rule} Labels were fitted on the first half of `{setting.truth}`."
    if setting.caveat:
        yield setting.caveat
    if setting.weighed:
        yield (
            f"Distances of draws are between the second half of `{setting.truth}` and the others, in units of "
            "the first half's standard deviations; chains are thinned to nearly independent draws."
        )
        tests = int(table["energy_p"].notna().sum())
        yield (
            f"p-values are by {setting.permutations} permutations, each for itself; there are {tests} of each kind."
        )
    if setting.shared is not None and setting.shared.only_in:
        sides: dict[str, list[str]] = {}
        for variable, name in setting.shared.only_in.items():
            sides.setdefault(name, []).append(variable)
        held = "; ".join(f"`{name}` has {in_brief(names, SHOWN)}" for name, names in sides.items())
        yield f"Not compared, because not every posterior has them in the same shape: {held}."
    for name, why in setting.obstacles.items():
        yield f"Draws of `{name}` are compared in prediction alone: {why.rstrip('.')}."


def warn(setting: Setting, table: pd.DataFrame) -> Iterator[str]:
    """Tell what to beware of."""
    if setting.own_points and setting.points is not None:
        yield "The points are training data, where scores are optimistic; give other points to see predictions."
    ours = setting.targets[setting.truth]
    other = [f"`{name}` ({target})" for name, target in setting.targets.items() if target != ours]
    if other and setting.points is None:  # the data of networks have been compared
        yield (
            f"Targets have other names than that of `{setting.truth}` ({ours}): "
            f"{', '.join(other)}. Are they the same model of the same data?"
        )
    for name in setting.copies:
        yield (
            f"`{name}` and `{setting.truth}` have the same draws in a chain: that they agree is no evidence. Compare "
            "runs with seeds of their own."
        )
    if setting.shared is not None and setting.shared.with_labels:
        yield (
            f"Left out: {in_brief(setting.shared.with_labels, SHOWN)}. They may carry labels of components, and the "
            "symmetry does not move them, so their means depend on the labelling. To compare them, declare them with "
            "the components."
        )
    if not setting.weighed:
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
            f"Whether the chains of `{setting.truth}` agree among themselves was not judged, since their halves have "
            "no p-value: other p-values cannot be trusted; sample longer."
        )
    if np.isfinite(floor) and floor <= SMALL:
        yield (
            f"The chains of `{setting.truth}` differ among themselves (p = {floor:.3f}): it has not mixed, and "
            "other p-values cannot be trusted."
        )
