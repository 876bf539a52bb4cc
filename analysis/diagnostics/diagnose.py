"""Functions that judge whether a posterior may be used: the answer, causes, remedies and numbers.

docs/guides/diagnosing.md describes the order of the decisions. `measure` returns only the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.card import Words
from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentTypeError, OnebasinError
from onebasin.base.table import Flag
from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.posteriors.view import DensityAtDraws, Posterior, View, as_view

from ..discovery.resolve import LeavesPosterior, resolve
from .approximations import modulo, of_others
from .causes import not_finite, stuck, unread_weights
from .judge import Case, of_chains, of_stopped
from .labels import Labels, declared_blocks, diagnose_aligned, look_for_labels
from .measure import Facts, gather, measure
from .result import AlignedDiagnosis, Diagnosis, ParameterTable
from .verdict import PER_CHAIN, Limits

if TYPE_CHECKING:
    import pandas as pd


@checks_arguments
@np.errstate(over="ignore", invalid="ignore")  # Squares of numbers near 1e300 overflow.
def diagnose(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    align: bool = True,
    rhat_max: float = 1.01,
    ess_threshold: float | None = None,
    bfmi_threshold: float = 0.3,
    progress: Callable[[int, int], None] | None = None,
    log_density: DensityAtDraws | None = None,
) -> Diagnosis:
    """Judge whether a posterior may be used, explain why, and say what to do.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior: the result of an inference method, a file, or an object that ArviZ converts.
    var_names : str or sequence of str, optional
        The variables to judge; by default the parameters, if the posterior distinguishes them from computed
        quantities.
    symmetry : tuple of blocks, str or sequence of str, optional
        The symmetry, as blocks or strings such as ``"mu,sigma,1-theta"``; by default the declared one. onebasin also
        searches the draws for other symmetries.
    align : bool
        Whether to look for switching labels and align them.
    rhat_max : float
        An R-hat above this limit gives a warning. With the default, the verdict changes only at 1.05, because R-hat
        averages 1.01 even for converged chains with 100 effective draws each. A limit that you set yourself decides the
        verdict.
    ess_threshold : float, optional
        A bulk ESS below this limit changes the verdict; a tail ESS below it gives a warning. By default 100 per chain,
        at most 400.
    bfmi_threshold : float
        An E-BFMI below this limit gives a warning and counts as evidence for a funnel.
    progress : callable, optional
        Called with the number of draws processed and the total during alignment.
    log_density : callable, optional
        Same as in `align`: draws are aligned only if their log density does not change.

    Returns
    -------
    Diagnosis
        Its `verdict` is ``usable``, ``aligned`` (usable after alignment), ``invariant`` (label-free quantities are
        usable), ``partly`` (all but the named quantities are usable) or ``unusable``. `judgement` has the sentences,
        `aligned` the numbers after alignment, and `points` a network's predictions by point.

    Raises
    ------
    TypeError
        If `posterior` is not a `DataTree`, and ArviZ cannot convert it.
    ValueError
        If it has no group `posterior`, fewer than 4 draws per chain, or no finite draw; if `var_names` or `symmetry`
        names a missing variable; or if a threshold is invalid.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16(2) (R-hat, ESS). Stephens 2000, JRSS B
    62(4) (labels). Betancourt 2016, arXiv:1604.00695 (E-BFMI).

    Examples
    --------
    >>> diagnosis = ob.diagnose(posterior)
    >>> diagnosis.verdict, diagnosis.exchangeable
    ('aligned', ())
    >>> diagnosis.parameters.loc["theta", ["rhat", "ess_bulk"]].shape
    (2,)
    """
    view = as_view(posterior, log_density=log_density)
    given = None if symmetry is None else view.as_symmetry(symmetry)
    if ess_threshold is None and 0 < view.num_draws < Limits.FEW:  # Too few for R-hat.
        ess_threshold = PER_CHAIN * view.num_chains
    limits = Limits(rhat_max, ess_threshold, bfmi_threshold)
    raw = measure(view, var_names=var_names, limits=limits)
    facts = gather(view, raw)
    aligned: AlignedDiagnosis | None = None
    deciding, integers, points = raw.deciding, (), None
    if cause := not_finite(facts) or unread_weights(facts):
        verdict = of_stopped(facts, cause)
    elif not (raw.has_chains and raw.sampler is not None and raw.sampler.sampled):
        verdict = of_others(facts)
        if raw.variational is not None and verdict.answer != "unusable" and view.network is None:
            labels = _labels(facts, given, align, progress)
            verdict, aligned = modulo(verdict, labels), labels.aligned
        elif given and (blocks := equal_modes(given)):
            aligned = diagnose_aligned(view, blocks, progress=progress, raw=raw)
    elif causes := stuck(facts):
        verdict = of_stopped(facts, *causes)
    else:
        labels = _labels(facts, given, align, progress)
        case = Case(facts, labels)
        verdict, aligned, points = of_chains(case), labels.aligned, case.points
        if verdict.answer in ("invariant", "partly") or labels.state == "overlap":
            deciding = tuple(name for name in deciding if name not in labels.variables)
        integers = () if case.is_sound or case.blames_labels else tuple(case.integers_apart.index)
    caveat = raw.symmetry_caveat
    if aligned is not None and resolve(view, aligned.alignment.symmetry).in_file:
        caveat = aligned.alignment.unchecked
    # Integers that decide the verdict are not listed as left out.
    every = raw.left_out.items()
    left_out = {why: tuple(n for n in names if n not in integers) for why, names in every}
    numbers = {each.name: getattr(raw, each.name) for each in fields(raw)}
    numbers |= {"deciding": deciding, "left_out": left_out, "symmetry_caveat": caveat}
    return Diagnosis(**numbers, answered=verdict, aligned=aligned, points=points)


@checks_arguments
def summary(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    symmetry: Symmetry | str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the table that `diagnose` prints, with every row and digit.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` accepts.
    var_names : str or sequence of str, optional
        The variables; by default those that `diagnose` judges.
    symmetry : tuple of blocks, str or sequence of str, optional
        Same as in `diagnose`.

    Returns
    -------
    DataFrame
        One row per scalar entry, in the model's order and units: mean, median, sd, 5 % and 95 % quantiles, their Monte
        Carlo errors, R-hat, ESS. If labels switch and alignment sorts them, rows describe the aligned draws.

    Raises
    ------
    TypeError, ValueError
        In the same cases as `diagnose`.

    Examples
    --------
    >>> ob.summary(posterior, var_names="theta").index.tolist()
    ['theta']
    """
    diagnosis = diagnose(posterior, var_names=var_names, symmetry=symmetry)
    return ParameterTable(diagnosis.shown, diagnosis.numbers)


