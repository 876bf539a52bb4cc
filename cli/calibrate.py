"""`onebasin calibrate`: test a method on data that a model simulates from its own prior."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from onebasin.base.errors import ModelDataError, StudyError
from onebasin.base.processes.libraries import prepare_libraries
from onebasin.base.text import Flag

from . import console, inputs
from .options import Json, Progress, Scheduler, Seed, argument, option

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family

_MARK: dict[str, Flag] = {"calibrated": "good", "not calibrated": "bad", "cannot be judged": "warn"}
_LINES = 10
"""Maximum number of test quantities in the table."""


def calibrate(
    model: Annotated[
        str,
        argument(
            "MODEL",
            "PROGRAM.stan with --simulator; MODEL.py:NAME, a NumPyro model, with --observed; or the name of a built-in "
            "problem, such as mixture-2.",
        ),
    ],
    data: Annotated[
        Path | None,
        argument(
            "[DATA.json]", "For a NumPyro model, the arguments that are not observed, as JSON."
        ),
    ] = None,
    simulator: str | None = option(
        None,
        "For a Stan program: a function that takes a numpy Generator and returns two dicts, for parameters and data.",
        metavar="FILE.py:NAME",
    ),
    observed: str | None = option(
        None,
        "For a NumPyro model: observed arguments, separated by commas. The model draws an argument when it is None.",
    ),
    method: str = option(
        "nuts",
        "The inference method: nuts, hmc, mclmc, modes, meanfield, fullrank, dadvi, symmetrised, laplace or "
        "pathfinder.",
    ),
    engine: str | None = option(
        None, "numpyro, stanli, cmdstan or nutpie; by default chosen for the model."
    ),
    exchangeable: list[str] | None = option(
        None, "Interchangeable components of your model, as in `sample`."
    ),
    simulations: int = option(200, "Number of simulated data sets."),
    seed: Seed = 0,
    chains: int | None = option(None, "Number of chains of each posterior; by default 2."),
    warmup: int | None = option(None, "Warmup iterations of each chain; by default 500."),
    draws: int | None = option(None, "Number of draws of each chain or fit."),
    workers: int | None = option(
        None, "Number of groups of simulations that run at once; by default one per core."
    ),
    scheduler: Scheduler = None,
    out: Path | None = option(
        None, "Folder in which ranks are saved; repeat the command to resume.", metavar="DIR"
    ),
    figure: Path | None = option(
        None, "File for a picture of the ranks with their bands.", metavar="FILE.png"
    ),
    json: Json = False,
    progress: Progress = True,
) -> None:
    """Check whether a method recovers the right posterior, and measure its error.

    Parameters are drawn from the prior and data from the likelihood, so the parameters are one more draw from the
    posterior.
    """
    prepare_libraries()
    from onebasin.inference.calibration.calibrate import calibrate as run
    from onebasin.inference.calibration.calibrate import method_of

    settings = method_of(method)
    typed = {"chains": chains, "warmup": warmup, "draws": draws}
    given = {name: value for name, value in typed.items() if value is not None}
    if absent := [name for name in given if not hasattr(settings, name)]:
        raise StudyError(
            f"`--{absent[0]}` does not apply to --method {method}. Omit `--{absent[0]}`."
        )
    with _family(model, data, simulator, observed, exchangeable) as family:
        found = run(
            family,
            replace(settings, **given),
            engine,
            simulations=simulations,
            seed=seed,
            folder=out,
            workers=workers,
            client=scheduler,
            progress=progress,
        )
    if figure is not None:
        from onebasin.analysis.plots.results import plot_calibration

        plot_calibration(found).savefig(figure, dpi=150)
    if json:
        console.write_json({"model": model, **found.to_dict()})
        return
    from onebasin.base.card import Card, Part, Words
    from onebasin.base.table import Column, Table, TableCell

    parts: list[Part] = [Words(sentence) for sentence in found.sentences]
    outside = {True: TableCell("yes", "bad"), False: TableCell("no")}
    rows = tuple(
        (one.name, outside[bool(one.outside)], one.p_value, one.shift, one.ratio)
        for one in found.off[:_LINES]
    )
    if rows:
        sds = [Column(name, decimals=2, unit="sd") for name in ("shift", "spread")]
        more = len(found.off) - len(rows)
        others = f"; {more} more: --json" if more else ""
        caption = f"Shift and spread of the true values relative to the posterior (0 and 1 if calibrated){others}"
        parts.append(Table(("quantity", "outside", Column("p", 2), *sds), rows, caption))
    heading = f"{model}, {found.method} ({found.engine})"
    console.write_card(Card(heading, tuple(parts), _MARK[found.verdict]))


@contextmanager
def _family(
    model: str,
    data: Path | None,
    simulator: str | None,
    observed: str | None,
    exchangeable: list[str] | None,
) -> Iterator[Family]:
    """Yield the family of models; within the context, the user's modules can be imported."""
    from onebasin.base.text import read_json_file
    from onebasin.inference.calibration.family import Family, simulated
    from onebasin.models.numpyro_target import loaded, model_file_in
    from onebasin.truth.labelling import aligned_quantity

    symmetry = inputs.symmetry(exchangeable)
    with ExitStack() as files:
        if (file := model_file_in(model)) is not None:
            if observed is None:
                raise StudyError(
                    f"`--observed` is missing. Name those arguments of {model} that are data, as in --observed y."
                )
            family = Family.of_numpyro(
                files.enter_context(loaded(file)),
                None if data is None else dict(read_json_file(data, error=ModelDataError)),
                observed=[name.strip() for name in observed.split(",")],
                symmetry=symmetry,
                name=file.name,
            )
        elif model.endswith(".stan"):
            place = None if simulator is None else model_file_in(simulator)
            if place is None:
                raise StudyError(
                    f"`--simulator` is {simulator or 'missing'}. Name a function that takes a NumPy generator and "
                    f"returns the parameters and data of {model}, as in --simulator sim.py:simulate."
                )
            function = files.enter_context(loaded(place))
            family = Family.of_stan(model, function, symmetry=symmetry)
        else:
            from onebasin.base.checks import choose
            from onebasin.truth.problems import PROBLEMS

            known = {n: p.family for n, p in PROBLEMS.items() if p.family is not None}
            family = known[choose("MODEL", model, known)]()
            symmetry = family.condition(simulated(family, 0, 0).data).symmetry
        if any(block.keeps_density for block in symmetry):
            family = family.looking_at({"aligned": aligned_quantity(symmetry)})
        yield family
