"""A target's log density as JAX functions of vectors, for algorithms of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onebasin.models.target import Target, check_target

if TYPE_CHECKING:
    from ..contracts.density import LogDensity


def jax_density(target: Target, *, progress: Callable[[str], None] | None = None) -> LogDensity:
    """Give a target's log density over unconstrained vectors, as functions that JAX differentiates and compiles.

    A Stan program is evaluated in this process, by its compiled library: inside a compiled JAX program a gradient costs
    what Stan's automatic differentiation takes and less than a microsecond more, and `jax.vmap` makes one call of many
    points. So any sampler or optimiser that is written for JAX takes any Stan program. On a processor and in double
    precision.

    Parameters
    ----------
    target : Target
        The model conditioned on data: a NumPyro model, a network or a Stan program; NumPyro where it has both.
    progress : callable, optional
        Called with a line of text before something that takes long, as compiling a Stan program does.

    Returns
    -------
    LogDensity
        With `names` of the parameters and `size` of a vector; `log_density(vector)` in nats, with the Jacobian of the
        transforms, of a Stan program with all constants and -inf where it rejects; `constrain(vector)`, name to value;
        and its inverse, `unconstrain(values)`. Of a Stan program the last two have no derivatives, and second
        derivatives of the log density are by differences of gradients.

    Raises
    ------
    ValueError
        If the target has no definition, no parameter, or a discrete one; or a Stan program meets JAX on a GPU.
    TypeError
        If `target` is no target, or JAX is in single precision and the target a Stan program.
    StanError
        If Stan cannot compile the program, or it refuses its data.

    See Also
    --------
    log_density : at draws, on the constrained scale.

    References
    ----------
    The C interface of the library is BridgeStan's: Roualdes, Ward, Carpenter, Seyboldt and Axen 2023, JOSS 8(87), 5236.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> density = ob.jax_density(target)
    >>> value, gradient = jax.value_and_grad(density.log_density)(jnp.zeros(density.size))
    >>> gradient.shape == (density.size,)
    True
    """
    check_target(target)
    from .network import density_of

    return density_of(target, progress)
