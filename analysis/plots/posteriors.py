"""The posteriors of a plot or a page, their diagnoses, and the draws shown.

If the answer is "usable after alignment", parameters that the symmetry moves are shown aligned, and all others as
sampled. Otherwise everything is shown as sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import check_class, check_count
from onebasin.base.errors import ArgumentError, OnebasinError
from onebasin.base.table import format_number
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, View, as_view

from ..diagnostics.result import Diagnosis
from ..diagnostics.verdict import Verdict

ALONE = "posterior"
"""Default name of a single posterior."""

Posteriors = Posterior | Mapping[str, Posterior]


def views_of(posteriors: Posteriors) -> dict[str, View]:
    """Open one posterior or several, by name."""
    alone = not _are_several(posteriors)
    return {
        name: as_view(posterior, "posterior" if alone else f"posteriors[{name!r}]")
        for name, posterior in named(posteriors).items()
    }


def named(posteriors: Posteriors) -> dict[str, Posterior]:
    """Return posteriors by name. Reject an empty mapping."""
    if not _are_several(posteriors):
        return {ALONE: posteriors}
    if not posteriors:
        raise ArgumentError(
            "`posteriors` is empty. Give a posterior, or several by name, as in {'NUTS': tree}."
        )
    return {str(name): posterior for name, posterior in posteriors.items()}


def titled[T](panels: Mapping[str, T]) -> dict[str, T]:
    """Return panels by title. The title is empty for a posterior without a name."""
    return {"" if list(panels) == [ALONE] else name: panel for name, panel in panels.items()}


def _are_several(posteriors: Posteriors) -> bool:
    """Check whether the argument is a mapping of posteriors. A mapping of arrays is a single posterior."""
    if isinstance(posteriors, xr.DataTree | xr.Dataset) or not isinstance(posteriors, Mapping):
        return False
    arrays = (np.ndarray, xr.DataArray)
    return not posteriors or not all(isinstance(value, arrays) for value in posteriors.values())


_LARGE = 1e150
"""Absolute value above which squares may overflow."""
Quantity = Float[np.ndarray, "chain draw"]


@dataclass(frozen=True, eq=False)
class Subject:
    """A posterior with its name and diagnosis."""

    name: str
    view: View
    diagnosis: Diagnosis  # The diagnosis, with its verdict.

    @property
    def verdict(self) -> Verdict:
        """The verdict, including its remarks."""
        return self.diagnosis.judgement

    @cached_property
    def moved(self) -> frozenset[str]:
        """Parameters that the symmetry moves."""
        aligned = self.diagnosis.aligned
        return frozenset(map(str, aligned.aligned.parameters.index) if aligned else ())

    @cached_property
    def raw_draws(self) -> Draws:
        """All diagnosed parameters as sampled."""
        asked = self.diagnosis.variables
        whole = len(asked) >= len(self.view.variables)
        return self.view.draws(None if whole else asked, finite=False)

    @cached_property
    def aligned_draws(self) -> Draws | None:
        """Aligned draws of the parameters that the symmetry moves."""
        aligned = self.diagnosis.aligned
        if aligned is None:
            return None
        view = as_view(aligned.alignment.posterior)
        return view.draws(aligned.aligned.variables, finite=False)

    def shown(self, names: Iterable[str], raw: Draws) -> dict[str, Quantity]:
        """Return draws as they are shown, given the draws as sampled (`raw`)."""
        aligned = self.aligned_draws if self.diagnosis.is_shown_aligned else None
        return {n: (aligned if aligned and n in self.moved else raw).of(n) for n in names}

    def varying(self, names: Iterable[str]) -> Iterator[tuple[str, Quantity]]:
        """Yield, one at a time, parameters with their draws as they are shown, skipping constant or huge ones."""
        for name in names:
            values = self.shown([name], self.raw_draws)[name]
            if np.abs(values).max() < _LARGE and np.ptp(values) > 0:
                yield name, values

    def several(self, names: Iterable[str]) -> dict[str, Quantity]:
        """Return the draws of parameters as they are shown, without constant or huge parameters."""
        return dict(self.varying(names))

    @cached_property
    def worst(self) -> tuple[str, ...]:
        """The parameters that decide the verdict (or all if none does), by largest R-hat and smallest bulk ESS."""
        own = self.diagnosis.numbers.decisive
        table = own if len(own) else self.diagnosis.shown
        varying = table[np.isfinite(table["sd"]) & ~table.index.isin(self.diagnosis.constants)]
        ranked = varying.sort_values(
            ["rhat", "ess_bulk"], ascending=[False, True], na_position="last"
        )
        return tuple(map(str, ranked.index))

    def stat(self, name: str) -> Quantity | None:
        """Return a statistic of the draws if all its values are finite, otherwise None."""
        values = self.view.stat(name)
        return values if values is not None and np.isfinite(values).all() else None


def listed(names: Sequence[str], *, most: int = 6) -> str:
    """List names in code type. Shorten a long list."""
    said = ", ".join(f"`{name}`" for name in names[:most])
    rest = len(names) - most
    return f"{said} and {format_number(rest)} more" if rest > 0 else said


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Keep every k-th draw of each chain, with the smallest k that leaves at most `most` draws."""
    return values[:, :: max(1, -(-values.shape[1] // most))]


AS_SAMPLED = "as sampled"
SWITCHED = "as sampled: labels switch"


@dataclass(frozen=True, eq=False)
class Drawn:
    """Scalar quantities of a posterior as they are plotted."""

    view: View
    values: dict[str, Quantity]  # Draws by name.
    labelling: (
        str  # "aligned", `SWITCHED`, `AS_SAMPLED` on request, or empty if labels do not matter.
    )
    diagnosis: Diagnosis | None  # None if the posterior cannot be diagnosed.
    available: int  # Total number of quantities, shown or not.
    worst: bool = False  # Whether `values` are sorted by R-hat.

    @property
    def head(self) -> str:
        """The line above the panels, with the labelling and, if only some quantities are shown, their number."""
        count = len(self.values)
        if count in (0, self.available):
            return self.labelling
        of = format_number(self.available)
        which = (
            f"the {count} of {of} entries with the largest R-hat"
            if self.worst
            else f"the first {count} of {of} entries (rows= shows more)"
        )
        return f"{self.labelling}; {which}" if self.labelling else which

    def alt(self, words: str) -> str:
        """Return alternative text that begins with the line above the panels."""
        return f"{self.head[0].upper()}{self.head[1:]}. {words}" if self.head else words


def take(
    posterior: Posterior,
    var_names: str | Sequence[str] | None,
    rows: int,
    *,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
    worst: bool = False,
    entries: Sequence[str] = (),
) -> Drawn:
    """Return the draws of at most `rows` scalar quantities, aligned if `diagnose` shows aligned draws.

    The order is that of the model, or by R-hat and ESS (`worst`), or that of `entries`. Without `var_names`, take only
    parameters, and no mirror images among the worst.
    """
    check_count("rows", rows)
    view = as_view(posterior)
    check_diagnosis(diagnosis)
    subject = None
    if align or worst:
        from ..diagnostics.diagnose import diagnose  # Imported late, because it loads JAX.

        with suppress(OnebasinError):  # Some posteriors cannot be diagnosed.
            subject = Subject(ALONE, view, diagnosis or diagnose(view, align=align))
    parameters = [name for name in view.variables if view.kinds.of.get(name) == "parameter"]
    draws = view.draws(parameters or None if var_names is None else var_names)
    names = list(draws.names)
    if worst and subject is not None:
        order = {name: place for place, name in enumerate(subject.worst)}
        names.sort(key=lambda name: order.get(name, len(order)))
    found = (
        (name, subject.shown([name], draws)[name] if align and subject else draws.of(name))
        for name in dict.fromkeys(entries or names)
    )
    ranked = worst and var_names is None
    shown = distinct(found, rows) if ranked else dict(islice(found, len(entries) or rows))
    labelling = AS_SAMPLED if not align else _labelling(subject, shown) if subject else ""
    known = subject.diagnosis if subject else None
    return Drawn(view, shown, labelling, known, len(entries) or len(names), worst)


MIRRORED = 0.999
"""Absolute correlation above which two quantities are redundant, like two weights that sum to one."""


def distinct(quantities: Iterable[tuple[str, Quantity]], most: int) -> dict[str, Quantity]:
    """Keep the first `most` quantities, skipping linear functions of earlier quantities."""
    kept: dict[str, Quantity] = {}
    for name, values in quantities:
        if len(kept) == most:
            break
        with np.errstate(all="ignore"):  # A constant has no correlation.
            both = [np.corrcoef(values.ravel(), other.ravel())[0, 1] for other in kept.values()]
        if not any(abs(correlation) > MIRRORED for correlation in both):
            kept[name] = values
    return kept


def take_several(
    posteriors: Posteriors,
    var_names: str | Sequence[str] | None,
    rows: int,
    *,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> dict[str, Drawn]:
    """Return the same quantities of one or several posteriors, in the labelling of the first."""
    views = views_of(posteriors)
    (name, view), *others = views.items()
    first = take(view, var_names, rows, align=align, diagnosis=diagnosis)
    found = {name: first}
    for name, view in others:
        if first.labelling == "aligned":
            from ..alignment import align as align_draws  # Imported late, because it loads JAX.

            assert first.diagnosis is not None and first.diagnosis.aligned is not None
            rule = first.diagnosis.aligned.alignment
            tree = align_draws(view, rule.symmetry, reference=rule).posterior
            there = as_view(tree, view.argument).draws(None, finite=False)
            labelling = "aligned"
        else:
            there, labelling = view.draws(None, finite=False), first.labelling
        absent = [entry for entry in first.values if entry not in there.names]
        if absent:
            raise ArgumentError(
                f"`{view.argument}` has no parameter {absent[0]}. Use `var_names` to choose parameters that all "
                "posteriors have."
            )
        values = {n: there.of(n) for n in first.values}
        found[name] = Drawn(view, values, labelling, None, first.available)
    return found


def check_diagnosis(diagnosis: Any) -> None:
    """Reject anything except a diagnosis or None."""
    remedy = "give the result of `ob.diagnose`"
    check_class("diagnosis", diagnosis, Diagnosis | None, remedy=remedy)


def _labelling(subject: Subject, names: Iterable[str]) -> str:
    """Return the labelling in which the draws are shown."""
    diagnosis, moved = subject.diagnosis, not subject.moved.isdisjoint(names)
    if diagnosis.is_shown_aligned:
        return "aligned" if moved else ""
    switched = diagnosis.aligned is not None and bool(diagnosis.aligned.alignment.relabelled.any())
    return SWITCHED if (moved and switched) or diagnosis.verdict == "invariant" else ""
