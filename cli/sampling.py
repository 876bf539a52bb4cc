"""Sample any Stan program or NumPyro model, and write a posterior file, as requested on the command line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin import inference
from onebasin.base.checks import check_seed
from onebasin.base.errors import NameTaken, StudyError, WriteError
from onebasin.inference.contracts.method import Method
from onebasin.inference.runs.keywords import LIMIT_MB
from onebasin.models.numpyro_target import ModelFile, model_file_in
from onebasin.posteriors import schema

from . import inputs

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.target import Target

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """A run that is requested on the command line."""

    program: Path  # The ``.stan`` file, or ``FILE.py:NAME`` of a NumPyro model.
    data: Path | None  # The JSON file of its data.
    out: Path
    method: Method
    seed: int
    exchangeable: Symmetry = ()
    find: bool = True  # Search for the symmetry if none is declared.
    predictive_mb: float | None = None  # Size limit of a NumPyro model's groups, in MB.
    command: str = ""  # As it was typed.
    asked: str = ""  # The engine; empty for the default.
    start: Path | None = None  # Initial values, or a posterior to draw them from.
    adapt_from: Path | None = None  # Posterior, or JSON file, of step sizes and metrics.
    scheduler: str | None = None  # Address of the Dask scheduler whose workers run chains.

    def __post_init__(self) -> None:
        """Reject a seed that no engine accepts."""
        check_seed(self.seed)

    @property
    def model(self) -> ModelFile | None:
        """The file of the NumPyro model; None for a Stan program."""
        return model_file_in(self.program)

    @property
    def engine(self) -> str:
        """The engine that runs the program or model."""
        return self.asked or ("stan" if self.model is None else "numpyro")

    @property
    def inputs(self) -> list[Path]:
        """The files that the command names."""
        program = self.program if self.model is None else self.model.path
        return [program, *(p for p in (self.data, self.start, self.adapt_from) if p is not None)]

    @property
    def read(self) -> list[Path]:
        """The files that are read, including the files that the program includes if the output exists."""
        from onebasin.stan.interpreter.runtime import included_files

        # `os.path` accepts impossible names, which `claim` rejects.
        if self.model is not None or not os.path.isfile(self.out):
            return self.inputs
        if any(self.out.samefile(path) for path in self.inputs):
            return self.inputs
        return [*self.inputs, *included_files(Path(os.path.realpath(self.program)))]

    @property
    def checkpoint(self) -> Path:
        """Folder next to `out` for unfinished chains."""
        return self.out.with_name(f"{self.out.name}.chains")

    @property
    def log(self) -> Path:
        """Log of the run, next to `out`."""
        return self.out.with_name(f"{self.out.name}.log")

    @property
    def kept(self) -> str:
        """The message that says which draws an interrupted run has kept, and how to resume it."""
        from onebasin.inference.runs.checkpoint import kept_draws

        if not self.method.keeps:
            return f"--method {self.method.word} saves nothing before it ends"
        if not self.method.correlated:
            return f"the training state is kept in {self.checkpoint}: repeat the command to resume"
        chains, draws = self.method.amount
        thin = getattr(self.method, "thin", 1) if self.method.takes_adaptation else 1
        kept = [min(count // thin, draws) for count in kept_draws(self.checkpoint)]
        return (
            f"{kept.count(draws)} of {chains} chains are finished, {sum(kept):,} of {chains * draws:,} draws kept in "
            f"{self.checkpoint}: repeat the command to resume"
        )


def run(request: Request, *, force: bool, progress: bool, say: Say) -> xr.DataTree:
    """Sample the program or the model and write the posterior, unless the same command has already written it.

    The output stays locked until the checkpoint is deleted at the end, so that the same command can finish a run that
    was killed at any moment. `say` is called with a line of text before long steps.
    """
    import h5py

    from onebasin.base.errors import PosteriorFileError
    from onebasin.base.files.writing import check_output, claim
    from onebasin.inference.contracts.method import bound, chosen
    from onebasin.posteriors.open import open_posterior
    from onebasin.posteriors.writing import NETCDF, format_of

    opened = inputs.opened(request.program, request.data, symmetry=request.exchangeable)
    refused: dict[str, Any] = {"error": PosteriorFileError, "argument": "--out"}
    with opened as target:
        check_output(request.out, force=True, inputs=request.inputs, **refused)
        if request.model is None and not request.asked:
            target = bound(target, None)
            if reason := target.stan_program.choice.reason:  # CmdStan runs it.
                say(reason.removesuffix("."))
        engine = chosen(target, type(request.method), request.asked or None)[0]
        target = bound(target, engine)
        target = replace(target, symmetry=_meant(engine, target, say))
        request = replace(request, asked=engine, exchangeable=target.symmetry)
        mark = None
        with suppress(OSError), h5py.File(request.out) as file:
            mark = None if force else file.attrs.get(schema.FINGERPRINT)
        there = mark is not None and mark == _fingerprint(request, target, say)
        with claim(request.out, force=force or there, inputs=request.read, **refused):
            if format_of(request.out, argument="--out") is not NETCDF:
                name = request.out.name.split(".")[0] or "run"
                raise StudyError(
                    f"`--out` is {request.out}, but `sample` writes only NetCDF. Name the file {name}.nc, and "
                    "convert it with `onebasin convert`."
                )
            if there:
                try:
                    tree = open_posterior(request.out, lazy=True)
                except PosteriorFileError as error:
                    raise StudyError(
                        f"`--out` is {request.out}, which is a damaged file from an earlier run of this command. Use "
                        "--force to replace the file."
                    ) from error
                say(f"{request.out} already holds the result of this command")
            else:
                was_there = request.log.exists()
                try:
                    tree = _sample(request, target, force=force, progress=progress, say=say)
                except BaseException:
                    if not was_there and not request.checkpoint.exists():  # No draws were made.
                        request.log.unlink(missing_ok=True)
                    raise
            _clear(request, say)
    return tree


def _sample(
    request: Request, target: Target, *, force: bool, progress: bool, say: Say
) -> xr.DataTree:
    """Sample and write the posterior; log the command, its settings, and how it ends."""
    from onebasin.base.files.netcdf import write_tree
    from onebasin.base.run_log import logged_to, story
    from onebasin.inference.runs.posterior import versions

    settings = {"method": request.method.word, "seed": request.seed, **request.method.recorded()}
    told = {"versions": versions(), "settings": settings}
    with logged_to(request.log), story(request.command, **told):
        # Compute it first, since the user may edit the files during the run.
        mark = _fingerprint(request, target, say)
        try:
            tree = inference.infer(
                target,
                request.method,
                engine=request.engine,
                seed=request.seed,
                start=request.start,
                adapt_from=request.adapt_from,
                checkpoint=request.checkpoint if request.method.keeps else None,
                client=request.scheduler,
                predictive_mb=LIMIT_MB if request.predictive_mb is None else request.predictive_mb,
                symmetry=request.find,
                progress=progress,
            )
            tree.attrs[schema.FINGERPRINT] = mark or ""
            tree.attrs[schema.COMMAND] = request.command
            write_tree(tree, request.out, new=not force)
        except NameTaken:
            _clear(request, say)
            raise
        except WriteError as error:
            raise StudyError(f"{str(error).removesuffix('.')}; {request.kept}.") from error
        return tree


def _fingerprint(request: Request, target: Target, say: Say) -> str | None:
    from onebasin.inference.runs.checkpoint import fingerprint

    files = {"start": request.start, "adapt_from": request.adapt_from}
    contents = {
        name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else str(path)
        for name, path in files.items()
        if path is not None
    }
    limit = {} if request.predictive_mb is None else {"predictive_mb": request.predictive_mb}
    return fingerprint(
        target,
        engine=request.engine,
        progress=say,
        method=request.method.word,
        settings=request.method.recorded(),
        seed=request.seed,
        symmetry=schema.encode_symmetry(request.exchangeable),
        find=request.find and not request.exchangeable,
        **limit,
        **contents,
    )


def _clear(request: Request, say: Say) -> None:
    """Delete the checkpoint; keep files that onebasin did not write, and say so."""
    from onebasin.inference.runs.checkpoint import remove

    if stays := remove(request.checkpoint):
        say(
            f"{request.checkpoint} is kept: it holds {', '.join(stays)}, which onebasin did not write"
        )


def _meant(engine: str, target: Target, say: Say) -> Symmetry:
    """Adapt the declared symmetry to the lengths of variables that change sign."""
    from onebasin.inference.contracts.method import density_by

    if not any(block.axes and block.flipped for block in target.symmetry):
        return target.symmetry
    point = density_by(engine, target, say).points(1, 0)
    return inputs.as_meant(
        target.symmetry, {name: value.shape[1:] for name, value in point.items()}
    )
