"""`onebasin diagnose`, `align`, `compare`, `predict`, `loo`, `report` and `convert`: commands on posterior files."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebasin.base.errors import StudyError
from onebasin.base.processes.libraries import leave_jax_unloaded, prepare_libraries

from . import console, inputs, options
from .options import argument, described, option

if TYPE_CHECKING:
    import numpy as np

    from onebasin.analysis.diagnostics.result import Diagnosis


def diagnose(
    run: options.Run,
    var: options.Var = None,
    exchangeable: options.Exchangeable = None,
    program: options.ProgramOf = None,
    data: options.DataOf = None,
    align: bool = option(True, "Look for switching labels and align them.", "--align/--raw"),
    rhat_max: float = option(1.01, "Warn if R-hat exceeds this value."),
    ess_threshold: float | None = option(
        None, "Minimum ESS; by default 100 per chain, at most 400."
    ),
    bfmi_threshold: float = option(0.3, "Warn if E-BFMI is below this value."),
    strict: bool = option(False, "Exit with 1 if the answer is not 'usable'.", "--strict"),
    details: options.ShowDetails = False,
    json: options.Json = False,
) -> None:
    """Say whether a posterior may be used, why, and what to do, and show the numbers."""
    prepare_libraries()
    from onebasin.analysis.diagnostics.diagnose import diagnose as judge

    view = inputs.read(run, program=program, data=data)
    with console.alignment_bar() as progress:
        diagnosis = judge(
            view,
            var_names=inputs.variables(var, view),
            symmetry=inputs.symmetry_of(exchangeable, view),
            align=align,
            rhat_max=rhat_max,
            ess_threshold=ess_threshold,
            bfmi_threshold=bfmi_threshold,
            progress=progress,
        )
    title = inputs.title(run)
    write_findings(str(title), diagnosis, name=title.stem, json=json, details=details)
    if strict and diagnosis.verdict != "usable":
        raise typer.Exit(1)


def align(
    run: options.Run,
    out: Path | None = option(
        None, f"The aligned posterior to write: {options.WRITTEN}. By default RUN-aligned.nc."
    ),
    exchangeable: options.Exchangeable = None,
    program: options.ProgramOf = None,
    data: options.DataOf = None,
    reference: str = option(
        "gaussian", ("Reference of the alignment: gaussian, mean, draw, or another posterior file.")
    ),
    cost: str = option(
        "weights", "Compare components by their entries (weights), or by a network's activations."
    ),
    restarts: int = option(1, "Number of random starts; the best result is kept."),
    max_sweeps: int = option(15, "Maximum number of sweeps from each start."),
    seed: options.Seed = 0,
    force: options.Force = False,
) -> None:
    """Align all draws to a common labelling, and record in the file how each draw was relabelled."""
    prepare_libraries()
    from onebasin.analysis.alignment import align as align_tree
    from onebasin.analysis.alignment.switching import one_labelling
    from onebasin.posteriors.writing import write_tree

    inputs.symmetry(exchangeable)  # Fail before any file is read.
    out = out or Path(f"{inputs.title(run).stem}-aligned.nc")
    read = [*run, *([Path(reference)] if inputs.names_file(reference) else [])]
    with inputs.claimed(out, inputs.files_of(read), force=force):
        view = inputs.read(run, program=program, data=data)
        symmetry = inputs.symmetry_of(exchangeable, view)
        with console.alignment_bar() as progress:
            alignment = align_tree(
                view,
                symmetry,
                reference=inputs.start(reference),
                cost=cost,
                restarts=restarts,
                max_sweeps=max_sweeps,
                seed=seed,
                progress=progress,
            )
        write_tree(alignment.to_tree(), out, new=not force)
    console.write_card(alignment)
    if (one := one_labelling(alignment)) is not None:
        console.write_remark(one.sentence, "warn" if one.improbable else "good")
    console.write_remark(f"wrote {out}", "good")


def report(
    runs: options.Runs,
    out: Path | None = option(
        None, "The page to write; by default RUN.html, or report.html for several posteriors."
    ),
    title: str = option("Posterior report", "Heading of the page."),
    var: options.Var = None,
    exchangeable: options.Exchangeable = None,
    program: options.ProgramOf = None,
    data: options.DataOf = None,
    truth: Path | None = option(
        None, "The posterior that the others are compared with; by default the first."
    ),
    force: options.Force = False,
) -> None:
    """Write a self-contained page that says whether posteriors may be used, and shows why."""
    prepare_libraries()
    from onebasin.analysis.page import claimed, put
    from onebasin.analysis.report import posterior_report

    inputs.symmetry(exchangeable)  # Fail before any file is read.
    named = inputs.posteriors(runs)
    against = inputs.truth(named, truth)
    out = out or Path(f"{Path(against).name if len(named) == 1 else 'report'}.html")
    with claimed(out, force=force, argument="--out", inputs=inputs.files_of(runs)):
        views = {
            name: inputs.read(files, program=program, data=data) for name, files in named.items()
        }
        leave_jax_unloaded()
        page = posterior_report(
            views,
            title=title,
            var_names=inputs.variables(var, views[against]),
            symmetry=inputs.symmetry_of(exchangeable, views[against]),
            truth=against,
        )
        put(page, out, force=force)
    console.write_remark(f"wrote {out}", "good")


def convert(
    run: options.Run,
    out: Annotated[Path, described(f"The file to write: {options.WRITTEN}.")],
    force: options.Force = False,
) -> None:
    """Write a posterior in the format given by the suffix of --out; several runs are joined into one file."""
    from onebasin.posteriors.writing import write_tree

    with inputs.claimed(out, inputs.files_of(run), force=force):
        view = inputs.read(run)
        _ = view.posterior  # Fail if the file is not a posterior.
        write_tree(view.tree, out, new=not force)
    console.write_remark(f"wrote {out}", "good")


_TAILS = "Tail ESS refers to the 5 % and 95 % quantiles; `az.summary` uses those of its interval, 11 % and 89 %."


def write_findings(
    file: str, diagnosis: Diagnosis, *, name: str, json: bool, details: bool = False
) -> None:
    """Write the diagnosis of a posterior, beginning with the verdict."""
    if json:
        console.write_json({**diagnosis.to_dict(), "file": file})
        return
    from onebasin.analysis.diagnostics.result import LEFT_OUT

    console.write_card(diagnosis.card(whole=details), left_out=LEFT_OUT)
    if not details:
        console.write_remark("More: --details")
        return
    # With --details, also write the numbers, the alignment and every check.
    from onebasin.analysis.report import aligned_table, health_table

    table = health_table({name: diagnosis})
    (row,) = table.cells
    lines = []
    for cell, column, numeric in zip(row, table.headings, table.numeric, strict=True):
        value, note = column.write(cell.value), f" {cell.note}" if cell.note else ""
        unit = f" ({column.unit})" if numeric and column.unit else ""
        lines.append((cell.flag if numeric else "", f"{column.name}{unit}", f"{value}{note}"))
    console.write_rows(lines)
    if diagnosis.aligned is not None:
        console.write_table(aligned_table(diagnosis.aligned))
        for sentence in diagnosis.aligned.sentences:
            console.write_remark(sentence)
        for sentence in diagnosis.aligned.warnings:
            console.write_remark(sentence, "warn")
    remarks = [(text, check.flag) for check in diagnosis.checks for text in check.sentences]
    known = {text for text, _ in remarks}
    remarks += [(text, "") for text in diagnosis.judgement.unjudged if text not in known]
    for sentence, flag in dict.fromkeys(remarks):
        console.write_remark(sentence, flag)
    console.write_remark(_TAILS)


PERMUTATIONS = 499
FEW = 6
"""Number of parameters to show if several posteriors are compared."""


def compare(
    runs: options.Runs,
    truth: Path | None = option(
        None,
        "The file that the others are compared with (by default the first), or the name of a reference posterior "
        "such as mixture-3 (`ob.truth.references()` lists them).",
        metavar="NAME",
    ),
    points: Path | None = option(
        None,
        "File with arrays x and y: new data at which networks are compared. By default the training data stored "
        "with the reference.",
        metavar="POINTS.npz",
    ),
    exchangeable: options.Exchangeable = None,
    var: options.Var = None,
    weights: bool = option(True, "Also compare the draws of weights.", "--weights/--no-weights"),
    permutations: int = option(PERMUTATIONS, "Number of permutations for each p-value."),
    seed: options.Seed = 0,
    details: options.ShowDetails = False,
    json: options.Json = False,
) -> None:
    """Compare the predictions and draws of posteriors, modulo symmetry, with those of one of them or of a reference."""
    prepare_libraries()
    from onebasin.analysis.compare.compare import compare as compare_trees
    from onebasin.analysis.report import MEANS, comparison_table, means_table
    from onebasin.base.checks import check_seed
    from onebasin.posteriors import references
    from onebasin.posteriors.view import as_view

    check_seed(seed)
    files = inputs.posteriors(runs)
    name = inputs.truth(files, truth, references.names())
    if name in files and len(files) < 2:
        what = "one file" if len(runs) < 2 else "the chains of one posterior"
        raise StudyError(
            f"A comparison needs two posteriors, but `RUN.nc` names only {what}. Add a file, or use --truth."
        )
    x, y = _read_points(points) if points else (None, None)
    views = {file: inputs.read(run) for file, run in files.items()}
    against = views[name] if name in views else as_view(references.open_reference(name))
    if points and against.network is None:
        raise StudyError(
            f"`--points` applies only to networks, but {name} is not the posterior of a network: omit --points."
        )
    with console.alignment_bar() as progress:
        comparison = compare_trees(
            views,
            truth=name,
            var_names=inputs.variables(var, against),
            symmetry=inputs.symmetry_of(exchangeable, against),
            x=x,
            y=y,
            weights=weights,
            permutations=permutations,
            seed=seed,
            progress=progress,
        )
    if json:
        console.write_json({"files": [str(run) for run in runs], **comparison.to_dict()})
        return
    for sentence in comparison.sentences:
        console.write_remark(sentence)
    for sentence in comparison.warnings:
        console.write_remark(sentence, "warn")
    several = len(comparison.moments) > 1  # Each has a table.
    means = means_table(comparison, FEW if several and not details else MEANS)
    if means is not None:
        console.write_table(means)
    if details or means is None:
        console.write_table(comparison_table(comparison))
    for sentence in comparison.notes if details or means is None else ["More: --details"]:
        console.write_remark(sentence)


def _read_points(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read the inputs x, and the labels or targets y if they exist."""
    from onebasin.base.files.netcdf import ClaimError, read_arrays

    remedy = "write the file with numpy.savez(path, x=..., y=...)"
    if not path.is_file():
        raise StudyError(f"`--points` is {path}, which does not exist or is not a file; {remedy}.")
    try:
        held = read_arrays(path)
    except ClaimError as error:
        raise StudyError(f"`--points` is {path}, which {error}.") from None
    except ValueError as error:
        raise StudyError(
            f"`--points` is {path}, which contains no plain arrays; {remedy}."
        ) from error
    if "x" not in held:
        there = ", ".join(held) or "nothing"
        raise StudyError(
            f"`--points` is {path}, which contains no array x (found: {there}); {remedy}."
        )
    return held["x"], held.get("y")


