"""The element-wise activation functions, in one table.

Two properties decide a network's symmetry: a *positively homogeneous* function satisfies
f(a z) = a f(z) for a > 0, so a unit's incoming weights may be scaled against its outgoing ones
(Pourzanjani et al. 2017, definition 2.2); an *odd* one satisfies f(-z) = -f(z), so both may change
sign (Kurle et al. 2021, footnote 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from onebasin.base.checks import choose


@dataclass(frozen=True)
class Activation:
    """An element-wise function under the word that users write, and the two properties that matter for symmetry.

    It is positively homogeneous where f(a z) = a f(z) for all a > 0, and odd where f(-z) = -f(z).
    """

    name: str
    function: Callable[[jax.Array], jax.Array]
    positively_homogeneous: bool = False
    odd: bool = False


ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("identity", lambda z: z, positively_homogeneous=True, odd=True),
        # Not jax.nn.relu, whose derivative costs a third of a small network's gradient; nor z > 0: NaN stays NaN.
        Activation("relu", lambda z: jnp.where(z <= 0, 0.0, z), positively_homogeneous=True),
        Activation(
            "leaky_relu", lambda z: jnp.where(z > 0, z, 0.01 * z), positively_homogeneous=True
        ),
        Activation("tanh", jnp.tanh, odd=True),
        Activation("selu", jax.nn.selu),
        Activation("softplus", jax.nn.softplus),
        Activation("silu", jax.nn.silu),
    )
}


def activation(name: str) -> Activation:
    """Look up an activation by name; refuses others, and lists what there is."""
    return ACTIVATIONS[choose("activation", name, ACTIVATIONS)]
