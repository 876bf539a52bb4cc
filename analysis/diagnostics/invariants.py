"""Label-free quantities: a symmetry does not change them, so they can be judged without alignment.

A variable of an `Exchangeable` block has its mean over the components (if no sign flips) and its mean square. Two
variables of a block have their covariance over the components, which shows which values belong together. A variable
that changes sign has its absolute value or mean square, and a complemented weight its distance from one half.
Variables that rotate have products of their rows, such as L L' of loadings L. A network has its outputs at training
inputs. `lp` is label-free too. These quantities converge when the posterior does, even if labels switch.

A network's predictions are also judged point by point, by the largest R-hat and smallest ESS of its outputs at each
input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from onebasin.base.table import Column, Flag, Table, TableCell
from onebasin.base.text import json_safe
from onebasin.models.symmetry.blocks import (
    Block,
    Rotation,
    Symmetry,
    axes_of,
    blocks_of,
    equal_modes,
    variables_of,
)
from onebasin.models.symmetry.plain import plain_view
from onebasin.posteriors import schema
from onebasin.posteriors.draws import ROUNDING, Draws, checked, entry_names
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.summary import power_of_two
from .verdict import Limits, Reason, in_rhat

Piece = Mapping[str, np.ndarray]
"""Draws of variables, arrays (chain, draw, *event)."""
Units = Mapping[str, float]
"""Largest absolute values of variables."""

PIECE = 2**23
"""Bytes of draws that are in memory at a time."""
_LEAST = 1e-100
ROWS = 8
"""Maximum number of rows of a rotating variable to use in products. The rows are evenly spaced."""
MAX_OUTPUTS = 50
"""Maximum number of training inputs at which a network predicts, evenly spaced over the data set."""


def invariants(posterior: Posterior, symmetry: Symmetry) -> Draws:
    """Compute quantities that the symmetry does not change.

    Positive scalings change mean squares and `lp`, which includes the prior. A network that can be rescaled therefore
    contributes only its outputs.

    Returns
    -------
    Draws
        `lp`, ``mean(mu)``, ``mean(mu^2)``, ``cov(mu,sigma)``, ``|theta - 1/2|``, ``load load'[0,3]``,
        ``output[obs,out]`` and, if a network predicts its noise, ``noise_sd[obs,out]``. Quantities that do not apply
        are absent.
    """
    view = as_view(posterior)
    found: list[tuple[str, np.ndarray]] = []
    if (lp := view.stat(schema.LP)) is not None:
        found.append((schema.LP, lp))
    entries: dict[str, tuple[str, ...]] = {}
    terms: dict[str, float] = {}  # Largest terms of the sums.
    if view.x is not None and view.network is not None:
        outputs = _by_pieces(view, tuple(view.network.network.shapes), partial(_outputs, view))
        for name, values in outputs:
            variable = xr.DataArray(values, dims=(*schema.SAMPLE_DIMS, "obs", "out"), name=name)
            entries[name] = tuple(entry_names(variable))
        found += outputs
    else:
        blocks = equal_modes(symmetry)
        names = variables_of(blocks)
        plain = plain_view(blocks, {name: view.arrays[name].shape[2:] for name in names})
        # Find the largest absolute value of each variable.
        largest = [
            {name: np.abs(v).max(initial=0.0) for name, v in plain.stack(piece, 2).items()}
            for piece in _pieces(view, names)
        ]
        units = {name: float(np.max([each[name] for each in largest])) for name in largest[0]}
        for (n, a), (m, b) in product(units.items(), repeat=2):
            terms |= dict.fromkeys((f"mean({n})", f"|mean({n})|", f"trace({n})"), a)
            terms |= dict.fromkeys((f"cov({n},{m})", f"{n} {m}"), a / _unit(a) * (b / _unit(b)))

        def measure(draws: Piece) -> list[tuple[str, np.ndarray]]:
            piece = plain.stack(draws, 2)
            own: list[tuple[str, np.ndarray]] = []
            for block in (block for block in plain.blocks if block.discrete is block):
                own += _of_block(block, plain.blocks, piece, units)
            for block in blocks_of(plain.blocks, Rotation):
                own += _of_rotation(block, piece, units)
            return own

        found += _by_pieces(view, names, measure)
    if not found:
        return Draws((), np.empty((view.num_chains, view.num_draws, 0)))
    # If a quantity varies only by rounding error, treat it as constant, such as the sum of a simplex.
    moved = {*variables_of(symmetry)} & {*view.variables}
    single = np.dtype(np.float32) in {view.arrays[name].dtype for name in moved}
    rounding = ROUNDING * float(np.finfo(np.float32 if single else np.float64).eps)
    labels: list[str] = []
    columns = []
    for label, drawn in found:
        values = drawn.reshape(*drawn.shape[:2], -1)
        low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
        size = np.maximum(np.abs(low), np.abs(high))
        size = np.maximum(size, terms.get(label.partition("'[")[0], 0.0))
        values = np.where(high - low <= rounding * size, values[:1, :1], values)
        columns.append(values)
        count = values.shape[2]
        numbered = [label] if count == 1 else [f"{label}[{number}]" for number in range(count)]
        labels += entries.get(label) or numbered
    return Draws(tuple(labels), np.concatenate(columns, axis=-1))


def _by_pieces(
    view: View, names: Sequence[str], compute: Callable[[Piece], list[tuple[str, np.ndarray]]]
) -> list[tuple[str, np.ndarray]]:
    """Compute quantities of the draws piece by piece, so that many draws fit into memory."""
    pieces = list(map(compute, _pieces(view, names)))
    labels = [label for label, _ in pieces[0]]
    found = zip(*([values for _, values in piece] for piece in pieces), strict=True)
    return [(label, np.concatenate(own, axis=1)) for label, own in zip(labels, found, strict=True)]


def _pieces(view: View, names: Sequence[str]) -> Iterator[Piece]:
    count = -(-sum(8 * view.arrays[name].size for name in names) // PIECE)
    step = max(1, view.num_draws // max(1, count))
    for first in range(0, view.num_draws, step):
        rows = slice(first, first + step)
        some = {name: checked(view.arrays[name], view.argument)[:, rows] for name in names}
        yield {name: np.asarray(drawn.values, np.float64) for name, drawn in some.items()}


def _of_block(
    block: Block, every: Symmetry, piece: Piece, largest: Units
) -> list[tuple[str, np.ndarray]]:
    """Compute the quantities of one block that stay unchanged under all blocks."""
    quantities: list[tuple[str, np.ndarray]] = []
    for name in block.axes:
        values = piece[name]
        others = [other for other in every if name in other.axes]
        axes = tuple(sorted({axis + 2 for other in others for axis in axes_of(other.axes[name])}))
        if others[0] is not block:  # Already computed for another block.
            continue
        if not any(name in other.flipped for other in every):
            quantities.append((f"mean({name})", values.mean(axis=axes)))
        quantities.append(_mean_square(name, values, axes, largest[name]))
    quantities += _of_pairs(block, every, piece, largest)
    for name in (name for name in block.flipped if name not in block.axes):
        values = piece[name]
        if values.ndim == 2:
            quantities.append((f"|{name}|", np.abs(values)))
        else:
            axes = tuple(range(2, values.ndim))
            quantities.append((f"|mean({name})|", np.abs(values.mean(axis=axes))))
            quantities.append(_mean_square(name, values, axes, largest[name]))
    for name in block.complemented:
        quantities.append((f"|{name} - 1/2|", np.abs(piece[name] - 0.5)))
    return quantities


def _of_rotation(block: Rotation, piece: Piece, largest: Units) -> Iterator[tuple[str, np.ndarray]]:
    """Yield mean squares, traces, and inner products between rows of two variables."""
    rows: dict[str, np.ndarray] = {}
    chosen: dict[str, np.ndarray] = {}
    for name, places in block.axes.items():
        axes = tuple(axis + 2 for axis in axes_of(places))
        yield _mean_square(name, piece[name], axes, largest[name])
        if len(axes) == 1:
            last = np.moveaxis(piece[name], axes[0], -1)
            flat = last.reshape(*last.shape[:2], -1, last.shape[-1])
            count = flat.shape[2]
            chosen[name] = np.linspace(0, count - 1, min(count, ROWS)).round().astype(int)
            rows[name] = flat[:, :, chosen[name]] / _unit(largest[name])
        elif len(axes) == 2:
            yield f"trace({name})", np.trace(piece[name], axis1=axes[0], axis2=axes[1])
    for first, second in combinations_with_replacement(rows, 2):
        products = rows[first] @ np.swapaxes(rows[second], -1, -2)
        for (i, row), (j, column) in product(enumerate(chosen[first]), enumerate(chosen[second])):
            if first != second or i <= j:
                yield f"{first} {second}'[{row},{column}]", products[:, :, i, j]


def _of_pairs(
    block: Block, every: Symmetry, piece: Piece, largest: Units
) -> list[tuple[str, np.ndarray]]:
    """Return the covariances over components between pairs of variables that are indexed by component."""
    single = [name for name, places in block.axes.items() if len(axes_of(places)) == 1]
    found = []
    elsewhere = {n for other in every if other is not block for n in other.flipped}
    for first, second in combinations(single, 2):
        # Signs that flip together cancel in a product. If a sign flips by itself or in another block, square the
        # variable.
        alone = {first, second} & set(block.flipped)
        alone = (alone if len(alone) == 1 else set()) | ({first, second} & elsewhere)
        if {first, second} & set(block.flipped) - alone and alone:
            alone = {first, second}
        a, b = (
            _by_part(piece, block, name, largest, squared=name in alone) for name in (first, second)
        )
        if first not in block.flipped or alone:
            a = a - a.mean(axis=-1, keepdims=True)
        words = ",".join(f"{name}^2" if name in alone else name for name in (first, second))
        found.append((f"cov({words})", (a * b).mean(axis=-1)))
    weights = [name for name in block.complemented if piece[name].ndim == 2]
    for name, weight in product([n for n in single if n not in block.flipped], weights):
        parts = _by_part(piece, block, name, largest, squared=False)
        apart = (parts[..., 0] - parts[..., 1]) * (piece[weight] - 0.5)
        found.append((f"cov({name},{weight})", apart))
    return found


def _by_part(
    piece: Piece, block: Block, name: str, largest: Units, *, squared: bool
) -> Float[np.ndarray, "chain draw part"]:
    """Return the mean (or mean square) of each component's entries, scaled so that products stay finite."""
    (axis,) = axes_of(block.axes[name])
    values = np.moveaxis(piece[name], axis + 2, 2) / _unit(largest[name])
    flat = values.reshape(*values.shape[:3], -1)
    return (flat**2 if squared else flat).mean(axis=-1)


