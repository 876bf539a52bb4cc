"""Any Stan program as a target, and its data as CmdStan reads them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onebasin.base.arguments import checks_arguments
from onebasin.base.checks import check_path
from onebasin.base.errors import ArgumentError, nearby
from onebasin.base.files.cache import make_user_cache
from onebasin.base.files.writing import replacing
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.words import as_symmetry
from onebasin.models.target import Target

from .choice import Choice, choose
from .compile import compile_program
from .data import check_finite, read_data
from .groups import Roles, roles_of
from .home.errors import StanProgramError

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel

    from onebasin.models.networks.bayesian import NetworkTarget


@dataclass(frozen=True, repr=False)
class StanProgram:
    """A Stan file with its data."""

    path: Path  # The ``.stan`` file; its includes are looked up next to it.
    data: Mapping[str, Any] = field(default_factory=dict)
    """The `data` block's variables: numbers, lists or arrays."""
    roles: Roles = field(default_factory=Roles)
    """Which generated quantities are log likelihoods and predictions, where it is said."""
    choice: Choice | None = None  # The library that evaluates it, where that is decided.

    @property
    def engine(self) -> str | None:
        """The engine whose library evaluates it; None where that is not decided."""
        return None if self.choice is None else self.choice.engine

    def chosen(self, engine: str | None = None) -> Choice:
        """Return the library: the one that was asked for, else the one that is decided, else the rule's."""
        if self.choice is not None and engine in (None, self.choice.engine):
            return self.choice
        return choose(self.path, self.data, engine)

    def __reduce__(self) -> Any:
        """Pickle the text instead of the path: the program may be read on another machine."""
        from .interpreter.source import included_files

        files = [self.path, *included_files(self.path)]
        base = Path(os.path.commonpath([file.absolute().parent for file in files]))
        texts = {str(f.absolute().relative_to(base)): f.read_text(encoding="utf-8") for f in files}
        return _from_texts, (texts, dict(self.data), self.roles, self.choice)

    def __str__(self) -> str:
        return self.path.name

    def __repr__(self) -> str:
        return f"<StanProgram {self.path.name}: data {', '.join(self.data) or 'none'}>"


def _from_texts(
    texts: Mapping[str, str], data: Mapping[str, Any], roles: Roles, choice: Choice | None
) -> StanProgram:
    """Make a program of its text and those that it includes, by their paths from a common folder."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:32]
    folder = make_user_cache("texts") / digest
    for name, text in texts.items():
        file = folder / name
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(file) as part:
                part.write_text(text, encoding="utf-8")
    return StanProgram(folder / next(iter(texts)), data, roles, choice)


@checks_arguments
def stan_program(
    path: str | Path,
    data: Mapping[str, Any] | str | Path | None = None,
    *,
    symmetry: Symmetry | str | Sequence[str] = (),
    name: str | None = None,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    log_likelihood: str | Mapping[str, str] | None = None,
    posterior_predictive: str | Mapping[str, str] | None = None,
    observed: str | Sequence[str] = (),
) -> Target:
    """Take a Stan program with its data as a target.

    Parameters
    ----------
    path : path or str
        The ``.stan`` file, or the text of a program.
    data : mapping or path, optional
        The data block's variables, or a JSON file that holds them.
    symmetry : tuple of blocks, str or sequence of str, optional
        Which axes of which variables move together. Blocks, or words of them such as ``"mu,sigma,1-theta"``.
    name : str, optional
        The target's name; the file's name without its ending if not given, or "program" for a text.
    dims : mapping, optional
        Axis names of variables.
    coords : mapping, optional
        Labels of axes: name of an axis to an entry for each place.
    log_likelihood : str or mapping, optional
        The quantity that holds the log likelihood of each observation, for the group `log_likelihood`; or the name of
        data to the quantity that is of them. If not given, what is called `log_lik`.
    posterior_predictive : str or mapping, optional
        The same for predictions like the data, of the group `posterior_predictive`; if not given, `y_rep` (or `y_pred`,
        `y_tilde`, `y_sim`) for data `y`.
    observed : str or sequence of str, optional
        Which of the data are observed; if not given, those that the two above are of, or `y`. The others are constant.

    Returns
    -------
    Target
        With a Stan definition only.

    Raises
    ------
    StanProgramError
        If the file is not there or is not a ``.stan`` file.
    StanDataError
        If the data are not to be read, hold a value that is not finite, or lack what is said to be observed.

    Examples
    --------
    >>> target = ob.stan_program("mixture.stan", "mixture.json", symmetry="mu,sigma,1-theta")
    >>> target.name
    'mixture'
    """
    given_as_file = not _is_text(path)
    path = _existing(path)
    values = read_data(Path(data)) if isinstance(data, str | Path) else dict(data or {})
    check_finite(values)
    return Target(
        name=name or (path.stem if given_as_file else "program"),
        stan_program=StanProgram(
            path, values, roles_of(values, log_likelihood, posterior_predictive, observed)
        ),
        symmetry=as_symmetry(symmetry),
        dims=dims or {},
        coords=coords or {},
    )


@checks_arguments
def cmdstan_model(path: str | Path) -> CmdStanModel:
    """Compile a Stan program for cmdstanpy, once per content; CmdStan is found, or assembled where there is none.

    For code that is written for cmdstanpy: whatever it returns, fits and the CSV files of their chains, every function
    here takes in a posterior's place. `CMDSTAN` is set for this process, so that plain cmdstanpy works from then on.

    Parameters
    ----------
    path : path or str
        The ``.stan`` file, or the text of a program.

    Returns
    -------
    cmdstanpy.CmdStanModel
        Compiled, from the user's cache.

    Raises
    ------
    StanProgramError
        If the file is not there or is not a ``.stan`` file, does not parse or compile, or declares no variables.
    CmdStanNotFound, HomeBuildError
        If there is no CmdStan and none can be assembled.

    Examples
    --------
    >>> import onebasin as ob
    >>> model = ob.stan.cmdstan_model("mixture.stan")
    >>> fit = model.sample("mixture.json", iter_sampling=200, seed=1, show_progress=False)
    >>> ob.diagnose(fit).verdict in ("usable", "aligned", "invariant", "unusable")
    True
    """
    return compile_program(_existing(path))[0]


def _existing(path: str | Path) -> Path:
    """Return the file of a program, which must exist; a program's text is kept, the same for the same text."""
    if _is_text(path):
        text = str(path)
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        file = make_user_cache("texts") / f"{digest}.stan"
        if not file.is_file():
            with replacing(file) as part:
                part.write_text(text, encoding="utf-8")
        return file
    path = Path(os.path.realpath(check_path("path", path)))  # a loop of links too
    if path.suffix != ".stan" or not path.is_file():
        raise StanProgramError(
            f"`path` is {path}, which is not an existing .stan file.{nearby(path)}"
        )
    return path


def _is_text(path: object) -> bool:
    """Tell a program's text, which has blocks, from a path."""
    return isinstance(path, str) and "{" in path and "}" in path


def definition(target: Target) -> StanProgram:
    """The target's Stan side; refused where it has none."""
    if target.is_network:
        from .network import program_data, program_path

        network = cast("NetworkTarget", target)
        return StanProgram(program_path(network), program_data(network))
    if target.stan_program is None:
        raise ArgumentError(
            f"The target {target.name!r} has no Stan program; use engine='numpyro'."
        )
    return target.stan_program


def name_draws(target: Target, variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A program's variables (*lead, ...) under the names that the target's parameters have."""
    if target.is_network:
        from .network import read_draws

        return read_draws(cast("NetworkTarget", target), variables)
    return dict(variables)
