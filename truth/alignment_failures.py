"""Measure how often alignment gets a label wrong, by separation of the components, next to the best possible rule.

Convention: a draw holds K components of d features, independent and Gaussian. Along the first feature their means are
`separation` apart, in units in which a component's standard deviation is 1 unless `sds` says other; where components
may change sign, so are the means and their mirror images. All other features have mean 0: noise for a rule that does
not know it. Every draw is then moved by a random element of the group, and a rule fails on a draw where the element
that it finds does not undo the planted one, up to one element for all draws. A rule with its own labels is told that
element, the most frequent one, by the other half of the draws, so that without separation its rate is 1 - 1 / |G|, and
not less by luck.

The best rule knows the means and standard deviations that were planted, and takes the most probable of all elements
of the group, which are gone through (Bayes's rule under the zero-one loss; none is as often right). With equal standard
deviations it is the squared distance to the true means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.alignment.align import align
from onebasin.analysis.alignment.parts import flatten
from onebasin.base.arguments import checks_arguments
from onebasin.base.card import Card, Words, number
from onebasin.base.checks import as_numbers, check_class, check_count, check_positive, check_seed
from onebasin.base.errors import ArgumentError
from onebasin.base.showing import Shown
from onebasin.base.table import Table
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.models.symmetry.elements import Element, Permuted, permuted_parts
from onebasin.models.symmetry.group import Group

RULES = {
    "draw": "one draw",
    "mean": "iterated mean",
    "gaussian": "iterated Gaussian",
    "posterior": "another posterior",
}
"""References by the words that `failure_rates` takes, and their names next to its numbers."""
_RULES = {"draw": "one draw", "mean": "mean", "gaussian": "Gaussian", "posterior": "true mean"}
MOST = 12
"""Rows of a table."""
MOST_COMPONENTS = 5
"""3,840 elements with signs: the most that is gone through for every draw."""


@dataclass(frozen=True)
class PlantedComponents:
    """The draws that `ob.truth.failure_rates` plants: Gaussian components whose labels are known, and then hidden.

    Parameters
    ----------
    components, features : int
        Components of a draw, at most 5, and features of a component.
    flips : bool
        Whether components may change sign.
    sds : tuple of float, optional
        Standard deviation of each component's features; 1 by default.
    draws, repeats : int
        Draws of a posterior, and posteriors.
    seed : int
        Of all draws. Every separation has the same noise and the same hidden elements.

    Raises
    ------
    ValueError
        If a number is out of range, or `sds` has not one entry a component.

    Examples
    --------
    >>> ob.truth.PlantedComponents(components=2, features=1).means(3.0).tolist()
    [[-1.5], [1.5]]
    """

    components: int = 3
    features: int = 2
    flips: bool = False
    sds: tuple[float, ...] | None = None
    draws: int = 1000
    repeats: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_count("components", self.components, least=2, most=10**6)
        check_count("features", self.features, most=10**6)
        check_count("draws", self.draws, least=2, most=10**6)
        check_count("repeats", self.repeats, most=10**6)
        check_seed(self.seed)
        if self.components > MOST_COMPONENTS:
            raise ArgumentError(
                f"`components` is {self.components}, but every element of the group is gone through; "
                f"give {MOST_COMPONENTS} at most."
            )
        if self.sds is None:
            return
        check_class("sds", self.sds, Sequence, remedy="give a list of standard deviations")
        if len(self.sds) != self.components:
            raise ArgumentError(
                f"`sds` has {len(self.sds)} entries for {self.components} components; give one each."
            )
        for sd in self.sds:
            check_positive("sds", sd)

    @property
    def group(self) -> Group:
        """The group that hides labels."""
        block = Exchangeable({"component": 0}, flips=self.flips)
        return Group((block,), {"component": (self.components, self.features)})

    def means(self, separation: float) -> Float[np.ndarray, "component feature"]:
        """Give means (component, feature), neighbours `separation` standard deviations apart along the first feature.

        All other features have mean 0.
        """
        places = np.arange(self.components) + (0.5 if self.flips else (1 - self.components) / 2)
        out = np.zeros((self.components, self.features))
        out[:, 0] = separation * places
        return out

    @property
    def widths(self) -> Float[np.ndarray, "component 1"]:
        """Standard deviations of the components (component, 1)."""
        return np.asarray(self.sds or [1.0] * self.components)[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class FailureRates(Shown):
    """Share of draws whose labels came out wrong.

    Attributes
    ----------
    planted : PlantedComponents
        What was planted.
    separations : array (separation,)
        Distances between neighbouring means.
    rates : mapping of str to array (repeat, separation)
        Of each rule of `RULES` that was tried.
    optimal : array (repeat, separation)
        Of the best rule there is, on the same draws.
    """

    planted: PlantedComponents
    separations: Float[np.ndarray, " separation"]
    rates: Mapping[str, Float[np.ndarray, "repeat separation"]]
    optimal: Float[np.ndarray, "repeat separation"]

    def _card(self) -> Card:
        planted = self.planted
        means = {name: shares.mean(axis=0) for name, shares in self.rates.items()}
        best = self.optimal.mean(axis=0)
        order = np.argsort(self.separations)
        signs = ", which may change sign," if planted.flips else ""
        lead = (
            f"Share of draws whose labels come out wrong, where {planted.components} components{signs} lie so many "
            "standard deviations apart. In the long run no rule does better than the last column: what lies above "
            "it is the rule's own failure, and the rest is overlap."
        )
        rows = tuple(
            (
                number(self.separations[i]),
                *(
                    f"{100 * s[i]:.2g} %" if s[i] < 0.995 else "100 %"
                    for s in (*means.values(), best)
                ),
            )
            for i in order[:MOST]
        )
        of = f"{planted.repeats} posteriors of {planted.draws:,} draws, seed {planted.seed}"
        more = f", the first {MOST} of {len(order)}" if len(order) > MOST else ""
        names = ("", *(_RULES.get(name, name) for name in means), "best possible")
        table = Table(names, rows, f"separation: draws labelled wrongly ({of}){more}")
        return Card("How often alignment is wrong", (Words(lead), table))


@checks_arguments
def failure_rates(
    separations: Sequence[float] | np.ndarray,
    planted: PlantedComponents | None = None,
    *,
    rules: Sequence[str] = tuple(RULES),
) -> FailureRates:
    """Measure how often each reference of `ob.align` gets a draw's labels wrong, next to the best that any rule can do.

    Parameters
    ----------
    separations : sequence of float, or array (separation,)
        Distances between neighbouring means, in units of a component's standard deviation; not negative.
    planted : PlantedComponents, optional
        What is planted; three components of two features by default.
    rules : sequence of str
        Some of ``draw``, ``mean``, ``gaussian`` and ``posterior``: another posterior, whose mean is the true one.

    Returns
    -------
    FailureRates
        `rates` of each rule and the `optimal` rate, each (repeat, separation), as shares of draws.

    Raises
    ------
    ValueError
        If a separation is negative or not finite, or a rule unknown.

    Notes
    -----
    The best rule knows the planted means and standard deviations and takes the most probable of all elements of the
    group: Bayes's rule under the zero-one loss.

    Examples
    --------
    >>> planted = ob.truth.PlantedComponents(components=2, draws=200, repeats=2)
    >>> found = ob.truth.failure_rates([1.0, 4.0], planted, rules=("gaussian",))
    >>> found.optimal.shape
    (2, 2)
    >>> bool(found.rates["gaussian"][:, 1].mean() < found.rates["gaussian"][:, 0].mean())
    True
    """
    planted = PlantedComponents() if planted is None else planted
    check_class("planted", planted, PlantedComponents, remedy="give PlantedComponents(...)")
    distances = as_numbers("separations", separations)
    if (
        distances.ndim != 1
        or not len(distances)
        or not np.isfinite(distances).all()
        or (distances < 0).any()
    ):
        raise ArgumentError(
            f"`separations` is {separations!r}; give a list of distances that are finite and not negative."
        )
    for rule in rules:
        if rule not in RULES:
            raise ArgumentError(f"`rules` holds {rule!r}; choose from {', '.join(RULES)}.")
    seeds = np.random.SeedSequence(planted.seed).spawn(planted.repeats)
    repeats = [_repeat(planted, distances, rules, np.random.default_rng(seed)) for seed in seeds]
    shares = np.moveaxis(np.array(repeats), 2, 0)
    rates = dict(zip(rules, shares[1:], strict=True))
    return FailureRates(planted, distances, rates, optimal=shares[0])


def _repeat(
    planted: PlantedComponents,
    distances: np.ndarray,
    rules: Sequence[str],
    rng: np.random.Generator,
) -> list[list[float]]:
    """Shares of one posterior: a row a separation, the best rule's first."""
    group = planted.group
    noise = rng.standard_normal((planted.draws, planted.components, planted.features))
    hidden = group.random(rng, (planted.draws,))
    rows = []
    for separation in distances:
        clean = {"component": planted.means(separation) + planted.widths * noise}
        seen = group.act(hidden, clean)["component"]
        best = group.compose(hidden, best_elements(seen, planted, separation))
        row = [_share_moved(best, group)]
        for rule in rules:
            truth = planted.means(separation)[None]
            reference = _dataset(truth) if rule == "posterior" else rule
            scales = {"component": 1.0}
            found = align(_dataset(seen), group.symmetry, reference=reference, scales=scales)
            left = group.compose(hidden, flatten(found.element))
            # Another posterior has the true labels, as the best rule does.
            row.append(_share_moved(left, group) if rule == "posterior" else _share_apart(left))
        rows.append(row)
    return rows


