"""Which quantities of a program are log likelihoods, predictions and log priors, by what is named or by convention.

The convention: `log_lik` (`log_likelihood`, `loglik`, also with the data's name before or after it) has a term for each
entry of the data; `y_rep` (also `y_pred`, `y_tilde`, `y_sim`) is like the data `y`; `log_prior` or `lprior` is the log
prior density. What has another size than the data says something else, such as predictions at new points, and stays
what it is: a quantity of the posterior; so does `y_hat`, a fitted value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentTypeError

from .home.errors import StanDataError, StanProgramError

_LOG_LIKELIHOOD = re.compile(r"^(?P<before>.*?)_?log_?lik(elihood)?_?(?P<after>.*)$")
_REPLICATED = (re.compile(r"^(?P<of>.+?)_?rep$"), re.compile(r"^(?P<of>.+?)_(pred|tilde|sim)$"))
_LOG_PRIOR = ("log_prior", "lprior")
_USUAL = ("y", "Y", "y_obs", "obs")
"""Usual names of the data that a program has a likelihood of."""


@dataclass(frozen=True)
class Roles:
    """The user's assignment of a program's quantities to groups; names not given follow the convention."""

    # Quantity by the data that it is of; the name `""` stands for data that are found by the convention.
    log_likelihood: Mapping[str, str] = field(default_factory=dict)
    posterior_predictive: Mapping[str, str] = field(default_factory=dict)
    observed: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """Argument and quantity of all that are named."""
        return tuple(
            (argument, name)
            for argument in ("log_likelihood", "posterior_predictive")
            for name in getattr(self, argument).values()
        )


def roles_of(data: Mapping[str, Any], log_likelihood: Any, predictive: Any, observed: Any) -> Roles:
    """Take what a user says of a program; refuse data that are not there, and names that are no text."""
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
                    f"`{argument}` names the data {name}, which `data` lacks; it holds {held}."
                )
    return said


def _by_data(argument: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    names = {"": given} if isinstance(given, str) else given
    if not isinstance(names, Mapping) or not all(isinstance(n, str) for n in names.values()):
        raise ArgumentTypeError(
            f"`{argument}` must be a quantity's name, or map names of data to such names; got {given!r}."
        )
    return dict(names)


def check_roles(roles: Roles, derived: Iterable[str], program: str) -> None:
    """Refuse a named quantity that is neither a transformed parameter nor a generated quantity of the program."""
    computed = tuple(derived)
    for argument, name in roles.named:
        if name not in computed:
            there = f"it computes {', '.join(computed)}" if computed else "it computes none"
            raise StanProgramError(
                f"`{argument}` names {name}, which is no generated quantity of {program}; {there}."
            )


@dataclass(frozen=True)
class ProgramQuantities:
    """A program's quantities, sorted by group."""

    # Name in the group to the program's name: the data's, where they are known.
    log_likelihood: dict[str, str]
    posterior_predictive: dict[str, str]
    log_prior: tuple[str, ...]
    observed: tuple[str, ...]

    @property
    def moved(self) -> frozenset[str]:
        """The program's names that are in other groups than the posterior."""
        named = (*self.log_likelihood.values(), *self.posterior_predictive.values())
        return frozenset((*named, *self.log_prior))


def find_roles(
    roles: Roles,
    data: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    *,
    priors: Iterable[str] = (),
) -> ProgramQuantities:
    """Find what is what among shapes, of the generated quantities and others that are named, and `priors`, names."""
    replicated = _replicated(roles, data, shapes)
    terms = _terms(roles, data, shapes, [n for n in replicated if n in data])
    observed = [*roles.observed, *terms, *replicated, *(n for n in data if n == "y")]
    return ProgramQuantities(
        terms,
        replicated,
        tuple(name for name in priors if name in _LOG_PRIOR),
        tuple(dict.fromkeys(name for name in observed if name in data)),
    )


def _replicated(
    roles: Roles, data: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, str]:
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


def _terms(
    roles: Roles,
    data: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    replicated: Iterable[str],
) -> dict[str, str]:
    """Log likelihoods by the data that they are of; under their own name where those are not known."""
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
        if match is None or not shape:  # a sum of terms is none of them
            continue
        stem = match["before"] or match["after"]
        if stem and _of_terms(shape, data, (stem,), alone=False) is None:
            continue  # of other data, such as held out ones
        found.setdefault(stem or _of_terms(shape, data, likely) or name, name)
    return found


def _of_terms(
    shape: tuple[int, ...],
    data: Mapping[str, np.ndarray],
    likely: Iterable[str],
    *,
    alone: bool = True,
) -> str | None:
    """The data whose first axes terms have: likely ones, or the only ones of that very shape."""
    for name in likely:
        if name in data and data[name].shape[: len(shape)] == shape:
            return name
    return _like(shape, data) if alone else None


def _like(
    shape: tuple[int, ...], data: Mapping[str, np.ndarray], likely: Iterable[str] = ()
) -> str | None:
    """The data of a shape: likely ones, or the only ones."""
    alike = [name for name, values in data.items() if values.shape == shape]
    for name in (*likely, *_USUAL):
        if name in alike:
            return name
    return alike[0] if shape and len(alike) == 1 else None
