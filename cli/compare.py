"""`onebasin compare`: posterior files of one model, and one of them or a reference posterior as the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onebasin.base.errors import StudyError, check_seed
from onebasin.base.processes.libraries import prepare_jax_if_used

from . import console, inputs
from .options import Exchangeable, Json, Runs, Seed, ShowDetails, Var, option

if TYPE_CHECKING:
    import numpy as np

PERMUTATIONS = 499


def compare(
    runs: Runs,
    truth: Path | None = option(
        None,
        "File that the others are compared with, by default the first; or the name of a reference posterior, such as "
        "mixture-3 (`ob.truth.references()` lists them).",
        metavar="NAME",
    ),
    points: Path | None = option(
        None,
        "Where networks are compared: arrays x and y, of data they were not fitted to. By default the data that "
        "the truth was fitted to and keeps.",
        metavar="POINTS.npz",
    ),
    exchangeable: Exchangeable = None,
    var: Var = None,
    weights: bool = option(True, "Also compare draws in weight space.", "--weights/--no-weights"),
    permutations: int = option(PERMUTATIONS, "Permutations behind each p-value."),
    seed: Seed = 0,
    details: ShowDetails = False,
    json: Json = False,
) -> None:
    """Compare posteriors with one of them, or with a reference: in prediction, and in weights modulo symmetry."""
    check_seed(seed)
    prepare_jax_if_used()
    from onebasin.analysis.compare.compare import compare as compare_trees
    from onebasin.analysis.report import comparison_table, means_table
    from onebasin.posteriors import references
    from onebasin.posteriors.view import as_view

    files = inputs.posteriors(runs)
    name = inputs.truth(files, truth, references.names())
    if name in files and len(files) < 2:
        what = "one file" if len(runs) < 2 else "one posterior, in chains"
        raise StudyError(
            f"`RUN.nc` is {what}, and a comparison needs two or more: add another, or name a reference by --truth."
        )
    x, y = _read_points(points) if points else (None, None)
    views = {file: inputs.read(run) for file, run in files.items()}
    against = views[name] if name in views else as_view(references.open_reference(name))
    if points and against.network is None:
        raise StudyError(
            f"`--points` is {points}, but {name} is of no network that could predict there; leave it out."
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
        console.write_sentence(sentence)
    for sentence in comparison.warnings:
        console.write_remark(sentence, "warn")
    means = means_table(comparison)
    if means is not None:
        console.write_table(means)
    if details or means is None:
        console.write_table(comparison_table(comparison))
    for sentence in comparison.notes if details or means is None else ["More: --details"]:
        console.write_sentence(sentence)


def _read_points(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read inputs, and labels or targets where they are there."""
    from onebasin.base.files.sizes import ClaimError, read_arrays

    remedy = "write it with numpy.savez(path, x=..., y=...)"
    if not path.is_file():
        raise StudyError(f"`--points` is {path}, which does not exist or is no file; {remedy}.")
    try:
        held = read_arrays(path)
    except ClaimError as error:
        raise StudyError(f"`--points` is {path}, which {error}; {remedy}.") from None
    except ValueError as error:
        raise StudyError(f"`--points` is {path}, which holds no plain arrays; {remedy}.") from error
    if "x" not in held:
        there = ", ".join(held) or "nothing"
        raise StudyError(f"`--points` is {path}, which holds {there} and no array x; {remedy}.")
    return held["x"], held.get("y")
