"""Alignment of posterior draws modulo a declared symmetry ("rebasin").

A posterior over interchangeable components contains many copies of the same mode. Alignment moves every draw by the
group element that brings it closest to a reference. Densities and predictions do not change, and the means, standard
deviations and R-hat of single components become meaningful.

Alignment does not show that draws share a mode, because it also brings noise closer to a reference (see `switching`),
or that components are distinct. If components overlap, aligned marginals depend on the rule, so store the rule.

Scales: the variables of a network are divided by the prior's standard deviations, other variables by their spread in
the draws (or by 1 if they never vary).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.card import in_brief
from onebasin.base.checks import check_inputs, check_positive, checks_arguments, choose
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import DensityAtDraws, Posterior, View, as_view

from ..discovery.candidates import nearly_exchangeable
from ..discovery.resolve import LISTED, Resolved, advice, check_left_behind, resolve
from .alignment import (
    REFERENCES,
    Alignment,
    AlignmentReference,
    AlignmentRule,
    AlignmentTarget,
    about,
    distance,
)
from .descent import Matched, MatchingProblem, iterate, match
from .draws import MAX_BYTES, Arrays, take, workers
from .features import Features, find_features, whole_element

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork

Progress = Callable[[int, int], None]


@checks_arguments
@np.errstate(over="ignore", invalid="ignore")  # Squares of numbers near 1e300 overflow.
def align(
    posterior: Posterior,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    *,
    reference: str | Alignment | AlignmentTarget | Posterior = "gaussian",
    reference_draw: tuple[int, int] = (0, 0),
    cost: str = "weights",
    x: Any = None,
    scales: Mapping[str, float] | None = None,
    gauge: str = "balanced",
    restarts: int = 1,
    max_sweeps: int = 15,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
    threads: int | None = None,
    progress: Progress | None = None,
    log_density: DensityAtDraws | None = None,
    apply: Callable[[Any, Any], Any] | None = None,
    diagnosis: Any = None,
) -> Alignment:
    """Align a posterior's draws, or trained networks of any architecture.

    Parameters
    ----------
    posterior : DataTree, what ArviZ converts to one, or a mapping of names to networks
        Draws (chain, draw, ...). Computations use the precision of the stored draws. Networks are trees of
        arrays, such as the parameters of Flax, Equinox or plain JAX.
    symmetry : Symmetry, str or sequence of str, optional
        The symmetry, as blocks or in the notation of ``--exchangeable``: ``"mu,sigma,1-theta"`` (one string per block).
        By default the declared symmetry, or otherwise the symmetry found in the draws (recorded in `found`).
    reference : {"gaussian", "mean", "draw"}, Alignment, DataTree or Dataset
        The reference with which draws are matched. ``"gaussian"``: a diagonal Gaussian fitted to the aligned draws,
        iterated (Stephens 2000). ``"mean"``: their mean, iterated, which confuses components of different spread.
        ``"draw"``: one draw. An `Alignment` or its `target`: the same reference, weights and scales. A posterior: its
        mean; align it first. For networks, the name of one; by default the first of two, or the mean of more than two.
    reference_draw : tuple of int
        Chain and draw of the reference, or of the start of the iteration. The components of this draw keep their
        labels.
    cost : {"weights", "activations"}
        Squared distance between all entries of components, or between the activations of hidden units on `x`.
    x : array (obs, in), optional
        Inputs for activations; by default those in the group `constant_data`. For networks, example inputs of `apply`.
    scales : mapping of str to float, optional
        Divisors of the variables. If the reference is an alignment, its scales are the default. Otherwise the default
        is the prior's standard deviations for networks, and the spread of the draws for other posteriors.
    gauge : {"balanced", "unit", "keep"}
        How positive scalings (`Rescalable`) are removed first: give each unit's incoming and outgoing weights equal
        norms, give its incoming weights norm 1, or scale nothing.
    restarts : int
        Number of starts: draws from which the iteration starts, and random elements if blocks share variables.
    max_sweeps : int
        Maximum number of sweeps from each start.
    seed : int
        Seed of the random starts.
    max_bytes : int
        Approximate limit of the memory used in addition to the draws.
    threads : int, optional
        Number of threads; by default one per core. The result does not depend on it.
    progress : callable, optional
        Called with the number of draws processed and the total, over all sweeps.
    log_density : callable, optional
        Function from draws (a Dataset) to their log density in nats (chain, draw), such as ``lambda draws:
        ob.log_density(target, draws)``. It is evaluated before and after alignment at every draw that moved, and must
        agree up to rounding.
    apply : callable, optional
        For networks: function from a network's parameters and `x` to its outputs. The symmetry must not change the
        outputs.
    diagnosis : Diagnosis, optional
        The result of `ob.diagnose` for this posterior, if you have it. Its symmetry is then reused, and so is its
        alignment if the other arguments have their default values.

    Returns
    -------
    Alignment
        Elements, reference, costs and the aligned posterior. For networks an `AlignedNetworks`, whose trees keep their
        structure.

    Raises
    ------
    TypeError
        If `posterior` or `reference` is not a `DataTree`, and ArviZ cannot convert it.
    ValueError
        If there is nothing to align: no symmetry is declared, and no labels switch in the draws. If a variable is
        missing, lacks an axis or is not finite; if an option is unknown; if the reference has different shapes; or if
        activations lack inputs or a network. If alignment would change the log density, or move only some of the
        variables that switch together.

    References
    ----------
    Ainsworth, Hayase and Srinivasa 2023, Git Re-Basin, sections 3.1 and 3.2. Stephens 2000, Dealing with label
    switching in mixture models, JRSS B 62(4). Xiao, Liu and Bamler 2023, A compact representation for Bayesian neural
    networks by removing permutation symmetry (they match the activations of one draw).

    Examples
    --------
    >>> aligned = ob.align(posterior)  # uses the symmetry that the target declares
    >>> aligned.posterior["posterior"]["mu"].shape
    (4, 300, 2)
    >>> bool((aligned.distance_after <= aligned.distance_before + 1e-9).all())
    True
    """
    if are_networks(posterior):
        if cost != "weights" or scales is not None:
            raise ArgumentError(
                "`cost` and `scales` apply only to posteriors. Omit these arguments to align networks."
            )
        own = partial(
            align,
            restarts=restarts,
            max_sweeps=max_sweeps,
            seed=seed,
            max_bytes=max_bytes,
            threads=threads,
            progress=progress,
        )
        from .trees import align_trees  # Few callers need it.

        return align_trees(posterior, symmetry, apply, x, reference, own)
    words = choose("reference", reference, REFERENCES) if isinstance(reference, str) else None
    earlier = reference if isinstance(reference, Alignment) else None
    aim = earlier.target if earlier else reference
    rule = AlignmentRule(
        reference=words or ("alignment" if isinstance(aim, AlignmentTarget) else "posterior"),
        reference_draw=reference_draw,
        cost=cost,
        gauge=gauge,
        restarts=restarts,
        max_sweeps=max_sweeps,
        seed=seed,
    )
    done = None if diagnosis is None or symmetry is not None else diagnosis.aligned
    if done is not None and not scales and replace(done.alignment.rule, scales={}) == rule:
        return replace(done.alignment, found=diagnosis.exchangeable)
    view = as_view(posterior, log_density=log_density)
    resolved = choose_symmetry(view, done.alignment.symmetry if done else symmetry)
    activations = choose_inputs(view, cost, x)
    with workers(threads) as team:
        find = partial(
            find_features,
            declared=resolved.blocks,
            gauge=gauge,
            team=team,
            max_bytes=max_bytes,
            activations=activations,
        )
        features = find(view).in_units()
        units = features.units
        for word in ("cost", "gauge"):
            ours = getattr(rule, word)
            theirs = getattr(earlier.rule, word) if earlier else ours
            if theirs != ours:
                raise ArgumentError(
                    f"The alignment in `reference` used {word}={theirs!r}, but `{word}` is {ours!r}. Use the same "
                    "value."
                )
        fixed = _reference_of(aim, features) if isinstance(aim, AlignmentTarget) else None
        given = earlier.rule.scales if earlier and scales is None else scales
        rule = replace(rule, scales=choose_scales(given, view.network, features))
        inner = units.scales_into(rule.scales)
        if rule.reference == "posterior":
            fixed = about(mean_of(aim, find, features), inner)
        report = _reporter(progress, rule, features.reader.total)
        problem = MatchingProblem(features, team, rule, report)
        matched = _find(problem, inner, fixed)
        before, after = _distances(problem, matched, inner)
    if progress:
        progress(features.reader.total, features.reader.total)
    # Costs in the original units: log variances depend on the unit, distances do not.
    sizes = {name: math.prod(features.shapes[name]) for name in features.names}
    logs = sum(size * math.log(units.unit[name]) for name, size in sizes.items())
    logs = 0.0 if matched.reference.factor == 1.0 else logs
    aligned = Alignment(
        source=view,
        symmetry=resolved.blocks,
        found=resolved.words,
        rule=rule,
        element=whole_element(features, matched.swept.parts),
        target=AlignmentTarget(matched.reference, units),
        cost=tuple(cost + logs for cost in matched.trace),
        converged=matched.converged,
        distance_before=before.reshape(features.reader.lead),
        distance_after=after.reshape(features.reader.lead),
    )
    checked = aligned.density is not None and aligned.density.compared
    if not (checked or resolved.known or resolved.source == "found" or view.network):
        check_left_behind(view, aligned.symmetry, aligned.element, aligned.allocations)
    return aligned


def are_networks(posterior: Any) -> bool:
    """Check whether a value maps names to networks, and not to variables or groups of a posterior."""
    if not isinstance(posterior, Mapping) or isinstance(posterior, xr.Dataset | xr.DataTree):
        return False
    trees = all(map(_is_tree, posterior.values()))
    return bool(posterior) and "posterior" not in posterior and trees


def _is_tree(value: Any) -> bool:
    """Check whether a value is a mapping, an object or a list of layers, and not an array."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        layers = (
            isinstance(v, Mapping)
            or (isinstance(v, list | tuple) and any(hasattr(array, "shape") for array in v))
            for v in value
        )
        return bool(value) and all(layers)
    plain = (str, bytes, int, float, xr.Dataset, xr.DataTree)
    return not (value is None or hasattr(value, "shape") or isinstance(value, plain))


