"""Diagnostics modulo a symmetry: the same posterior raw, aligned, and by what the symmetry leaves alone.

R-hat of aligned draws flatters: every chain had a part in the reference that all were aligned with. So the
invariants stand beside it, chains that stay apart are counted, and a reference fitted on half of the chains
can be held against the other half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import xarray as xr

from onebasin.models.symmetry.blocks import Rescalable, Symmetry

from ..alignment import Alignment, Switching, align, switching
from ..posterior.summary import summarise
from ..posterior.view import Draws, declares_equal_modes, is_variational, read_draws, symmetry_of
from .aligned_advice import APART, say, warn
from .diagnose import diagnose
from .invariants import invariants
from .result import Diagnosis, Extreme, json_safe


@dataclass(frozen=True, eq=False)
class ModuloDiagnosis:
    """What is left of a posterior's troubles once equal modes are one.

    Attributes
    ----------
    raw, aligned
        The diagnostics before and after alignment; `aligned` looks at the moved variables.
    alignment
        Elements, reference and rule.
    invariants
        One row per quantity that the symmetry leaves alone, with the columns of a table of parameters.
    switching
        How often labels changed within the chains, and whether alignment found more than noise has.
    basins
        Groups of chains that agree after alignment, as tuples of chain numbers.
    chain_lp
        Mean log density of each chain; empty where `lp` was not recorded.
    shrinkage
        Median over moved parameters of aligned over raw standard deviation.
    held_out_rhat
        Worst R-hat of chains that had no part in the reference; None where it was not asked for.
    sentences
        What happened, in words.
    warnings
        What to beware of, in words.
    """

    raw: Diagnosis
    aligned: Diagnosis
    alignment: Alignment
    invariants: pd.DataFrame
    switching: Switching
    basins: tuple[tuple[int, ...], ...]
    chain_lp: tuple[float, ...]
    shrinkage: float
    held_out_rhat: Extreme | None = None
    sentences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def invariant_rhat(self) -> Extreme:
        """The largest R-hat of what the symmetry leaves alone."""
        return _largest(self.invariants["rhat"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the raw diagnosis as plain types for JSON."""
        rows = [{"quantity": name, **row} for name, row in self.invariants.to_dict("index").items()]
        held_out = self.held_out_rhat
        return json_safe(
            {
                "rule": self.alignment.text,
                "converged": self.alignment.converged,
                "diagnosis": self.aligned.to_dict(),
                "invariants": rows,
                "switching": self.switching.to_dict(),
                "basins": self.basins,
                "chain_lp": self.chain_lp,
                "shrinkage": self.shrinkage,
                "held_out_rhat": vars(held_out) if held_out else None,
                "sentences": self.sentences,
                "warnings": self.warnings,
            }
        )


def diagnose_modulo(
    posterior: xr.DataTree,
    symmetry: Symmetry | None = None,
    *,
    held_out: bool = False,
    noise: bool = True,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> ModuloDiagnosis:
    """Diagnose a posterior raw and modulo its symmetry.

    Parameters
    ----------
    posterior
        The posterior.
    symmetry
        Modulo what; by default what the posterior declares. Positive scalings are left out: they are
        no symmetry of the posterior.
    held_out
        Also fit the reference on the first half of the chains and report the others' R-hat.
    noise
        Compare with the alignment of shuffled draws, which takes as long again.
    progress
        Called with draws gone through and draws in all.
    **options
        Further arguments of `align`.

    Returns
    -------
    ModuloDiagnosis
        Both diagnoses, invariants, switching, basins, and what they mean in words.

    Raises
    ------
    ValueError
        As `diagnose` and `align`; or if `held_out` is asked for with fewer than four chains.
    """
    declared = symmetry if symmetry is not None else symmetry_of(posterior)
    moving = tuple(block for block in declared if not isinstance(block, Rescalable))
    alignment = align(posterior, moving, progress=progress, **options)
    names = [name for block in moving for name in block.variables]
    moved = list(dict.fromkeys(names))
    aligned_tree = alignment.posterior
    raw, aligned = diagnose(posterior), diagnose(aligned_tree, var_names=moved)
    found = ModuloDiagnosis(
        raw=raw,
        aligned=aligned,
        alignment=alignment,
        invariants=summarise(invariants(posterior, declared)),
        switching=switching(alignment, noise=noise and alignment.rule.cost == "weights"),
        basins=_basins(read_draws(aligned_tree, moved)),
        chain_lp=raw.sampler.lp_means if raw.sampler else (),
        shrinkage=_shrinkage(raw, aligned),
        held_out_rhat=_held_out(posterior, moving, moved, options) if held_out else None,
    )
    return replace(found, sentences=say(found), warnings=warn(found))


def has_equal_modes(posterior: xr.DataTree) -> bool:
    """Whether a posterior of a Markov chain declares a symmetry that makes equal modes, still to be divided out."""
    return declares_equal_modes(posterior) and not is_variational(posterior)


def _largest(column: pd.Series) -> Extreme:
    known = column.dropna()
    return Extreme(float(known.max()), str(known.idxmax())) if len(known) else Extreme()


def _shrinkage(raw: Diagnosis, aligned: Diagnosis) -> float:
    before = raw.parameters["sd"].reindex(aligned.parameters.index)
    return float((aligned.parameters["sd"] / before).median())


def _basins(draws: Draws) -> tuple[tuple[int, ...], ...]:
    """Join chains whose common R-hat is small in every parameter, and whatever they are joined with."""
    groups = [{chain} for chain in range(draws.num_chains)]
    for first in range(draws.num_chains):
        for second in range(first + 1, draws.num_chains):
            pair = Draws(draws.names, draws.values[[first, second]])
            worst = summarise(pair)["rhat"].max()
            if not worst > APART:
                joined = [group for group in groups if group & {first, second}]
                groups = [group for group in groups if group not in joined]
                groups.append(set().union(*joined))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _held_out(
    posterior: xr.DataTree, symmetry: Symmetry, moved: list[str], options: dict[str, Any]
) -> Extreme:
    chains = posterior["posterior"].sizes["chain"]
    if chains < 4:
        raise ValueError(
            f"`held_out` needs four chains, two for the reference and two to judge; there are {chains}."
        )
    first, rest = (
        _chains(posterior, slice(0, chains // 2)),
        _chains(posterior, slice(chains // 2, None)),
    )
    fitted = align(first, symmetry, **options)
    options = {name: value for name, value in options.items() if name != "reference"}
    judged = align(rest, symmetry, reference=fitted.posterior, **options)
    return diagnose(judged.posterior, var_names=moved).rhat


def _chains(posterior: xr.DataTree, which: slice) -> xr.DataTree:
    tree = posterior.copy()
    for name in ("posterior", "sample_stats"):
        if name in tree.children:
            tree[name] = xr.DataTree(posterior[name].to_dataset().isel(chain=which))
    return tree