def best_elements(
    seen: Float[np.ndarray, "draw component feature"], planted: PlantedComponents, separation: float
) -> Element:
    """Give the most probable element that brings each draw back, knowing what was planted.

    `seen` are draws (draw, component, feature), moved by elements that are all as probable; `separation` is the
    distance between neighbouring means.
    """
    elements = [part for element in planted.group.elements() for part in permuted_parts(element)]
    orders = np.stack([part.permutation for part in elements])
    signs = np.stack(
        [np.ones(planted.components) if p.signs is None else p.signs for p in elements]
    )
    # Log densities of a component (axis 1) at a place (axis 2), as it is and with its sign changed (last axis).
    both = seen[:, :, None, None, :] * np.array([1.0, -1.0])[:, None]
    gap = (both - planted.means(separation)[:, None, :]) / planted.widths[:, None]
    densities = -0.5 * (gap**2).sum(axis=-1)  # and a term that is the same for every element
    total = np.zeros((len(seen), len(elements)))
    for place in range(planted.components):
        total += densities[:, orders[:, place], place, (signs[:, place] < 0).astype(int)]
    best = total.argmax(axis=1)
    return (Permuted(orders[best], signs[best] if planted.flips else None),)


def _dataset(values: np.ndarray) -> xr.Dataset:
    return xr.Dataset({"component": (("chain", "draw", "which", "feature"), values[None])})


def _share_moved(left: Element, group: Group) -> float:
    """Share of draws with another element than the identity."""
    return float((_codes(left) != _codes(group.identity((1,)))).mean())


def _share_apart(left: Element) -> float:
    """Share of draws with another element than the most frequent one in the other half of the draws."""
    codes = _codes(left)
    halves = codes[::2], codes[1::2]
    wrong = 0
    for own, other in (halves, halves[::-1]):
        values, counts = np.unique(other, return_counts=True)
        wrong += int((own != values[counts.argmax()]).sum())
    return wrong / len(codes)


def _codes(element: Element) -> Int[np.ndarray, " draw"]:
    (part,) = permuted_parts(element)
    size = part.permutation.shape[-1]
    digits = 2 * part.permutation.astype(np.int64)
    if part.signs is not None:
        digits += part.signs < 0
    return digits @ (2 * size) ** np.arange(size)
