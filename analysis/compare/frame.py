"""One labelling and one scale for the draws of several posteriors, fitted on draws that are then set aside.

A posterior that chooses its labels by some draws is pulled towards those draws: the distance between them
comes out too small, below zero on average where both are of one distribution. Likewise scales that one of two samples
had no part in choosing favour neither. So the reference posterior is halved (chains, or the draws of a single one): the
first half gives the reference (the Gaussian of its aligned draws, `analysis.alignment`: by the mean alone, parts of
unlike spread are taken for one another) and the standard deviations; only the second is compared, aligned with that
reference as every other posterior is.

Convention: positive scalings (`Rescalable`) are left out, as no symmetry of a posterior. An entry that never varies in
the first half, up to rounding, has scale 1; it is compared by its distance from what it is there, as a share of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.posteriors.draws import (
    MIN_DRAWS,
    Columns,
    Draws,
    checked,
    choose_variables,
    lay_out_columns,
    refuse_broken,
)
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment import Alignment, align
from ..discovery.resolve import resolve
from ..summaries.units import units_of
from .comparable import labelled_as, shape_of
from .two_sample import thin

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class CommonFrame:
    """The reference that draws are aligned with and the scales that they are divided by."""

    symmetry: Symmetry  # Modulo what draws are aligned; empty where nothing is.
    shapes: Mapping[str, tuple[int, ...]]  # Of each variable that is compared, in one draw.
    chosen: bool  # Whether these were chosen, so that a posterior may hold others too.
    places: tuple[int, ...] | None
    """Entries that are compared, counted through all variables: those that are finite; None for all."""
    scale: Float[np.ndarray, " param"]  # Standard deviation; 1 where a parameter never varies.
    fixed: Float[np.ndarray, " param"]  # What one is that never varies; NaN where it does.
    alignment: Alignment | None  # Of the half that was set aside; None without a symmetry.
    rest: View  # The other half of the reference posterior, as it came.

    def align(self, posterior: Posterior, *, progress: Progress | None = None) -> View:
        """Bring a posterior of the same variables into the common labelling, under the reference's names of entries."""
        view = as_view(posterior)
        self.check(view)
        view = labelled_as(view, self.rest, tuple(self.shapes))
        if self.alignment is None:
            return view
        aligned = align(view, self.symmetry, reference=self.alignment, progress=progress)
        return as_view(aligned.posterior, view.argument)

    def sample(self, aligned: Posterior) -> Float[np.ndarray, "kept param"]:
        """Divide aligned draws by the scale, and keep about 1000 at most that are nearly independent.

        Every k-th draw of each chain, k by `two_sample.stride`; all of a fit and of an ensemble.
        """
        view = as_view(aligned)
        draws = _draws(view, tuple(self.shapes))
        if _places(draws) != self.places:
            raise ArgumentError(
                f"`{view.argument}` and the truth differ in which entries are finite: compare posteriors of the same "
                "model, or choose variables with `var_names`."
            )
        kept = thin(draws, autocorrelated=not view.is_independent)
        still = np.isfinite(self.fixed)
        size = np.abs(self.fixed[still])
        kept = kept / self.scale
        kept[:, still] = (kept[:, still] - self.fixed[still]) / np.where(size > 0, size, 1.0)
        return kept

    def check(self, view: View) -> None:
        """Refuse a posterior of other variables or shapes."""
        shapes = _shapes(view, None)
        absent = [name for name in self.shapes if name not in shapes]
        extra = [name for name in shapes if name not in self.shapes and not self.chosen]
        if absent or extra:
            unlike = [f"lacks {', '.join(absent)}"] if absent else []
            unlike += [f"also holds {', '.join(extra)}"] if extra else []
            raise ArgumentError(
                f"`{view.argument}` {' and '.join(unlike)}; the reference holds {', '.join(self.shapes)}. "
                "Give posteriors of the same model, or choose variables with `var_names`."
            )
        for name, shape in self.shapes.items():
            if shapes[name] != shape:
                raise ArgumentError(
                    f"`{view.argument}` holds {name} of shape {shapes[name]}, and the reference of shape "
                    f"{shape}: give posteriors of the same model."
                )


def fit_frame(
    reference: Posterior,
    symmetry: Symmetry | None = None,
    *,
    var_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CommonFrame:
    """Fit labelling and scale on the first half of a posterior; the second is kept as `rest`.

    Modulo the symmetry that is given, by default what the posterior declares, be it nothing.
    """
    view = as_view(reference)
    shapes = _shapes(view, var_names)
    first, rest = halves(view)
    blocks = resolve(view, symmetry).equal_modes
    alignment = align(first, blocks, progress=progress) if blocks else None
    aligned = as_view(alignment.posterior, view.argument) if alignment else first
    draws = _draws(aligned, tuple(shapes))
    scales, constants = [np.empty(0)], [np.empty(0)]
    for values in draws.blocks():
        units = units_of(values)
        scales.append(np.where(units.constant, 1.0, units.sd_of(values)))
        constants.append(np.where(units.constant, units.centre, np.nan))
    scale, fixed = np.concatenate(scales), np.concatenate(constants)
    if len(fixed) and np.isfinite(fixed).all():
        raise ArgumentError(
            f"`{view.argument}` does not vary: the draws of {', '.join(shapes)} are the same up to rounding, so that "
            "there is nothing to compare. Give draws, or take what they have in common off before they are stored."
        )
    places, chosen = _places(draws), var_names is not None
    return CommonFrame(blocks, shapes, chosen, places, scale, fixed, alignment, rest)


def halves(posterior: Posterior) -> tuple[View, View]:
    """Split a posterior into its first chains and the others; a single chain into earlier and later draws."""
    view = as_view(posterior)
    view.check_sampled()
    sizes = view.posterior.sizes
    dim = "chain" if sizes["chain"] > 1 else "draw"
    middle = sizes[dim] // 2
    if (middle if dim == "draw" else sizes["draw"]) < MIN_DRAWS:
        raise ArgumentError(
            f"`{view.argument}` has {sizes['chain']} chain(s) of {sizes['draw']} draws, and halves with at least "
            f"{MIN_DRAWS} draws a chain are needed: sample longer."
        )
    return view.part(dim, slice(0, middle)), view.part(dim, slice(middle, None))


def _places(draws: Draws) -> tuple[int, ...] | None:
    kept = draws.source.kept if isinstance(draws.source, Columns) else None
    return None if kept is None else tuple(map(int, kept))


def _shapes(view: View, var_names: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Shapes of variables in one draw."""
    return {
        name: shape
        for name in choose_variables(view.variables, var_names)
        if (shape := shape_of(view, name)) is not None
    }


def _draws(view: View, names: tuple[str, ...]) -> Draws:
    """Draws of variables, finite and enough of them."""
    view.check_sampled()
    variables = [checked(view.arrays[name], view.argument) for name in names]
    if view.num_draws < MIN_DRAWS:
        raise ArgumentError(
            f"`{view.argument}` has {view.num_draws} draws a chain, and at least {MIN_DRAWS} are needed to "
            "compare it: sample longer."
        )
    for variable in variables:
        broken = lay_out_columns([variable]).broken
        if broken:
            raise ArgumentError(
                f"`{view.argument}` holds {sum(broken.values())} values of {variable.name} that are "
                "not finite: no distance is defined for them. Find out why the model produces them."
            )
    return refuse_broken(lay_out_columns(variables), view.argument)
