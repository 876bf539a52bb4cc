"""A run of any method compared with its reference posterior: in weights modulo symmetry and in prediction.

Conclusions are sentences; `backticks` set a name in code type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from onebasin.base.arguments import checks_arguments
from onebasin.base.card import number
from onebasin.base.checks import check_seed
from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws, variable_of
from onebasin.posteriors.view import Posterior, View, as_view

from ...predictive.points import (
    CLASS_DISTANCES,
    REGRESSION_DISTANCES,
    Points,
    distances,
    predict_points,
)
from ...summaries.quantiles import describe
from ..comparable import check_comparable, labelled_as, unlike_weights
from ..frame import halves
from ..result import PREDICTIONS
from .judging import FALSE_ALARM, INVARIANT, PARAMETER, SEEN, Judged, differences, judge, why_not
from .known import Known, known_of
from .result import ReferenceComparison

Progress = Callable[[int, int], None]


@checks_arguments
def compare_with_reference(
    posterior: Posterior,
    reference: Any,
    *,
    name: str = "the run",
    x: Any = None,
    y: Any = None,
    weights: bool = True,
    var_names: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ReferenceComparison:
    """Say how far a run of any method is from a reference posterior, and whether that is more than Monte Carlo error.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The run, in any form that `ob.diagnose` takes. Draws of fits and ensembles count as independent ones.
    reference : Reference, or a posterior
        What `ob.truth.open_reference` returned; or draws that are taken for the truth, such as a long run of NUTS.
    name : str
        What sentences call the run.
    x : array (obs, in), optional
        Inputs at which a network's predictions are compared; by default those that it was fitted to.
    y : array (obs,) or (obs, out), optional
        Labels or targets at `x`; without them nothing is scored.
    weights : bool
        Whether parameters are compared too, or only label-free quantities, and predictions.
    var_names : sequence of str, optional
        Variables whose entries are compared; by default all that the reference knows.
    seed : int
        Of the noise of predictions.
    progress : callable, optional
        Called with draws gone through and draws in all, while they are aligned.

    Returns
    -------
    ReferenceComparison
        A verdict in words, what it rests on, and every quantity's differences.

    Raises
    ------
    TypeError
        If the run is no posterior.
    ValueError
        If the run is of another model, lacks a variable, has an entry that is not finite, or has fewer than 4 draws a
        chain; or if points do not fit the network.

    See Also
    --------
    compare : posteriors compared with one of them, by their draws.

    Notes
    -----
    Every draw is matched with the reference's canonical labelling, then mean, 5 % quantile, median and 95 % quantile of
    every quantity are compared with the known ones. R-hat and ESS come first: a run that has not converged modulo the
    symmetry cannot be judged.

    References
    ----------
    Magnusson et al. 2025, posteriordb, AISTATS (reference posteriors). Vehtari et al. 2021, Bayesian Analysis 16(2)
    (Monte Carlo errors of quantiles).

    Examples
    --------
    >>> fit = ob.advi(target, family="meanfield", seed=1)
    >>> found = ob.truth.compare_with_reference(fit, posterior, name="mean-field")
    >>> found.table.loc["theta", ["d_mean", "sd_ratio"]].shape
    (2,)
    """
    check_seed(seed)
    view = as_view(posterior)
    view.check_sampled()
    known = getattr(reference, "known", reference)  # of a reference posterior of the repository
    known = known if isinstance(known, Known) else known_of(known, progress=progress)
    check_run(view, known, name)
    if known.draws.network is not None and view.network is None:
        # Such as a file of plain draws, which does not say what network it is of: of the reference's.
        tree = view.tree.copy()
        tree.attrs = {**view.tree.attrs, schema.MODEL: known.draws.attribute(schema.MODEL)}
        for group, data in known.draws.data.items():
            if group not in tree.children:
                tree[group] = xr.DataTree(data)
        view = as_view(tree, view.argument)
    view = labelled_as(view, known.draws, known.variables)
    free = view.is_independent
    chains = 0 if free else view.num_chains
    try:
        measured = known.measure(view)
    except KeyError as absent:
        raise ArgumentError(
            f"`{view.argument}` lacks {absent.args[0]}, of which the invariants of `{known.name}` are: give a run of "
            "the same model, its variables under the same names."
        ) from absent
    names = list(known.invariants.index)
    table = [_differences(measured, names, known.invariants, chains, free, INVARIANT)]
    rule = ""
    if weights and len(known.parameters):
        aligned, rule = known.align(view, progress)
        table.append(_parameters(aligned, known, var_names, chains, free))
    whole = pd.concat([part for part in table if len(part)] or table)
    judged = judge(whole)
    predictions = _predictions(view, known, x, y, seed)
    return ReferenceComparison(
        name=name,
        reference=known.name,
        verdict=judged.verdict,
        sentences=tuple(_sentences(known.name, judged, chains, predictions)),
        table=whole,
        z_bound=judged.tests.bound if judged.tests.number else math.nan,
        tests=judged.tests.number,
        beyond=judged.tests.beyond,
        visible=judged.tests.visible,
        visible_tail=judged.tests.visible_tail,
        predictions=predictions,
        notes=tuple(note for note in (*notes(judged, rule), known.caveat) if note),
    )


def _sentences(
    reference: str, judged: Judged, chains: int, predictions: Mapping[str, float]
) -> list[str]:
    said: list[str] = []
    if judged.verdict == "cannot be judged":
        why, remedy = why_not(judged.failed, chains)
        said += [f"Cannot be compared with `{reference}`: {why[:1].lower()}{why[1:]} {remedy}"]
    elif judged.verdict == "differs":
        said += difference(reference, judged)
    else:
        said += agreement(reference, judged)
    if len(judged.failed) and len(judged.rows):
        why, remedy = why_not(judged.failed, chains)
        said.append(
            f"Its {judged.failed['kind'].iloc[0]}s are not judged: {why[:1].lower()}{why[1:]} {remedy}"
        )
    if told := prediction(predictions):
        said.append(told)
    return said


def check_run(view: View, known: Known, name: str) -> None:
    """Refuse a run of another model, or without a variable that is known."""
    if view.network is not None and known.draws.network is not None:
        check_comparable({known.name: known.draws, name: view}, known.name)
        unlike = unlike_weights(known.draws.network, view.network)
        if unlike:
            raise ArgumentError(
                f"`{view.argument}` is {unlike}, as `{known.name}` is: compare it with a reference of its own "
                "parametrisation."
            )
    there = view.variables
    absent = [each for each in known.variables if each not in there]
    if absent:
        raise ArgumentError(
            f"`{view.argument}` lacks {', '.join(absent)}, which `{known.name}` holds, and has {', '.join(there)}: "
            "give a run of the same model, its variables under the same names."
        )
    for each in known.variables:
        shapes = [one.values(each).shape[2:] for one in (view, known.draws)]
        if shapes[0] != shapes[1]:
            raise ArgumentError(
                f"`{view.argument}` holds {each} of shape {shapes[0]}, and `{known.name}` of shape {shapes[1]}: give a "
                "run of the same model and data."
            )


def _parameters(
    aligned: View, known: Known, var_names: Sequence[str] | None, chains: int, free: bool
) -> pd.DataFrame:
    wanted = known.variables if var_names is None else tuple(dict.fromkeys(var_names))
    unknown = [each for each in wanted if each not in known.variables]
    if unknown or not wanted:
        raise ArgumentError(
            f"`var_names` asks for {', '.join(unknown) or 'nothing'}, which `{known.name}` does not hold; it holds "
            f"{', '.join(known.variables)}."
        )
    names = [row for row in known.parameters.index if variable_of(row, wanted) in wanted]
    return _differences(aligned.draws(wanted), names, known.parameters, chains, free, PARAMETER)


def _differences(
    draws: Draws, names: list[str], known: pd.DataFrame, chains: int, free: bool, kind: str
) -> pd.DataFrame:
    absent = [each for each in names if each not in set(draws.names)]
    if absent:
        raise ArgumentError(
            f"`posterior` lacks {', '.join(absent[:6])}, of which the reference tells: give a run of the same model."
        )
    described = describe(draws, independent=free)
    table = differences(known.loc[names], described.loc[names], chains=chains)
    table.insert(0, "kind", kind)
    return table


def _predictions(view: View, known: Known, x: Any, y: Any, seed: int) -> dict[str, float]:
    """Distances of predictions from the reference's, and what its halves differ by; empty where there is no network."""
    model = known.draws.network
    if model is None:
        if x is not None:
            raise ArgumentError(
                f"`x` is given, but `{known.name}` is of no network that could predict there: leave `x` out."
            )
        return {}
    inputs, outputs = (known.draws.x, known.draws.y) if x is None else (x, y)
    if inputs is None:
        return {}
    points = Points.of(model, inputs, outputs)
    classifier = model.is_classifier
    parts = (view, known.draws, *halves(known.draws))
    ours, truth, first, second = (predict_points(model, part, points, seed=seed) for part in parts)
    apart = distances(ours, truth, classifier=classifier)
    floor = distances(second, first, classifier=classifier)
    kept = CLASS_DISTANCES if classifier else REGRESSION_DISTANCES
    scores = {f"{each}_known": value for each, value in truth.scores.items()}
    return {
        **{each: apart[each] for each in kept},
        **{f"{each}_floor": floor[each] for each in kept},
        **ours.scores,
        **scores,
    }


