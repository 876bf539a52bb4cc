"""What a chain of CmdStan goes on from, when the program that ran it was killed or more draws are wanted.

A program writes its draws into the chain's folder, a whole row at a time. The rows that are whole are taken into the
chain's chunks, and a program of the chain's next number goes on: from the last draw, with the step size and the metric
that the warmup came to, and with a random stream of its own, since CmdStan does not tell the state of the first. A
warmup that was killed is begun anew, with the same outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.stan.output import Adaptation, Output, read_adaptation, read_blocks

from ..runs.kept import state_file
from .places import Standing

_LAST = "last-"


def csv_file(folder: Path, program: int) -> Path:
    """Where the program of a number, from 0, writes its draws."""
    return folder / f"stan-{program}.csv"


@dataclass(frozen=True)
class GoingOn:
    """Where the next program of a chain begins.

    Attributes
    ----------
    program : int
        Its number; 0 warms up.
    adaptation : Adaptation or None
        What the warmup came to.
    last : mapping
        The parameters' values in the last draw.
    accepted : float
        Sum of the draws' probabilities of acceptance.
    divergences : int or None
        How many of them diverged; None where the method does not tell.
    """

    program: int = 0
    adaptation: Adaptation | None = None
    last: Mapping[str, np.ndarray] = field(default_factory=dict)
    accepted: float = 0.0
    divergences: int | None = None

    @staticmethod
    def of(state: Mapping[str, np.ndarray]) -> GoingOn:
        """Unpack what `pack` has packed; the chain's beginning where there is nothing."""
        if "step_size" not in state:
            return GoingOn()
        return GoingOn(
            int(state["program"]),
            Adaptation(float(state["step_size"]), state["inverse_metric"]),
            {n.removeprefix(_LAST): v for n, v in state.items() if n.startswith(_LAST)},
            float(state["accepted"]),
            int(state["divergences"]) if "divergences" in state else None,
        )

    def pack(self) -> dict[str, np.ndarray]:
        """Give it in arrays."""
        program = {"program": np.array(self.program)}
        if self.adaptation is None:
            return program
        return {
            **program,
            "step_size": np.array(self.adaptation.step_size),
            "inverse_metric": self.adaptation.inverse_metric,
            "accepted": np.array(self.accepted),
            **({} if self.divergences is None else {"divergences": np.array(self.divergences)}),
            **{f"{_LAST}{name}": value for name, value in self.last.items()},
        }

    def how_it_went(self, draws: int) -> dict[str, Any]:
        """What is said of a chain that has ended, after so many draws."""
        return {
            "acceptance": self.accepted / draws,
            "step_size": None if self.adaptation is None else self.adaptation.step_size,
            "divergences": self.divergences,
        }

    def after(
        self, block: Output, stats: Mapping[str, np.ndarray], names: Iterable[str]
    ) -> GoingOn:
        """Go on after some draws, at least one; `names` are those of the parameters."""
        step_size = float(stats["step_size"][-1])
        found = self.adaptation or read_adaptation(block.comments, step_size)
        divergences = self.divergences
        if "diverging" in stats:
            divergences = (divergences or 0) + int(stats["diverging"].sum())
        return replace(
            self,
            adaptation=found,
            last={n: np.asarray(block.variables[n][-1]) for n in names if n in block.variables},
            accepted=self.accepted + float(stats["acceptance_rate"].sum()),
            divergences=divergences,
        )


def seconds_of(csv: Path, before: Standing, folder: Path | None) -> tuple[float, float]:
    """Seconds of a chain's warmup and of its draws, with those of a program that has ended or was killed.

    Parameters
    ----------
    csv : Path
        What the program wrote.
    before : Standing
        How the chain stood as the program began, or as its warmup ended.
    folder : Path or None
        The chain's; the state in it was written at that moment.
    """
    output = next(read_blocks(csv))
    warmup, sampling = output.seconds("Warm-up"), output.seconds("Sampling")
    if math.isnan(sampling):
        warmup, sampling = before.warmup_seconds, 0.0
        if (
            folder is not None
        ):  # of a killed program nothing else tells than when it wrote its last row
            began = state_file(folder).stat().st_mtime
            sampling = max(0.0, csv.stat().st_mtime - began)
    elif before.draws:  # a program that goes on does not warm up
        warmup = before.warmup_seconds
    return warmup, before.sampling_seconds + sampling
