"""`onebasin truth`: reference posteriors, made, listed, shown and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebasin.base.errors import StudyError, interruption_says
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console, inputs
from .options import SYMMETRY, Data, Json, Progress, Seed, argument, option
from .spelling import Command, CommandGroup

if TYPE_CHECKING:
    from onebasin.truth.checker import ReferenceVerdict
    from onebasin.truth.making import Order

app = typer.Typer(
    name="truth",
    help="Reference posteriors by posteriordb's rules, modulo symmetry: make, list, show and check them.",
    cls=CommandGroup,
)
Name = Annotated[str, argument("NAME", "A reference of `list`, or a folder of one.")]


@app.command(cls=Command)
def make(
    what: Annotated[
        str,
        argument(
            "NAME",
            "A problem of `onebasin truth list`; or a Stan program, PROGRAM.stan; or MODEL.py:NAME.",
        ),
    ],
    data: Data = None,
    out: Path | None = option(None, "Folder of its files; by default one of the user's cache."),
    name: str | None = option(None, "Its name; by default the problem's or the program's."),
    seed: Seed = 1,
    exchangeable: list[str] | None = option(None, f"{SYMMETRY} By default what is found."),
    chains: int | None = option(None, "Chains; by default 10."),
    warmup: int | None = option(
        None, "Iterations of warmup a chain; by default 10,000 or the problem's."
    ),
    draws: int | None = option(None, "Draws kept of each chain; by default 1,000."),
    thin: int = option(10, "Iterations a kept draw, to begin with."),
    max_thin: int = option(
        40, "Largest value to which --thin is doubled while kept draws are correlated."
    ),
    target_acceptance: float | None = option(
        None, "Acceptance rate; by default 0.8 or the problem's."
    ),
    max_tree_depth: int | None = option(None, "Largest tree depth; by default 10."),
    engine: str | None = option(
        None, "numpyro, stan or nutpie; by default NumPyro where it is stated."
    ),
    labelling: Path | None = option(
        None,
        "A reference whose canonical labelling is used, for another seed of it.",
        metavar="FOLDER",
    ),
    fit_labelling: bool = option(
        False, "Fit it again, though the package has one of this problem.", "--fit-labelling"
    ),
    keep: Path | None = option(
        None, "Also copy its small files into FOLDER/NAME.", metavar="FOLDER"
    ),
    posteriordb: Path | None = option(
        None, "Also write it in posteriordb's layout and formats.", metavar="FOLDER"
    ),
    json: Json = False,
    progress: Progress = True,
) -> None:
    """Make a reference posterior; repeat the command to resume."""
    prepare_jax()
    quieten_stan()
    from onebasin.truth.produce import export, kept_labelling, place_of, produce
    from onebasin.truth.produce import keep as keep_small
    from onebasin.truth.reference import open_reference

    typed: dict[str, Any] = {"chains": chains, "warmup": warmup, "draws": draws}
    typed |= {"target_acceptance": target_acceptance, "max_tree_depth": max_tree_depth}
    asked: dict[str, Any] = {"seed": seed, "thin": thin, "max_thin": max(thin, max_thin)}
    asked |= {"name": name, "engine": engine}
    with _ordered(what, data, exchangeable, seed) as order:
        settings = {word: value for word, value in typed.items() if value is not None}
        order = replace(
            order,
            settings=replace(order.settings, **settings),
            **{word: value for word, value in asked.items() if value is not None and value != ""},
        )
        folder = out or place_of(order.name, seed, make=True)
        fixed = None if fit_labelling else kept_labelling(order)
        if labelling is not None:
            fixed = open_reference(labelling).labelling
        with interruption_says(
            lambda: f"the chains so far are in {folder}: repeat the command to resume"
        ):
            reference, verdict = produce(
                order,
                folder,
                labelling=fixed,
                progress=progress and (not json or console.is_terminal()),
                say=console.say,
            )
    written = [folder]
    if keep is not None:
        written.append(keep_small(reference, keep))
    if posteriordb is not None:
        written += [path.parent for path in export(reference, posteriordb)]
    if json:
        console.write_json({"folder": str(folder), "status": reference.status, **verdict.to_dict()})
    else:
        _write_verdict(verdict)
        for place in dict.fromkeys(written):
            console.write_remark(f"wrote {place}", "good")
    if not verdict.passes:
        raise typer.Exit(1)


@contextmanager
def _ordered(
    what: str, data: Path | None, exchangeable: list[str] | None, seed: int
) -> Iterator[Order]:
    """Take a problem of ours by its name, or anybody's program or model, whose file can be run meanwhile."""
    from onebasin.inference.contracts.engines import engine_for
    from onebasin.models.numpyro_file import model_file_in
    from onebasin.truth.making import Order
    from onebasin.truth.problems import PROBLEMS, Problem

    from .symmetry import found_in

    if what in PROBLEMS:
        if data is not None or exchangeable:
            raise StudyError(
                f"`NAME` is {what}, which has its data and its symmetry; leave DATA.json and --exchangeable out."
            )
        yield Order.of(PROBLEMS[what])
        return
    if not what.endswith(".stan") and model_file_in(what) is None:
        near = get_close_matches(what, PROBLEMS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the problems are {', '.join(PROBLEMS)}"
        raise StudyError(
            f"`NAME` is {what}, which is no problem, no PROGRAM.stan and no MODEL.py:NAME; {hint}."
        )
    declared = inputs.symmetry(exchangeable)
    with inputs.opened(Path(what), data, symmetry=declared) as target:
        if not declared:
            found = found_in(target, seed=seed, say=console.say)
            if found.remark:
                console.say(found.remark)
            target = found.target
        problem = Problem("", f"{target.name}, of {what}", lambda: target)
        yield replace(Order.of(problem, target.name), engine=engine_for(target, None))


@app.command("list", cls=Command)
def list_(json: Json = False) -> None:
    """List the problems, and which have a reference that passes."""
    from onebasin.truth.tables import listed, listed_rows

    rows = listed()
    if json:
        console.write_json(rows)
        return
    console.write_table(listed_rows(rows))
    passing = sum(row["status"] == "passes" for row in rows)
    console.write_sentence(
        f"{passing} of {len(rows)} problems have a reference that passes every criterion; `onebasin truth show NAME` "
        "says more of one."
    )


@app.command(cls=Command)
def show(
    name: Name,
    invariants: bool = option(False, "Show label-free quantities instead.", "--invariants"),
    json: Json = False,
) -> None:
    """Show a reference: what it is of, how it was made, and its numbers."""
    from onebasin.truth.reference import open_reference
    from onebasin.truth.tables import facts, numbers

    reference = open_reference(name)
    if json:
        tables = {word: t.to_dict(orient="index") for word, t in reference.summary.items()}
        console.write_json({**reference.info, "summary": tables})
        return
    flag, said = {
        "passes": ("good", "it passes every criterion"),
        "invariants pass": ("warn", "label-free quantities pass; parameters under labels do not"),
        "fails": ("bad", "it does not pass, and is no reference"),
    }[reference.status]
    console.write_headline(f"{reference.name}: {said}", str(reference.info["title"]), flag)
    console.write_rows([("", word, text) for word, text in facts(reference)])
    console.write_table(numbers(reference, "invariants" if invariants else "parameters"))


@app.command(cls=Command)
def check(
    name: Name,
    against: Path | None = option(
        None, "Another seed's reference, to compare it with.", metavar="FOLDER"
    ),
    json: Json = False,
) -> None:
    """Check a reference by code that shares no line with what made it; exit with 1 where it does not pass."""
    from onebasin.truth import checker
    from onebasin.truth.produce import place_of
    from onebasin.truth.reference import open_reference

    reference = open_reference(name)
    if against is not None:
        other = open_reference(against)
        found = checker.agree((reference.folder, reference.name), (other.folder, other.name))
        if json:
            console.write_json(found.to_dict())
        else:
            console.write_headline(found.title, found.sentence, "good" if found.agrees else "bad")
        raise typer.Exit(0 if found.agrees else 1)
    made: Mapping[str, Any] = reference.info["inference"]["method_arguments"]
    # where this user may have made it
    elsewhere = place_of(reference.info["name"], int(made["seed"]))
    verdict = checker.check(reference.folder, reference.name, elsewhere=elsewhere)
    if json:
        console.write_json(verdict.to_dict())
    else:
        _write_verdict(verdict)
    raise typer.Exit(0 if verdict.passes else 1)


def _write_verdict(verdict: ReferenceVerdict) -> None:
    console.write_headline(verdict.title, verdict.sentence, "good" if verdict.passes else "bad")
    flags = {True: "good", False: "bad", None: "warn"}
    console.write_rows([(flags[c.holds], c.name, c.found) for c in verdict.criteria])
    for criterion in verdict.failed:
        if criterion.remedy:
            console.write_sentence(f"{criterion.name}: {criterion.remedy}")
