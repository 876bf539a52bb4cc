"""`onebasin truth`: reference posteriors, made, listed, shown and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import interruption_says
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from .examples import Group
from .leaderboard import leaderboard
from .spelling import Command
from .symmetries import HELP

if TYPE_CHECKING:
    from onebasin.truth.checker import Verdict

app = typer.Typer(
    name="truth",
    help="Reference posteriors by posteriordb's rules, modulo symmetry: make, list, show and check them.",
    cls=Group,
)

Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")]


@app.command(cls=Command)
def make(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A problem of `onebasin truth list`; or a Stan program, PROGRAM.stan; or MODEL.py:NAME.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA.json]", help="The data of a program or a model, as JSON."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of its files; by default one of the user's cache.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Its name; by default the problem's or the program's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the chains.")] = 1,
    exchangeable: Annotated[
        list[str] | None, typer.Option(help=f"{HELP} By default what is found.")
    ] = None,
    chains: Annotated[int | None, typer.Option(help="By default 10.")] = None,
    warmup: Annotated[
        int | None,
        typer.Option(help="Iterations of warmup a chain; by default 10,000 or the problem's."),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Kept of each chain; by default 1,000.")] = None,
    thin: Annotated[int, typer.Option(help="Every how many-th draw is kept, to begin with.")] = 10,
    max_thin: Annotated[
        int, typer.Option(help="Up to which it is doubled while kept draws depend on each other.")
    ] = 40,
    target_acceptance: Annotated[
        float | None, typer.Option(help="By default 0.8 or the problem's.")
    ] = None,
    max_tree_depth: Annotated[int | None, typer.Option(help="By default 10.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="numpyro, stan or nutpie; by default NumPyro where it is stated."),
    ] = None,
    labelling: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A reference whose canonical labelling is used, for another seed of it.",
        ),
    ] = None,
    fit_labelling: Annotated[
        bool,
        typer.Option(
            "--fit-labelling", help="Fit it anew, though the package has one of this problem."
        ),
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also copy what is small of it into FOLDER/NAME."),
    ] = None,
    posteriordb: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write it in posteriordb's layout and formats."),
    ] = None,
    json: Json = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
) -> None:
    """Make a reference posterior; what is stopped goes on by the same command."""
    from . import console

    prepare_jax()
    quieten_stan()
    from onebasin.truth.posteriordb import export
    from onebasin.truth.produce import keep as keep_small
    from onebasin.truth.produce import kept_labelling, place_of, produce
    from onebasin.truth.reference import open_reference

    from .truth_order import Given, ordered

    given = Given(
        what,
        data,
        name=name,
        seed=seed,
        exchangeable=tuple(exchangeable or ()),
        engine=engine,
        thin=thin,
        max_thin=max(thin, max_thin),
        settings={
            "chains": chains,
            "warmup": warmup,
            "draws": draws,
            "target_acceptance": target_acceptance,
            "max_tree_depth": max_tree_depth,
        },
    )
    with ordered(given, say=console.say) as order:
        folder = out or place_of(order.name, seed, make=True)
        fixed = None if fit_labelling else kept_labelling(order)
        if labelling is not None:
            fixed = open_reference(labelling).labelling
        with interruption_says(
            lambda: f"what the chains came to is in {folder}: the same command goes on from there"
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


@app.command("list", cls=Command)
def list_(json: Json = False) -> None:
    """List the problems, and which have a reference that passes."""
    from onebasin.truth.tables import listed, listed_rows

    from . import console

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
    name: Annotated[str, typer.Argument(help="A reference of `list`, or a folder of one.")],
    invariants: Annotated[
        bool, typer.Option("--invariants", help="Show what no relabelling changes instead.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a reference: what it is of, how it was made, and its numbers."""
    from onebasin.truth.reference import open_reference
    from onebasin.truth.tables import facts, numbers

    from . import console

    reference = open_reference(name)
    if json:
        console.write_json(
            {
                **reference.info,
                "summary": {
                    word: table.to_dict(orient="index") for word, table in reference.summary.items()
                },
            }
        )
        return
    status = reference.status
    flag = {"passes": "good", "invariants pass": "warn"}.get(status, "bad")
    said = {
        "passes": "it passes every criterion",
        "invariants pass": "what no relabelling changes passes; parameters under labels do not",
        "fails": "it does not pass, and is no reference",
    }[status]
    console.write_headline(f"{reference.name}: {said}", str(reference.info["title"]), flag)
    console.write_rows([("", word, text) for word, text in facts(reference)])
    console.write_table(numbers(reference, "invariants" if invariants else "parameters"))


@app.command(cls=Command)
def check(
    name: Annotated[str, typer.Argument(help="A reference of `list`, or a folder of one.")],
    against: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Another seed's reference, to be held against it."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a reference by code that shares no line with what made it; exit with 1 where it does not pass."""
    from onebasin.truth import checker
    from onebasin.truth.produce import place_of
    from onebasin.truth.reference import open_reference

    from . import console

    reference = open_reference(name)
    if against is not None:
        other = open_reference(against)
        found = checker.agree((reference.folder, reference.name), (other.folder, other.name))
        if json:
            console.write_json(found.to_dict())
        else:
            console.write_headline(found.title, found.sentence, "good" if found.agrees else "bad")
        raise typer.Exit(0 if found.agrees else 1)
    made = reference.info["inference"]["method_arguments"]
    elsewhere = place_of(
        reference.info["name"], int(made["seed"])
    )  # where this user may have made it
    verdict = checker.check(reference.folder, reference.name, elsewhere=elsewhere)
    if json:
        console.write_json(verdict.to_dict())
    else:
        _write_verdict(verdict)
    raise typer.Exit(0 if verdict.passes else 1)


def _write_verdict(verdict: Verdict) -> None:
    from . import console

    flag = "good" if verdict.passes else "bad"
    console.write_headline(verdict.title, verdict.sentence, flag)
    flags = {True: "good", False: "bad", None: "warn"}
    console.write_rows([(flags[c.holds], c.name, c.found) for c in verdict.criteria])
    for criterion in verdict.failed:
        if criterion.remedy:
            console.write_sentence(f"{criterion.name}: {criterion.remedy}")


app.command(cls=Command)(leaderboard)
