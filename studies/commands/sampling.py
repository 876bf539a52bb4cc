"""Any Stan program, sampled: from the command line's words to a posterior file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onebasin.inference import AdviSettings
from onebasin.models.checks import choose

from ..errors import Interrupted, StudyError, check_seed
from ..methods import METHODS, NETWORK_METHODS, Settings, infer

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.symmetry.blocks import Symmetry
    from onebasin.models.target import Target

NUMPYRO_ALONE = ("batch_size", "dtype", "init_scale", "learning_rate", "max_steps")
"""Fields of settings that Stan has no use for."""


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Attributes
    ----------
    program : Path
        The ``.stan`` file.
    data : Path or None
        The JSON file of its data.
    out : Path
        The posterior file to write.
    method : str
        One of `methods.METHODS`.
    settings : NutsSettings, HmcSettings or AdviSettings
        Those of the method.
    seed : int
        Seed.
    exchangeable : Symmetry
        The declared symmetry.
    """

    program: Path
    data: Path | None
    out: Path
    method: str
    settings: Settings
    seed: int
    exchangeable: Symmetry = ()

    def __post_init__(self) -> None:
        """Refuse a seed that no engine takes."""
        check_seed(self.seed)

    @property
    def checkpoint(self) -> Path:
        """Folder beside `out` in which finished chains are kept until all are."""
        return self.out.with_name(f"{self.out.name}.chains")


def settings_for(method: str, options: Mapping[str, Any]) -> Settings:
    """Make a method's settings from the options that were given.

    Parameters
    ----------
    method : str
        One of `methods.METHODS`.
    options : mapping
        Field name to value; None where the option was not given.

    Raises
    ------
    ValueError
        If there is no such method, it has no such option or needs a network, or a value is not allowed.
    """
    if method in NETWORK_METHODS:
        raise StudyError(
            f"`--method` is {method}, which trains networks, and a Stan program has none; choose one of "
            f"{', '.join(METHODS)}."
        )
    choose("method", method, METHODS)
    known = [field.name for field in fields(METHODS[method])]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            allowed = ", ".join(flag(n) for n in known if n not in NUMPYRO_ALONE)
            raise StudyError(
                f"`{flag(name)}` does not apply to --method {method}, which takes {allowed}."
            )
    if "init_starts" in given and given.get("init") != "optimum":
        raise StudyError(
            f"`--init-starts` is {given['init_starts']}, but only --init optimum looks from several starting points; "
            "give both."
        )
    return METHODS[method](**given)


def flag(name: str) -> str:
    """Spell an option as on the command line."""
    return "--" + name.replace("_", "-")


def run(request: Request, *, progress: bool, say: Callable[[str], None]) -> xr.DataTree:
    """Sample the program and write the posterior.

    Parameters
    ----------
    request : Request
        What to do; its output file is not checked here.
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
    Interrupted
        On Ctrl-C; finished chains stay in `request.checkpoint`.
    """
    from onebasin import stan
    from onebasin.inference.posterior import save

    target = stan.stan_program(request.program, request.data, symmetry=request.exchangeable)
    _check_symmetry(request, target, say)
    try:
        tree = infer(
            target,
            request.method,
            engine="stan",
            settings=request.settings,
            seed=request.seed,
            checkpoint=request.checkpoint,
            progress=progress,
        )
        save(tree, request.out, force=True)
    except KeyboardInterrupt:
        raise Interrupted(_what_is_kept(request)) from None
    shutil.rmtree(request.checkpoint, ignore_errors=True)
    return tree


def _check_symmetry(request: Request, target: Target, say: Callable[[str], None]) -> None:
    """Refuse what the program does not declare, or its density does not have, before anything is sampled."""
    if not request.exchangeable:
        return
    from onebasin import stan
    from onebasin.inference import check_symmetry
    from onebasin.stan.compile import inspect

    declared = inspect(request.program.resolve(), stan.find_cmdstan(progress=say))
    names = (*declared.parameters, *declared.derived)
    for name in (name for block in request.exchangeable for name in block.variables):
        if name not in names:
            raise StudyError(
                f"`--exchangeable` names {name}, which {request.program.name} does not declare; "
                f"it has: {', '.join(names)}."
            )
    check_symmetry(target, engine="stan", seed=request.seed)


def _what_is_kept(request: Request) -> str:
    if isinstance(request.settings, AdviSettings):
        return "interrupted; a variational fit keeps nothing before it ends"
    kept = len(list(request.checkpoint.glob("chain-*.npz")))
    total = request.settings.chains
    return (
        f"interrupted; {kept} of {total} chains are finished and kept in {request.checkpoint}: "
        "the same command goes on from there"
    )
