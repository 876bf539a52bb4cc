"""Comparison of posteriors of one model with a chosen truth: predictions, and draws modulo the symmetry.

Distances are distances to the truth; scores use labels or targets. The row `baseline` compares the second half of the
truth (of its chains, or of the draws of a single chain) with the first half. It uses only half of the draws on each
side, so it is noisier than the other rows. Posteriors with values near the baseline cannot be distinguished from the
truth. In weight space, only the half of the truth that was not used for labels and scales is compared, and the baseline
splits this half again.

The measures are not combined, because a posterior may predict like the truth although its draws differ, or the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from onebasin.base.checks import check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry, spell, spelt_options
from onebasin.posteriors import references, schema
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..diagnostics.diagnose import Carried, carried
from ..discovery.resolve import Resolved, resolve
from ..predictive.predictions import (
    CLASS_DISTANCES,
    CLASS_SCORES,
    REGRESSION_DISTANCES,
    REGRESSION_SCORES,
    Points,
    distances,
    inputs_of,
    predict_points,
)
from .comparable import (
    CommonFrame,
    check_comparable,
    fit_frame,
    halves,
    labels_between,
    share_draws,
    shared_variables,
    unlike_weights,
)
from .comparison import BASELINE, MOMENTS, WEIGHTS, Account, Comparison
from .distances import MomentComparison, compare_moments, rhat_of, two_sample

Progress = Callable[[int, int], None]
Rows = dict[str, dict[str, Any]]
_COLUMNS = {
    "parameters": MOMENTS,
    "classification": (*CLASS_DISTANCES, *CLASS_SCORES),
    "regression": (*REGRESSION_DISTANCES, *REGRESSION_SCORES),
}


@checks_arguments
def compare(
    posteriors: Mapping[str, Posterior],
    *,
    truth: str | None = None,
    x: Any = None,
    y: Any = None,
    weights: bool = True,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    var_names: Sequence[str] | None = None,
    permutations: int = 499,
    seed: int = 0,
    progress: Progress | None = None,
    diagnoses: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare the predictions of posteriors, and their draws modulo the symmetry, with those of one of them.

    Parameters
    ----------
    posteriors : mapping of str to posterior
        At least two posteriors of the same model and data, or one if `truth` is a reference. Networks may have
        different parametrisations. Each may have any form that `ob.diagnose` accepts.
    truth : str, optional
        Name of the posterior with which the others are compared (by default the first), or name of a reference
        posterior (`ob.truth.references()`).
    x : array (obs, in), optional
        Inputs for predictions; by default the training inputs stored in the truth.
    y : array (obs,) or (obs, out), optional
        Labels or targets at `x`, which are needed for scores.
    weights : bool
        Whether to compare the draws of the weights, too.
    symmetry : tuple of blocks, str or sequence of str, optional
        The symmetry. By default it is the symmetry declared by the truth, or by another posterior, or found by
        `diagnose` in draws that are "usable after alignment".
    var_names : sequence of str, optional
        Variables whose draws are compared: by default all weights of a network, or otherwise the variables that all
        posteriors have with the same shape. With a symmetry, computed quantities are left out if they may be indexed by
        component and the symmetry does not move them. The notes and warnings name them.
    permutations : int
        Number of permutations for each p-value.
    seed : int
        Seed of the permutations and of the noise in predictions.
    progress : callable, optional
        Called with the number of draws processed and the total, for each alignment.
    diagnoses : mapping of str to Diagnosis, optional
        Results of `ob.diagnose` for some of these posteriors, if you have them. The others are diagnosed here.

    Returns
    -------
    Comparison
        A table with one row per posterior, and its meaning in words.

    Raises
    ------
    TypeError
        If a posterior is not a `DataTree`, and ArviZ cannot convert it.
    ValueError
        If there are fewer than two posteriors, if `truth` is neither one of them nor a reference, if networks or data
        differ, if there are no inputs for predictions, or if inputs do not fit the network.

    References
    ----------
    Székely and Rizzo 2013, Energy statistics, Journal of Statistical Planning and Inference 143(8), equation 2.1
    (energy distance). Gneiting and Raftery 2007, JASA 102(477) (scores).

    Examples
    --------
    >>> fit = ob.approximations.fit_gaussian(ob.align(posterior).posterior).sample(300, seed=1)
    >>> comparison = ob.compare({"NUTS": posterior, "Gaussian": fit}, truth="NUTS", permutations=99)
    >>> comparison.table.index.tolist()
    ['NUTS', 'Gaussian', 'baseline']
    """
    check_count("permutations", permutations, most=10**6)
    check_seed(seed)
    truth = next(iter(posteriors), "") if truth is None else truth
    is_reference = truth not in posteriors and truth in references.names()
    if is_reference:
        posteriors = {truth: references.open_reference(truth), **posteriors}
    _check_names(posteriors, truth)
    named = {truth: posteriors[truth]} | dict(posteriors)
    views = {name: as_view(posterior, f"posteriors[{name!r}]") for name, posterior in named.items()}
    check_comparable(views, truth)
    model = views[truth].network
    at_hand = diagnoses or {}
    judged = {n: carried(v, at_hand.get(n), "draws", label_free=False) for n, v in views.items()}
    resolved = resolve(views[truth], symmetry)
    if symmetry is None and model is None and not resolved.equal_modes:
        resolved = _of_another(views, judged) or resolved
    points = _points(views[truth], truth, x, y)
    rows: Rows = {name: {} for name in (*views, BASELINE)}
    if model is not None and points is not None:
        _predict(rows, views, truth, points, seed)
    frame, obstacles, shared = None, {}, None
    moments: dict[str, MomentComparison] = {}
    labels: dict[str, tuple[str, ...]] = {}
    if weights or model is None:
        blocks, names = resolved.equal_modes, var_names
        for block in blocks:
            block.check(event_shapes(views[truth].posterior))
        if model is None and var_names is None:
            shared = shared_variables(views, blocks)
            names = shared.names
            blocks = tuple(b for block in blocks if (b := block.restricted(names)) is not None)
        frame = fit_frame(views[truth], blocks, var_names=names, progress=progress)
        obstacles = _obstacles(views, truth, frame)
        compared = {name: view for name, view in views.items() if name not in obstacles}
        # For a network, the half of the truth that was not used for the common labelling is enough.
        rest = {truth: frame.rest} if model is not None else {}
        aligned = {
            name: frame.align(rest.get(name, view), progress=progress)
            for name, view in compared.items()
        }
        names, rhat = tuple(frame.shapes), None
        if model is None:
            whole = aligned[truth]
            aligned[truth] = halves(whole)[1]
            rhat = rhat_of(whole, names)
            # The labels of a reference do not depend on its draws, so all its draws are compared.
            against = whole if is_reference else aligned[truth]
        if weights:
            _weigh(rows, aligned, truth, frame, permutations, seed)
        for name, view in aligned.items() if model is None else ():
            if name != truth:
                found = compare_moments(against, view, var_names=names, rhat=rhat)
                rows[name] |= {column: getattr(found, column) for column in MOMENTS}
                moments[name] = found
                if not blocks and (found.verdict == "differ" or found.gated):
                    labels[name] = labels_between(views[truth], views[name], names)
    kind = "classification" if model is not None and model.is_classifier else "regression"
    kind = "parameters" if model is None else kind
    filled = {c: [row.get(c) for row in rows.values()] for c in (*_COLUMNS[kind], *WEIGHTS)}
    table = pd.DataFrame(filled, index=pd.Index(rows, name="posterior"))
    table = table.astype({c: float for c in table if c != "verdict"})
    aligned_by = frame.alignment if frame else None
    account = Account(
        table,
        truth,
        targets={name: str(view.attribute(schema.TARGET, "")) for name, view in views.items()},
        points=points,
        own_points=x is None,
        rule=aligned_by.text if aligned_by else "",
        caveat=resolved.caveat if aligned_by and resolved.source != "found" else "",
        found=resolved.caveat if aligned_by and resolved.source == "found" else "",
        permutations=permutations if weights else 0,
        shared=shared,
        obstacles=obstacles,
        labels=labels,
        unusable={n: each.sentence for n, each in judged.items() if each.answer == "unusable"},
        unmixed=next((found.unmixed for found in moments.values()), ()),
        copies=[n for n, v in views.items() if n != truth and share_draws(v, views[truth])],
    )
    told = tuple(account.notes()), tuple(account.warnings())
    return Comparison(kind, truth, table, *told, moments, not is_reference, frame)


