"""Cases."""

from __future__ import annotations

from .cases import Case

CASES: tuple[Case, ...] = ()
