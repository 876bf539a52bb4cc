"""Labellings of reference posteriors: the canonical labelling, and the order of components in a second model.

The canonical labelling consists of centres and scales, fixed once, to which every draw is matched. `one_copy` turns
draws of a model with a symmetry into draws of the same model with ordered components. `aligned_quantity` gives draws
and true values one labelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.alignment import AlignmentReference, AlignmentTarget
from onebasin.analysis.alignment.features import FeatureUnits
from onebasin.base.checks import checks_arguments
from onebasin.base.errors import StudyError
from onebasin.base.precision import precision
from onebasin.inference import log_density
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.density.symmetry import TOLERANCE
from onebasin.inference.runs.posterior import build, origin_of
from onebasin.models import Symmetry, Target
from onebasin.models.symmetry.blocks import (
    Block,
    Group,
    as_symmetry,
    axes_of,
    discrete,
    equal_modes,
    spell,
    variables_of,
)
from onebasin.models.symmetry.closest import canonical, ordered_by, plain_view
from onebasin.models.symmetry.elements import Permuted, Swapped
from onebasin.posteriors import schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import View

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Labelling:
    """Rule that replaces a draw by its copy (under the symmetry) with the smallest sum(((x - centre) / scale)^2).

    The sum is over entries that the symmetry moves. Centres and scales are the moments of the diagonal Gaussian that
    `align` fits to the first half of the chains, rounded to five digits and in canonical order. They are part of the
    reference, so draws with another seed are matched to the same numbers.
    """

    centre: Mapping[str, np.ndarray]  # Arrays (*event) by variable that the symmetry moves.
    scale: Mapping[str, np.ndarray]
    canonical: str  # Description of the order of the centres.

    @property
    def target(self) -> AlignmentTarget:
        """The centres and scales as the reference of an alignment, a diagonal Gaussian."""
        offset = float(sum(np.log(sd).sum() for sd in self.scale.values()))
        weight = {name: sd**-2.0 for name, sd in self.scale.items()}
        zero = {name: np.zeros_like(mean) for name, mean in self.centre.items()}
        spread = {name: float(np.sqrt(np.mean(sd**2))) for name, sd in self.scale.items()}
        units = FeatureUnits(zero, dict.fromkeys(zero, 1.0), spread)
        return AlignmentTarget(AlignmentReference(self.centre, weight, offset, factor=0.5), units)

    def to_json(self) -> dict[str, Any]:
        """Return the labelling as recorded in the information file."""
        return {
            "rule": "Every draw is replaced by the one of its equal copies that minimises the sum, over all entries "
            "that the symmetry moves, of ((value - centre) / scale)^2; centre and scale are fixed numbers, fitted to "
            "the first half of the chains of the first reference.",
            "canonical": self.canonical,
            "centre": {name: value.tolist() for name, value in self.centre.items()},
            "scale": {name: value.tolist() for name, value in self.scale.items()},
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Labelling:
        """Read the labelling from the result of `to_json`."""
        centre, scale = (
            {name: np.asarray(value, np.float64) for name, value in said[word].items()}
            for word in ("centre", "scale")
        )
        return cls(centre, scale, str(said["canonical"]))

    @classmethod
    def fitted(cls, view: View, symmetry: Symmetry) -> Labelling:
        """Fit centres and scales to the first half of the chains."""
        half = view.part("chain", slice(0, max(1, view.num_chains // 2)))
        target = align(half, symmetry, restarts=2).target
        centre = {name: np.array(value, np.float64) for name, value in target.centre.items()}
        scale = {}
        for name, value in centre.items():
            sd = target.units.unit[name] / np.sqrt(np.asarray(target.reference.weight[name]))
            scale[name] = np.broadcast_to(sd, value.shape).copy()
        said = []
        for block in plain_view(discrete(symmetry), event_shapes(view.posterior)).blocks:
            centre, scale, rule = _ordered(block, centre, scale)
            said.append(rule)
        for arrays in (centre, scale):
            for name, values in arrays.items():
                rounded = [float(f"{value:.4e}") for value in values.ravel()]
                arrays[name] = np.array(rounded).reshape(values.shape)
        return cls(centre, scale, "; ".join(said))


def _ordered(block: Block[Any], centre: Arrays, scale: Arrays) -> tuple[Arrays, Arrays, str]:
    """Move centres and scales by one element that fixes signs first, then the order."""
    if not block.axes:  # The block flips or complements whole variables.
        name = (*block.flipped, *block.complemented)[0]
        values = centre[name].ravel()
        if block.flipped:
            turn = values[np.abs(values).argmax()] < 0
            said = f"the sign of {', '.join(block.flipped)} by which the largest centre of {name} is positive"
        else:
            turn = values.mean() > 0.5
            said = f"{', '.join(block.complemented)} by which the mean of {name}'s centres is at most 1/2"
        return _moved(block, Swapped(np.array([turn])), centre), scale, said
    name = (*block.flipped, *block.axes)[0]
    axis = axes_of(block.axes[name])[0]
    rows = np.moveaxis(centre[name], axis, 0).reshape(centre[name].shape[axis], -1)
    signs = None
    said = f"places of {', '.join(block.axes)} in increasing order of the mean of {name}'s centres"
    if block.flipped:
        largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)[:, 0]
        signs = np.where(largest < 0, -1.0, 1.0)
        rows = rows * signs[:, None]
        said = f"signs by which the largest centre of each part of {name} is positive, then {said}"
    order = np.argsort(rows.mean(axis=1), kind="stable")
    part = Permuted(order[None], None if signs is None else signs[order][None])
    scaled = block.of_variances(part)
    return _moved(block, part, centre), _moved(*scaled, scale) if scaled else scale, said


def _moved(block: Block[Any], part: Any, values: Arrays) -> Arrays:
    """Move a single point, whose variables have no draw axis."""
    moved = block.act({name: value[None] for name, value in values.items()}, *part)
    return {name: np.asarray(value)[0] for name, value in moved.items()}


def one_copy(
    run: xr.DataTree, sampled: Target, target: Target
) -> tuple[xr.DataTree, dict[str, Any]]:
    """Order the components in every draw of `sampled`; return a posterior of `target` and a description of the rule.

    Both models have the same variables and the same likelihood, and normalised priors p and q. Let G be the finite
    group of the symmetry of `sampled`. Ordered points have probability 1 / |G| under p. If q = |G| p at all ordered
    points, q has no mass elsewhere. Then draws of `sampled` with ordered components are draws of `target`. The
    condition is checked at every draw; a violation raises `StudyError`.

    Chains that run this way do not meet a boundary at equal biases. `lp` is the log density of `target`; all other
    statistics are copied from the chains.
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
        # Include the Jacobian of the target's charts, as a chain of the target does.
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
            f"`quotient_of` of {target.name} is {sampled.name}, but the log densities of the two models differ by "
            f"{difference.min():.6g} to {difference.max():.6g} nats at ordered draws of {sampled.name}. The "
            f"difference must be {log_copies:.6g}, the logarithm of the number of equal copies. Give both models the "
            "same likelihood, and normalise the prior of each."
        )
    increasing = [ordered_by(block, moved) for block in symmetry if block.axes]
    unlike = [(moved[n] != v).reshape(len(v), -1).any(axis=1) for n, v in values.items()]
    return tree, {
        "rule": f"Every draw of {sampled.name} is replaced by the one of its equal copies in which "
        f"{' and '.join(increasing)} increases.",
        "of": sampled.name,
        "symmetry": [spell(block) for block in symmetry],
        "increasing": increasing,
        "share_moved": round(float(np.any(unlike, axis=0).mean()), 5),
        "log_copies": float(log_copies),
        "log_density_difference": [float(difference.min()), float(difference.max())],
    }


