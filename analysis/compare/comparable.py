"""Variables in which posteriors can be compared, with a common labelling and scale.

Entries of arrays with equal shapes correspond by position, because one source may number them from 0 and another from
1. They correspond by label only if an axis has the same labels in a different order.

If the draws that determine labels and scales were also compared, the comparison would be biased. So the reference
posterior is halved, by chains or, for a single chain, by draws. The first half gives the standard deviations and the
reference of the alignment, a Gaussian fitted to its aligned draws. Only the second half is compared, aligned with this
reference like every other posterior.

Positive scalings (`Rescalable`) are left out, because they are not symmetries of a posterior. An entry that never
varies in the first half has scale 1, and its relative distance from its value there is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, variables_of
from onebasin.posteriors import schema
from onebasin.posteriors.draws import (
    MIN_DRAWS,
    Columns,
    Draws,
    checked,
    choose_variables,
    entry_names,
    lay_out_columns,
    refuse_broken,
)
from onebasin.posteriors.view import Posterior, View, as_view

from ..alignment import Alignment, align
from ..discovery.candidates import companions
from ..discovery.discover import bad_entries, discover
from ..discovery.resolve import resolve
from ..summaries.summary import KEPT, deciding, draw_keys, in_common, looked_at, units_of
from .distances import thin

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


def check_comparable(views: Mapping[str, View], truth: str) -> None:
    """Reject posteriors of different networks or data. Priors may differ."""
    for view in views.values():
        _ = view.posterior  # This raises an error if there are no draws.
    ours = _facts(views[truth].network)
    for name, view in views.items():
        theirs = _facts(view.network)
        unlike = [fact for fact in ours | theirs if ours.get(fact) != theirs.get(fact)]
        if unlike:
            fact = unlike[0]
            raise ArgumentError(
                f"The networks in `posteriors` differ: {fact} is {theirs.get(fact) or 'none'} in `{name}`, but "
                f"{ours.get(fact) or 'none'} in `{truth}`. Give posteriors of the same network."
            )
        _check_data(name, view, truth, views[truth])


@dataclass(frozen=True)
class Shared:
    """The variables that are compared, and those that are left out."""

    names: tuple[str, ...]  # Present in every posterior, with the same shape.
    only_in: Mapping[str, str]  # Other variables, and a posterior that has them.
    with_labels: tuple[str, ...]
    """Variables that may be indexed by component but that the symmetry does not move. Their means depend on the
    labelling of a chain."""


def shared_variables(views: Mapping[str, View], symmetry: Symmetry) -> Shared:
    """Find the variables in which posteriors without a network can be compared. The first view is the reference.

    A sampled parameter that the symmetry does not move has no labels, but a computed quantity may have labels. The
    latter is compared if no symmetry is used, or if the check on the log density found it unchanged.
    """
    for view in views.values():
        for variable in view.variables:
            checked(view.arrays[variable], view.argument)
    shapes = {name: {v: shape_of(view, v) for v in view.variables} for name, view in views.items()}
    only_in: dict[str, str] = {}
    for name, own in shapes.items():
        for variable, shape in own.items():
            if any(other.get(variable) != shape for other in shapes.values()):
                only_in.setdefault(variable, name)
    first, reference = next(iter(views.items()))
    names = [variable for variable in shapes[first] if variable not in only_in]
    if not names:
        held = "; ".join(
            f"`{name}` has {', '.join(f'{variable} {shape}' for variable, shape in own.items())}"
            for name, own in shapes.items()
        )
        raise ArgumentError(
            f"The posteriors share no variable with the same name and shape: {held}. Give posteriors of one model. "
            "To compare different models, use `ob.compare_models` or the command `onebasin loo`."
        )
    moved = {*variables_of(symmetry)}
    carriers: set[str] = set()
    if moved:  # Computed quantities may depend on the labelling.
        computed = {*reference.kinds.named("transformed", "generated")}
        evidence = reference.symmetry_evidence
        if evidence is None or evidence.skipped or not (evidence.points or evidence.draws):
            carriers = computed - {*(evidence.derived if evidence else ())}
        else:
            carriers = computed & {*evidence.left_behind, *evidence.random}
    with_labels = tuple(v for v in names if v in carriers and v not in moved)
    kept = tuple(v for v in names if v not in with_labels)
    if not kept:
        raise ArgumentError(
            "The posteriors share only variables that may depend on the labels and that the symmetry does not move: "
            f"{', '.join(names)}. Alignment cannot make such variables comparable. To compare the variables as "
            "sampled, list them in `var_names`."
        )
    return Shared(kept, only_in, with_labels)


def share_draws(view: View, other: View) -> bool:
    """Check whether some chain of one posterior has many draws in common with a chain of the other."""
    names = [name for name in view.variables if shape_of(other, name) == shape_of(view, name)]
    keys = [draw_keys(looked_at(each, names).values()) for each in (view, other)]
    return any(in_common(a, b) for a, b in product(*keys))


def labels_between(view: View, other: View, names: Sequence[str]) -> tuple[str, ...]:
    """Find a symmetry in the chains of either posterior, or of both together. Return its declarations, or ().

    A symmetry of both posteriors must bring all their chains together, because other differences may move along.
    """
    real = deciding(view, names)[0]
    drawn = [looked_at(each, real) for each in (view, other)]
    count = min(KEPT, *(v.shape[1] for own in drawn for v in own.values()))
    # Divide all draws by the same power of two, so that squares do not overflow and no precision is lost.
    largest = max((np.abs(v).max(initial=0.0) for own in drawn for v in own.values()), default=0.0)
    power = -int(np.frexp(largest)[1])
    either = [{name: np.ldexp(v[:, :count], power) for name, v in own.items()} for own in drawn]
    both = {name: np.concatenate([own[name] for own in either]) for name in real}
    for values in (both, *either):
        found = [each for each in discover(values) if each.certain]
        moved = {name for each in found for name in each.values}
        others = (v for n, v in both.items() if n not in moved)
        apart = values is both and any(bad_entries(v).any() for v in others)
        if not found or not (apart or companions(found, values)):
            return tuple(each.word for each in found)
    return ()


def unlike_weights(model: BayesianNetwork, other: BayesianNetwork) -> str:
    """Explain why the weights of two networks cannot be compared. Return "" if they can."""
    ours, theirs = model.parametrisation.label, other.parametrisation.label
    if ours != theirs:
        return f"parametrised `{theirs}`, not `{ours}`"
    if model.predicts_noise != other.predicts_noise:
        return "of a network that " + (
            "predicts its noise" if other.predicts_noise else "does not predict its noise"
        )
    return ""


def _facts(model: BayesianNetwork | None) -> dict[str, object]:
    """Return the facts that must agree: architecture and type of likelihood."""
    if model is None:
        return {"network": None}
    network = asdict(model.network)
    del network["heads"]  # Only one of the networks may predict its noise.
    return {"likelihood": type(model.likelihood).__name__} | network


def _check_data(name: str, view: View, truth: str, other: View) -> None:
    """Reject different data. Without networks, compare only observed data with the same names."""
    network = other.network is not None
    for group in schema.DATA_GROUPS if network else (schema.OBSERVED_DATA,):
        ours, theirs = view.group(group), other.group(group)
        if ours is None or theirs is None:
            continue
        names = [sorted(map(str, data.data_vars)) for data in (ours, theirs)]
        if not network:
            names = [sorted({*names[0]} & {*names[1]})] * 2
        if names[0] != names[1]:
            raise ArgumentError(
                f"The posteriors were fitted to different data: the data of `{name}` are named "
                f"{', '.join(names[0])}, but those of `{truth}` are named {', '.join(names[1])}. Give posteriors "
                "that were fitted to the same data."
            )
        for variable in names[0]:
            if not _equal(ours[variable].values, theirs[variable].values):
                raise ArgumentError(
                    f"The posteriors were fitted to different data: the values of {variable} differ between `{name}` "
                    f"and `{truth}`. Give posteriors that were fitted to the same data."
                )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Check whether arrays are equal up to single precision."""
    if a.shape != b.shape:
        return False
    if not {a.dtype.kind, b.dtype.kind} <= set("biuf"):
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return np.allclose(a, b, rtol=1e-6, atol=1e-7 * largest, equal_nan=True)


