"""`onebasin sample`: sample any Stan program or NumPyro model. The fields of the method's settings become options."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebasin.base.errors import StudyError, interruption_says
from onebasin.base.processes.libraries import prepare_libraries

from . import console, inputs, options
from .options import described, keyword, option, with_options

if TYPE_CHECKING:
    import xarray as xr

SHOWN = 20
"""Maximum number of values in the table of an optimum."""
MOST_USED = ("chains", "warmup", "draws", "target_acceptance")


def sample(
    context: typer.Context,
    program: options.Program,
    data: options.Data = None,
    out: Path | None = option(None, "The posterior to write; by default PROGRAM.nc."),
    method: str = option("nuts", "Name of the method."),
    engine: str | None = option(
        None, "numpyro, stanli, cmdstan or nutpie; by default chosen for the program or model."
    ),
    seed: options.Seed = 0,
    exchangeable: list[str] | None = option(None, options.SYMMETRY),
    find: bool = option(
        True, "Search for the symmetry if none is declared.", "--symmetry/--no-symmetry"
    ),
    scheduler: options.Scheduler = None,
    predictive_mb: float | None = option(
        None,
        "Maximum size in MB of a NumPyro model's log likelihoods and predictions; 0 for none. By default 256.",
        metavar="MEGABYTES",
    ),
    force: options.Force = False,
    details: options.ShowDetails = False,
    json: options.Json = False,
    progress: options.Progress = True,
    **given: Any,
) -> None:
    """Sample any Stan program or NumPyro model; repeat the command to resume."""
    prepare_libraries()
    from onebasin.analysis.diagnostics.diagnose import diagnose
    from onebasin.models.numpyro_target import model_file_in
    from onebasin.posteriors.view import as_view

    from . import sampling
    from .methods import engine_for, settings_for
    from .posteriors import write_findings

    file = model_file_in(program)
    definition = "stan" if file is None else "numpyro"
    if predictive_mb is not None and file is None:
        raise StudyError(
            "`--predictive-mb` applies only to NumPyro models; quantities of Stan programs are always stored in "
            "full. Omit this option."
        )
    out = out or Path(f"{program.stem if file is None else file.name}.nc")
    adapt_from = given.pop("adapt_from", None)
    start, given = inputs.start_in(given)
    chosen = settings_for(method, given, definition=definition)
    request = sampling.Request(
        program=program,
        data=data,
        out=out,
        method=chosen,
        seed=seed,
        exchangeable=inputs.symmetry(exchangeable),
        find=find,
        predictive_mb=predictive_mb,
        command=context.obj or "",
        asked=engine_for(chosen, engine, definition),
        start=start,
        adapt_from=adapt_from,
        scheduler=scheduler,
    )
    # With JSON, show bars in a terminal, but no lines of progress in a file or a pipe.
    progress = progress and (not json or sys.stderr.isatty())
    with interruption_says(lambda: request.kept):
        tree = sampling.run(request, force=force, progress=progress, say=console.say)
    view = as_view(tree, str(out))
    view = replace(view, log_density=inputs.recorded_density(view))
    if view.is_point_estimate:
        _write_optimum(out, tree, json=json)
    else:
        with interruption_says(lambda: f"{out} is written"):
            try:
                diagnosis = diagnose(view)
            except ValueError as error:
                raise StudyError(f"`{out}` was written, but not diagnosed: {error}") from error
            write_findings(str(out), diagnosis, name=out.stem, json=json, details=details)
    if not json:
        console.write_remark(f"wrote {out}", "good")
    evidence = None if view.is_point_estimate else view.symmetry_evidence
    if evidence is not None and not evidence.holds:
        console.say(f"onebasin: {evidence.sentence}")
        raise typer.Exit(1)


def sample_with_settings(words: Sequence[str]) -> Callable[..., None]:
    """Add options for the fields of the methods to the command.

    The help shows the options of the named method; if none is named, it shows the most used options of NUTS.
    """
    from onebasin.inference.infer import WORDS

    from .methods import OFFERED, setting_options

    names = list(OFFERED)
    said = f"{', '.join(names)}. Use --method NAME --help to see the options of a method."
    method = keyword(
        "method", "nuts", Annotated[str, described(said, autocompletion=lambda: names)]
    )
    asked = next((after for word, after in pairwise([*words, ""]) if word == "--method"), "")
    asked = next((w.partition("=")[2] for w in words if w.startswith("--method=")), asked)
    name = WORDS[asked or "nuts"][0] if asked in ("", *WORDS) else ""
    shown = {name: OFFERED[name]} if "--help" in words and name in OFFERED else OFFERED
    offered = setting_options(shown)
    if any(cls.takes_adaptation for cls in shown.values()):
        text = (
            "Take step sizes and metrics from this posterior or JSON file; the warmup then adapts only the step "
            "size."
        )
        kind = Annotated[Path | None, described(text, metavar="RUN.nc")]
        offered.append(keyword("adapt_from", None, kind))
    if "--help" in words and not any(word.startswith("--method") for word in words):
        offered = [option for option in offered if option.name in MOST_USED]
    return with_options(sample, [method, *offered])


def _write_optimum(file: Path, tree: "xr.DataTree", *, json: bool) -> None:
    """Write the optimum, its log density and whether the optimiser converged."""
    import numpy as np

    from onebasin.base.table import Table
    from onebasin.posteriors import schema

    optimum = {str(n): v.values[0, 0] for n, v in tree[schema.POSTERIOR].data_vars.items()}
    height = float(tree[schema.SAMPLE_STATS].data_vars[schema.LP].values[0, 0])
    converged = bool(tree.attrs[schema.CONVERGED])
    if json:
        values = {name: np.asarray(value).tolist() for name, value in optimum.items()}
        found = {"converged": converged, "log_density": height, "optimum": values}
        console.write_json({"file": str(file), "method": tree.attrs[schema.METHOD], **found})
        return
    rows = [
        (name if not place else f"{name}[{', '.join(map(str, place))}]", float(value[place]))
        for name, value in optimum.items()
        for place in np.ndindex(np.shape(value))
    ]
    caption = f"{SHOWN} of {len(rows)} values" if len(rows) > SHOWN else ""
    console.write_table(Table(("parameter", "optimum"), tuple(rows[:SHOWN]), caption=caption))
    if note := tree.attrs.get(schema.OPTIMUM_NOTE):
        console.write_remark(f"{note[:1].lower()}{note[1:]}", "warn")
    elif converged:
        console.write_remark(f"the optimiser converged; the log density is {height:.6g}", "good")
    else:
        console.write_remark(
            f"the optimiser stopped before its criterion was met, at a log density of {height:.6g}: raise "
            "--iterations or --starts",
            "warn",
        )
    console.write_remark(
        "this is one value, not a posterior, so nothing can be diagnosed; --method nuts or laplace shows its "
        "uncertainty",
        "warn",
    )
