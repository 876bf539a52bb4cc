"""`onebasin predict`: a posterior's predictions at new data."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console, inputs
from .options import WRITTEN, DataOf, Force, Json, ProgramOf, Run, Seed, argument, option


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
        if out is not None:
            write_tree(found.tree, out, new=not force)
    table = found.intervals(prob)
    if json:
        rows = {str(name): row for name, row in table.to_dict(orient="index").items()}
        console.write_json({"file": str(inputs.title(run)), "data": str(new), "predictions": rows})
    else:
        console.write_table(frame_table(table, f"Predictions of {inputs.title(run)} at {new}"))
    if out is not None:
        console.say(f"wrote {out}")
