"""May a posterior be used? The answer, with its causes and what to do, and the numbers behind it.

What decides and in which order is told in docs/guides/diagnosing.md; `measure` gives the numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.posteriors.view import Posterior, View, as_view

from . import answers
from .aligned import diagnose_aligned
from .describe import left_out, unjudged
from .judge import Case, broken, stuck
from .labels import Labels, declared_blocks, look_for_labels
from .measure import Facts, gather, measure
from .result import AlignedDiagnosis, Diagnosis
from .verdict import Answer, Cause, Row, Verdict
from .weighted import of_weights


def diagnose(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    symmetry: Symmetry | str | Sequence[str] | None = None,
    align: bool = True,
    held_out: bool = False,
    rhat_max: float = 1.01,
    ess_threshold: float | None = None,
    bfmi_threshold: float = 0.3,
    progress: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """Say whether a posterior may be used, why, and what to do.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, as an inference method returned it or as read from a file, or what ArviZ converts to one.
    var_names : str or sequence of str, optional
        The variables to judge; by default its parameters, as far as it tells them from what is computed of them.
    symmetry : tuple of blocks, or words of them, optional
        Modulo what: blocks, or words of them such as ``"mu,sigma,1-theta"``; by default what it declares. What else the
        draws show is looked for either way.
    align : bool
        Whether to look at labels at all.
    held_out : bool
        Also fit the reference of an alignment on the first half of the chains, and report the others' R-hat.
    rhat_max : float
        R-hat above this is warned of. At its default 1.05 decides: 1.01 is what equal chains with 100 effective draws
        each have in the mean. A limit of one's own decides as it stands.
    ess_threshold : float, optional
        Bulk ESS below this decides, tail ESS is warned of; by default 100 times the number of chains.
    bfmi_threshold : float
        E-BFMI below this is warned of, and speaks for a funnel.
    progress : callable, optional
        Called with draws gone through and draws in all while draws are aligned.

    Returns
    -------
    Diagnosis
        Its `verdict` is ``usable``, ``aligned`` (after alignment), ``invariant`` (what has no labels) or
        ``unusable``; `judgement` holds the sentences, `aligned` the numbers modulo the symmetry.

    Raises
    ------
    TypeError
        If `posterior` is no `DataTree`, and ArviZ cannot make it one.
    ValueError
        If it has no group `posterior`, fewer than 4 draws a chain or no draw that is finite, if `var_names` or
        `symmetry` asks for what is not there, or a threshold makes no sense.

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
    view = as_view(posterior)
    given = None if symmetry is None else view.as_symmetry(symmetry)
    raw = measure(
        view,
        var_names=var_names,
        rhat_max=rhat_max,
        ess_threshold=ess_threshold,
        bfmi_threshold=bfmi_threshold,
    )
    chosen = [var_names] if isinstance(var_names, str) else var_names
    facts = gather(view, raw, None if chosen is None else tuple(dict.fromkeys(chosen)))
    cause = broken(facts)
    judgement: Verdict
    aligned: AlignedDiagnosis | None = None
    if cause is not None:
        judgement = answers.of_stopped(facts, cause)
    elif raw.has_chains and raw.sampler is not None and raw.sampler.sampled:
        judgement, aligned = _judge(facts, given, align, held_out, progress)
    else:
        judgement, aligned = _judge_others(facts), _of_given(view, raw, given, progress)
    return replace(raw, judgement=judgement, aligned=aligned)


def _judge(
    facts: Facts,
    given: Symmetry | None,
    align: bool,
    held_out: bool,
    progress: Callable[[int, int], None] | None,
) -> tuple[Verdict, AlignedDiagnosis | None]:
    cause = stuck(facts)
    if cause is not None:  # a chain may also stand still because it sits in the neck of a funnel
        funnel = Case(facts, Labels("none", facts, looked=False)).funnel_cause
        first = (funnel,) if funnel and "never moves" not in cause.evidence else ()
        return answers.of_stopped(facts, *first, cause), None
    if not align:
        return answers.of_chains(Case(facts, Labels("none", facts, looked=False))), None
    labels = look_for_labels(
        facts, declared_blocks(facts, given), held_out=held_out, progress=progress
    )
    return answers.of_chains(Case(facts, labels)), labels.aligned


