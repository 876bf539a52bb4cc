"""A log density of named parameters, stated as a NumPyro model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision

Site = tuple[Any, tuple[int, ...]]  # A constraint of NumPyro, and the shape of the value.


def stated_by(
    density: Callable[[dict[str, Any]], Any],
    sites: Mapping[str, Site],
    computed: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda values: {},
    data: Mapping[str, np.ndarray] | None = None,
    likelihood: Callable[[dict[str, Any]], tuple[Any, Sequence[Any]]] = lambda values: (0.0, ()),
) -> Callable[[], None]:
    """State a log density over values as a NumPyro model; `computed` gives what follows from the parameters.

    `likelihood` gives the log likelihood of all `data`, and its terms, an array for each of them: only the sum has a
    gradient. The density is without it.
    """
    import jax
    import numpyro
    from numpyro.distributions import ImproperUniform

    # As precise as the methods are: JAX may keep an array of the function as it is first traced.
    given = {n: jax.ShapeDtypeStruct(shape, "float64") for n, (_, shape) in sites.items()}
    try:
        with precision("float64"):
            out = jax.eval_shape(density, given)
    except Exception as error:  # whatever the function throws
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ArgumentError(
            f"`model` cannot be traced by JAX at parameters of these shapes: {reason} Let it compute with jax.numpy."
        ) from error
    if getattr(out, "shape", None) != ():
        raise ArgumentError(
            f"`model` must return the log density, one number; it returns {out}: sum over its terms."
        )

    class Given(numpyro.distributions.Distribution):
        """Data of which the log likelihood is known and nothing else."""

        pytree_data_fields = ("terms",)

        def __init__(self, terms: Any, like: np.ndarray) -> None:
            self.terms = terms
            super().__init__(terms.shape, like.shape[terms.ndim :], validate_args=False)

        def log_prob(self, value: Any, intermediates: Any = None) -> Any:
            del value, intermediates
            return self.terms

        def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
            raise NotImplementedError("`ob.predict` draws the data of this model")

    def model() -> None:
        values = {
            name: numpyro.sample(name, ImproperUniform(constraint, (), event_shape=shape))
            for name, (constraint, shape) in sites.items()
        }
        numpyro.factor("log_density", density(values))
        total, terms = likelihood(values)
        slope = total - jax.lax.stop_gradient(total)
        for (name, known), term in zip((data or {}).items(), terms, strict=True):
            each = jax.lax.stop_gradient(term) + slope / max(term.size, 1)
            slope = 0.0  # that of all of them is in the first
            numpyro.sample(name, Given(each, known), obs=known)
        for name, value in computed(values).items():
            numpyro.deterministic(name, value)

    return model