def _of_another(views: Mapping[str, View], judged: Mapping[str, Carried]) -> Resolved | None:
    """Return the symmetry that another posterior declares, or that `diagnose` found in its draws."""
    for view in views.values():
        if (own := resolve(view)).equal_modes:
            return own
    for name, each in judged.items():
        aligned = each.diagnosis.aligned if each.diagnosis else None
        if each.answer == "aligned" and aligned is not None:
            symmetry = aligned.alignment.symmetry
            caveat = (
                f"No file declares a symmetry, but labels switch in the draws of `{name}`. All posteriors are compared "
                f"modulo the symmetry found there, {spelt_options(tuple(map(spell, symmetry)))}."
            )
            return replace(resolve(views[name], symmetry), source="found", caveat=caveat)
    return None


def _check_names(posteriors: Mapping[str, Posterior], truth: str) -> None:
    if len(posteriors) < 2:
        raise ArgumentError(
            f"A comparison needs at least two posteriors, but `posteriors` has {len(posteriors)}. Add a posterior, "
            "or name a reference with `truth`."
        )
    if truth not in posteriors:
        raise ArgumentError(
            f"`truth` is {truth!r}, which is neither a posterior nor a reference. Choose one of the posteriors "
            f"({', '.join(posteriors)}) or of the references ({', '.join(references.names())})."
        )
    if BASELINE in posteriors:
        raise ArgumentError(
            f"`posteriors` has an entry named {BASELINE!r}, but this name is reserved for the baseline. Rename the "
            "entry."
        )


