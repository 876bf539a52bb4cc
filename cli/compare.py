"""`onebasin compare`: posterior files of one model beside the one that is taken for the truth, or a kept reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onebasin.base.errors import StudyError, check_seed
from onebasin.base.processes.libraries import prepare_jax_if_used

from . import reading
from .symmetries import HELP, of_view

if TYPE_CHECKING:
    import numpy as np

PERMUTATIONS = 499


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN.nc...", help=reading.HELP_MANY)],
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="NAME",
            help="A reference posterior's name (onebasin truth list), which every run is held against; or which of "
            "the files is the truth, by default the first.",
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            metavar="POINTS.npz",
            help="Where networks are compared: arrays x and y, of data they were not fitted to. "
            "By default the data that the truth was fitted to and keeps.",
        ),
    ] = None,
    exchangeable: Annotated[
        list[str] | None, typer.Option(help=f"{HELP} By default what the truth declares.")
    ] = None,
    var: Annotated[
        list[str] | None, typer.Option(help="Compare the draws of this variable; repeatable.")
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights/--no-weights", help="Also compare draws in weight space.")
    ] = True,
    permutations: Annotated[int, typer.Option(help="Behind each p-value.")] = PERMUTATIONS,
    seed: Annotated[int, typer.Option(help="Of permutations and of predictions' noise.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
) -> None:
    """Hold posteriors against one of them, or against a reference: in prediction, and in weights modulo symmetry."""
    from . import against, console

    check_seed(seed)
    prepare_jax_if_used()
    from onebasin.analysis.compare.compare import compare as compare_trees
    from onebasin.analysis.report import comparison_table, means_table

    files = reading.posteriors(runs)
    reference = against.reference_named(files, truth)
    if reference is None and len(files) < 2:
        what = "one file" if len(runs) < 2 else "one posterior, in chains"
        raise StudyError(
            f"`RUN.nc` is {what}, and a comparison needs two or more: add another, or name a reference by --truth."
        )
    x, y = _read_points(points) if points else (None, None)
    if reference is not None:
        _refuse_with_reference(exchangeable, permutations)
        how = {"x": x, "y": y, "weights": weights, "var_names": var or None, "seed": seed}
        against.compare_with(reference, files, json=json, **how)
        return
    name = reading.truth(files, truth)
    views = {name: reading.read(run) for name, run in files.items()}
    if points and views[name].network is None:
        raise StudyError(
            f"`--points` is {points}, but {files[name][0]} is of no network that could predict there; leave it out."
        )
    with console.alignment_bar() as progress:
        comparison = compare_trees(
            views,
            truth=name,
            x=x,
            y=y,
            weights=weights,
            var_names=var or None,
            symmetry=of_view(exchangeable, views[name]),
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
    console.write_table(comparison_table(comparison))
    if (means := means_table(comparison)) is not None:
        console.write_table(means)
    for sentence in comparison.notes:
        console.write_sentence(sentence)


def _refuse_with_reference(exchangeable: list[str] | None, permutations: int) -> None:
    """Refuse options that a reference has no use for."""
    if exchangeable:
        raise StudyError(
            "`--exchangeable` does not apply to a reference, which has a symmetry of its own: leave it out."
        )
    if permutations != PERMUTATIONS:
        raise StudyError(
            "`--permutations` does not apply to a reference, whose Monte Carlo errors are known: leave it out."
        )


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
