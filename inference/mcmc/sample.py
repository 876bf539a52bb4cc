"""What methods of chains share: chains on an engine, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from onebasin.base.cores import available_cores
from onebasin.base.files.leftovers import working_folder
from onebasin.posteriors import schema

from ..contracts.engines import ENGINES
from ..contracts.method import Found, Job
from ..runs.fingerprint import fingerprint
from ..runs.provenance import package_versions
from .chains import run_chains
from .gathered import Gathered
from .places import Standing


def sample(
    job: Job[Any], more: Mapping[str, object] = MappingProxyType({}), gradients: int = 1
) -> Found:
    """Run the chains of a method by its engine's implementation.

    Parameters
    ----------
    job : Job
        Its method has `chains`, `warmup` and `draws`.
    more : mapping
        What decides the draws besides the settings, and is recorded in the posterior.
    gradients : int
        Gradients that a step of the integrator takes.
    """
    s, package = job.method, ENGINES[job.engine].package
    more = {**more, **(package_versions(package) if package else {})}
    with working_folder("chains") as folder:
        mark = None
        if job.checkpoint is not None:
            how = {"method": s.label, "settings": _deciding(s.recorded()), "seed": job.seed, **more}
            mark = fingerprint(job.target, engine=job.engine, progress=job.bars.say, **how)
        kept = None if mark is None else job.checkpoint
        there = None if kept is None else kept.absolute().parent
        gathered = Gathered(s.chains, s.draws, there)
        at_once = min(available_cores(), s.chains)
        job.bars.expect(chains=s.chains, warmup=s.warmup, draws=s.draws, at_once=at_once)
        ended = run_chains(
            partial(job.implementation, replace(job, folder=folder)),
            gathered,
            chains=s.chains,
            draws=s.draws,
            folder=kept,
            fingerprint=mark or "",
            finished=job.bars.taken,
        )
    attributes = {**_attributes(gathered, ended, s, gradients), **more}
    return Found(gathered.draws, gathered.stats, attributes, filed=gathered.filed, folder=there)


def _deciding(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that decide a chain's draws: all but how many there are of chains and of draws."""
    return {name: value for name, value in settings.items() if name not in ("chains", "draws")}


def _attributes(
    gathered: Gathered, ended: Sequence[Standing], settings: Any, gradients: int
) -> dict[str, object]:
    out: dict[str, object] = {
        "warmup_seconds": [chain.warmup_seconds for chain in ended],
        "sampling_seconds": [chain.sampling_seconds for chain in ended],
        "gradient_evaluations": gradients * int(gathered.stats["n_steps"].sum()),
    }
    if any(chain.restarts for chain in ended):
        out[schema.RESTARTS] = [list(chain.restarts) for chain in ended]
    if hasattr(settings, "max_tree_depth"):
        out["max_tree_depth"] = settings.max_tree_depth
    return out
