"""`onebasin predict` and `loo`: predictions at new data, and of observations that are left out."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from onebasin.base.errors import StudyError
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console, inputs
from .options import WRITTEN, DataOf, Force, Json, ProgramOf, Run, Runs, Seed, argument, option


def predict(
    run: Run,
    new: Annotated[
        Path, argument("NEW.json", "New data by name, as JSON; a network's inputs as x.")
    ],
    program: ProgramOf = None,
    data: DataOf = None,
    out: Path | None = option(
        None, f"Write the posterior with the predictions: {WRITTEN}.", "--out", "-o"
    ),
    prob: float = option(0.9, "Probability of the intervals."),
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict at new data with the draws of a posterior, and show mean, sd and interval of every prediction."""
    prepare_jax()
    quieten_stan()
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
        if out is not None:  # once everything else has gone well
            write_tree(found.tree, out, new=not force)
    if json:
        rows = {str(name): row for name, row in table.to_dict(orient="index").items()}
        said = {"file": str(inputs.title(run)), "data": str(new), "sentence": found.judged.sentence}
        console.write_json(said | {"verdict": found.judged.answer or None, "predictions": rows})
    else:
        for words in found.judged.words:
            console.write_remark(words.text, words.flag)
        console.write_table(frame_table(table, f"Predictions of {inputs.title(run)} at {new}"))
    if out is not None:
        console.say(f"wrote {out}")


def loo(
    runs: Runs,
    program: ProgramOf = None,
    data: DataOf = None,
    var_name: str | None = option(None, "The observed variable, where there are several."),
    observations: int | None = option(
        None, "Compute importance weights of so many observations alone."
    ),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Estimate how well a model predicts each observation that is left out; compare and stack several models."""
    prepare_jax()
    quieten_stan()
    from onebasin.analysis.compare.models import compare_models
    from onebasin.inference.prediction.loo import loo as leave_out

    named = inputs.posteriors(runs)
    if len(named) > 1 and (program or observations):
        raise StudyError(
            "`--program` and `--observations` are of one posterior: give one file, or leave them out."
        )
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
            console.write_sentence(sentence)
        console.write_table(found.summary)
        return
    with ExitStack() as files:
        estimate: Any = leave_out(
            next(iter(views.values())),
            model=inputs.model(program, data, files),
            var_name=var_name,
            observations=observations,
            seed=seed,
            progress=console.say,
        )
    if not json:
        for line in repr(estimate).splitlines():
            console.write_sentence(line)
        return
    said = {"verdict": estimate.answer, "sentences": estimate.sentences}
    numbers = {name: float(getattr(estimate, name)) for name in ("elpd", "se", "p", "good_k")}
    bad = int((estimate.pareto_k > estimate.good_k).sum())
    console.write_json(
        said | numbers | {"observations": int(estimate.n_data_points), "above_good_k": bad}
    )