def _find(
    problem: MatchingProblem, scales: Mapping[str, float], fixed: AlignmentReference | None
) -> Matched:
    """Match the draws according to the rule. `fixed` is a reference from another posterior."""
    rule, features, (chain, draw) = problem.rule, problem.features, problem.rule.reference_draw
    chains, draws = features.reader.lead
    if not (0 <= chain < chains and 0 <= draw < draws):
        raise ArgumentError(
            f"`reference_draw` is {rule.reference_draw}, but the posterior has {chains} chain(s) of {draws} draw(s). "
            "Give the number of a chain and the number of a draw, both counted from 0."
        )
    start = chain * draws + draw
    if rule.reference in ("mean", "gaussian"):
        others = np.delete(np.arange(features.reader.total), start)
        rng = np.random.default_rng(rule.seed)
        more = rng.choice(others, size=min(rule.restarts - 1, len(others)), replace=False)
        return iterate(problem, scales, (start, *(int(row) for row in more)))
    return match(problem, fixed or about(features.read_one(start), scales), rule.seed)


def _reference_of(aim: AlignmentTarget, features: Features) -> AlignmentReference:
    """Return the reference of an earlier alignment, converted to the units of new draws."""
    theirs = {name: np.shape(mean) for name, mean in aim.reference.mean.items()}
    for name, shape in features.shapes.items():
        if theirs.get(name) != shape:
            there = f"{name} of shape {theirs[name]}" if name in theirs else f"no {name}"
            raise ArgumentError(
                f"`reference` does not fit `{features.reader.argument}`: the alignment has {there}, but the shape of "
                f"{name} in the posterior is {shape}. Give an alignment of the same model with the same symmetry."
            )
    return aim.into(features.units)


