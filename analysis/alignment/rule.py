"""The rule by which draws were aligned: aligned marginals depend on it where components overlap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from onebasin.base.checks import check_count, check_seed, choose
from onebasin.models.symmetry.blocks import Symmetry

from .rescaling import GAUGES

REFERENCES = ("draw", "mean", "gaussian")
COSTS = ("weights", "activations")
_SAID = {
    "draw": "chain {0}, draw {1}",
    "mean": "the mean of the aligned draws, iterated from chain {0}, draw {1}",
    "gaussian": "a diagonal Gaussian fitted to the aligned draws, iterated from chain {0}, draw {1}",
    "posterior": "the mean of another posterior",
    "alignment": "what another posterior's draws were aligned with",
}


@dataclass(frozen=True)
class Rule:
    """What decides an alignment beside the draws and their symmetry.

    Attributes
    ----------
    reference : {"draw", "mean", "gaussian", "posterior", "alignment"}
        What draws are matched with; `posterior` is another one's mean, `alignment` what another one's draws were
        matched with.
    reference_draw : tuple of int
        Chain and draw: the reference, or where the iteration starts.
    cost : {"weights", "activations"}
        What is compared.
    scales : mapping of str to float
        By what each variable is divided.
    gauge : {"balanced", "unit", "keep"}
        How positive scalings are divided out.
    restarts, max_sweeps, seed : int
        Starts, sweeps at most from each, seed of the random ones.

    Raises
    ------
    ValueError
        If a word is unknown or a number is not a count.
    """

    reference: str = "gaussian"
    reference_draw: tuple[int, int] = (0, 0)
    cost: str = "weights"
    scales: Mapping[str, float] = field(default_factory=dict)
    gauge: str = "balanced"
    restarts: int = 1
    max_sweeps: int = 15
    seed: int = 0

    def __post_init__(self) -> None:
        """Check words and numbers."""
        choose("reference", self.reference, (*REFERENCES, "posterior", "alignment"))
        choose("cost", self.cost, COSTS)
        choose("gauge", self.gauge, GAUGES)
        check_count("restarts", self.restarts)
        check_count("max_sweeps", self.max_sweeps)
        check_seed(self.seed)

    def to_json(self) -> str:
        """The rule as JSON text."""
        return json.dumps(asdict(self))

    def describe(self, symmetry: Symmetry) -> str:
        """Say the rule in plain words."""
        blocks = "; ".join(block.describe() for block in symmetry)
        reference = _SAID[self.reference].format(*self.reference_draw)
        text = f"Modulo {blocks}. Every draw is matched with {reference}, by "
        if self.cost == "activations":
            text += "the squared distance of hidden activations."
        else:
            scales = ", ".join(f"{name} by {scale:.4g}" for name, scale in self.scales.items())
            text += f"the squared distance of whole parts, variables divided by scales ({scales})."
        return text
