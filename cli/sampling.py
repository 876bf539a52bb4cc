"""Any Stan program or NumPyro model, sampled: from the command line's words to a posterior file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin import inference
from onebasin.base.errors import NameTaken, StudyError, WriteError, check_seed
from onebasin.base.files.leftovers import lost_folder
from onebasin.inference.contracts.method import LIMIT_MB, Method
from onebasin.models.numpyro_file import ModelFile, loaded, model_file_in
from onebasin.posteriors import schema

from . import finding
from .groups import Groups

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.inference.runs.declared import Trial
    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.target import Target


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes
    ----------
    program : Path
        The ``.stan`` file, or ``FILE.py:NAME`` of a NumPyro model.
    data : Path or None
        The JSON file of its data, or of the model's arguments.
    out : Path
        The posterior file to write.
    method : Method
        The method with its settings.
    seed : int
        Seed.
    exchangeable : Symmetry
        The declared symmetry.
    find : bool
        Whether to look for the symmetry where none is declared.
    groups : Groups
        What is said of the groups beside the draws.
    command : str
        The command line, as it was typed.
    asked : str
        The engine that was asked for; empty for that of the program or the model.
    """

    program: Path
    data: Path | None
    out: Path
    method: Method
    seed: int
    exchangeable: Symmetry = ()
    find: bool = True
    groups: Groups = field(default_factory=Groups)
    command: str = ""
    asked: str = ""

    def __post_init__(self) -> None:
        """Refuse a seed that no engine takes."""
        check_seed(self.seed)

    @property
    def model(self) -> ModelFile | None:
        """Where the NumPyro model is; None for a Stan program."""
        return model_file_in(self.program)

    @property
    def engine(self) -> str:
        """Who runs it."""
        return self.asked or self.definition

    @property
    def definition(self) -> str:
        """What it is stated for."""
        return "stan" if self.model is None else "numpyro"

    @property
    def inputs(self) -> list[Path]:
        """The files that it names."""
        program = self.program if self.model is None else self.model.path
        return [program, *([self.data] if self.data else [])]

    @property
    def checkpoint(self) -> Path:
        """Folder beside `out` in which chains are kept as they go, until all have ended."""
        return self.out.with_name(f"{self.out.name}.chains")

    @property
    def log(self) -> Path:
        """File beside `out` that tells when the run did what."""
        return self.out.with_name(f"{self.out.name}.log")


def run(
    request: Request, *, force: bool, progress: bool, say: Callable[[str], None]
) -> xr.DataTree:
    """Sample the program or the model and write the posterior, unless this very request has been written before.

    The output is held from before the first draw until the kept chains are deleted, which is the last thing done: a
    run that was killed at any moment is finished by the same command.

    Parameters
    ----------
    request : Request
        What to do.
    force : bool
        Whether an output that is there may be replaced.
    progress : bool
        Whether to show bars.
    say : callable
        Called with a line of text before something that takes long.

    Returns
    -------
    DataTree
        What was written.

    Raises
    ------
    PosteriorFileError, InUse
        If the output is refused, or somebody else is writing it.
    KeyboardInterrupt
        On Ctrl-C; chains stay in `request.checkpoint`, as `what_is_kept` says.
    StudyError
        If a file cannot be written; the message says what is kept.
    """
    roles = request.groups.roles if request.model is None else {}
    with opened(request.program, request.data, symmetry=request.exchangeable, **roles) as target:
        return _run(request, target, force=force, progress=progress, say=say)


@contextmanager
def opened(
    program: Path, data: Path | None, *, symmetry: Symmetry = (), **roles: Any
) -> Iterator[Target]:
    """Take a program or a model with its data; the model's file can be run meanwhile.

    Parameters
    ----------
    program : Path
        The ``.stan`` file, or ``FILE.py:NAME`` of a NumPyro model.
    data : Path or None
        The JSON file of its data, or of the model's arguments.
    symmetry : Symmetry
        What is declared.
    **roles
        Of a Stan program's quantities, see `stan_program`.
    """
    file = model_file_in(program)
    if file is None:
        from onebasin import stan

        yield stan.stan_program(program, data, symmetry=symmetry, **roles)
        return
    from onebasin.models.numpyro_target import numpyro_model

    with loaded(file) as model:
        yield numpyro_model(model, data, symmetry=symmetry)


