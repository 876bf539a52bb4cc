"""Objects that show themselves: in a notebook as HTML, elsewhere as text."""

from __future__ import annotations

from abc import ABC, abstractmethod

from . import html
from .card import Card


class Shown(ABC):
    """An object that shows itself by a card.

    A dataclass among its children needs `repr=False`, which would otherwise bring its own.
    """

    @abstractmethod
    def _card(self) -> Card: ...

    def __repr__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return html.page(self._card())