def labelled_as(view: View, other: View, names: Sequence[str]) -> View:
    """Return some variables of a posterior with the axes and labels of another posterior.

    The posterior is returned unchanged if its entries already have these names or if shapes differ.
    """
    shapes = [(shape_of(view, name), shape_of(other, name)) for name in names]
    if any(own is None or own != theirs for own, theirs in shapes):
        return view
    pairs = {name: (view.arrays[name], other.arrays[name]) for name in names}
    if all(tuple(entry_names(own)) == tuple(entry_names(like)) for own, like in pairs.values()):
        return view
    tree = view.tree.copy()
    tree[schema.POSTERIOR] = xr.DataTree(
        xr.Dataset({name: _labelled(*pair) for name, pair in pairs.items()})
    )
    return as_view(tree, view.argument)


def _labelled(variable: xr.DataArray, like: xr.DataArray) -> xr.DataArray:
    axes = dict(zip(_axes(variable), _axes(like), strict=True))
    for own, theirs in axes.items():
        if own in variable.indexes and theirs in like.indexes:
            labels, wanted = variable.indexes[own], like.indexes[theirs]
            if labels.is_unique and {*labels} == {*wanted}:
                variable = variable.sel({own: wanted})
    bare = variable.drop_vars([c for c in variable.coords if c not in schema.SAMPLE_DIMS])
    coords = {dim: like.coords[dim].values for dim in axes.values() if dim in like.coords}
    return bare.rename(axes).assign_coords(coords)


