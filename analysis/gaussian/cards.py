"""One Gaussian in a posterior's place, as a card: of what, in which coordinates, and what it cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.card import Card, Facts, Part, Table, Words, number
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.symmetry.telling import in_words
from onebasin.posteriors import schema

if TYPE_CHECKING:
    from .distilled import Distilled
    from .gaussian import GaussianFit

MOST = 10
"""Parameters, or variables, of a table."""


def of_fit(fit: GaussianFit) -> Card:
    """A Gaussian by moments."""
    return Card(f"One Gaussian, {fit.covariance} covariance", tuple(_of_fit(fit)))


def of_distilled(student: Distilled) -> Card:
    """A Gaussian by predictions."""
    first, last = float(student.loss[0]), float(student.loss[-1])
    of = _target(student.source.attributes)
    lead = (
        f"A Gaussian with a diagonal covariance over {_size(student.mean):,} weights, trained to predict as the "
        f"posterior{of} does: the energy score of its predictions fell from {number(first)} to {number(last)}. Hold "
        "`.sample(1000)` against the posterior with `ob.compare`."
    )
    return Card("Distilled Gaussian", (Words(lead), _table(student.mean, student.sd)))


def _of_fit(fit: GaussianFit) -> Iterator[Part]:
    draws = fit.settings.get("fitted_draws", 0)
    yield Words(
        f"A Gaussian with the means and a {fit.covariance} covariance of {draws:,} draws{_target(fit.attributes)}, "
        f"{fit.layout.size:,} parameters: one basin. Hold `.sample(1000)` against the posterior with `ob.compare`."
    )
    aligned = schema.ALIGNMENT in fit.attributes
    symmetry = schema.symmetry_of(fit.attributes)
    declared = () if aligned else equal_modes(symmetry)
    if declared:
        yield Words(
            f"The draws were not aligned, and the posterior declares {in_words(declared)}: where labels switch, this "
            "Gaussian averages over them; fit `ob.align(posterior).posterior` instead.",
            flag="warn",
        )
    rank, shrinkage = fit.settings.get("rank"), fit.settings.get("shrinkage")
    yield Facts.of(
        ("rank", "" if rank is None else str(rank)),
        ("shrinkage", "" if shrinkage is None else number(shrinkage)),
        ("logarithms", ", ".join(f"`{name}`" for name in fit.log_fitted)),
        ("scalings", _scalings(fit.gauge) if equal_modes(symmetry) != symmetry else ""),
    )
    yield _table(fit.mean, fit.sd)


def _table(mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray]) -> Table:
    """Every parameter where they are few, else the range of each variable."""
    if _size(mean) <= MOST:
        rows = tuple(
            (_entry(name, place), number(mean[name][place]), number(sd[name][place]))
            for name in mean
            for place in np.ndindex(np.shape(mean[name]))
        )
        return Table("parameters", ("mean", "sd"), rows)
    names = list(mean)[:MOST]
    more = f", {MOST} of {len(mean)} variables" if len(mean) > MOST else ""
    ranges = tuple(
        (f"{n} {_shape(mean[n])}".rstrip(), _range(mean[n]), _range(sd[n])) for n in names
    )
    return Table(f"smallest to largest entry of each variable{more}", ("mean", "sd"), ranges)


def _scalings(gauge: str | None) -> str:
    divided = gauge not in (None, "keep")
    return f"divided out, gauge {gauge}" if divided else "as they were sampled"


def _entry(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, place))}]" if place else name


def _shape(values: np.ndarray) -> str:
    return f"({', '.join(map(str, np.shape(values)))})" if np.shape(values) else ""


def _range(values: np.ndarray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _size(values: Mapping[str, np.ndarray]) -> int:
    return sum(int(np.size(array)) for array in values.values())


def _target(attributes: Mapping[str, object]) -> str:
    name = attributes.get(schema.TARGET)
    return f" of `{name}`" if name else ""
