"""`onebasin calibrate`: a method held to data that a model simulates from its own prior."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onebasin.base.errors import StudyError
from onebasin.base.processes.libraries import prepare_jax, quieten_stan

if TYPE_CHECKING:
    from onebasin.inference.calibration.family import Family
    from onebasin.inference.calibration.result import Calibration

_MARK = {"calibrated": "good", "not calibrated": "bad", "cannot be judged": "warn"}
_LINES = 10
"""Test quantities that are written as a table."""


def calibrate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="PROGRAM.stan with --simulator; MODEL.py:NAME, a NumPyro model, with --observed; or the name of a "
            "family of the suite's own, such as mixture-2 or net-givens.",
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA.json]",
            help="Of a NumPyro model, the arguments that are not observed, as JSON.",
        ),
    ] = None,
    simulator: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:NAME",
            help="Of a Stan program: a function of a numpy Generator that returns parameters and data, two dicts.",
        ),
    ] = None,
    observed: Annotated[
        str | None,
        typer.Option(
            help="Of a NumPyro model: arguments that are observed, with commas between them. Given None, the model "
            "draws them.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="A method that gives a posterior: nuts, hmc, mclmc, modes, meanfield, fullrank, dadvi, symmetrised, "
            "laplace or pathfinder."
        ),
    ] = "nuts",
    engine: Annotated[
        str | None, typer.Option(help="numpyro, stan or nutpie; by default the model's own.")
    ] = None,
    exchangeable: Annotated[
        list[str] | None,
        typer.Option(help="Parts of a model of yours that are interchangeable, as of `sample`."),
    ] = None,
    simulations: Annotated[int, typer.Option(help="How many.")] = 200,
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 0,
    chains: Annotated[int | None, typer.Option(help="Of each posterior; by default 2.")] = None,
    warmup: Annotated[int | None, typer.Option(help="Of each chain; by default 500.")] = None,
    draws: Annotated[int | None, typer.Option(help="Of each posterior's chains or fit.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Groups of simulations at once; as many as cores.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder in which ranks are kept: the same command goes on from it."
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the ranks with their bands.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of sentences.")] = False,
    progress: Annotated[bool, typer.Option(help="Show bars while it runs.")] = True,
) -> None:
    """Ask whether a method, and the program that it runs, give the posterior that they should, and by how much not.

    Parameters come from the prior, data from the likelihood; the parameters are then one more draw of the posterior.
    """
    from . import console

    prepare_jax()
    quieten_stan()
    from onebasin.inference.calibration.calibrate import calibrate as run
    from onebasin.inference.calibration.inferring import method_of

    settings = method_of(method)
    given = {"chains": chains, "warmup": warmup, "draws": draws}
    given = {name: value for name, value in given.items() if value is not None}
    if absent := [name for name in given if not hasattr(settings, name)]:
        raise StudyError(f"`--{absent[0]}` does not apply to --method {method}: leave it out.")
    with _family(model, data, simulator, observed, exchangeable or []) as family:
        found = run(
            family,
            replace(settings, **given),
            engine,
            simulations=simulations,
            seed=seed,
            folder=out,
            workers=workers,
            progress=progress,
        )
    if figure is not None:
        from onebasin.analysis.plots.calibration import plot_calibration

        plot_calibration(found).savefig(figure, dpi=150)
    if json:
        console.write_json({"model": model, **found.to_dict()})
        return
    _write(model, found)


def _write(model: str, found: Calibration) -> None:
    from onebasin.base.table import Column, Table, TableCell

    from . import console

    first, *rest = found.sentences
    console.write_headline(f"{model}, {found.method} ({found.engine})", first, _MARK[found.verdict])
    for sentence in rest:
        console.write_sentence(sentence)
    rows = tuple(
        (
            TableCell(one.name),
            TableCell("yes" if one.outside else "no", "bad" if one.outside else ""),
            TableCell(one.p_value),
            TableCell(one.shift),
            TableCell(one.ratio),
        )
        for one in found.off[:_LINES]
    )
    if rows:
        columns = (
            Column("quantity"),
            Column("outside"),
            Column("p", 2),
            Column("shift", decimals=2, unit="sd"),
            Column("spread", decimals=2, unit="sd"),
        )
        more = len(found.off) - len(rows)
        others = f"; {more} more: --json" if more else ""
        console.write_table(
            Table(columns, rows, f"Truths around posterior means, 0 and 1 if right{others}")
        )


@contextmanager
def _family(
    model: str,
    data: Path | None,
    simulator: str | None,
    observed: str | None,
    exchangeable: list[str],
) -> Iterator[Family]:
    """The family that the words say; modules of the user's can be imported meanwhile."""
    from onebasin.inference.calibration.family import Family
    from onebasin.models.numpyro_file import loaded, model_file_in

    from .symmetries import parse_exchangeable

    symmetry: Any = parse_exchangeable(exchangeable)
    with ExitStack() as files:
        if (file := model_file_in(model)) is not None:
            if observed is None:
                raise StudyError(
                    f"`--observed` is missing: say which arguments of {model} are data, as in --observed y."
                )
            function = files.enter_context(loaded(file))
            family = Family.of_numpyro(
                function,
                _arguments(data),
                observed=[name.strip() for name in observed.split(",")],
                symmetry=symmetry,
                name=file.name,
            )
            yield _aligned(family, symmetry)
            return
        if model.endswith(".stan"):
            place = None if simulator is None else model_file_in(simulator)
            if place is None:
                raise StudyError(
                    f"`--simulator` is {simulator or 'missing'}: name a function of a numpy Generator that returns "
                    f"parameters and data of {model}, as in --simulator sim.py:simulate."
                )
            function = files.enter_context(loaded(place))
            yield _aligned(Family.of_stan(model, function, symmetry=symmetry), symmetry)
            return
        yield _own(model)


def _arguments(data: Path | None) -> dict[str, Any] | None:
    from onebasin.base.errors import ModelDataError
    from onebasin.base.json_file import read_json_file

    return None if data is None else dict(read_json_file(data, error=ModelDataError))


def _aligned(family: Family, symmetry: Any) -> Family:
    from onebasin.analysis.alignment.align import aligned_quantity

    return family.looking_at({"aligned": aligned_quantity(symmetry)}) if symmetry else family


def _own(name: str) -> Family:
    from onebasin.base.checks import choose
    from onebasin.studies.calibration.design import NETWORKS, family_of
    from onebasin.truth.problems import PROBLEMS

    there = [*NETWORKS, *(n for n, p in PROBLEMS.items() if p.family is not None)]
    choose("MODEL", name, there)
    return family_of(name)
