"""A Stan program with its data as a target, and the groups of a posterior to which its quantities belong.

The convention: `log_lik` (`log_likelihood`, `loglik`, also with the data's name before or after it) has a term for each
entry of the data; `y_rep` (also `y_pred`, `y_tilde`, `y_sim`) is like the data `y`; `log_prior` or `lprior` is the log
prior density. A quantity whose size differs from the data, such as predictions at new points, stays in the posterior;
so does `y_hat`, a fitted value.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onebasin.base.checks import check_path, checks_arguments
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    StanDataError,
    StanProgramError,
    nearby,
)
from onebasin.models.symmetry.blocks import Symmetry, as_symmetry
from onebasin.models.target import Target

from .data import check_finite, read_data

if TYPE_CHECKING:
    from cmdstanpy import CmdStanModel

    from onebasin.models.networks.bayesian import NetworkTarget

    from .choice import Choice

_LOG_LIKELIHOOD = re.compile(r"^(?P<before>.*?)_?log_?lik(elihood)?_?(?P<after>.*)$")
_REPLICATED = (re.compile(r"^(?P<of>.+?)_?rep$"), re.compile(r"^(?P<of>.+?)_(pred|tilde|sim)$"))
_LOG_PRIOR = ("log_prior", "lprior")
_USUAL = ("y", "Y", "y_obs", "obs")
"""Usual names of the data that enter a program's likelihood."""


@dataclass(frozen=True)
class Roles:
    """The user's assignment of a program's quantities to groups; other quantities follow the convention."""

    # Maps names of data to names of quantities; if the data's name is `""`, the convention finds the data.
    log_likelihood: Mapping[str, str] = field(default_factory=dict)
    posterior_predictive: Mapping[str, str] = field(default_factory=dict)
    observed: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """Pairs of an argument and a quantity named by it."""
        return tuple(
            (argument, name)
            for argument in ("log_likelihood", "posterior_predictive")
            for name in getattr(self, argument).values()
        )


def roles_of(data: Mapping[str, Any], log_likelihood: Any, predictive: Any, observed: Any) -> Roles:
    """Make the roles from the user's arguments; reject unknown data and names that are not strings."""
    said = Roles(
        _by_data("log_likelihood", log_likelihood),
        _by_data("posterior_predictive", predictive),
        (observed,) if isinstance(observed, str) else tuple(observed),
    )
    for argument in ("observed", "log_likelihood", "posterior_predictive"):
        for name in getattr(said, argument):
            if name and name not in data:
                held = ", ".join(data) or "nothing"
                raise StanDataError(
                    f"`{argument}` names the data {name}, which is not in `data`; `data` contains {held}. Correct "
                    "the name."
                )
    return said


