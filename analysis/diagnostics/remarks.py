"""What is said beside a verdict: what could not be judged, what was left out, parts that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onebasin.posteriors.draws import variable_of

from .facts import Facts
from .result import Diagnosis
from .sentences import listed

MEANS, SPREADS = 0.1, 1.1
"""Parts are alike whose means differ by less than this share of their sd, and whose sds by less than this factor."""
MOST_PARTS = 64
"""Variables with more parts are no labels' ones."""

_WHY = {
    "generated": "generated quantities",
    "transformed": "transformed parameters",
    "integer": "whole numbers, which change values and not places",
}


def unjudged(raw: Diagnosis) -> tuple[str, ...]:
    """What could not be judged, and why."""
    return tuple(_unjudged(raw))


def _unjudged(raw: Diagnosis) -> Iterator[str]:
    if raw.has_chains and raw.num_chains == 1:
        yield "One chain: other modes, and other labels, cannot be seen. Run four."
    said = (
        s
        for c in raw.checks
        if c.outcome == "not judged" and c.name != "R-hat"
        for s in c.sentences
    )
    yield from dict.fromkeys(said)
    if raw.symmetry_caveat:
        yield raw.symmetry_caveat


def left_out(facts: Facts) -> tuple[str, ...]:
    """What the answer does not rest on."""
    return tuple(_left_out(facts))


def _left_out(facts: Facts) -> Iterator[str]:
    raw, guessed = facts.raw, set(facts.view.kinds.guessed)
    for reason, names in facts.left_out.items():
        if not names:
            continue
        guess = ", as their names say" if reason == "generated" and guessed & set(names) else ""
        bad = _bad(facts, names)
        yield f"The answer does not rest on {listed(names)}: {_WHY[reason]}{guess}.{bad}"
    constants = _of(raw.constants, facts)
    if constants:
        yield f"{listed(constants)}: the same in every draw."
    if raw.undefined:
        yield f"{listed(raw.undefined)}: finite in no draw."
    broken = tuple(name for name in raw.broken if variable_of(name, facts.names) not in facts.names)
    if broken:
        yield f"Finite in some draws only: {listed(broken)}."


def _of(entries: tuple[str, ...], facts: Facts) -> tuple[str, ...]:
    """Entries of the variables that decide."""
    return tuple(entry for entry in entries if variable_of(entry, facts.names) in facts.names)


def _bad(facts: Facts, names: tuple[str, ...]) -> str:
    raw = facts.raw
    table = raw.parameters
    own = table[[variable_of(entry, raw.kinds.of) in names for entry in table.index]]
    bad = int((own["rhat"] > facts.rhat_limit).sum())
    return (
        f" R-hat is above {facts.rhat_limit:g} for {bad} of their {len(own)} entries."
        if bad
        else ""
    )


def alike_parts(facts: Facts) -> tuple[str, ...]:
    """Vectors whose entries have one and the same posterior."""
    return tuple(
        f"`{name}[0..{drawn.shape[2] - 1}]` have one and the same posterior: if they are labels of a mixture, "
        "their means "
        "say nothing about any one part."
        for name, drawn in facts.values.items()
        if drawn.ndim == 3 and 2 <= drawn.shape[2] <= MOST_PARTS and _alike(facts, name)
    )


def _alike(facts: Facts, name: str) -> bool:
    rows = facts.raw.parameters.reindex(list(facts.names[name]))
    mean, sd = rows["mean"].to_numpy(), rows["sd"].to_numpy()
    if not (np.isfinite(mean).all() and sd.min() > 0):
        return False
    return bool(np.ptp(mean) < MEANS * sd.min() and sd.max() < SPREADS * sd.min())