def shape_of(view: View, name: str) -> tuple[int, ...] | None:
    """Return the shape of a variable in one draw, or None if the posterior does not have it."""
    if name not in view.variables:
        return None
    variable = view.arrays[name]
    return tuple(variable.sizes[dim] for dim in _axes(variable))


def _axes(variable: xr.DataArray) -> list[str]:
    return [str(dim) for dim in variable.dims if dim not in schema.SAMPLE_DIMS]


Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class CommonFrame:
    """The reference with which draws are aligned, and the scales by which they are divided."""

    symmetry: Symmetry  # Empty if draws are not aligned.
    shapes: Mapping[str, tuple[int, ...]]  # Shape of each compared variable in one draw.
    chosen: bool  # Whether the user chose the variables.
    places: tuple[int, ...] | None  # Numbers of the finite entries; None for all.
    scale: Float[np.ndarray, " param"]  # Standard deviation, or 1 for a constant.
    fixed: Float[np.ndarray, " param"]  # Value of a constant parameter, or NaN.
    alignment: Alignment | None  # Of the first half; None without a symmetry.
    rest: View  # The second half of the reference posterior.

    def align(self, posterior: Posterior, *, progress: Progress | None = None) -> View:
        """Align a posterior with the same variables, and name its entries as in the reference."""
        view = as_view(posterior)
        self.check(view)
        view = labelled_as(view, self.rest, tuple(self.shapes))
        if self.alignment is None:
            return view
        aligned = align(view, self.symmetry, reference=self.alignment, progress=progress)
        return as_view(aligned.posterior, view.argument)

    def sample(self, aligned: Posterior) -> Float[np.ndarray, "kept param"]:
        """Divide aligned draws by the scale, and keep at most about 1000 nearly independent draws.

        Keep every k-th draw of each chain, with k from `stride`, or all draws of a fit or an ensemble.
        """
        view = as_view(aligned)
        draws = _draws(view, tuple(self.shapes))
        if _places(draws) != self.places:
            raise ArgumentError(
                f"`{view.argument}` and the reference have non-finite values in different entries. Compare "
                "posteriors of the same model, or choose variables with `var_names`."
            )
        kept = thin(draws, autocorrelated=not view.is_independent)
        still = np.isfinite(self.fixed)
        size = np.abs(self.fixed[still])
        kept = kept / self.scale
        kept[:, still] = (kept[:, still] - self.fixed[still]) / np.where(size > 0, size, 1.0)
        return kept

    def check(self, view: View) -> None:
        """Reject a posterior with different variables or shapes."""
        shapes = _shapes(view, None)
        absent = [name for name in self.shapes if name not in shapes]
        extra = [name for name in shapes if name not in self.shapes and not self.chosen]
        if absent or extra:
            unlike = [f"lacks {', '.join(absent)}"] if absent else []
            unlike += [f"also has {', '.join(extra)}"] if extra else []
            raise ArgumentError(
                f"`{view.argument}` {' and '.join(unlike)}, but the reference has {', '.join(self.shapes)}. Give "
                "posteriors of the same model, or choose variables with `var_names`."
            )
        for name, shape in self.shapes.items():
            if shapes[name] != shape:
                raise ArgumentError(
                    f"The variable {name} has shape {shapes[name]} in `{view.argument}`, but shape {shape} in the "
                    "reference. Give posteriors of the same model."
                )