STATISTICS = {"mean": "mean", "q5": "5 % quantile", "q50": "median", "q95": "95 % quantile"}
SMALL = 0.05
"""Share by which a 90 % interval has to be too narrow or too wide to be reported."""
_SLIGHT = 0.1
"""Sds below which a difference is called small."""


def agreement(reference: str, judged: Judged) -> Iterator[str]:
    """Say that nothing differs, and what would have been seen."""
    tests, of = judged.tests, judged.rows["kind"]
    counts = {kind: int((of == kind).sum()) for kind in (INVARIANT, PARAMETER)}
    kinds = " and ".join(f"{n} {kind}{'s' * (n != 1)}" for kind, n in counts.items() if n)
    part = " in label-free quantities" if judged.verdict == "agrees in part" else ""
    yield (
        f"Agrees with `{reference}`{part}, as far as its Monte Carlo error can see: none of {kinds} differs by more "
        "than chance."
    )
    yield (
        f"An error of {number(tests.visible, 2)} sds in a mean, or of {number(tests.visible_tail, 2)} sds in a 5 or "
        f"95 % quantile, would have been seen in any of them (with probability {SEEN:g})."
    )


def difference(reference: str, judged: Judged) -> Iterator[str]:
    """Say what differs, the largest difference first."""
    tests = judged.tests
    rows = judged.rows.loc[list(tests.beyond)]
    shares = [
        f"{len(own)} of {len(judged.rows[judged.rows['kind'] == kind])} {kind}s"
        for kind in (INVARIANT, PARAMETER)
        if len(own := rows[rows["kind"] == kind])
    ]
    yield (
        f"Differs from `{reference}` by more than Monte Carlo error, in {' and '.join(shares)}: "
        f"{'; '.join(_told(rows, judged))}."
    )
    largest = tests.largest
    if largest is not None and abs(largest.d) < _SLIGHT:
        yield f"That is small, below {_SLIGHT:g} sds, but more than chance."