def _by_data(argument: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    names = {"": given} if isinstance(given, str) else given
    if not isinstance(names, Mapping) or not all(isinstance(n, str) for n in names.values()):
        raise ArgumentTypeError(
            f"`{argument}` must name a quantity, or map data to quantities, as in {{'y': 'log_lik'}}; got {given!r}."
        )
    return dict(names)


def check_roles(roles: Roles, derived: Iterable[str], program: str) -> None:
    """Reject a named quantity that the program does not compute."""
    computed = tuple(derived)
    for argument, name in roles.named:
        if name not in computed:
            there = f"it computes {', '.join(computed)}" if computed else "it computes nothing"
            raise StanProgramError(
                f"`{argument}` names {name}, which {program} does not compute; {there}."
            )


@dataclass(frozen=True)
class ProgramQuantities:
    """A program's quantities, sorted by group."""

    # Maps names in the group (those of the data, if they are known) to the program's names.
    log_likelihood: dict[str, str]
    posterior_predictive: dict[str, str]
    log_prior: tuple[str, ...]
    observed: tuple[str, ...]

    @property
    def moved(self) -> frozenset[str]:
        """The quantities that belong to groups other than the posterior."""
        named = (*self.log_likelihood.values(), *self.posterior_predictive.values())
        return frozenset((*named, *self.log_prior))


Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Arrays = Mapping[str, np.ndarray]


def find_roles(
    roles: Roles, data: Arrays, shapes: Shapes, *, priors: Iterable[str] = ()
) -> ProgramQuantities:
    """Sort quantities, given by their shapes, into groups; `priors` names candidates for the log prior density."""
    replicated = _replicated(roles, data, shapes)
    terms = _terms(roles, data, shapes, [n for n in replicated if n in data])
    observed = [*roles.observed, *terms, *replicated, *(n for n in data if n == "y")]
    return ProgramQuantities(
        terms,
        replicated,
        tuple(name for name in priors if name in _LOG_PRIOR),
        tuple(dict.fromkeys(name for name in observed if name in data)),
    )


def _replicated(roles: Roles, data: Arrays, shapes: Shapes) -> dict[str, str]:
    if roles.posterior_predictive:
        return {
            of or _like(shapes[name], data, roles.observed) or name: name
            for of, name in roles.posterior_predictive.items()
            if name in shapes
        }
    found: dict[str, str] = {}
    for pattern in _REPLICATED:
        for name, shape in shapes.items():
            if (match := pattern.match(name)) is None:
                continue
            stem = match["of"]
            for of in (*roles.observed, stem, f"{stem}_obs", stem.upper()):
                if of in data and data[of].shape == shape:
                    found.setdefault(of, name)
                    break
    return found


def _terms(roles: Roles, data: Arrays, shapes: Shapes, replicated: Iterable[str]) -> dict[str, str]:
    """Find log likelihoods, keyed by the name of their data, or by their own name if the data are unknown."""
    likely = (*(roles.observed or replicated), *_USUAL)
    if roles.log_likelihood:
        return {
            of or _of_terms(shapes[name], data, likely) or name: name
            for of, name in roles.log_likelihood.items()
            if name in shapes
        }
    found: dict[str, str] = {}
    for name, shape in shapes.items():
        match = _LOG_LIKELIHOOD.match(name)
        if match is None or not shape:  # A scalar is the sum of the terms.
            continue
        stem = match["before"] or match["after"]
        if stem and _of_terms(shape, data, (stem,), alone=False) is None:
            continue  # It belongs to other data, such as a test set.
        found.setdefault(stem or _of_terms(shape, data, likely) or name, name)
    return found


def _of_terms(
    shape: Shape, data: Arrays, likely: Iterable[str], *, alone: bool = True
) -> str | None:
    """Find the data of log likelihood terms by their first axes: likely data, or the only data with this shape."""
    for name in likely:
        if name in data and data[name].shape[: len(shape)] == shape:
            return name
    return _like(shape, data) if alone else None


def _like(shape: Shape, data: Arrays, likely: Iterable[str] = ()) -> str | None:
    """Find the data variable with this shape: a likely one, or the only one."""
    alike = [name for name, values in data.items() if values.shape == shape]
    for name in (*likely, *_USUAL):
        if name in alike:
            return name
    return alike[0] if shape and len(alike) == 1 else None


@dataclass(frozen=True, repr=False)
class StanProgram:
    """A Stan file with its data."""

    path: Path  # The ``.stan`` file; its includes are looked up next to it.
    data: Mapping[str, Any] = field(default_factory=dict)
    """The `data` block's variables: numbers, lists or arrays."""
    roles: Roles = field(default_factory=Roles)
    """The user's assignment of quantities to groups."""
    choice: Choice | None = None  # The library that evaluates the program, once it is chosen.

    @property
    def engine(self) -> str | None:
        """The engine whose library evaluates the program; None if that is not yet decided."""
        return None if self.choice is None else self.choice.engine

    def chosen(self, engine: str | None = None) -> Choice:
        """Return the library: the requested one, or the one already chosen, or else the result of `choose`."""
        if self.choice is not None and engine in (None, self.choice.engine):
            return self.choice
        from .choice import choose

        return choose(self.path, self.data, engine)

    def __reduce__(self) -> Any:
        """Pickle the text instead of the path, for use on other machines."""
        from .interpreter.runtime import included_files

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
    """Restore a program from its text and the included texts, keyed by path relative to a common folder."""
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:32]
    files = [_stored(f"{digest}/{name}", text) for name, text in texts.items()]
    return StanProgram(files[0], data, roles, choice)


