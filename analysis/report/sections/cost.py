"""What the draws cost."""

from __future__ import annotations

from collections.abc import Mapping

from ...diagnostics.result import Diagnosis
from ...page.page import Section
from ..tables import cost_table


def cost(diagnoses: Mapping[str, Diagnosis]) -> Section | None:
    """Tabulate what posteriors cost; None where nothing was recorded."""
    table = cost_table(diagnoses)
    return Section("Cost", tables=(table,)) if len(table.columns) > 1 else None