def _told(rows: pd.DataFrame, judged: Judged) -> Iterator[str]:
    bound, largest = judged.tests.bound, judged.tests.largest
    means = rows.loc[rows["z_mean"].abs() > bound, "d_mean"]
    if len(means):
        name = means.abs().idxmax()
        yield f"the mean of `{name}` lies {_sds(means[name])}"
    tails = rows.loc[(rows[["z_q5", "z_q95"]].abs() > bound).any(axis=1), "width_ratio"].dropna()
    widths = [tails.idxmin(), tails.idxmax()] if len(tails) else []
    for name, sign in zip(widths, (-1, 1), strict=False):
        excess = tails[name] - 1
        if sign * excess > SMALL:
            how = "too narrow" if excess < 0 else "too wide"
            yield f"the 90 % interval of `{name}` is {100 * abs(excess):.0f} % {how}"
    told = len(means) or any(abs(tails[name] - 1) > SMALL for name in widths)
    if largest is not None and not told:
        yield f"the {STATISTICS[largest.statistic]} of `{largest.quantity}` lies {_sds(largest.d)}"


def _sds(d: float) -> str:
    if math.isinf(d):
        return "elsewhere, and neither varies"
    return f"{number(abs(d), 2)} sds too {'high' if d > 0 else 'low'}"


def prediction(predictions: Mapping[str, float]) -> str:
    """Say how far predictions are apart, and how far the reference's own halves are."""
    for measure, text in PREDICTIONS.items():
        if measure in predictions:
            apart, floor = (number(predictions[m], 2) for m in (measure, f"{measure}_floor"))
            said = text.format(apart)
            said = f"{said[:1].upper()}{said[1:]}"
            return f"{said}; two halves of the reference's kept draws are {floor} apart."
    return ""


def notes(judged: Judged, rule: str) -> Iterator[str]:
    """Say how it was judged."""
    tests = judged.tests
    if tests.number:
        yield (
            f"Mean, 5 % quantile, median and 95 % quantile are compared with the reference's: {tests.number} tests "
            f"share one bound, |z| above {tests.bound:.2f} (Bonferroni), so that a run which is right is said to "
            f"differ with a probability of at most {FALSE_ALARM:g}. z is the difference over the Monte Carlo errors "
            "of both sides, d the same over the reference's sd; sds are not tested, as quantiles see the same."
        )
    if rule:
        yield rule