def _stored(name: str, text: str) -> Path:
    """Store the text of a program in the user's cache."""
    from onebasin.base.files.cache import make_user_cache
    from onebasin.base.files.writing import replacing

    file = make_user_cache("texts") / name
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(text, encoding="utf-8")
    return file


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
    """Make a target from a Stan program and its data.

    Parameters
    ----------
    path : path or str
        The ``.stan`` file, or the text of a program.
    data : mapping or path, optional
        The variables of the data block, or a JSON file with them.
    symmetry : tuple of blocks, str or sequence of str, optional
        The axes of variables that move together, as blocks or strings such as ``"mu,sigma,1-theta"``.
    name : str, optional
        The target's name; by default the file's name without its suffix, or "program" for a text.
    dims : mapping, optional
        Axis names of variables.
    coords : mapping, optional
        Labels of axes: a mapping from the name of an axis to one label per position.
    log_likelihood : str or mapping, optional
        The quantity with the log likelihood of each observation, or a mapping from names of data to such quantities; it
        becomes the group `log_likelihood`. By default `log_lik`.
    posterior_predictive : str or mapping, optional
        The same for predictions of the data, which become the group `posterior_predictive`. By default `y_rep` (or
        `y_pred`, `y_tilde`, `y_sim`) for data `y`.
    observed : str or sequence of str, optional
        The data that are observed; by default those named in the two arguments above, or `y`. All other data are
        constant.

    Returns
    -------
    Target
        A target that has only a Stan definition.

    Raises
    ------
    StanProgramError
        If the file does not exist or is not a ``.stan`` file.
    StanDataError
        If the data cannot be read, contain a non-finite value, or lack a variable that is declared as observed.

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
    """Compile a Stan program for cmdstanpy, once per text; CmdStan is assembled if none is found.

    Use it in code written for cmdstanpy. All functions of onebasin accept cmdstanpy's fits, and the CSV files of their
    chains, in place of a posterior. `CMDSTAN` is set for this process, so that plain cmdstanpy works afterwards.

    Parameters
    ----------
    path : path or str
        The ``.stan`` file, or the text of a program.

    Returns
    -------
    cmdstanpy.CmdStanModel
        The compiled model, from the user's cache.

    Raises
    ------
    StanProgramError
        If the file does not exist, is not a ``.stan`` file, does not parse or compile, or declares no variables.
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
    from .compile import compile_program

    return compile_program(_existing(path))[0]


def _existing(path: str | Path) -> Path:
    """Return the existing file of a program; the text of a program is first stored in a file."""
    if _is_text(path):
        text = str(path)
        return _stored(f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.stan", text)
    path = Path(os.path.realpath(check_path("path", path)))  # It also accepts a loop of links.
    if path.suffix != ".stan" or not path.is_file():
        raise StanProgramError(
            f"`path` is {path}, but there is no .stan file of this name.{nearby(path)}"
        )
    return path


def _is_text(path: object) -> bool:
    """Check whether a value is the text of a program, which has braces, rather than a path."""
    return isinstance(path, str) and "{" in path and "}" in path


def definition(target: Target) -> StanProgram:
    """Return the Stan program of a target; reject a target without one."""
    if target.is_network:
        from .network import program_data, program_path

        network = cast("NetworkTarget", target)
        return StanProgram(program_path(network), program_data(network))
    if target.stan_program is None:
        raise ArgumentError(
            f"The target {target.name!r} has no Stan program. Use engine='numpyro'."
        )
    return target.stan_program


def name_draws(target: Target, variables: Arrays) -> dict[str, np.ndarray]:
    """Return a program's variables (*lead, ...) under the target's names."""
    if target.is_network:
        from .network import read_draws

        return read_draws(cast("NetworkTarget", target), variables)
    return dict(variables)
