"""`onebasin loo`: how well models, or the chains of one posterior, predict observations that are left out."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from onebasin.base.errors import StudyError
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

from . import console, inputs
from .options import DataOf, Json, ProgramOf, Runs, Seed, option


def loo(
    runs: Runs,
    program: ProgramOf = None,
    data: DataOf = None,
    by: str | None = option(None, "Compare and stack the parts of one posterior: chain or mode."),
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
    if len(named) > 1 and (program or by or observations):
        raise StudyError(
            "`--program`, `--by` and `--observations` are of one posterior: give one file, or leave them out."
        )
    views = {name: inputs.read(files) for name, files in named.items()}
    if len(named) > 1 or by is not None:
        given: Any = views if by is None else next(iter(views.values()))
        found = compare_models(given, by=by, var_name=var_name)
        if json:
            gain, error = found.gain()
            rows = found.table.to_dict(orient="index")
            console.write_json({"models": rows, "gain": gain, "gain_se": error})
            return
        for sentence in found.sentences:
            console.write_sentence(sentence)
        console.write_table(found.summary)
        return
    with ExitStack() as files:
        estimate = leave_out(
            next(iter(views.values())),
            model=inputs.model(program, data, files),
            var_name=var_name,
            observations=observations,
            seed=seed,
            progress=console.say,
        )
    bad = int((estimate.pareto_k > estimate.good_k).sum())
    if json:
        numbers = {name: float(getattr(estimate, name)) for name in ("elpd", "se", "p", "good_k")}
        console.write_json(
            numbers | {"observations": int(estimate.n_data_points), "above_good_k": bad}
        )
        return
    for line in repr(estimate).splitlines():
        console.write_sentence(line)