@checks_arguments
def aligned_quantity(
    symmetry: Symmetry | str, *, reference: str = "gaussian"
) -> Callable[..., dict[str, np.ndarray]]:
    """Make a test quantity for `calibrate`: parameters in the same labelling for all draws.

    The draws and the true values are aligned together, with a Gaussian fitted to all of them. The rule treats true
    values like draws. So if the draws follow the posterior, the ranks of the true values stay uniform.

    Parameters
    ----------
    symmetry : tuple of blocks or str
        The symmetry. Blocks that preserve only the likelihood, such as positive scalings, are ignored.
    reference : {"gaussian", "mean", "draw"}
        Same as in `align`.

    Returns
    -------
    callable
        Function from values (point, ...) and data to aligned values (point, ...) of variables that the symmetry moves.

    Raises
    ------
    TypeError
        If `symmetry` is neither blocks nor a string.

    Examples
    --------
    >>> aligned = ob.truth.aligned_quantity("mu,sigma")
    >>> values = {"mu": np.array([[-2.0, 1.0], [1.1, -1.9], [-2.1, 0.9]]), "sigma": np.ones((3, 2))}
    >>> bool(np.ptp(aligned(values, None)["mu"], axis=0).max() < 0.5)
    True
    """
    known = equal_modes(as_symmetry(symmetry))
    moved = variables_of(known)

    def quantity(values: Mapping[str, np.ndarray], data: object) -> Arrays:
        del data
        chain = {name: values[name][None] for name in moved}
        found = align(chain, known, reference=reference, gauge="keep", threads=1)
        aligned = found.posterior[schema.POSTERIOR].to_dataset()
        return {name: aligned[name].values[0] for name in moved}

    return quantity
