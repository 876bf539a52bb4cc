"""`onebasin diagnose` and `onebasin report`: what is done with posterior files."""

from pathlib import Path
from typing import Annotated

import typer


def diagnose(
    run: Annotated[Path, typer.Argument(metavar="RUN.nc", help="A posterior file.")],
    var: Annotated[
        list[str] | None, typer.Option(help="Look at this variable alone; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
) -> None:
    """Show R-hat, effective sample sizes, divergences, tree depths and E-BFMI of a posterior."""
    from analysis.diagnostics import diagnose as diagnose_tree
    from inference.posterior import load

    from .. import console

    diagnosis = diagnose_tree(load(run), var_names=var or None)
    if json:
        console.write_json({"file": str(run), **diagnosis.to_dict()})
    else:
        console.write_diagnosis(diagnosis, name=run.stem)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN.nc...", help="Posterior files.")],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Posterior report",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write one self-contained page with tables and pictures of posteriors."""
    from analysis.report import check_output, posterior_report, write
    from inference.posterior import load

    from .. import console

    check_output(out, force=force)
    trees = {name: load(run) for name, run in named(runs).items()}
    write(posterior_report(trees, title=title), out, force=force)
    console.say(f"wrote {out}")


def named(runs: list[Path]) -> dict[str, Path]:
    """Name files by their stems, with as many folders before them as it takes to tell them apart.

    Raises
    ------
    ValueError
        If a file is given twice.
    """
    seen = {run.resolve() for run in runs}
    if len(seen) < len(runs):
        raise ValueError("`RUN.nc` is given twice: give every posterior file once.")
    longest = max(len(run.resolve().parts) for run in runs)
    for depth in range(1, longest + 1):
        names = ["/".join(run.resolve().with_suffix("").parts[-depth:]) for run in runs]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, runs, strict=True))