def _run(
    request: Request,
    target: Target,
    *,
    force: bool,
    progress: bool,
    say: Callable[[str], None],
) -> xr.DataTree:
    """The same, of a target."""
    from onebasin.base.errors import PosteriorFileError
    from onebasin.base.files.outputs import check_output, claim
    from onebasin.inference.runs.posterior import open_posterior

    check_output(
        request.out, force=True, error=PosteriorFileError, argument="--out", inputs=request.inputs
    )
    request, target = _with_engine(request, target, say)
    target = replace(target, symmetry=_meant(request, target, say))
    request = replace(request, exchangeable=target.symmetry)
    there = not force and _holds(request, target, say)
    with claim(
        request.out,
        force=force or there,
        error=PosteriorFileError,
        argument="--out",
        inputs=_inputs(request, say),
    ):
        _check_netcdf(request.out)
        if there:
            try:
                tree = open_posterior(request.out, lazy=True)
            except PosteriorFileError as error:
                raise StudyError(
                    f"`--out` is {request.out}, which this command has made, but it is damaged; make it anew with "
                    "--force."
                ) from error
            say(f"{request.out} holds what this command makes")
        else:
            with _logged(request):
                tree = _sample(request, target, force=force, progress=progress, say=say)
        _clear(request, say)
    return tree


def _with_engine(
    request: Request, target: Target, say: Callable[[str], None]
) -> tuple[Request, Target]:
    """Decide who runs the method, and say why where that is not the interpreter."""
    from onebasin.inference.contracts.engines import bound, chosen

    if request.model is None and not request.asked:
        target = bound(target, None)
        if reason := target.stan_program.choice.reason:
            say(reason.removesuffix("."))
    engine = chosen(target, type(request.method), request.asked or None)[0]
    return replace(request, asked=engine), bound(target, engine)


@contextmanager
def _logged(request: Request) -> Iterator[None]:
    """Tell the run's log what was asked for, what is met meanwhile, and how it ends."""
    from onebasin.base.run_log import logged_to, story
    from onebasin.inference.runs.provenance import versions

    settings = {"method": request.method.word, "seed": request.seed, **request.method.recorded()}
    was_there = request.log.exists()
    try:
        with logged_to(request.log), story(request.command, versions=versions(), settings=settings):
            yield
    except BaseException:
        if not was_there and not request.checkpoint.exists():  # nothing has come of it
            request.log.unlink(missing_ok=True)
        raise


def _check_netcdf(out: Path) -> None:
    """Refuse an output that is no NetCDF by its name, before anything is sampled.

    Raises
    ------
    StudyError
        If its suffix is of another format, or of none.
    """
    from onebasin.posteriors.writing import NETCDF, format_of

    if format_of(out, argument="--out") is not NETCDF:
        raise StudyError(
            f"`--out` is {out}, but sampling writes NetCDF: name it {out.name.split('.')[0] or 'run'}.nc, and convert "
            "that afterwards with `onebasin convert`."
        )


def _sample(
    request: Request,
    target: Target,
    *,
    force: bool,
    progress: bool,
    say: Callable[[str], None],
) -> xr.DataTree:
    """Draw and write; what breaks off says what is kept."""
    from onebasin.base.files.netcdf import write_tree

    trial = _check_symmetry(request, target, say)
    mark = _fingerprint(
        request, target, say
    )  # of the files as they are now, whatever becomes of them
    found, limit = None, request.groups.predictive_mb
    if request.find and not request.exchangeable and request.method.name != "optimize":
        found = finding.found_in(target, seed=request.seed, say=say)
        target, trial = found.target, found.trial
    try:
        tree = inference.infer(
            target,
            request.method,
            engine=request.engine,
            seed=request.seed,
            checkpoint=request.checkpoint if request.method.resumes else None,
            predictive_mb=LIMIT_MB if limit is None else limit,
            check_symmetry=False,  # checked above, in words of this command
            progress=progress,
        )
        if trial is not None:
            tree.attrs[schema.SYMMETRY_EVIDENCE] = trial.at_draws(tree).to_json()
        if found is not None:
            tree.attrs[schema.SYMMETRY_FOUND] = found.said
            if found.remark:
                say(found.remark)
        tree.attrs[schema.FINGERPRINT] = mark or ""
        tree.attrs[schema.COMMAND] = request.command
        write_tree(tree, request.out, new=not force)
    except NameTaken:
        _clear(request, say)
        raise
    except WriteError as error:
        raise StudyError(f"{str(error).removesuffix('.')}; {what_is_kept(request)}.") from error
    except Exception as error:
        if lost := lost_folder(error):
            raise StudyError(f"{lost}; {what_is_kept(request)}.") from error
        raise
    return tree