def predict(
    run: options.Run,
    new: Annotated[
        Path, argument("NEW.json", "New data by name, as JSON; for a network, the inputs as x.")
    ],
    program: options.ProgramOf = None,
    data: options.DataOf = None,
    out: Path | None = option(
        None, f"Write the posterior with the predictions: {options.WRITTEN}.", "--out", "-o"
    ),
    prob: float = option(0.9, "Probability of the intervals."),
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Predict at new data with the draws of a posterior, and show mean, sd and interval of every prediction."""
    prepare_libraries()
    from onebasin.base.table import frame_table
    from onebasin.inference.prediction.models import read_new_data
    from onebasin.inference.prediction.predict import predict as predict_at
    from onebasin.posteriors.writing import write_tree

    fresh = read_new_data(new)
    with ExitStack() as files:
        if out is not None:
            files.enter_context(inputs.claimed(out, [*inputs.files_of(run), new], force=force))
        model = inputs.model(program, data, files)
        view = inputs.read(run)
        found: Any = predict_at(view, fresh, model=model, seed=seed, progress=console.say)
        table = found.intervals(prob)
        if out is not None:
            write_tree(found.tree, out, new=not force)
    if json:
        rows = {str(name): row for name, row in table.to_dict(orient="index").items()}
        said = {"file": str(inputs.title(run)), "data": str(new), "sentence": found.judged.sentence}
        console.write_json(said | {"verdict": found.judged.answer or None, "predictions": rows})
    else:
        for words in found.judged.words:
            console.write_remark(words.text, words.flag)
        console.write_table(frame_table(table, f"Predictions of {inputs.title(run)} at {new}"))
    if out is not None and json:
        console.say(f"wrote {out}")  # Only JSON goes to stdout.
    elif out is not None:
        console.write_remark(f"wrote {out}", "good")


def loo(
    runs: options.Runs,
    program: options.ProgramOf = None,
    data: options.DataOf = None,
    var_name: str | None = option(None, "The observed variable, needed if there are several."),
    json: options.Json = False,
) -> None:
    """Estimate how well a model predicts each left-out observation; compare and stack several models."""
    prepare_libraries()
    from onebasin.analysis.compare.models import compare_models
    from onebasin.inference.prediction.loo import loo as leave_out

    named = inputs.posteriors(runs)
    if len(named) > 1 and program:
        raise StudyError("`--program` applies to one posterior: give one file, or omit --program.")
    views = {name: inputs.read(files) for name, files in named.items()}
    if len(named) > 1:
        found = compare_models(views, var_name=var_name)
        if json:
            rows = found.table.to_dict(orient="index")
            said = {"answer": found.answer, "sentences": found.sentences}
            verdicts = {name: each.answer or None for name, each in found.judged.items()}
            console.write_json({**said, "verdicts": verdicts, "models": rows})
            return
        for sentence in found.sentences:
            console.write_remark(sentence)
        console.write_table(found.summary)
        return
    with ExitStack() as files:
        estimate: Any = leave_out(
            next(iter(views.values())),
            model=inputs.model(program, data, files),
            var_name=var_name,
            progress=console.say,
        )
    if not json:
        for line in repr(estimate).splitlines():
            console.write_remark(line)
        return
    said = {"verdict": estimate.answer, "sentences": estimate.sentences}
    numbers = {name: float(getattr(estimate, name)) for name in ("elpd", "se", "p", "good_k")}
    bad = int((estimate.pareto_k > estimate.good_k).sum())
    console.write_json(
        said | numbers | {"observations": int(estimate.n_data_points), "above_good_k": bad}
    )
