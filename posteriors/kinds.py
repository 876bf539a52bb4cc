"""Which variables of a posterior are parameters, and which are computed of them.

Parameters are inferred, transformed ones follow, generated ones are by-products: a Stan program says it by its blocks,
a NumPyro model by its sites. Who wrote the posterior says so in the attribute `kinds`. Where it does not, names and
types are all there is: integers (an allocation changes values, not places) and the usual names of predictions,
residuals and log likelihoods are taken for generated quantities, all else for parameters, and that is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING

from . import schema

if TYPE_CHECKING:
    import xarray as xr

Kind = schema.Kind
PARAMETER: Kind = "parameter"
TRANSFORMED: Kind = "transformed"
GENERATED: Kind = "generated"

_BY_PRODUCT = re.compile(
    r"^(log_?lik|ll$|lprior|log_prior|log_prob|lp__|y_)|(_|^)(rep|pred|hat|new|sim|tilde)$|resid"
)


def is_named_as_generated(name: str) -> bool:
    """Tell whether a name is one that predictions, residuals and pointwise log densities usually have."""
    return _BY_PRODUCT.search(name) is not None


@dataclass(frozen=True)
class Kinds:
    """The kind of every variable."""

    of: Mapping[str, Kind]  # By the variable's name.
    guessed: tuple[str, ...] = ()  # Variables whose kind nobody wrote down.

    def named(self, *kinds: Kind) -> tuple[str, ...]:
        """Variables of some kinds, in their order."""
        return tuple(name for name, kind in self.of.items() if kind in kinds)


def kinds_of(attributes: schema.Attributes, posterior: xr.Dataset) -> Kinds:
    """Give the kinds of a posterior's variables: as written down, else as guessed."""
    written = schema.decode(attributes, schema.KINDS) or {}
    of = {}
    for name in map(str, posterior.data_vars):
        computed = posterior.variables[name].dtype.kind in "biu" or is_named_as_generated(name)
        of[name] = written.get(name) or (GENERATED if computed else PARAMETER)
    return Kinds(of, tuple(name for name in of if name not in written))


def arrays_of(posterior: xr.Dataset) -> dict[str, xr.DataArray]:
    """Give the variables by name; some at a time, as a dataset goes through all of its variables to give one."""
    names = list(posterior.data_vars)
    step = isqrt(len(names)) + 1
    parts = (posterior[names[first : first + step]] for first in range(0, len(names), step))
    return {str(name): part[name] for part in parts for name in part.data_vars}
