"""One copy of a posterior: draws of a model with a symmetry as draws of the same model with its parts in order.

Let G be the finite group of the first model's symmetry, let both have normalised priors, p and q, and the same
likelihood. Points with their components in order have the probability 1 / |G| under p. So if q = |G| p at all of them,
q has no mass elsewhere, and drawing from the second posterior is drawing from the first one and putting parts in order.
That is checked at every draw. Chains then run where there is no wall: the one at equal biases, and the curvature that
the chart of ordered biases makes of it, is what slows a sampler of the second model down.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
import xarray as xr

from onebasin.base.errors import StudyError
from onebasin.base.precision import precision
from onebasin.inference import log_density
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.density.symmetry import TOLERANCE
from onebasin.inference.runs.origin import origin_of
from onebasin.inference.runs.posterior import build
from onebasin.models.symmetry import words
from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.symmetry.canonical import canonical, ordered_by
from onebasin.models.symmetry.group import Group
from onebasin.models.target import Target
from onebasin.posteriors import schema


@dataclass(frozen=True)
class Quotient:
    """The mapping of one model's draws to those of another."""

    of: str  # The model that was sampled.
    symmetry: tuple[str, ...]  # Modulo what, in words.
    increasing: tuple[str, ...]  # Variables whose entries increase in every draw.
    share_moved: float  # Share of the draws that were another copy than the one in order.
    log_copies: float  # Logarithm of the number of copies, in nats.
    log_density_difference: tuple[float, float]
    """Least and largest difference of the two log densities at the draws: that logarithm, up to rounding."""

    def to_json(self) -> dict[str, Any]:
        """Return the quotient as the file's information records it."""
        order = " and ".join(self.increasing)
        rule = f"Every draw of {self.of} is replaced by the one of its equal copies in which {order} increases."
        return {"rule": rule, **asdict(self)}


def one_copy(run: xr.DataTree, sampled: Target, target: Target) -> tuple[xr.DataTree, Quotient]:
    """Put every draw of `sampled` in order, as a posterior of `target`, which has the same variables; say how.

    `lp` is that of the target, every other statistic that of the chains. It is a `StudyError` if the posterior of
    `target` is not one copy of that of `sampled`.
    """
    symmetry = equal_modes(sampled.symmetry)
    posterior = run[schema.POSTERIOR].to_dataset()
    lead = (posterior.sizes["chain"], posterior.sizes["draw"])
    values = {
        str(name): array.values.reshape(-1, *array.shape[2:])
        for name, array in posterior.data_vars.items()
    }
    moved = canonical(symmetry, values)
    draws = {n: v.reshape(*lead, *v.shape[1:]) for n, v in moved.items()}
    stats = {str(n): a.values for n, a in run[schema.SAMPLE_STATS].to_dataset().data_vars.items()}
    with precision("float64"):
        # With the Jacobian of the target's own charts, as a chain of it would record.
        density = NumpyroDensity.of(target)
        vectors = jax.vmap(density.unconstrain)({name: moved[name] for name in density.names})
        lp = np.asarray(jax.jit(jax.vmap(density.log_density))(vectors), np.float64)
    stats[schema.LP] = lp.reshape(lead)
    tree = build(target, draws, stats, {}, origin=origin_of(target, "numpyro"), predictive_mb=0)
    tree.attrs = {**run.attrs, **tree.attrs}
    difference = (log_density(target, tree) - log_density(sampled, tree)).values
    log_copies = Group(symmetry, {n: v.shape[1:] for n, v in moved.items()}).log_order
    if not np.all(np.abs(difference - log_copies) <= TOLERANCE):
        raise StudyError(
            f"`quotient_of` of {target.name} is {sampled.name}, but at draws of that model with their components in "
            f"order the log densities differ by {difference.min():.6g} to {difference.max():.6g} nats instead of "
            f"{log_copies:.6g}, the logarithm of the number of equal copies; state the two with the same likelihood, "
            "and with priors that are normalised."
        )
    unlike = [(moved[n] != v).reshape(len(v), -1).any(axis=1) for n, v in values.items()]
    return tree, Quotient(
        sampled.name,
        tuple(words.spell(block) for block in symmetry),
        tuple(ordered_by(block, moved) for block in symmetry if block.axes),
        round(float(np.any(unlike, axis=0).mean()), 5),
        float(log_copies),
        (float(difference.min()), float(difference.max())),
    )
