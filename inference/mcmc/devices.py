"""Chains over JAX's devices: a chain stays on one device, and chains go to them in turn.

Where somebody has chosen a device (`jax.default_device`), all chains stay there. Draws do not depend on the number of
devices, as long as they are of one kind.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax


def num_devices() -> int:
    """Over how many devices chains are spread."""
    return 1 if jax.config.jax_default_device is not None else len(jax.local_devices())


def on_device(number: int) -> AbstractContextManager:
    """Compute on the device of the chain of a number; holds for the current thread only."""
    count = num_devices()
    return nullcontext() if count == 1 else jax.default_device(jax.local_devices()[number % count])


def device_of(tree: Any) -> jax.Device:
    """On which device arrays are, all on one."""
    (device,) = jax.tree.leaves(tree)[0].devices()
    return device


def here(tree: Any) -> Any:
    """Bring arrays to the device that is computed on."""
    chosen = jax.config.jax_default_device
    return jax.device_put(tree, chosen) if isinstance(chosen, jax.Device) else tree
