"""How improbable it is that all chains chose one labelling, were the declared symmetry one of the posterior.

Chains that start independently choose any of G equal modes alike, so that C of them choose one with probability
G^(1 - C). Where that is small and they did, something fixed the labels, or the parts are no interchangeable ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.symmetry.elements import Element, Scaled
from onebasin.models.symmetry.group import Group

from ..discovery.resolve import resolve
from .result import Alignment

IMPROBABLE = 0.01
"""Probability under which chance is no explanation."""
MOST = 0.9
"""Share of a chain's draws that have a labelling before it is called the chain's."""


@dataclass(frozen=True)
class OneLabelling:
    """All chains have one labelling.

    Attributes
    ----------
    chains : int
        How many.
    log_order : float
        Natural logarithm of the number of labellings that the symmetry makes equal.
    known : bool
        Whether the symmetry was checked on the density, or follows from a network's architecture.
    """

    chains: int
    log_order: float
    known: bool

    @property
    def probability(self) -> float:
        """Of so many independent chains in one labelling."""
        return math.exp((1 - self.chains) * self.log_order)

    @property
    def improbable(self) -> bool:
        """Whether chance is no explanation."""
        return self.probability < IMPROBABLE

    @property
    def sentence(self) -> str:
        """What it says of the symmetry."""
        if self.chains == 1:
            return "One chain in one labelling: other modes cannot be seen."
        begin = (
            f"All {self.chains} chains have one of {_count(self.log_order)} labellings, to which independent starts "
            f"come once in {_count((self.chains - 1) * self.log_order)} times"
        )
        if not self.improbable:
            return f"{begin}: no evidence for or against the symmetry."
        why = "an order, equal starts or an unlike prior fixed the labels"
        other = "" if self.known else ", or the parts are not interchangeable"
        return f"{begin}: {why}{other}."


def one_labelling(alignment: Alignment) -> OneLabelling | None:
    """Look whether all chains have one labelling; None where they do not."""
    blocks = equal_modes(alignment.symmetry)
    if not _alike(alignment.element):
        return None
    order = Group(blocks, alignment.group.shapes).log_order
    chains = alignment.distance_after.shape[0]
    return OneLabelling(chains, order, resolve(alignment.source, alignment.symmetry).known)


def _alike(element: Element) -> bool:
    """Whether most draws of every chain have the same labels, which are those in the middle, component by component."""
    alike: Any = True
    for part in element:
        for labels in part:
            if labels is not None and not isinstance(part, Scaled):
                flat = labels.reshape(*labels.shape[:2], -1)
                for column in np.moveaxis(flat, 2, 0):
                    middle = np.partition(column, column.size // 2, axis=None)[column.size // 2]
                    alike = alike & (column == middle)
    return alike is not True and bool((alike.mean(axis=1) >= MOST).all())


def _count(log_number: float) -> str:
    return f"{math.exp(log_number):.0f}" if log_number < math.log(1e6) else _power(log_number)


def _power(log_number: float) -> str:
    return f"10^{log_number / math.log(10):.0f}"