def _mean_square(
    name: str, values: np.ndarray, axes: tuple[int, ...], largest: float
) -> tuple[str, np.ndarray]:
    """Return the name and values of a mean square, scaled so that squares stay finite."""
    unit = _unit(largest)
    if unit == 1:
        return f"mean({name}^2)", (values**2).mean(axis=axes)
    return f"mean(({name} / {unit:.3g})^2)", ((values / unit) ** 2).mean(axis=axes)


def _unit(largest: float) -> float:
    """Return the unit: 1, so that two posteriors are comparable, or a power of two for extreme numbers."""
    ordinary = largest == 0 or _LEAST <= largest <= 1 / _LEAST
    return 1.0 if ordinary else float(power_of_two(np.asarray(largest)))


def chosen_inputs(count: int) -> np.ndarray:
    """Choose, from `count` training inputs, those at which a network's outputs are judged."""
    return np.linspace(0, count - 1, min(count, MAX_OUTPUTS)).astype(int)


def _outputs(view: View, piece: Piece) -> list[tuple[str, np.ndarray]]:
    from onebasin.models.networks.bayesian import predict, predict_with_noise

    x, model = view.x, view.network
    assert x is not None
    assert model is not None
    chosen = chosen_inputs(len(x))
    if not model.predicts_noise:
        return [("output", np.asarray(predict(model, piece, x[chosen]), dtype=np.float64))]
    mean, sd = predict_with_noise(model, piece, x[chosen])
    return [("output", np.asarray(mean, np.float64)), ("noise_sd", np.asarray(sd, np.float64))]


