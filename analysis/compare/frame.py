"""One labelling and one scale for the draws of several posteriors, fitted on draws that are then set aside.

A posterior that chooses its labels by the mean of some draws is pulled towards those draws: the distance between them
comes out too small, below zero on average where both are of one distribution. Likewise scales that one of two samples
had no part in choosing favour neither. So the reference posterior is halved (chains, or the draws of a single one): the
first half gives the centre (its iterated mean, `analysis.alignment`) and the standard deviations; only the second is
compared, aligned with that centre as every other posterior is.

Convention: positive scalings (`Rescalable`) are left out, as no symmetry of a posterior. An entry that never varies in
the first half is divided by 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.models.symmetry.blocks import Rescalable, Symmetry

from ..alignment import Alignment, align
from ..posterior.summary import is_constant
from ..posterior.view import MIN_DRAWS, is_variational, posterior_group, symmetry_of
from .two_sample import MAX_DRAWS, independent_draws

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Basin:
    """What draws are aligned with and divided by.

    Attributes
    ----------
    symmetry
        Modulo what draws are aligned; empty where nothing is.
    shapes
        Of each variable that is compared, in one draw.
    chosen
        Whether these were chosen, so that a posterior may hold others too.
    scale
        Standard deviation of each scalar parameter.
    alignment
        Of the half that was set aside; None without a symmetry.
    rest
        The other half of the reference posterior, as it came.
    """

    symmetry: Symmetry
    shapes: Mapping[str, tuple[int, ...]]
    chosen: bool
    scale: Float[np.ndarray, " param"]
    alignment: Alignment | None
    rest: xr.DataTree

    def align(self, posterior: xr.DataTree, *, progress: Progress | None = None) -> xr.DataTree:
        """Bring a posterior of the same variables into the basin's labelling.

        Raises
        ------
        ValueError
            If the posterior has other variables or shapes, or a draw is not finite.
        """
        self.check(posterior)
        if self.alignment is None:
            return posterior
        return align(
            posterior,
            self.symmetry,
            reference=_mean(self.alignment),
            scales=self.alignment.rule.scales,
            progress=progress,
        ).posterior

    def sample(
        self, aligned: xr.DataTree, *, max_draws: int = MAX_DRAWS
    ) -> Float[np.ndarray, "kept param"]:
        """Divide aligned draws by the scale, and keep those that are nearly independent.

        Parameters
        ----------
        aligned
            What `align` returned, or a part of it.
        max_draws
            About how many are kept at most.

        Returns
        -------
        array (kept, param)
            Every k-th draw of each chain, k by `analysis.discrepancy.stride`; of a variational fit all.

        Raises
        ------
        ValueError
            If a draw is not finite, or there are fewer than 4 draws a chain.
        """
        values = np.concatenate(_arrays(aligned, tuple(self.shapes)), axis=-1) / self.scale
        chained = not is_variational(aligned)
        return independent_draws(values, autocorrelated=chained, max_draws=max_draws)

    def check(self, posterior: xr.DataTree) -> None:
        """Refuse a posterior of other variables or shapes.

        Raises
        ------
        ValueError
            The message names them.
        """
        found = _shapes(posterior, None)
        absent = [name for name in self.shapes if name not in found]
        extra = [name for name in found if name not in self.shapes and not self.chosen]
        if absent or extra:
            unlike = [f"lacks {', '.join(absent)}"] if absent else []
            unlike += [f"also holds {', '.join(extra)}"] if extra else []
            raise ValueError(
                f"`posterior` {' and '.join(unlike)}; the reference holds {', '.join(self.shapes)}. "
                "Give posteriors of the same model, or choose variables with `var_names`."
            )
        for name, shape in self.shapes.items():
            if found[name] != shape:
                raise ValueError(
                    f"`posterior` holds {name} of shape {found[name]}, and the reference of shape "
                    f"{shape}: give posteriors of the same model."
                )


def fit_basin(
    reference: xr.DataTree,
    symmetry: Symmetry | None = None,
    *,
    var_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Basin:
    """Fit labelling and scale on the first half of a posterior.

    Parameters
    ----------
    reference
        The posterior; its second half is kept as `rest`.
    symmetry
        Modulo what; by default what the posterior declares, be it nothing.
    var_names
        Variables to compare; all by default.
    progress
        Called with draws gone through and draws in all.

    Returns
    -------
    Basin
        Centre, scale, and the half that was not used.

    Raises
    ------
    ValueError
        If a variable is unknown or not finite, or halves would have fewer than 4 draws a chain.
    """
    shapes = _shapes(reference, var_names)
    first, rest = halves(reference)
    declared = symmetry_of(reference) if symmetry is None else symmetry
    moving = tuple(block for block in declared if not isinstance(block, Rescalable))
    alignment = align(first, moving, reference="mean", progress=progress) if moving else None
    arrays = _arrays(alignment.posterior if alignment else first, tuple(shapes))
    constant = np.concatenate([is_constant(a) for a in arrays])
    sd = np.concatenate([a.std(axis=(0, 1), ddof=1) for a in arrays])
    chosen = var_names is not None
    return Basin(moving, shapes, chosen, np.where(constant, 1.0, sd), alignment, rest)


def halves(posterior: xr.DataTree) -> tuple[xr.DataTree, xr.DataTree]:
    """Split a posterior into its first chains and the others; a single chain into earlier and later draws.

    Raises
    ------
    ValueError
        If a half would have fewer than 4 draws a chain.
    """
    sizes = posterior_group(posterior).sizes
    dim = "chain" if sizes["chain"] > 1 else "draw"
    middle = sizes[dim] // 2
    if (middle if dim == "draw" else sizes["draw"]) < MIN_DRAWS:
        raise ValueError(
            f"`posterior` has {sizes['chain']} chain(s) of {sizes['draw']} draws, and halves with at least "
            f"{MIN_DRAWS} draws a chain are needed: sample longer."
        )
    return _part(posterior, dim, slice(0, middle)), _part(posterior, dim, slice(middle, None))


def _part(posterior: xr.DataTree, dim: str, which: slice) -> xr.DataTree:
    groups = {
        name: group.to_dataset().isel({dim: which}, missing_dims="ignore")
        for name, group in posterior.children.items()
        if name != "alignment"
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = dict(posterior.attrs)
    return tree


def _mean(alignment: Alignment) -> xr.Dataset:
    """The mean of aligned draws, as a posterior of one draw."""
    names = list(alignment.group.shapes)
    group = posterior_group(alignment.posterior)[names]
    return group.mean(("chain", "draw")).expand_dims(chain=1, draw=1)


def _shapes(posterior: xr.DataTree, var_names: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Shapes of variables in one draw."""
    group = posterior_group(posterior)
    there = [str(name) for name in group.data_vars]
    unknown = [name for name in var_names or () if name not in there]
    if unknown:
        raise ValueError(
            f"`var_names` asks for {', '.join(unknown)}, which the posterior does not have; its "
            f"variables are: {', '.join(there)}."
        )
    return {
        name: tuple(n for dim, n in group[name].sizes.items() if dim not in ("chain", "draw"))
        for name in (there if var_names is None else var_names)
    }


def _arrays(posterior: xr.DataTree, names: tuple[str, ...]) -> list[Any]:
    """Variables as (chain, draw, param), in float64 and finite."""
    group = posterior_group(posterior)
    arrays = []
    for name in names:
        values = np.asarray(group[name].transpose("chain", "draw", ...).values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(
                f"`posterior` holds {int((~np.isfinite(values)).sum())} values of {name} that are "
                "not finite: no distance is defined for them. Find out why the model produces them."
            )
        chains, draws, *event = values.shape
        if draws < MIN_DRAWS:
            raise ValueError(
                f"`posterior` has {draws} draws a chain, and at least {MIN_DRAWS} are needed to "
                "compare it: sample longer."
            )
        arrays.append(values.reshape(chains, draws, math.prod(event)))
    return arrays
