"""`onebasin compare`: posterior files of one model and the one that is taken for the truth, or a kept reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.base.errors import StudyError, check_seed
from onebasin.base.processes.libraries import prepare_jax_if_used

from . import console, inputs
from .options import Exchangeable, Json, Runs, Seed, ShowDetails, Var, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

PERMUTATIONS = 499


def compare(
    runs: Runs,
    truth: Path | None = option(
        None,
        "A reference posterior's name (onebasin truth list), which every run is compared with; or which of the "
        "files is the truth, by default the first.",
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

    files = inputs.posteriors(runs)
    reference = inputs.kept_reference(files, truth)
    if reference is None and len(files) < 2:
        what = "one file" if len(runs) < 2 else "one posterior, in chains"
        raise StudyError(
            f"`RUN.nc` is {what}, and a comparison needs two or more: add another, or name a reference by --truth."
        )
    x, y = _read_points(points) if points else (None, None)
    how: dict[str, Any] = {"x": x, "y": y, "weights": weights, "seed": seed}
    if reference is not None:
        if exchangeable:
            raise StudyError(
                "`--exchangeable` does not apply to a reference, which has its own symmetry: leave it out."
            )
        if permutations != PERMUTATIONS:
            raise StudyError(
                "`--permutations` does not apply to a reference, whose Monte Carlo errors are known: leave it out."
            )
        _compare_with(reference, files, var, json=json, **how)
        return
    name = inputs.truth(files, truth)
    views = {name: inputs.read(run) for name, run in files.items()}
    if points and views[name].network is None:
        raise StudyError(
            f"`--points` is {points}, but {files[name][0]} is of no network that could predict there; leave it out."
        )
    with console.alignment_bar() as progress:
        comparison = compare_trees(
            views,
            truth=name,
            var_names=inputs.variables(var, views[name]),
            symmetry=inputs.symmetry_of(exchangeable, views[name]),
            permutations=permutations,
            progress=progress,
            **how,
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


def _compare_with(
    name: str, files: Mapping[str, inputs.Files], var: list[str] | None, *, json: bool, **how: Any
) -> None:
    """Write how far runs are from a reference: the verdict, what it rests on, the worst quantities."""
    from onebasin.analysis.compare.reference.compare import compare_with_reference
    from onebasin.analysis.compare.reference.result import FLAGS
    from onebasin.analysis.report import reference_table
    from onebasin.truth import open_reference

    known = open_reference(name).known
    found = []
    for run, group in files.items():
        view = inputs.read(group)
        with console.alignment_bar() as progress:
            comparison = compare_with_reference(
                view,
                known,
                name=run,
                var_names=inputs.variables(var, view),
                progress=progress,
                **how,
            )
        found.append({"files": [str(file) for file in group], **comparison.to_dict()})
        if json:
            continue
        first, *others = comparison.sentences
        console.write_headline(comparison.heading, first, FLAGS[comparison.verdict])
        for sentence in others:
            console.write_sentence(sentence)
        console.write_table(reference_table(comparison))
        for sentence in comparison.notes:
            console.write_sentence(sentence)
    if json:
        console.write_json({"truth": name, "runs": found})


def _read_points(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read inputs, and labels or targets where they are there."""
    from onebasin.base.files.claims import ClaimError, read_arrays

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