FEW = 0.1
"""Largest share of unusable points at which the other points may still be used."""
NAMED = 8
"""Maximum number of points that a sentence names, the worst first."""
TABLE_ROWS = 40
"""Maximum number of points that a table shows, unless all are requested."""


@dataclass(frozen=True, eq=False)
class JudgedPoints:
    """A network's predictions judged point by point.

    Its `table` has one row per point, indexed by the input's number: `rhat`, `ess_bulk`, and whether it is `usable`.
    """

    table: pd.DataFrame
    limits: tuple[float, float]  # Largest R-hat, smallest bulk ESS of a usable point.

    @classmethod
    def of(
        cls, outputs: pd.DataFrame, rows: Int[np.ndarray, " obs"], limits: Limits, chains: int
    ) -> JudgedPoints | None:
        """Judge points by `rhat` and `ess_bulk` of their outputs, ``output[obs,out]``. Return None without outputs.

        `rows` maps `obs` to the number of the input.
        """
        place = outputs.index.str.extract(r"^(?:output|f|noise_sd)\[(\d+),", expand=False)
        known = outputs.loc[place.notna(), ["rhat", "ess_bulk"]]
        if known.empty:
            return None
        most, least = limits.deciding_rhat, limits.least_ess(chains)
        usable = (known["rhat"] <= most) & (known["ess_bulk"] >= least)  # False for NaN.
        each = known.assign(usable=usable).groupby(place.dropna().astype(int).to_numpy())
        worst = each.agg({"rhat": "max", "ess_bulk": "min", "usable": "all"})
        worst.index = pd.Index(rows[worst.index], name="input")
        return cls(worst, (most, least))

    @property
    def bad(self) -> pd.DataFrame:
        """Unusable points, the largest R-hat first."""
        return self.table[~self.table["usable"]].sort_values("rhat", ascending=False)

    @property
    def few(self) -> bool:
        """Check whether some points are unusable, but few enough that the others may be used."""
        return 0 < len(self.bad) <= FEW * len(self.table)

    @property
    def bad_in_words(self) -> str:
        """The unusable points by name, the worst first."""
        first = ", ".join(map(str, self.bad.index[:NAMED]))
        more = f" and {len(self.bad) - NAMED} more" if len(self.bad) > NAMED else ""
        return f"input{'s' if len(self.bad) > 1 else ''} {first}{more}"

    @property
    def good_in_words(self) -> str:
        """The count of usable points."""
        return f"{len(self.table) - len(self.bad)} of {len(self.table)} training inputs"

    @property
    def _worst(self) -> tuple[str, str]:
        rhat = in_rhat(self.bad["rhat"].max(), self.limits[:1])
        return f"R-hat up to {rhat}", f"bulk ESS down to {self.bad['ess_bulk'].min():.0f}"

    @property
    def cause(self) -> Reason:
        """Say at which points chains disagree, and what to do."""
        rhat, ess = self._worst
        where = f"{self.bad_in_words}, or have too few effective draws there ({rhat}, {ess})"
        fact = f"Chains disagree on predictions at {where}; they agree at {self.good_in_words}"
        remedy = (
            "The posterior of the function may have several modes at these inputs; many chains from random starts "
            "weight them best. `ob.networks.summarise_predictions(posterior, x)` shows how chains agree at your own "
            "inputs."
        )
        return Reason("points", "failed", fact, remedy=remedy)

    def reason(self, name: str = "predictions by point", *, used: bool = True) -> Reason:
        """Say at which points predictions can be used or chains agree."""
        fact = "Predictions can be used"
        if not used:
            fact = "Chains agree on predictions, with enough effective draws,"
        fact += f" at {self.good_in_words}"
        if len(self.bad):
            fact += f", not at {self.bad_in_words} ({', '.join(self._worst)})"
        return Reason(name, "warned" if len(self.bad) else "passed", fact)

    def as_table(self, answer: str | None, *, whole: bool = False) -> Table:
        """Tabulate points, unusable ones first, and mark the numbers beyond their limits."""
        flag: Flag = "bad" if answer == "unusable" else "warn"
        rest = self.table[self.table["usable"]]
        rows = pd.concat([self.bad, rest])[: None if whole else TABLE_ROWS]
        most, least = self.limits
        columns = (
            "input",
            Column("R-hat", decimals=3, limits=(most,), unit="largest output"),
            Column("bulk ESS", decimals=0, limits=(least,), unit="smallest output"),
        )
        cells = tuple(
            (
                str(number),
                TableCell(row.rhat, "" if row.rhat <= most else flag),
                TableCell(row.ess_bulk, "" if row.ess_bulk >= least else flag),
            )
            for number, row in zip(rows.index, rows.itertuples(), strict=True)
        )
        left = len(self.table) - len(rows)
        more = f"; {left} more can be used" if left and len(self.bad) <= TABLE_ROWS else ""
        return Table(
            columns, cells, f"Predictions by point, at {len(self.table)} training inputs{more}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: counts, and one row per point."""
        points = self.table.reset_index().to_dict("records")
        usable = int(self.table["usable"].sum())
        return json_safe({"count": len(self.table), "usable": usable, "points": points})