def _judge_others(facts: Facts) -> Verdict:
    if facts.raw.variational is not None:
        return _of_fit(facts)
    if facts.raw.sampler is not None and not facts.raw.sampler.sampled:
        return _of_independent(facts)
    return _of_ensemble(facts)


def _of_given(
    view: View, raw: Diagnosis, given: Symmetry | None, progress: Callable[[int, int], None] | None
) -> AlignedDiagnosis | None:
    """Draws that are no Markov chain's are aligned where that was asked for."""
    blocks = equal_modes(given) if given else ()
    return diagnose_aligned(view, blocks, progress=progress, raw=raw) if blocks else None


_NO_LABELS = Row(
    answers.LABELS,
    "not judged",
    "Draws of one approximation have one labelling, or all of them; none switches.",
)
_NO_SAMPLER = Row(answers.SAMPLER, "passed", "No Markov chain was run; the draws are independent.")


def _of_fit(facts: Facts) -> Verdict:
    """Draws of an approximation: k-hat alone tells how far it is from the posterior."""
    if (found := of_weights(facts)) is not None:
        return _fit(facts, *found)
    raw, fit = facts.raw, facts.raw.variational
    outcome = raw.outcome_of("k-hat")
    others = [
        c for c in raw.checks if c.outcome == "failed" and c.name not in ("k-hat", "finite draws")
    ]
    value = fit.khat if fit else math.nan
    if outcome == "passed" and not others:
        sentence = (
            f"You may use it: k-hat is {value:.2f}, so that the approximation is close enough to the posterior, "
            "and importance "
            "weights can mend the rest. The answer rests on k-hat alone; R-hat does not apply."
        )
        return _fit(
            facts,
            "usable",
            sentence,
            (),
            Row(answers.PREDICTIONS, "passed", f"k-hat is {value:.2f}."),
        )
    if outcome == "failed" or others:
        failed = [c for c in raw.checks if c.outcome == "failed"]
        evidence = failed[-1].sentences[0] if outcome == "failed" else others[0].sentences[0]
        cause = Cause(
            "approximation",
            evidence,
            "Take a richer family or more steps, or sample with NUTS; until then use it for starting points alone.",
        )
        row = Row(answers.PREDICTIONS, "failed", evidence)
        return _fit(
            facts, "unusable", f"Do not use it in the posterior's place. {evidence}", (cause,), row
        )
    return _unproved(
        facts,
        "k-hat cannot be computed, and nothing else tells how far an approximation is from its posterior",
        "Record `lp` and `log_q` of at least 30 draws, or hold the draws against those of MCMC with `compare`.",
    )


def _of_ensemble(facts: Facts) -> Verdict:
    """Members that were trained one by one."""
    return _unproved(
        facts,
        "members of an ensemble are optima and no draws, and no number here tells how far they are from the "
        "posterior",
        "Hold their predictions against those of MCMC with `compare`.",
    )


def _of_independent(facts: Facts) -> Verdict:
    """Draws of a program without parameters."""
    draws = f"the {facts.raw.total_draws:,} draws are independent"
    sentence = f"You may use it: nothing was sampled by a Markov chain, and {draws}."
    rows = (
        Row(answers.LABELS, "passed", "There are no parameters whose labels could switch."),
        Row(answers.PREDICTIONS, "passed", "Independent draws need no convergence."),
        _NO_SAMPLER,
    )
    return Verdict("usable", sentence, rows, left_out=left_out(facts))


def _unproved(facts: Facts, why: str, remedy: str) -> Verdict:
    evidence = why[:1].upper() + why[1:] + "."
    cause = Cause("unproved", evidence, remedy)
    row = Row(answers.PREDICTIONS, "not judged", evidence)
    return _fit(
        facts,
        "unusable",
        f"Not to be used in the posterior's place: {why}. {remedy}",
        (cause,),
        row,
    )


def _fit(
    facts: Facts, answer: Answer, sentence: str, causes: tuple[Cause, ...], row: Row
) -> Verdict:
    return Verdict(
        answer,
        sentence,
        (_NO_LABELS, row, _NO_SAMPLER),
        causes,
        unjudged=unjudged(facts.raw),
        left_out=left_out(facts),
    )
