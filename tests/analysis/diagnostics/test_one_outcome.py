"""One number has one outcome: whatever shows it, a table, a key figure, JSON, the terminal or a sentence."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.optimize import brentq

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.verdict import FLAGS, Limits, worst_of
from onebasin.analysis.page import Details, Part
from onebasin.analysis.report import health_table, posterior_report
from onebasin.analysis.summaries.summary import bulk_ess, rhats
from onebasin.base.table import Table
from onebasin.base.text import MARKS
from onebasin.cli.posteriors import write_findings
from onebasin.models.symmetry.blocks import Exchangeable, to_json
from onebasin.posteriors.pareto import pareto_khat

SHAPE = (4, 250)
LIMITS = {"R-hat": (1.01, 1.05), "bulk ESS": (400.0,), "E-BFMI": (0.3,), "k-hat": (0.5, 0.7)}


def solved(make: Callable[[float], np.ndarray], value: Callable, target: float, high: float):
    """Draws whose number is the target to eight digits."""
    return make(brentq(lambda a: value(make(a)) - target, 0.0, high, xtol=1e-14))


def with_rhat(rng, target):
    noise, place = rng.normal(size=SHAPE), np.arange(4)[:, None]
    return solved(lambda a: noise + a * place, lambda v: rhats(v[..., None])[0], target, 1.0)


def with_ess(rng, target):
    noise, walk = rng.normal(size=SHAPE), np.sin(np.arange(250) / 8)[None]
    return solved(lambda a: noise + a * walk, lambda v: bulk_ess(v[..., None])[0], target, 2.0)


def with_bfmi(rng, target):
    steps, slow = rng.normal(size=SHAPE), np.cumsum(rng.normal(size=SHAPE), axis=1)
    slow[1:] = 0

    def bfmi(e):
        return (np.diff(e[0]) ** 2).mean() / e[0].var(ddof=1)

    return solved(lambda a: steps + a * slow, bfmi, target, 5.0)


CASES = {
    **{f"R-hat {r}": ("rhat", r) for r in (1.00996, 1.01004, 1.04996, 1.05004)},
    **{f"ESS {e}": ("ess", e) for e in (399.6, 400.4)},
    **{f"E-BFMI {b}": ("bfmi", b) for b in (0.2999, 0.3001)},
    **{f"{d} divergences": ("diverging", d) for d in (0, 50, 51)},
    **{f"k-hat {k}": ("khat", k) for k in (0.6664, 0.6669)},
}


def posterior(kind, target, rng, make_mcmc, make_variational):
    if kind == "khat":
        x = rng.normal(size=(1, 1000))
        tail = np.abs(rng.standard_t(3, size=1000)) + 0.01
        ratio = solved(lambda a: a * np.log(tail), pareto_khat, target, 9.0)
        return make_variational({"mu": x}, lp=x + ratio, log_q=x)
    stats = {"lp": -0.5 * rng.chisquare(1, size=SHAPE)}
    if kind == "diverging":
        stats["diverging"] = (np.arange(1000) < target).reshape(SHAPE)
    if kind == "bfmi":
        stats["energy"] = with_bfmi(rng, target)
    make = {"rhat": with_rhat, "ess": with_ess}.get(kind)
    return make_mcmc({"mu": make(rng, target) if make else rng.normal(size=SHAPE)}, stats=stats)


def tables(parts: tuple[Part, ...]) -> Iterator[Table]:
    for part in parts:
        if isinstance(part, Table):
            yield part
        elif isinstance(part, Details):
            yield from tables(part.parts)


def seen_in_tables(found) -> Iterator[tuple[str, str, str]]:
    """Name, number as it is written, and flag."""
    for table in found:
        for row in table.cells:
            for cell, column in zip(row, table.headings, strict=True):
                if column.unit != "of lp" and not cell.is_empty:
                    yield column.name, column.write(cell.value), cell.flag


def seen(tree, diagnosis, capfd) -> Iterator[tuple[str, str, str]]:
    """Every number that a page, the terminal and a table of several runs show with a mark."""
    yield from seen_in_tables([health_table({"run": diagnosis})])
    page = posterior_report({"run": tree})
    yield from seen_in_tables(t for section in page.sections for t in tables(section.all_parts))
    for stat in page.answers[0].stats:
        yield stat.label, str(stat.value), stat.flag
    capfd.readouterr()
    write_findings("run.nc", diagnosis, name="run", json=False, details=True)
    marks = {mark: flag for flag, mark in MARKS.items() if mark}
    for line in capfd.readouterr().out.splitlines():
        told = re.match(r"([✓!✗]) (R-hat|bulk ESS|divergences|E-BFMI|k-hat)[ (]+\D*([\d.]+)", line)
        if told and not re.search(r"of lp| (above|below) ", line):  # those name the limit
            yield told[2], told[3], marks[told[1]]


def gravest(diagnosis):
    return worst_of(check.outcome for check in diagnosis.checks)


@pytest.mark.parametrize("case", CASES)
def test_a_number_has_one_outcome_wherever_it_is_shown(
    make_mcmc, make_variational, rng, blank_figures, capfd, case
):
    kind, target = CASES[case]
    tree = posterior(kind, target, rng, make_mcmc, make_variational)
    quantity = {
        "rhat": "R-hat", "ess": "bulk ESS", "bfmi": "E-BFMI", "diverging": "divergences", "khat": "k-hat"
    }[kind]  # fmt: skip
    limits, scaled = Limits(), target / 1000 if kind == "diverging" else target
    name = {"ess": "ess_bulk"}.get(kind, kind)
    wanted = (
        FLAGS[limits.outcome(name, scaled, 4)]
        if kind != "khat"
        else "bad" if target > 2 / 3 else "good"
    )  # fmt: skip
    flags, numbers = defaultdict(set), set()
    found = diagnose(tree)
    for label, text, flag in seen(tree, found, capfd):
        flags[label].add(flag or "good")
        if label == quantity:
            numbers.add(text)
    assert flags[quantity] == {wanted}, numbers
    for text in numbers:  # no number is written as if it lay on the other side of its limit
        shown = float(text.replace(",", ""))
        bound = (2 / 3,) if kind == "khat" else LIMITS.get(quantity, ())
        assert [shown > limit for limit in bound] == [target > limit for limit in bound], text
    assert FLAGS[found.outcome_of(quantity)] == wanted
    assert (found.verdict == "unusable") >= (wanted == "bad")
    if kind != "khat":  # on which no verdict on a fit rests alone
        assert (gravest(found) == "failed") == (found.verdict == "unusable")
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {check["name"]: check["outcome"] for check in told["checks"]}[quantity] == (
        found.outcome_of(quantity)
    )
    if found.verdict == "usable":
        assert all(flag != "bad" for each_ in flags.values() for flag in each_), flags
        assert all(row.flag != "bad" for row in found.judgement.rows)


@pytest.mark.parametrize("answer", ["aligned", "invariant"])
def test_no_cross_stands_below_an_answer_that_is_not_red(
    make_mcmc, rng, blank_figures, capfd, answer
):
    apart = 4.0 if answer == "aligned" else 0.0  # components of one law are nobody's
    mu = apart * np.arange(2) + rng.normal(size=(*SHAPE, 2))
    mu[::2] = mu[::2, :, ::-1]
    drifting = np.arange(4)[:, None] + rng.normal(size=SHAPE)
    symmetry = to_json((Exchangeable({"mu": 0}),))
    tree = make_mcmc({"mu": mu, "y_rep": drifting}, attrs={"symmetry": symmetry})
    found = diagnose(tree)
    assert found.verdict == answer
    assert gravest(found) == "warned"
    assert all(flag != "bad" for _, _, flag in seen(tree, found, capfd))
    assert all(row.flag != "bad" for row in found.judgement.rows)
