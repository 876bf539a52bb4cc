"""`onebasin sample`: any Stan program with its data."""

from pathlib import Path
from typing import Annotated

import typer

from ..symmetries import HELP, parse_exchangeable


def sample(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.stan", help="A Stan program.")],
    out: Annotated[Path, typer.Option(help="The posterior file to write, NetCDF.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA.json]", help="Its data, as JSON.")
    ] = None,
    method: Annotated[str, typer.Option(help="nuts, hmc, meanfield or fullrank.")] = "nuts",
    chains: Annotated[int | None, typer.Option(help="Chains. nuts, hmc; 4.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Warmup a chain. nuts, hmc; 1000.")] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept, a chain; 1000.")] = None,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    metric: Annotated[
        str | None, typer.Option(help="diag, dense or unit. nuts, hmc; diag.")
    ] = None,
    target_acceptance: Annotated[
        float | None, typer.Option(help="Acceptance that warmup aims at. nuts, hmc; 0.8.")
    ] = None,
    max_tree_depth: Annotated[int | None, typer.Option(help="Deepest tree. nuts; 10.")] = None,
    trajectory_length: Annotated[
        float | None, typer.Option(help="Integration time. hmc; 2 pi.")
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="Start of a chain: random or optimum. nuts, hmc; random.")
    ] = None,
    init_starts: Annotated[
        int | None, typer.Option(help="Starts of --init optimum, the best of which is taken; 10.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Most gradient steps. meanfield, fullrank; 10000.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Relative change of the ELBO to stop at. meanfield, fullrank; 0.001."),
    ] = None,
    exchangeable: Annotated[
        list[str] | None,
        typer.Option(help=HELP),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
) -> None:
    """Sample any Stan program; Ctrl-C keeps the finished chains."""
    from .. import console

    console.prepare_jax()
    console.quieten_stan()
    from onebasin.analysis.diagnostics.aligned import diagnose_aligned, has_equal_modes
    from onebasin.analysis.diagnostics.diagnose import diagnose
    from onebasin.inference.posterior import check_output

    from .. import sampling

    given = {
        "chains": chains,
        "warmup": warmup,
        "draws": draws,
        "metric": metric,
        "target_acceptance": target_acceptance,
        "max_tree_depth": max_tree_depth,
        "trajectory_length": trajectory_length,
        "init": init,
        "init_starts": init_starts,
        "iterations": iterations,
        "tolerance": tolerance,
    }
    request = sampling.Request(
        program=program,
        data=data,
        out=out,
        method=method,
        settings=sampling.settings_for(method, given),
        seed=seed,
        exchangeable=parse_exchangeable(exchangeable or []),
    )
    check_output(out, force=force)
    tree = sampling.run(request, progress=progress, say=console.say)
    aligned = diagnose_aligned(tree) if has_equal_modes(tree) else None
    diagnosis = aligned.raw if aligned else diagnose(tree)
    console.write_findings(out, diagnosis, aligned, json=json)
    if not json:
        console.write_remark(f"wrote {out}", "good")