def _points(truth: View, name: str, x: Any, y: Any) -> Points | None:
    if x is None and y is not None:
        raise ArgumentError("`y` is given without `x`: give the inputs `x` as well.")
    if truth.network is not None:
        return Points.of(truth.network, inputs_of(truth, x), truth.y if x is None else y)
    if x is not None:
        raise ArgumentError(
            f"`x` is given, but `{name}` is not the posterior of a network (the attribute `model` is empty): omit "
            "`x`."
        )
    return None


def _predict(rows: Rows, views: Mapping[str, View], truth: str, points: Points, seed: int) -> None:
    """Add measures of predictions to the rows, using each posterior's own network."""
    model = views[truth].network
    assert model is not None
    first, second = halves(views[truth])
    measured = dict(views) | {BASELINE: second}
    predicted = {
        name: predict_points(view.network or model, view, points, seed=seed)
        for name, view in measured.items()
    }
    for name, ours in predicted.items():
        rows[name] |= ours.scores
        if name != truth:
            whole = name != BASELINE
            theirs = predicted[truth] if whole else predict_points(model, first, points, seed=seed)
            rows[name] |= distances(ours, theirs, classifier=model.is_classifier)


def _obstacles(views: Mapping[str, View], truth: str, frame: CommonFrame) -> dict[str, str]:
    """Explain, by name, why the weights of some posteriors cannot be compared with those of the truth."""
    model, obstacles = views[truth].network, {}
    for name, view in views.items():
        if name == truth:
            continue
        why = unlike_weights(model, view.network) if model and view.network else ""
        try:
            frame.check(view)
        except ValueError as error:
            if model is None:
                raise
            why = why or str(error)
        if why:
            obstacles[name] = why
    return obstacles


def _weigh(
    rows: Rows,
    aligned: Mapping[str, View],
    truth: str,
    frame: CommonFrame,
    permutations: int,
    seed: int,
) -> None:
    """Add distances between draws to the rows."""
    samples = {name: frame.sample(view) for name, view in aligned.items()}
    pairs = {name: (samples[truth], other) for name, other in samples.items() if name != truth}
    first, second = (frame.sample(half) for half in halves(aligned[truth]))
    for name, pair in (pairs | {BASELINE: (first, second)}).items():
        rows[name] |= two_sample(*pair, permutations=permutations, seed=seed)._asdict()
        rows[name]["num_draws"] = len(pair[1])
    rows[truth]["num_draws"] = len(samples[truth])