def _inputs(request: Request, say: Callable[[str], None]) -> list[Path]:
    """The files that are read; what the program includes matters where the output is there already."""
    from onebasin.stan.interpreter.includes import included_files

    given = request.inputs
    if request.model is not None:
        return given
    # `os.path`, as a name that no file can have is refused by `claim`, in words of its own
    if not os.path.isfile(request.out) or any(request.out.samefile(path) for path in given):
        return given
    return [*given, *included_files(request.program.resolve())]


def _holds(request: Request, target: Target, say: Callable[[str], None]) -> bool:
    """Whether the output is what this request makes, and nothing else."""
    import h5py

    try:
        with h5py.File(request.out) as file:
            mark = file.attrs.get(schema.FINGERPRINT)
    except OSError:  # not there, or not ours
        return False
    return mark is not None and mark == _fingerprint(request, target, say)


def _fingerprint(request: Request, target: Target, say: Callable[[str], None]) -> str | None:
    """A hash of all that decides what is written."""
    from onebasin.inference.runs.fingerprint import fingerprint

    return fingerprint(
        target,
        engine=request.engine,
        progress=say,
        method=request.method.word,
        settings=request.method.recorded(),
        seed=request.seed,
        symmetry=schema.encode_symmetry(request.exchangeable),
        find=request.find and not request.exchangeable,
        **request.groups.said,
    )


def _clear(request: Request, say: Callable[[str], None]) -> None:
    """Delete the kept chains, and say what is not ours and stays."""
    from onebasin.inference.runs import kept

    if stays := kept.remove(request.checkpoint):
        say(f"{request.checkpoint} stays: it holds {', '.join(stays)}, which is not ours")


def _meant(request: Request, target: Target, say: Callable[[str], None]) -> Symmetry:
    """What is declared, once the lengths of what changes sign are known."""
    from onebasin.inference.contracts.engines import density_by

    from .symmetries import as_meant

    if not any(block.axes and block.flipped for block in target.symmetry):
        return target.symmetry
    point = density_by(request.engine, target, say).points(1, 0)
    return as_meant(target.symmetry, {name: value.shape[1:] for name, value in point.items()})


def _check_symmetry(request: Request, target: Target, say: Callable[[str], None]) -> Trial | None:
    """Refuse what the program does not declare, or its density does not have, before anything is sampled."""
    if not request.exchangeable:
        return None
    from onebasin.inference.runs import declared

    if request.model is None:
        _check_names(request, target, say)
    return declared.begin(target, engine=request.engine, seed=request.seed, progress=False)


def _check_names(request: Request, target: Target, say: Callable[[str], None]) -> None:
    """Refuse a symmetry of variables that the program does not declare."""
    from onebasin.stan.program import declarations, definition

    declared = declarations(definition(target), say)
    names = (*declared.parameters, *declared.derived)
    for name in (name for block in request.exchangeable for name in block.variables):
        if name not in names:
            raise StudyError(
                f"`--exchangeable` names {name}, which {request.program.name} does not declare; "
                f"it has: {', '.join(names)}."
            )


def what_is_kept(request: Request) -> str:
    """Say what is there of a run that broke off, and what the same command does with it."""
    from onebasin.inference.runs.kept import kept_draws

    if not request.method.resumes:
        return f"--method {request.method.word} keeps nothing before it ends"
    if not request.method.correlated:
        return (
            f"what was trained is kept in {request.checkpoint}: the same command goes on from there"
        )
    chains, draws = request.method.amount
    kept = [min(count, draws) for count in kept_draws(request.checkpoint)]
    return (
        f"{kept.count(draws)} of {chains} chains are finished, {sum(kept):,} of {chains * draws:,} draws kept in "
        f"{request.checkpoint}: the same command goes on from there"
    )
