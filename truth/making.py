"""Making a reference: an order, and its chains, thinned until draws are independent, labelled and described.

Chains are kept as they go, in the folder `chains` next to the files, so that the same command resumes them; more
thinning continues the same chains. Energies and divergences are those of all iterations after the warmup, not of
the kept ones alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from onebasin import inference
from onebasin.analysis.discovery.resolve import resolve
from onebasin.analysis.summaries.deciding import deciding, rhat_of_entries
from onebasin.analysis.summaries.quantiles import describe
from onebasin.base.errors import StudyError, check_seed
from onebasin.inference import Nuts
from onebasin.models import Symmetry, Target
from onebasin.models.symmetry.elements import labels_of
from onebasin.posteriors import schema
from onebasin.posteriors.view import View, as_view

from . import criteria
from .labelling import Labelling, fitted
from .problems import Problem
from .quotient import Quotient, one_copy
from .reference import measured

CHAINS = "chains"
LEAST_THIN, MOST_THIN = 10, 40
DRAWS = 1000
"""Draws kept of each of ten chains, 10,000 in all."""
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Order:
    """A posterior, and how its reference is sampled."""

    name: str  # Of the posterior.
    problem: Problem  # One of `PROBLEMS`, or somebody's own, which has no name.
    settings: Nuts
    """Chains, warmup, adaptation; `draws` are those kept of a chain after thinning."""
    engine: str  # Whose definition is sampled.
    thin: int = LEAST_THIN
    max_thin: int = MOST_THIN
    """`thin`, `max_thin`: Every how many-th draw is kept; doubled up to the second while the kept ones depend on
    one another."""
    seed: int = 1  # Of the chains.

    @classmethod
    def of(cls, problem: Problem, name: str = "") -> Order:
        """Give the order for a problem."""
        settings = (problem.quotient_of or problem).settings
        engine = problem.target().engines[0]
        return cls(name or problem.name, problem, replace(settings, draws=DRAWS), engine)

    @cached_property
    def target(self) -> Target:
        """The posterior's target, with its symmetry."""
        return self.problem.target()

    @cached_property
    def sampled(self) -> Target:
        """The target that the chains sample; another one where the posterior is one copy of that one's."""
        return self.problem.quotient_of.target() if self.problem.quotient_of else self.target

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        check_seed(self.seed)
        if not 1 <= self.thin <= self.max_thin:
            raise StudyError(
                f"`--thin` is {self.thin} and `--max-thin` {self.max_thin}; give whole numbers from 1, the second not "
                "below the first."
            )


@dataclass(frozen=True, eq=False)
class Made:
    """The result of the chains, before it is written."""

    order: Order  # What was asked for.
    thin: int  # Every how many-th draw is kept.
    tree: xr.DataTree
    """The kept draws, canonically labelled, with the statistics of the same iterations."""
    iterations: xr.Dataset  # Energies and divergences (chain, iteration) of all after the warmup.
    names: tuple[str, ...]  # The variables that the reference is of.
    symmetry: Symmetry  # That makes equal modes.
    labelling: Labelling | None  # The canonical one.
    parameters: pd.DataFrame
    invariants: pd.DataFrame  # `parameters`, `invariants`: Columns of `describe`, and `lag1`.
    evidence: dict[str, object]  # What else was seen, for the file's information.
    quotient: Quotient | None = None
    """The way draws of another model became those of this one, where they are."""

    @cached_property
    def facts(self) -> criteria.ChainFacts:
        """The facts by which the chains are judged."""
        kept = self.tree["sample_stats"].to_dataset()[schema.ENERGY].values
        divergences = self.iterations[schema.DIVERGING].values.sum(axis=1).tolist()
        unthinned = criteria.efmi(self.iterations[schema.ENERGY].values)
        chains, draws = kept.shape
        return criteria.ChainFacts(chains, draws, divergences, criteria.efmi(kept), unthinned)