def _labels(
    facts: Facts, given: Symmetry | None, align: bool, progress: Callable[[int, int], None] | None
) -> Labels:
    """Look for switching labels, if `align` is true."""
    if not align:
        return Labels("none", facts, looked=False)
    blocks = declared_blocks(facts, given)
    try:
        return look_for_labels(facts, blocks, progress=progress)
    except LeavesPosterior as refusal:
        if given is not None:
            raise
        return Labels("partial", facts, blocks, reason=refusal.reason)


@dataclass(frozen=True)
class Carried:
    """A posterior's verdict, with a sentence to show next to results computed from it; empty if all is well."""

    answer: str = ""  # As in `Verdict`; empty if it could not be judged.
    sentence: str = ""
    flag: Flag = ""
    diagnosis: Diagnosis | None = None

    @property
    def words(self) -> list[Words]:
        """The sentence as content of a `Card`, if there is one."""
        return [Words(self.sentence, flag=self.flag)] if self.sentence else []


def carried(view: View, diagnosis: Any, results: str, *, label_free: bool) -> Carried:
    """Say what the verdict means for `results`, such as "predictions"; `label_free`: labels do not matter."""
    if diagnosis is not None and not isinstance(diagnosis, Diagnosis):
        raise ArgumentTypeError(
            f"`diagnosis` must be the result of `ob.diagnose(posterior)`; got {type(diagnosis).__name__}."
        )
    try:
        # A network's predictions do not depend on its labels.
        found = diagnosis or diagnose(view, align=view.network is None)
    except OnebasinError as error:
        return Carried("", f"The posterior could not be judged: {error}", "warn")
    answer = found.verdict
    points = found.points if view.network is not None else None
    if answer not in ("usable", "partly") and points is not None and not len(points.bad):
        agree = f"Chains agree on predictions at {len(points.table)} training inputs, though not on weights."
        return Carried("usable", f"{agree} Other inputs were not checked.", "good", found)
    if answer == "usable" or (label_free and answer in ("aligned", "invariant")):
        return Carried(answer, diagnosis=found)
    flag: Flag = {"aligned": "good", "unusable": "bad"}.get(answer, "warn")  # type: ignore[assignment]
    said = {
        "aligned": f"These {results} use aligned draws: the posterior is usable after alignment.",
        "invariant": f"Use only {results} that do not depend on labels. The posterior is usable only for "
        "label-free quantities; others average over labels.",
        "partly": f"These {results} come from a posterior that is only usable in part. "
        f"{found.judgement.sentence}",
        "unusable": f"Do not use these {results}: the posterior is not usable. "
        + "".join(f"{cause.evidence} {cause.remedy}" for cause in found.judgement.causes[:1]),
    }
    return Carried(answer, said[answer].strip(), flag, found)