def _reporter(
    progress: Progress | None, rule: AlignmentRule, draws_in_all: int
) -> Callable[[int], None]:
    if progress is None:
        return lambda draws: None
    total = draws_in_all * (1 + rule.max_sweeps) * rule.restarts
    done = 0

    def report(draws: int) -> None:
        nonlocal done
        done += draws
        progress(min(done, total), total)

    return report


def _distances(
    problem: MatchingProblem, matched: Matched, scales: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances to the reference before and after alignment."""
    features = problem.features
    reference, names = about(matched.reference.mean, scales), features.names

    def aligned(rows: slice, values: Arrays) -> np.ndarray:
        return distance(problem.move(values, take(matched.swept.parts, rows)), reference, names)

    came = problem.over(features.read_as_labelled, lambda _, v: distance(v, reference, names))
    before = np.concatenate(list(came))
    if problem.rule.reference in ("draw", "posterior"):  # Here a cost is a distance.
        return before, matched.swept.cost
    return before, np.concatenate(list(problem.over(features.read, aligned)))


def choose_inputs(
    view: View, cost: str, x: Any
) -> tuple[BayesianNetwork, Float[np.ndarray, "obs in"]] | None:
    """Return the network and inputs for matching activations, or None for matching weights."""
    if cost != "activations":
        return None
    model = view.network
    if model is None:
        raise ArgumentError(
            f"`cost` is 'activations', but `{view.argument}` is not the posterior of a network (the attribute "
            "`model` describes no network). Use cost='weights'."
        )
    x = view.x if x is None else x
    if x is None:
        raise ArgumentError(
            "`cost` is 'activations', which needs inputs. Give `x` with shape (obs, in), or a posterior with inputs "
            "in its group `constant_data`."
        )
    return model, check_inputs(x, model.network.in_dim)


def mean_of(
    other: Posterior, find: Callable[[View], Features], own: Features
) -> dict[str, np.ndarray]:
    """Return the mean of another posterior's features, in the units of `own` features."""
    view = as_view(other, "reference")
    shapes = event_shapes(view.posterior, own.reader.names)
    for name, shape in own.reader.shapes.items():
        if shapes.get(name, shape) != shape:
            raise ArgumentError(
                f"The variable {name} has shape {shapes[name]} in `{view.argument}`, but shape {shape} in "
                f"`{own.reader.argument}`. Give a posterior of the same model."
            )
    theirs = find(view).in_units(own.units)
    sums: dict[str, Any] = dict.fromkeys(own.names, 0.0)
    for chunk in theirs.reader.chunks:
        values = theirs.read(chunk)
        sums = {n: s + values[n].sum(axis=0, dtype=np.float64) for n, s in sums.items()}
    return {name: np.asarray(total / theirs.reader.total) for name, total in sums.items()}


def choose_symmetry(view: View, symmetry: Any) -> Resolved:
    """Return the requested, declared or found symmetry. Raise an error if it is wrong or empty."""
    resolved = resolve(view, symmetry)
    if resolved.source == "refuted":
        raise ArgumentError(f"`posterior` cannot be aligned. {resolved.caveat}")
    if resolved.source == "none":
        if near := nearly_exchangeable(view):
            raise ArgumentError(
                f"`{view.argument}` cannot be aligned. The labels of {in_brief(tuple(near), LISTED)} are at best "
                "nearly exchangeable, because stick-breaking weights have an order. Aligned draws would no longer "
                "follow the posterior. Identify the large components by your own rule, such as the order of their "
                "means."
            )
        resolved = resolve(view, look=True)
        if resolved.source == "partial":
            seen = ", ".join(resolved.words)
            why = f"Its draws show that components of {seen} change places. {resolved.reason} Moving only some of "
            why += f"these parameters would change the posterior. {advice(view)}"
            if resolved.alone:
                why = f"Its draws look as if components of {seen} had changed places. {resolved.reason} No symmetry"
                why += (
                    " maps such modes onto each other: `ob.sample_modes` estimates their weights."
                )
            raise ArgumentError(f"`posterior` cannot be aligned. {why}")
        if not resolved.blocks:
            what = "no labels that switch, so there may be nothing to align"
            if shown := resolved.candidates:
                what = (
                    f"that components of {shown[0].word} change places but overlap, so that their alignment is "
                    "uncertain"
                )
                if shown[0].turns:
                    what = f"that components rotate (declare {shown[0].word!r} to align them by varimax)"
            raise ArgumentError(
                "onebasin does not know which parameters are interchangeable: `symmetry` is not given, and "
                f"`posterior` declares no symmetry. The draws show {what}. Declare the interchangeable parameters, "
                "as in symmetry='mu,sigma'."
            )
    if not resolved.blocks:
        raise ArgumentError(
            "`symmetry` has no blocks, so it moves nothing. Give at least one block."
        )
    return resolved


def choose_scales(
    given: Mapping[str, float] | None, model: BayesianNetwork | None, features: Features
) -> dict[str, float]:
    """Return the scale of every feature: the given scale, the prior's, or the spread of the draws."""
    asked, given = given or {}, dict[str, float]()
    for name, scale in asked.items():
        check_positive(f"scales[{name!r}]", scale)
        own = [n for n in features.names if name in (n, *features.plain.sources(n))]
        if not own:
            raise ArgumentError(
                f"`scales` names {name}, which is not used for matching: choose from {', '.join(features.names)}."
            )
        given = dict.fromkeys(own, scale) | given
    if features.transform is not None:
        default = dict.fromkeys(features.names, 1.0)
    elif model is not None and set(features.names) <= set(model.network.shapes):
        default = prior_scales(model)
    elif set(features.names) <= set(given):
        default = {}
    else:
        default = {name: spread or 1.0 for name, spread in features.units.spread.items()}
    return {name: float(given.get(name, default.get(name, 1.0))) for name in features.names}


def prior_scales(model: BayesianNetwork) -> dict[str, float]:
    """Return the prior standard deviation of every weight and bias. For weights of norm 1 it is 1 / sqrt(inputs)."""
    layers, prior = model.network.layers, model.prior
    weights, biases = prior.weight_scales(len(layers)), prior.bias_scales(len(layers))
    out: dict[str, float] = {}
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        if layer.weight:
            on_sphere = layer.hidden and model.parametrisation.unit_norm
            out[layer.weight] = layer.in_dim**-0.5 if on_sphere else weight
        if layer.bias:
            out[layer.bias] = bias
    return out
