"""Conclusions from a comparison of posteriors: sentences for a reader, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Account:
    """The facts of a comparison, to be told in sentences."""

    table: pd.DataFrame
    truth: str
    targets: Mapping[str, str]  # Of each posterior.
    points: Points | None  # At which predictions were made, if at any.
    own_points: bool  # Whether these are the truth's own data.
    rule: str  # By which draws were aligned, in words.
    caveat: str  # What nobody has checked of the symmetry.
    permutations: int  # 0 where draws were not compared.
    shared: Shared | None  # Variables; None where they were chosen or are a network's weights.
    obstacles: Mapping[str, str]  # Why the weights of some posteriors were not compared, by name.
    labels: Mapping[str, tuple[str, ...]]  # Words of a symmetry that chains show, by posterior.
    unmixed: Sequence[str]  # Parameters about which the truth's own chains disagree.
    copies: Sequence[str]  # Posteriors that have a chain of the truth.

    def notes(self) -> Iterator[str]:
        """Tell what was compared with what."""
        truth, points = self.truth, self.points
        if points is not None:
            where = f"that `{truth}` was fitted to and keeps" if self.own_points else "given"
            scored = "" if points.y is not None else ", which have no labels or targets to score"
            yield f"Predictions are compared at the {len(points.x)} points {where}{scored}."
        if "total_variation" in self.table:
            yield "Total variation is half the sum of absolute differences; Xiao et al. 2023, equation 2, is the sum."
        yield (
            f"Baseline (`floor`): the distance between the two halves of `{truth}`. Values this small are noise."
        )
        if self.rule:
            yield f"{self.rule} Labels were fitted on the first half of `{truth}`."
        if self.caveat:
            yield self.caveat
        if self.permutations:
            yield (
                f"Distances of draws are between the second half of `{truth}` and the others, in units of "
                "the first half's standard deviations; chains are thinned to nearly independent draws."
            )
            tests = int(self.table["energy_p"].notna().sum())
            yield (
                f"p-values are by {self.permutations} permutations, each for itself; there are {tests} of each kind."
            )
        if self.shared is not None and self.shared.only_in:
            sides: dict[str, list[str]] = {}
            for variable, name in self.shared.only_in.items():
                sides.setdefault(name, []).append(variable)
            held = "; ".join(f"`{n}` has {in_brief(names, SHOWN)}" for n, names in sides.items())
            yield f"Not compared, because not every posterior has them in the same shape: {held}."
        for name, why in self.obstacles.items():
            yield f"Draws of `{name}` are compared in prediction alone: {why.rstrip('.')}."

    def warnings(self) -> Iterator[str]:
        """Tell what to beware of."""
        table, truth = self.table, self.truth
        if self.own_points and self.points is not None:
            yield "The points are training data, where scores are optimistic; give other points to see predictions."
        ours = self.targets[truth]
        other = [f"`{name}` ({target})" for name, target in self.targets.items() if target != ours]
        if other and self.points is None:  # the data of networks have been compared
            yield (
                f"Targets have other names than that of `{truth}` ({ours}): "
                f"{', '.join(other)}. Are they the same model of the same data?"
            )
        for name in self.copies:
            yield (
                f"`{name}` and `{truth}` have the same draws in a chain, or many of them: that they agree is no "
                "evidence. Compare runs with seeds of their own."
            )
        for name, words in self.labels.items():
            if words:
                yield (
                    f"Chains of `{name}` and `{truth}` have their labels in different orders, and are compared as they "
                    f"came. Compare them modulo the symmetry: {spelt_options(words)}."
                )
        if self.shared is not None and self.shared.with_labels:
            yield (
                f"Left out: {in_brief(self.shared.with_labels, SHOWN)}. The symmetry does not move what is named here, "
                "and it may carry labels of components: means then depend on the labelling. Declare a parameter of "
                "these with the components to compare it."
            )
        if self.unmixed:
            yield (
                f"The chains of `{truth}` disagree about {in_brief(self.unmixed, SHOWN)} (R-hat): it has not mixed. "
                "Nothing agrees with what does not agree with itself; see `onebasin diagnose`."
            )
        if not self.permutations:
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