def make(
    order: Order, folder: Path, *, labelling: Labelling | None, progress: bool, say: Say
) -> Made:
    """Sample, with more thinning as long as that can help; chains are kept in the folder.

    `labelling` is the canonical one, where there is one; otherwise it is fitted. `say` is called with a line of text
    before what takes long.
    """
    thin = order.thin
    if order.problem.quotient_of is not None:
        say(
            f"the posterior of {order.name} is one copy of that of {order.sampled.name}, which is sampled; its "
            "components are then put in order"
        )
    while True:
        found = _once(order, folder, thin, labelling, progress)
        wanting = []
        for table in (found.parameters, found.invariants):
            checks = criteria.checks_made(table, found.facts)
            wanting += [] if all(checks[word] for word in criteria.BY_THINNING) else [table]
        if not wanting or 2 * thin > order.max_thin:
            return found
        say(
            f"one draw in {thin} is not enough: the largest lag-1 autocorrelation is "
            f"{max(float(t['lag1'].abs().max()) for t in wanting):.3f}; the chains go on, to keep one in {2 * thin}"
        )
        thin *= 2


def _once(
    order: Order, folder: Path, thin: int, labelling: Labelling | None, progress: bool
) -> Made:
    settings = replace(order.settings, draws=order.settings.draws * thin)
    run = inference.infer(
        order.sampled,
        settings,
        engine=order.engine,
        seed=order.seed,
        checkpoint=folder / CHAINS,
        predictive_mb=0,
        progress=progress,
    )
    stats = run["sample_stats"].to_dataset()
    iterations = xr.Dataset(
        {n: (("chain", "iteration"), stats[n].values) for n in (schema.ENERGY, schema.DIVERGING)}
    )
    tree = _thinned(run, thin)
    run.close()
    view = as_view(tree)
    names = tuple(deciding(view)[0])
    evidence: dict[str, object] = {"thin": thin, "largest_r_hat_as_sampled": _worst(view, names)}
    quotient = None
    if order.problem.quotient_of is not None:
        tree, quotient = one_copy(tree, order.sampled, order.target)
        view = as_view(tree)
    symmetry = resolve(view).equal_modes
    if symmetry:
        labelling = labelling or fitted(view, symmetry)
        alignment = labelling.applied(view, symmetry)
        tree = alignment.posterior
        view = as_view(tree)
        held_out = view.part("chain", slice(view.num_chains // 2, None))
        found = [labels_of(part) for part in alignment.element]
        labels = np.concatenate([each.reshape(*each.shape[:2], -1) for each in found], axis=-1)
        evidence |= {
            "largest_r_hat_of_chains_without_part_in_labelling": _worst(held_out, names)
            if held_out.num_chains > 1
            else None,
            "labellings_of_chains": [len(np.unique(chain, axis=0)) for chain in labels],
            "labellings_in_all": len({tuple(row) for chain in labels for row in chain}),
        }
    lp = view.stat(schema.LP)
    if lp is not None:
        evidence["log_density_mean_of_chains"] = [round(float(m), 4) for m in lp.mean(axis=1)]
        evidence["log_density_sd"] = round(float(lp.std()), 4)
    of_names, of_invariants = view.draws(names), measured(view, symmetry, order.problem.invariants)
    parameters, invariants = describe(of_names), describe(of_invariants)
    for table, draws in ((parameters, of_names), (invariants, of_invariants)):
        table["lag1"] = [float(v) for values in draws.blocks() for v in criteria.lag1(values)]
    return Made(
        order,
        thin,
        tree,
        iterations,
        names,
        symmetry,
        labelling if symmetry else None,
        parameters,
        invariants,
        evidence,
        quotient,
    )


def _thinned(run: xr.DataTree, thin: int) -> xr.DataTree:
    """Every `thin`-th draw, the last of each chain among them, in memory."""
    kept = {}
    for name, node in run.children.items():
        dataset = node.to_dataset()
        if "draw" in dataset.dims:
            dataset = dataset.isel(draw=slice(thin - 1, None, thin))
            dataset = dataset.assign_coords(draw=np.arange(dataset.sizes["draw"]))
        kept[str(name)] = dataset.load()
    tree = xr.DataTree.from_dict(kept)
    tree.attrs = dict(run.attrs)
    return tree


def _worst(view: View, names: tuple[str, ...]) -> float:
    found = [rhat_of_entries(values) for values in view.draws(names).blocks()]
    return round(float(np.nanmax(np.concatenate(found))), 5)
