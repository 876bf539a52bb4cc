"""A posterior that is read once: its groups, draws, statistics, network, symmetry and attributes.

docs/reference/posterior.md describes the content of a posterior; `posteriors.schema` has its names. A view caches what
it parses, and never writes to the tree.

Parameters are inferred, transformed ones computed from them, generated ones are by-products. The attribute `kinds` says
which is which. Without it, names and types are a guess: integers (an allocation changes values, not places) and the
usual names of predictions, residuals and log likelihoods are generated quantities, all others are parameters.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from onebasin.base.checks import check_paths
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.words import as_symmetry

from . import schema
from .draws import (
    MIN_DRAWS,
    Draws,
    check_dims,
    checked,
    choose_variables,
    circles_of,
    event_shapes,
    lay_out_columns,
    refuse_broken,
    with_numbers,
)
from .open import convert, names_files, open_tree
from .pareto import taken_by_weight, unread_weights
from .schema import adopted

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork
    from onebasin.models.symmetry.blocks import Block, Symmetry
    from onebasin.models.symmetry.evidence import Evidence

Kind = schema.Kind
PARAMETER: Kind = "parameter"
TRANSFORMED: Kind = "transformed"
GENERATED: Kind = "generated"

_BY_PRODUCT = re.compile(
    r"^(log_?lik|ll$|lprior|log_prior|log_prob|lp__|y_)|(_|^)(rep|pred|hat|new|sim|tilde)$|resid"
)


def is_named_as_generated(name: str) -> bool:
    """Check whether a name is usual for predictions, residuals or pointwise log densities."""
    return _BY_PRODUCT.search(name) is not None


@dataclass(frozen=True)
class Kinds:
    """The kind of every variable."""

    of: Mapping[str, Kind]
    guessed: tuple[str, ...] = ()  # Variables whose kind is not recorded.

    def named(self, *kinds: Kind) -> tuple[str, ...]:
        """Return the variables of some kinds, in their order."""
        return tuple(name for name, kind in self.of.items() if kind in kinds)


def kinds_of(attributes: schema.Attributes, posterior: xr.Dataset) -> Kinds:
    """Return the recorded kinds of a posterior's variables, else a guess."""
    written = schema.decode(attributes, schema.KINDS) or {}
    of = {}
    for name in map(str, posterior.data_vars):
        computed = posterior.variables[name].dtype.kind in "biu" or is_named_as_generated(name)
        of[name] = written.get(name) or (GENERATED if computed else PARAMETER)
    return Kinds(of, tuple(name for name in of if name not in written))


