"""Variables of a Stan program joined into one row of entries, as Stan orders them, and split again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from stanio import Variable, parse_header


def unpack(
    values: np.ndarray, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """Split entries (..., entry) into variables: name to array (..., *shape)."""
    columns = _columns(names)
    lead = values.shape[:-1]
    rows = values.reshape(math.prod(lead), values.shape[-1])
    return {
        name: columns[name].extract_reshape(rows).reshape((*lead, *columns[name].dimensions))
        if name in columns
        else np.empty((*lead, *shape))  # of length 0, of which no entry has a name
        for name, shape in shapes.items()
    }


def pack(variables: Mapping[str, ArrayLike], names: Sequence[str]) -> np.ndarray:
    """Join variables (..., *shape) into entries (..., entry), in the order of the names."""
    parts = []
    for name, column in _columns(names).items():
        values = np.asarray(variables[name])
        lead = values.shape[: values.ndim - len(column.dimensions)]
        # First indices fastest; a complex number is two entries.
        backwards = (*range(len(lead)), *range(values.ndim - 1, len(lead) - 1, -1))
        flat = np.ascontiguousarray(values.transpose(backwards).reshape(*lead, -1))
        parts.append(flat.view(np.float64) if np.iscomplexobj(flat) else flat.astype(np.float64))
    if not parts:
        return np.empty(0)
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate(
        [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], axis=-1
    )


def _columns(names: Sequence[str]) -> dict[str, Variable]:
    return parse_header(",".join(names)) if names else {}
