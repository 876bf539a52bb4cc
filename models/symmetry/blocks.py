"""Symmetries as data: which axes of which variables move together.

A symmetry is a tuple of blocks, each of which generates one factor of a group:

- `Exchangeable` permutes interchangeable parts, and can flip their signs and complement binary weights;
- `Rescalable` multiplies incoming axes by a > 0 and outgoing ones by 1 / a; it keeps a network's
  function, hence the likelihood, but not a normal prior on its weights;
- `Complement` maps weights theta to 1 - theta.

Axes are counted within one draw, without chain and draw. A block's `act` moves whole arrays of
draws: leading axes of its element and of the values are the same. What a symmetry's elements are,
how they compose and how many there are is in :mod:`models.group`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Axes = int | tuple[int, ...]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Exchangeable:
    """Interchangeable parts: one permutation acts on the named axes of every variable.

    Parameters
    ----------
    axes : mapping of str to int or tuple of int
        Variable name to axis; to several axes where one permutation acts on all of them (both axes
        of a hidden Markov model's transition matrix).
    flips : bool or tuple of str
        Whether a part may also change the sign of all its entries (odd activations, loadings of
        factors): in every variable, or in those named.
    complements : tuple of str
        Only of two parts: variables theta that become 1 - theta where the two change places (the
        weight of the first component of a mixture of two).

    Raises
    ------
    ValueError
        If `flips` names a variable that has no axis, or `complements` one that has.
    """

    axes: Mapping[str, Axes]
    flips: bool | tuple[str, ...] = False
    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names against one another."""
        unknown = [name for name in self.flipped if name not in self.axes]
        if unknown:
            raise ValueError(
                f"`flips` names {', '.join(unknown)}, but the block moves {', '.join(self.axes)}."
            )
        twice = [name for name in self.complements if name in self.axes]
        if twice:
            raise ValueError(f"`complements` names {', '.join(twice)}, which `axes` already moves.")

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        if isinstance(self.flips, bool):
            return tuple(self.axes) if self.flips else ()
        return tuple(self.flips)

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return (*self.axes, *self.complements)

    def act(self, values: Values, permutation: Any, signs: Any = None) -> dict[str, Any]:
        """Move draws: part i of the result is part `permutation[i]`, times `signs[i]`.

        Parameters
        ----------
        values : mapping of str to array (*lead, *event)
            Draws, with NumPy or JAX.
        permutation : integer array (*lead, part)
            Permutations of 0, 1, ..., H - 1.
        signs : array (*lead, part) of +-1, optional
            Only with `flips`.

        Raises
        ------
        ValueError
            If signs are given to a block without flips.
        """
        if signs is not None and not self.flipped:
            raise ValueError("`signs` were given, but this block has flips=False.")
        permutation = np.asarray(permutation)
        lead = permutation.ndim - 1
        out = dict(values)
        for name, places in self.axes.items():
            for axis in axes_of(places):
                out[name] = _take(out[name], permutation, lead + axis)
                if signs is not None and name in self.flipped:
                    out[name] = _scale(out[name], signs, lead + axis)
        swapped = np.asarray(permutation[..., 0] == 1)
        for name in self.complements:
            out[name] = _complement(out[name], swapped)
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

    @property
    def axes(self) -> dict[str, int]:
        """Every variable that is scaled, with its axis."""
        return {**self.incoming, **self.outgoing}

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return tuple(self.axes)

    def act(self, values: Values, factors: Any) -> dict[str, Any]:
        """Scale draws (*lead, *event) by `factors` (*lead, part), all positive."""
        lead = np.ndim(factors) - 1
        out = dict(values)
        for name, axis in self.incoming.items():
            out[name] = _scale(values[name], factors, lead + axis)
        for name, axis in self.outgoing.items():
            # Of `out`: should a variable be in both, it takes both factors.
            out[name] = _scale(out[name], 1 / factors, lead + axis)
        return out


@dataclass(frozen=True)
class Complement:
    """Binary weights: every entry theta of every variable becomes 1 - theta, all together.

    Where the complement goes with exchanging two components, it is part of their block:
    ``Exchangeable({"mu": 0}, complements=("theta",))``.

    Parameters
    ----------
    names : str or tuple of str
        The variables.
    """

    names: str | tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return (self.names,) if isinstance(self.names, str) else tuple(self.names)

    def act(self, values: Values, swapped: Any) -> dict[str, Any]:
        """Complement the draws (*lead, *event) for which `swapped` (*lead) is true."""
        out = dict(values)
        for name in self.variables:
            out[name] = _complement(values[name], np.asarray(swapped))
        return out


Block = Exchangeable | Rescalable | Complement
Symmetry = tuple[Block, ...]

_KINDS: dict[str, type[Block]] = {
    "exchangeable": Exchangeable,
    "rescalable": Rescalable,
    "complement": Complement,
}


def axes_of(places: Axes) -> tuple[int, ...]:
    """The axes of one variable as a tuple."""
    return (places,) if isinstance(places, int) else tuple(places)


def to_json(symmetry: Symmetry) -> str:
    """Write a symmetry as JSON text."""
    blocks = [{"kind": type(block).__name__.lower(), **asdict(block)} for block in symmetry]
    return json.dumps(blocks)


def from_json(text: str) -> Symmetry:
    """Read a symmetry from JSON text.

    Raises
    ------
    ValueError
        If the text is not what `to_json` writes.
    """
    try:
        return tuple(_block(fields) for fields in json.loads(text))
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"`symmetry` is not the JSON of a symmetry ({error!r}); got {text!r:.120}."
        ) from error


def _block(fields: dict[str, Any]) -> Block:
    kind = _KINDS[fields.pop("kind")]
    return kind(**{name: _tuples(value) for name, value in fields.items()})


def _tuples(value: Any) -> Any:
    """Turn JSON's lists back into the tuples they were."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict):
        return {name: _tuples(entry) for name, entry in value.items()}
    return value


def _take(values: Any, permutation: np.ndarray, axis: int) -> Any:
    """Reorder an axis, each leading index by its own permutation."""
    lead = permutation.ndim - 1
    if lead == 0:
        return values.take(permutation, axis=axis)
    shape = [*permutation.shape[:-1], *[1] * (values.ndim - lead)]
    shape[axis] = permutation.shape[-1]
    module = jnp if isinstance(values, jax.Array) else np
    return module.take_along_axis(values, permutation.reshape(shape), axis=axis)


def _scale(values: Any, factors: Any, axis: int) -> Any:
    lead = np.ndim(factors) - 1
    shape = [*np.shape(factors)[:-1], *[1] * (values.ndim - lead)]
    shape[axis] = np.shape(factors)[-1]
    module = jnp if isinstance(values, jax.Array) else np
    return values * module.asarray(factors, values.dtype).reshape(shape)


def _complement(values: Any, swapped: np.ndarray) -> Any:
    module = jnp if isinstance(values, jax.Array) else np
    which = swapped.reshape((*swapped.shape, *[1] * (np.ndim(values) - swapped.ndim)))
    return module.where(which, 1 - values, values)
