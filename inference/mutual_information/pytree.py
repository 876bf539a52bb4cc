"""Frozen dataclasses as JAX pytrees, for results that pass through jit and vmap.

JAX's own `register_dataclass` rebuilds through `__init__`, where a checker of annotations stumbles over the
placeholders that vmap puts in place of arrays; here a rebuilt object takes its fields unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax


def pytree[T](*static: str) -> Callable[[type[T]], type[T]]:
    """Decorate a frozen dataclass: all fields are leaves or subtrees, but those named."""

    def register(cls: type[T]) -> type[T]:
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        moving = [name for name in names if name not in static]

        def flatten(value: T) -> tuple[list[Any], tuple[Any, ...]]:
            return [getattr(value, n) for n in moving], tuple(getattr(value, n) for n in static)

        def rebuild(aux: tuple[Any, ...], children: Any) -> T:
            value = object.__new__(cls)
            pairs = [*zip(moving, children, strict=True), *zip(static, aux, strict=True)]
            for name, entry in pairs:
                object.__setattr__(value, name, entry)
            return value

        jax.tree_util.register_pytree_node(cls, flatten, rebuild)
        return cls

    return register
