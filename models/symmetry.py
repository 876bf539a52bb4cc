"""Symmetries as data: which axes of which variables move together.

A symmetry is a tuple of blocks. A block names, for each variable that it moves, the axis that it
acts on (counted without chain and draw). `Exchangeable` permutes; with `flips` it also changes
signs, the same sign for a unit in every variable. `Rescalable` multiplies incoming axes by a > 0
and outgoing ones by 1 / a; it keeps a network's function, hence the likelihood, but not a normal
prior on its weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Exchangeable:
    """Interchangeable parts: one permutation acts on the named axis of every variable.

    Parameters
    ----------
    axes : mapping of str to int
        Variable name to axis.
    flips : bool
        Whether a part may also change the sign of all its entries (odd activations).
    """

    axes: Mapping[str, int]
    flips: bool = False

    def act(
        self,
        values: Mapping[str, jax.Array],
        permutation: np.ndarray,
        signs: np.ndarray | None = None,
    ) -> dict[str, jax.Array]:
        """Move one draw: part i of the result is part `permutation[i]`, times `signs[i]`.

        Parameters
        ----------
        values : mapping of str to array
            One draw.
        permutation : integer array (part,)
            A permutation of 0, 1, ..., H - 1.
        signs : array (part,) of +-1, optional
            Only with `flips`.

        Raises
        ------
        ValueError
            If signs are given to a block without flips.
        """
        if signs is not None and not self.flips:
            raise ValueError("`signs` were given, but this block has flips=False.")
        out = dict(values)
        for name, axis in self.axes.items():
            moved = jnp.take(values[name], permutation, axis=axis)
            out[name] = moved if signs is None else _scale(moved, signs, axis)
        return out


@dataclass(frozen=True)
class Rescalable:
    """Positive scaling: incoming axes times a, outgoing axes divided by a.

    A symmetry of the likelihood alone.

    Parameters
    ----------
    incoming, outgoing : mapping of str to int
        Variable name to axis.
    """

    incoming: Mapping[str, int]
    outgoing: Mapping[str, int] = field(default_factory=dict)

    def act(self, values: Mapping[str, jax.Array], factors: np.ndarray) -> dict[str, jax.Array]:
        """Scale one draw by `factors` (part,), all positive."""
        out = dict(values)
        for name, axis in self.incoming.items():
            out[name] = _scale(values[name], factors, axis)
        for name, axis in self.outgoing.items():
            # Of `out`: should a variable be in both, it takes both factors.
            out[name] = _scale(out[name], 1 / factors, axis)
        return out


Block = Exchangeable | Rescalable
Symmetry = tuple[Block, ...]

_KINDS: dict[str, type[Exchangeable] | type[Rescalable]] = {
    "exchangeable": Exchangeable,
    "rescalable": Rescalable,
}


def _scale(value: jax.Array, factors: np.ndarray, axis: int) -> jax.Array:
    shape = [1] * value.ndim
    shape[axis] = -1
    return value * jnp.reshape(jnp.asarray(factors, value.dtype), shape)


def to_json(symmetry: Symmetry) -> str:
    """Write a symmetry as JSON text."""
    blocks = []
    for block in symmetry:
        fields = (
            {"axes": dict(block.axes), "flips": block.flips}
            if isinstance(block, Exchangeable)
            else {"incoming": dict(block.incoming), "outgoing": dict(block.outgoing)}
        )
        blocks.append({"kind": type(block).__name__.lower(), **fields})
    return json.dumps(blocks)


def from_json(text: str) -> Symmetry:
    """Read a symmetry from JSON text.

    Raises
    ------
    ValueError
        If the text is not what `to_json` writes.
    """
    try:
        return tuple(_KINDS[block.pop("kind")](**block) for block in json.loads(text))
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"`symmetry` is not the JSON of a symmetry ({error!r}); got {text!r:.120}."
        ) from error
