"""Objects that show themselves: in a notebook as HTML, elsewhere as text."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

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
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        given = [
            f"{getattr(self, f.name)!r}"
            if _is_required(f)
            else f"{f.name}={getattr(self, f.name)!r}"
            for f in fields
            if _is_required(f) or getattr(self, f.name) != _default(f)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()
