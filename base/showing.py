"""Objects that show themselves: in a notebook as HTML, elsewhere as text."""

from __future__ import annotations

import dataclasses
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


class Brief:
    """An object whose `repr` is the call that makes it, without what is left at its default.

    A dataclass among its children needs `repr=False`, which would otherwise bring its own.
    """

    def __repr__(self) -> str:
        given = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, make = getattr(self, field.name), field.default_factory
            default = field.default if make is dataclasses.MISSING else make()
            if default is dataclasses.MISSING:
                given.append(f"{value!r}")
            elif value != default:
                given.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(given)})"