def arrays_of(posterior: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the variables by name; in groups, since a dataset needs time for all variables to return one."""
    names = list(posterior.data_vars)
    step = isqrt(len(names)) + 1
    parts = (posterior[names[first : first + step]] for first in range(0, len(names), step))
    return {str(name): part[name] for part in parts for name in part.data_vars}


DensityAtDraws = Callable[[xr.Dataset], Any]
Posterior = Any
"""A `View`, a `DataTree`, files, a sampler's result, or anything that ArviZ can convert, such as a `Dataset`."""


@dataclass(frozen=True, eq=False)
class View:
    """The content of a posterior's tree; each part is parsed at its first use."""

    tree: xr.DataTree
    argument: str = "posterior"  # Name in messages: an argument, or a file.
    log_density: DensityAtDraws | None = None
    """The log density in nats at draws (chain, draw, ...), on the constrained scale, if it is available."""
    folders: tuple[Path, ...] = (Path(),)
    """Folders to which paths in the run's command may be relative."""
    _groups: dict[str, xr.Dataset] = field(default_factory=dict, init=False, repr=False)
    _draws: dict[tuple[str, ...], Draws] = field(default_factory=dict, init=False, repr=False)

    def group(self, name: str) -> xr.Dataset | None:
        """Return a group as a dataset; None if the posterior does not have it."""
        if name not in self._groups and name in self.tree.children:
            self._groups[name] = self.tree[name].to_dataset()
        return self._groups.get(name)

    @property
    def is_aligned(self) -> bool:
        """True if the draws were aligned."""
        return schema.ALIGNMENT in self.tree.attrs

    @cached_property
    def posterior(self) -> xr.Dataset:
        """The group `posterior`, which every posterior must have."""
        dataset = self.group(schema.POSTERIOR)
        if dataset is None:
            there = ", ".join(self.tree.children) or "none"
            raise ArgumentError(
                f"`{self.argument}` has no group `posterior` (it has: {there}): pass the whole "
                "tree that an inference method returned."
            )
        dataset = with_numbers(dataset)
        if not dataset.data_vars:
            raise ArgumentError(
                f"`{self.argument}` holds no draws: its group 'posterior' is empty."
            )
        if not set(schema.SAMPLE_DIMS) <= set(dataset.sizes):
            check_dims(next(iter(dataset.data_vars.values())), self.argument)
        if unnamed := [name for name in dataset.data_vars if not isinstance(name, str)]:
            raise ArgumentError(
                f"`{self.argument}` has a variable {unnamed[0]!r}; name it by text."
            )
        if not dataset.sizes["chain"]:
            raise ArgumentError(f"`{self.argument}` has no chains: give at least one.")
        if dataset.sizes["draw"] and not any(dataset.variables[n].size for n in dataset.data_vars):
            raise ArgumentError(f"`{self.argument}` holds variables without entries only.")
        return dataset

    @cached_property
    def arrays(self) -> dict[str, xr.DataArray]:
        """The posterior's variables by name."""
        return arrays_of(self.posterior)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the posterior's variables."""
        return tuple(str(name) for name in self.posterior.data_vars)

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return self.posterior.sizes["chain"]

    @property
    def num_draws(self) -> int:
        """Draws in each chain."""
        return self.posterior.sizes["draw"]

    def values(self, name: str) -> Float[np.ndarray, "chain draw *event"]:
        """Return the draws of a variable; reject one that is not numeric or lacks chain or draw."""
        return checked(self.arrays[name], self.argument).values

    def draws(self, var_names: str | Sequence[str] | None = None, *, finite: bool = True) -> Draws:
        """Lay out variables, by default all, as scalar parameters, without entries that are finite in no draw.

        Reject a point estimate, fewer than 4 draws per chain, variables that are unknown, not numeric or without chain
        and draw, and, if `finite`, other draws that are not finite.
        """
        self.check_sampled()
        chosen = tuple(choose_variables(self.variables, var_names))
        if chosen not in self._draws:
            variables = [checked(self.arrays[name], self.argument) for name in chosen]
            if self.num_draws < MIN_DRAWS:
                raise ArgumentError(
                    f"`{self.argument}` has {self.num_draws} draws per chain, but a diagnosis needs at least "
                    f"{MIN_DRAWS}: sample longer."
                )
            self._draws[chosen] = lay_out_columns(variables)
        draws = self._draws[chosen]
        return refuse_broken(draws, self.argument) if finite else draws

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of the variables."""
        return kinds_of(self.tree.attrs, self.posterior)

    @cached_property
    def unread_weights(self) -> str:
        """The name of a variable that looks like unused weights of the draws; empty if there is none."""
        stats = self.group(schema.SAMPLE_STATS)
        guessed = (array for name, array in self.arrays.items() if name in self.kinds.guessed)
        return unread_weights(stats.data_vars.values() if stats is not None else (), guessed)

    def check_sampled(self) -> None:
        """Raise `ArgumentError` for a point estimate."""
        if self.is_point_estimate:
            raise ArgumentError(
                f"`{self.argument}` holds a point estimate (method optimize): its spread and convergence cannot be "
                "judged. Sample the model with nuts, or with laplace for a Gaussian around the estimate."
            )

    def stat(self, name: str) -> Float[np.ndarray, "chain draw"] | None:
        """Return a variable of the group `sample_stats` in float64; None if it was not recorded."""
        stats = self.group(schema.SAMPLE_STATS)
        if stats is None or name not in stats:
            return None
        values = np.asarray(checked(stats[name], self.argument).values, dtype=np.float64)
        if values.shape[:2] != (due := (self.num_chains, self.num_draws)):
            raise ArgumentError(
                f"`{self.argument}` has {due} chains and draws, but {values.shape[:2]} of the statistic `{name}`: use "
                "another copy, or delete the statistic."
            )
        return values

    @property
    def diverging(self) -> Bool[np.ndarray, "chain draw"] | None:
        """The divergent transitions; None if they were not recorded."""
        return None if (values := self.stat(schema.DIVERGING)) is None else values > 0

    @property
    def x(self) -> np.ndarray | None:
        """The inputs that a network was fitted to; None without a network or a record."""
        return self._of_network(schema.CONSTANT_DATA, schema.INPUTS)

    @property
    def y(self) -> np.ndarray | None:
        """The targets or labels that a network was fitted to; None without a network or a record."""
        return self._of_network(schema.OBSERVED_DATA, schema.OUTPUTS)

    def _of_network(self, group: str, name: str) -> np.ndarray | None:
        if not self.attribute(schema.MODEL):
            return None
        dataset = self.group(group)
        return None if dataset is None or name not in dataset else dataset[name].values

    @property
    def data(self) -> dict[str, xr.Dataset]:
        """The existing groups of data."""
        groups = {name: self.group(name) for name in schema.DATA_GROUPS}
        return {name: group for name, group in groups.items() if group is not None}

    @property
    def attributes(self) -> dict[str, Any]:
        """All root attributes."""
        return {str(name): value for name, value in self.tree.attrs.items()}

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return a root attribute, or the default if it is missing."""
        return schema.plain(self.tree.attrs.get(name, default))

    def number(self, name: str) -> float | None:
        """Return a root attribute that is a number; None if it is missing or not finite."""
        return schema.number(self.tree.attrs, name)

    def parsed(self, name: str, kind: Any = None) -> Any:
        """Parse a root attribute that holds JSON, as a `kind` if given; None if it is missing or empty."""
        return schema.decode(self.tree.attrs, name, kind)

    @cached_property
    def network(self) -> BayesianNetwork | None:
        """The network of the posterior; None for another model."""
        return self._described(schema.MODEL, schema.network_of)

    @cached_property
    def declared_symmetry(self) -> Symmetry:
        """The symmetry that the posterior declares, whether it holds or not; empty if it declares none.

        Signs of an angle across the cut of its circle are left out, since they mirror one mode.
        """
        declared = self._described(schema.SYMMETRY, schema.symmetry_of)
        return tuple(block for block in declared if not self._mirrors_angles(block))

    def _mirrors_angles(self, block: Block) -> bool:
        if block.axes or block.discrete is not block or not {*block.flipped} <= {*self.variables}:
            return False
        lead = self.num_chains, self.num_draws
        flat = [np.asarray(self.values(n), np.float64).reshape(*lead, -1) for n in block.flipped]
        return bool(flat) and all(len(circles_of(each)) == each.shape[2] for each in flat)

    def as_symmetry(self, symmetry: Any) -> Symmetry:
        """Make a symmetry of blocks, or of strings that declare them, for these variables."""
        return as_symmetry(symmetry, event_shapes(self.posterior))

    def _described[T](self, name: str, read: Callable[[schema.Attributes], T]) -> T:
        try:
            return read(self.tree.attrs)
        except ValueError as error:
            raise ArgumentError(
                f"The attribute '{name}' of `{self.argument}` cannot be read: got {str(self.attribute(name))[:60]!r}. "
                "Delete it, or use the posterior as originally written."
            ) from error

    @cached_property
    def symmetry_evidence(self) -> Evidence | None:
        """The recorded check of the declared symmetry, if any."""
        return schema.evidence_of(self.tree.attrs)

    @property
    def found_symmetry(self) -> dict[str, Any]:
        """The recorded result of the search before the run; empty if there is none."""
        return schema.found_symmetry_of(self.tree.attrs)

    @cached_property
    def declares_equal_modes(self) -> bool:
        """True if a declared symmetry makes equal modes, is not refuted, and the draws are not aligned yet."""
        evidence = self.symmetry_evidence
        if self.is_aligned or (evidence is not None and not evidence.holds):
            return False
        return any(block.keeps_density for block in self.declared_symmetry)

    @cached_property
    def is_variational(self) -> bool:
        """True if the draws are independent draws from an approximation."""
        stats = self.group(schema.SAMPLE_STATS)
        fitted = {schema.VARIATIONAL, schema.DISTILLED} & set(self.tree.children)
        return bool(fitted) or (stats is not None and schema.LOG_Q in stats)

    @property
    def is_independent(self) -> bool:
        """True if the draws are independent: those of a fit or of an ensemble."""
        return self.is_variational or self.is_ensemble

    @cached_property
    def is_point_estimate(self) -> bool:
        """True if the posterior holds only an optimum of the log density."""
        return self.attribute(schema.METHOD) == "optimize"

    @cached_property
    def is_ensemble(self) -> bool:
        """True if the draws are members of an ensemble, trained one by one."""
        trained = schema.TRAINING in self.tree.children
        return trained or self.attribute(schema.METHOD) == "ensemble"

    def part(self, dim: str, which: slice) -> View:
        """Return some of the chains or of the draws, without the group of an alignment."""
        numbers = self.posterior[dim].values[which]

        def those(group: xr.Dataset) -> xr.Dataset:
            if (
                dim in group.sizes and schema.EVERY in group.attrs
            ):  # the group has only some of the draws
                return group.sel({dim: np.isin(group[dim].values, numbers)})
            return group.isel({dim: which}, missing_dims="ignore")

        groups = {n: g for n, g in self.tree.children.items() if n != schema.ALIGNMENT}
        tree = xr.DataTree.from_dict({n: those(g.to_dataset()) for n, g in groups.items()})
        tree.attrs = dict(self.tree.attrs)
        return View(tree, self.argument, self.log_density, self.folders)


def as_view(
    posterior: Posterior, argument: str = "posterior", log_density: DensityAtDraws | None = None
) -> View:
    """Return a view of a posterior; a view is returned unchanged.

    A posterior is a `DataTree`, a file or the files of a run's chains, an `MCMC` of NumPyro, a fit of cmdstanpy, or an
    object that ArviZ converts to a tree; the attributes of a `Dataset` count as a tree's. Draws with weights
    (`log_weight` in `sample_stats`) are resampled. Messages call it `argument`; `log_density` is for new views. It is a
    `TypeError` for any other object, and a `PosteriorFileError` for a file that cannot be read.
    """
    if isinstance(posterior, View):
        return posterior
    if isinstance(posterior, xr.DataTree):
        return View(taken_by_weight(adopted(posterior), argument), argument, log_density)
    if names_files(posterior):
        paths = check_paths(argument, posterior)
        return view_of_files(paths, argument=argument, density=lambda view: log_density)
    return View(taken_by_weight(convert(posterior, argument), argument), argument, log_density)


def view_of_files(
    paths: Sequence[Path],
    *,
    argument: str = "posterior",
    name: str = "",
    density: Callable[[View], DensityAtDraws | None] = lambda view: None,
) -> View:
    """Open a posterior's files lazily, as long as the view exists.

    Messages call the files `argument` if they cannot be opened, and later `name`, by default the first file.
    """
    tree = open_tree(paths, lazy=True, argument=argument)
    folders = (Path(), *dict.fromkeys(path.parent for path in paths))
    view = View(taken_by_weight(tree, argument), name or str(paths[0]), folders=folders)
    view = replace(view, log_density=density(view))
    weakref.finalize(view, tree.close)  # the nodes of a tree refer to each other, and live longer
    return view
