"""`onebasin sample`: any Stan program or NumPyro model; the options beside those below are fields of settings."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from onebasin.base.checks import check_positive
from onebasin.base.errors import StudyError, interruption_says
from onebasin.base.processes.command import ended_after
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from .completion import methods
from .groups import LogLikelihood, Observed, PosteriorPredictive, PredictiveMb, groups_for
from .options import setting_options, with_options
from .symmetries import HELP, parse_exchangeable


def sample(
    context: typer.Context,
    program: Annotated[
        Path,
        typer.Argument(
            metavar="PROGRAM.stan",
            help="A Stan program; or MODEL.py:NAME, a function that states a NumPyro model.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The posterior file to write, NetCDF.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA.json]", help="Its data, as JSON; a function's arguments by name."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="The method.")] = "nuts",
    engine: Annotated[
        str | None,
        typer.Option(
            help="nutpie, for NUTS of either; by default Stan for a program, NumPyro for a model.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    exchangeable: Annotated[
        list[str] | None,
        typer.Option(help=HELP),
    ] = None,
    find: Annotated[
        bool,
        typer.Option(
            "--symmetry/--no-symmetry",
            help="Find what is interchangeable, where nothing is said, and keep it with the posterior.",
        ),
    ] = True,
    log_likelihood: LogLikelihood = None,
    posterior_predictive: PosteriorPredictive = None,
    observed: Observed = None,
    predictive_mb: PredictiveMb = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Stop sampling after so many seconds, as Ctrl-C does."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
    **given: Any,
) -> None:
    """Sample any Stan program or NumPyro model; what is stopped goes on by the same command."""
    from . import console

    prepare_jax()
    quieten_stan()
    from onebasin.analysis.diagnostics.diagnose import diagnose
    from onebasin.models.numpyro_file import model_file_in
    from onebasin.posteriors.view import as_view

    from . import sampling
    from .diagnosis import write_findings
    from .method_settings import engine_for, settings_for

    definition = "stan" if model_file_in(program) is None else "numpyro"
    chosen = settings_for(method, given, engine=definition)
    request = sampling.Request(
        program=program,
        data=data,
        out=out,
        method=chosen,
        seed=seed,
        exchangeable=parse_exchangeable(exchangeable or []),
        find=find,
        groups=groups_for(
            definition,
            log_likelihood=log_likelihood,
            posterior_predictive=posterior_predictive,
            observed=observed,
            predictive_mb=predictive_mb,
        ),
        command=context.obj or "",
        asked=engine_for(chosen, engine, definition),
    )
    # whoever reads JSON is a program: bars where somebody sees them move, but no lines in a file or a pipe
    progress = progress and (not json or console.is_terminal())
    if timeout is not None:
        check_positive("timeout", timeout)
    with interruption_says(lambda: sampling.what_is_kept(request)), ended_after(timeout):
        tree = sampling.run(request, force=force, progress=progress, say=console.say)
    view = as_view(tree, str(out))
    if view.is_point_estimate:
        from .optimum import write_optimum

        write_optimum(out, tree, json=json)
        if not json:
            console.write_remark(f"wrote {out}", "good")
        return
    with interruption_says(lambda: f"{out} is written"):
        try:
            diagnosis = diagnose(view)
        except ValueError as error:
            raise StudyError(f"`{out}` is written, but cannot be judged: {error}") from error
        write_findings(str(out), diagnosis, name=out.stem, json=json)
        if not json:
            console.write_remark(f"wrote {out}", "good")
    evidence = view.symmetry_evidence
    if evidence is not None and not evidence.holds:
        console.say(f"onebasin: {evidence.sentence}")
        raise typer.Exit(1)


def sample_with_settings(words: Sequence[str]) -> Callable[..., None]:
    """Give the command an option for every field of a method that programs and models have a use for.

    Parameters
    ----------
    words : sequence of str
        What was typed: help shows the options of the method that is named, or of NUTS.
    """
    from .method_settings import OFFERED, has_use

    return with_options(
        sample, [_method_option(), *setting_options(_shown(words, OFFERED), has_use)]
    )


def _method_option() -> inspect.Parameter:
    """Make the option that names the methods of the registry, which is loaded where it is asked for."""
    names = methods()
    said = f"{', '.join(names)}. Help shows the options of NUTS; add --method NAME for another's."
    option = typer.Option(help=said, autocompletion=lambda: names)
    return inspect.Parameter(
        "method",
        inspect.Parameter.KEYWORD_ONLY,
        default="nuts",
        annotation=Annotated[str, option],
    )


def _shown[T](words: Sequence[str], offered: Mapping[str, T]) -> Mapping[str, T]:
    """The methods whose options are shown or read."""
    from onebasin.inference.methods import WORDS

    asked = next((after for word, after in pairwise([*words, ""]) if word == "--method"), "")
    asked = next((w.partition("=")[2] for w in words if w.startswith("--method=")), asked)
    name = WORDS[asked or "nuts"][0] if asked in ("", *WORDS) else ""
    return {name: offered[name]} if "--help" in words and name in offered else offered