def fit_frame(
    reference: Posterior,
    symmetry: Symmetry | None = None,
    *,
    var_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> CommonFrame:
    """Fit labelling and scale on the first half of a posterior, using the given or declared symmetry."""
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
            f"`{view.argument}` does not vary: all draws of {', '.join(shapes)} are equal up to rounding. Give a "
            "posterior that varies. If a large constant hides the variation, subtract the constant before you store "
            "the draws."
        )
    places, chosen = _places(draws), var_names is not None
    return CommonFrame(blocks, shapes, chosen, places, scale, fixed, alignment, rest)


def halves(posterior: Posterior) -> tuple[View, View]:
    """Split a posterior into the first and the remaining chains, or a single chain into earlier and later draws."""
    view = as_view(posterior)
    view.check_sampled()
    sizes = view.posterior.sizes
    dim = "chain" if sizes["chain"] > 1 else "draw"
    middle = sizes[dim] // 2
    if (middle if dim == "draw" else sizes["draw"]) < MIN_DRAWS:
        raise ArgumentError(
            f"`{view.argument}` has {sizes['chain']} chain(s) of {sizes['draw']} draw(s), but each half of the "
            f"posterior needs at least {MIN_DRAWS} draws per chain: sample longer."
        )
    return view.part(dim, slice(0, middle)), view.part(dim, slice(middle, None))


def _places(draws: Draws) -> tuple[int, ...] | None:
    kept = draws.source.kept if isinstance(draws.source, Columns) else None
    return None if kept is None else tuple(map(int, kept))


def _shapes(view: View, var_names: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    return {
        name: shape
        for name in choose_variables(view.variables, var_names)
        if (shape := shape_of(view, name)) is not None
    }


def _draws(view: View, names: tuple[str, ...]) -> Draws:
    """Read the draws of some variables. Raise an error if there are too few draws or if some are not finite."""
    view.check_sampled()
    variables = [checked(view.arrays[name], view.argument) for name in names]
    if view.num_draws < MIN_DRAWS:
        raise ArgumentError(
            f"`{view.argument}` has too few draws per chain for a comparison ({view.num_draws}; at least {MIN_DRAWS} "
            "are needed): sample longer."
        )
    for variable in variables:
        broken = lay_out_columns([variable]).broken
        if broken:
            raise ArgumentError(
                f"`{view.argument}` has {sum(broken.values())} value(s) of {variable.name} that are not finite, so "
                "no distances can be computed. Find out the cause, or choose other variables with `var_names`."
            )
    return refuse_broken(lay_out_columns(variables), view.argument)
