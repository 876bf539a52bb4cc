"""`onebasin diagnose`, `align` and `report`: what is done with posterior files."""

from pathlib import Path
from typing import Annotated

import typer

from onebasin.base.processes.libraries import leave_jax_unloaded, prepare_jax_if_used

from . import reading
from .symmetries import HELP, of_view, parse_exchangeable

Exchangeable = Annotated[
    list[str] | None,
    typer.Option(help=f"{HELP} By default what the posterior declares."),
]


def diagnose(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN.nc", help=f"{reading.HELP} Several are runs or chains of one."),
    ],
    var: Annotated[
        list[str] | None,
        typer.Option(help="Judge this variable alone; repeatable. By default all parameters."),
    ] = None,
    exchangeable: Exchangeable = None,
    program: reading.Program = None,
    data: reading.Data = None,
    align: Annotated[
        bool, typer.Option("--align/--raw", help="Look for labels that switch, and align them.")
    ] = True,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="Fit the reference on half of the chains, judge the others."
        ),
    ] = False,
    rhat_max: Annotated[float, typer.Option(help="R-hat above this is warned of.")] = 1.01,
    ess_threshold: Annotated[
        float | None, typer.Option(help="Least ESS that is enough; by default 100 a chain.")
    ] = None,
    bfmi_threshold: Annotated[float, typer.Option(help="E-BFMI below this is warned of.")] = 0.3,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where the answer is not 'usable'.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
) -> None:
    """Say whether a posterior may be used, why, and what to do; then show its numbers."""
    from . import console
    from .diagnosis import write_findings

    prepare_jax_if_used()
    from onebasin.analysis.diagnostics.diagnose import diagnose as judge

    view = reading.read(run, program=program, data=data)
    with console.alignment_bar() as progress:
        diagnosis = judge(
            view,
            var_names=var or None,
            symmetry=of_view(exchangeable, view),
            align=align,
            held_out=held_out,
            rhat_max=rhat_max,
            ess_threshold=ess_threshold,
            bfmi_threshold=bfmi_threshold,
            progress=progress,
        )
    title = reading.title(run)
    write_findings(str(title), diagnosis, name=title.stem, json=json)
    if strict and diagnosis.verdict != "usable":
        raise typer.Exit(1)


def align(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN.nc", help=f"{reading.HELP} Several are runs or chains of one."),
    ],
    out: Annotated[Path, typer.Option(help=f"The aligned posterior to write: {reading.WRITTEN}.")],
    exchangeable: Exchangeable = None,
    program: reading.Program = None,
    data: reading.Data = None,
    reference: Annotated[
        str, typer.Option(help="gaussian, mean, draw, or another posterior file.")
    ] = "gaussian",
    cost: Annotated[str, typer.Option(help="weights, or activations of a network.")] = "weights",
    restarts: Annotated[int, typer.Option(help="Starts.")] = 1,
    max_sweeps: Annotated[int, typer.Option(help="Sweeps at most, from each start.")] = 15,
    seed: Annotated[int, typer.Option(help="Of random starts.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Bring every draw into one labelling, and write the posterior with how each draw was moved."""
    from . import console

    prepare_jax_if_used()
    from onebasin.analysis.alignment import align as align_tree
    from onebasin.analysis.alignment.switching import one_labelling
    from onebasin.base.errors import PosteriorFileError
    from onebasin.base.files.outputs import claim
    from onebasin.posteriors.writing import format_of, write_tree

    parse_exchangeable(exchangeable or [])  # refused before anything is read
    other = reading.reference(reference)
    inputs = [*reading.files_of(run), *([] if other is None else reading.files_of([other]))]
    replaces = format_of(out, argument="--out").replaces
    with claim(
        out,
        force=force,
        error=PosteriorFileError,
        argument="--out",
        inputs=inputs,
        replaces=replaces,
    ):
        view = reading.read(run, program=program, data=data)
        symmetry = of_view(exchangeable, view)
        with console.alignment_bar() as progress:
            alignment = align_tree(
                view,
                symmetry,
                reference=reference if other is None else reading.read(other, "--reference"),
                cost=cost,
                restarts=restarts,
                max_sweeps=max_sweeps,
                seed=seed,
                progress=progress,
            )
        write_tree(alignment.to_tree(), out, new=not force)
    console.write_remark(alignment.text, "good")
    if alignment.density is not None and alignment.density.sentence:
        flag = "warn" if alignment.density.unchecked else "good"
        console.write_remark(alignment.density.sentence, flag)
    if alignment.allocations:
        names = ", ".join(alignment.allocations)
        console.write_remark(
            f"{names}: numbers of components, given those of the new places", "good"
        )
    if alignment.caveat:
        console.write_remark(alignment.caveat, "warn")
    if (one := one_labelling(alignment)) is not None:
        console.write_remark(one.sentence, "warn" if one.improbable else "good")
    before, after = alignment.distance_before.mean(), alignment.distance_after.mean()
    console.write_remark(
        f"mean squared distance to the reference: {before:.4g}, now {after:.4g}", "good"
    )
    if not alignment.converged:
        console.write_remark(
            f"parts still moved in sweep {alignment.sweeps}: raise --max-sweeps", "warn"
        )
    console.write_remark(f"wrote {out}", "good")


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN.nc...", help=reading.HELP_MANY)],
    out: Annotated[Path, typer.Option(help="The page to write.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Posterior report",
    var: Annotated[
        list[str] | None, typer.Option(help="Report on this variable alone; repeatable.")
    ] = None,
    exchangeable: Exchangeable = None,
    program: reading.Program = None,
    data: reading.Data = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="Of several: what the others are held against; by default the first."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write one self-contained page: whether posteriors may be used, and the tables and pictures that show why."""
    from . import console

    prepare_jax_if_used()
    from onebasin.analysis.page.render import claimed, put
    from onebasin.analysis.report import posterior_report

    parse_exchangeable(exchangeable or [])  # refused before anything is read
    named = reading.posteriors(runs)
    against = reading.truth(named, truth)
    with claimed(out, force=force, argument="--out", inputs=reading.files_of(runs)):
        views = {
            name: reading.read(files, program=program, data=data) for name, files in named.items()
        }
        leave_jax_unloaded()
        page = posterior_report(
            views,
            title=title,
            var_names=var or None,
            symmetry=of_view(exchangeable, views[against]),
            truth=against,
        )
        put(page, out, force=force)
    console.say(f"wrote {out}")
