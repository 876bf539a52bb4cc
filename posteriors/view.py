"""A read-only view of a posterior: its groups, draws, statistics, network, symmetry and attributes.

docs/reference/posterior.md describes the content of a posterior, and `posteriors.schema` defines its names. A view
caches parsed parts, and never writes to the tree.

A parameter is inferred, a transformed parameter is computed from parameters, and a generated quantity is a by-product.
The attribute `kinds` records the kind of each variable. Without it, names and types are a guess: integers, and names
that are common for predictions, residuals and log likelihoods, mean generated quantities; all others, parameters.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from onebasin.models.symmetry.blocks import as_symmetry

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
    """Check whether a name is a common name for predictions, residuals or pointwise log densities."""
    return _BY_PRODUCT.search(name) is not None


@dataclass(frozen=True)
class Kinds:
    """The kind of every variable."""

    of: Mapping[str, Kind]
    guessed: tuple[str, ...] = ()  # The variables whose kind is not recorded.

    def named(self, *kinds: Kind) -> tuple[str, ...]:
        """Return the variables of the given kinds, in the order of the posterior."""
        return tuple(name for name, kind in self.of.items() if kind in kinds)


def kinds_of(attributes: schema.Attributes, posterior: xr.Dataset) -> Kinds:
    """Return the kinds of a posterior's variables, as recorded or else guessed."""
    written = schema.decode(attributes, schema.KINDS) or {}
    of = {}
    for name in map(str, posterior.data_vars):
        computed = posterior.variables[name].dtype.kind in "biu" or is_named_as_generated(name)
        of[name] = written.get(name) or (GENERATED if computed else PARAMETER)
    return Kinds(of, tuple(name for name in of if name not in written))


def arrays_of(posterior: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the variables by name. Take subsets first, since picking one from a large dataset is slow."""
    names = list(posterior.data_vars)
    step = isqrt(len(names)) + 1
    parts = (posterior[names[first : first + step]] for first in range(0, len(names), step))
    return {str(name): part[name] for part in parts for name in part.data_vars}


DensityAtDraws = Callable[[xr.Dataset], Any]
Posterior = Any
"""A `View`, a `DataTree`, files, a sampler's result, or anything that ArviZ can convert, such as a `Dataset`."""


@dataclass(frozen=True, eq=False)
class View:
    """The content of a posterior's tree, parsed part by part at first use."""

    tree: xr.DataTree
    argument: str = "posterior"  # The name in messages: an argument or a file.
    log_density: DensityAtDraws | None = None
    """Function that returns the log density in nats at constrained draws (chain, draw, ...), if available."""
    folders: tuple[Path, ...] = (Path(),)
    """Folders to which paths in the command of the run may be relative."""
    _groups: dict[str, xr.Dataset] = field(default_factory=dict, init=False, repr=False)
    _draws: dict[tuple[str, ...], Draws] = field(default_factory=dict, init=False, repr=False)

    def group(self, name: str) -> xr.Dataset | None:
        """Return a group as a dataset; None if the posterior does not have this group."""
        if name not in self._groups and name in self.tree.children:
            self._groups[name] = self.tree[name].to_dataset()
        return self._groups.get(name)

    @property
    def is_aligned(self) -> bool:
        """True if the draws have been aligned."""
        return schema.ALIGNMENT in self.tree.attrs

    @cached_property
    def posterior(self) -> xr.Dataset:
        """The group `posterior`, which every posterior must have."""
        given = self.group(schema.POSTERIOR)
        if given is None:
            there = ", ".join(self.tree.children) or "none"
            raise ArgumentError(
                f"`{self.argument}` has no group `posterior` (its groups: {there}). Give the whole tree that the "
                "inference method returned."
            )
        dataset = with_numbers(given)
        for fault in self._faults(dataset):
            raise ArgumentError(fault)
        return dataset

    def _faults(self, dataset: xr.Dataset) -> Iterator[str]:
        """Say what is wrong with the draws."""
        if not dataset.data_vars:
            yield (
                f"`{self.argument}` has no draws, because the group 'posterior' is empty. Store draws in this group."
            )
        if not set(schema.SAMPLE_DIMS) <= set(dataset.sizes):
            check_dims(next(iter(dataset.data_vars.values())), self.argument)
        if unnamed := [name for name in dataset.data_vars if not isinstance(name, str)]:
            yield f"Names of variables in `{self.argument}` must be text; got {unnamed[0]!r}."
        if not dataset.sizes["chain"]:
            yield f"`{self.argument}` has no chains: give draws of at least one chain."
        if dataset.sizes["draw"] and not any(dataset.variables[n].size for n in dataset.data_vars):
            yield (
                f"`{self.argument}` has no draws, because all variables are empty. Give a variable with values."
            )

    @cached_property
    def arrays(self) -> dict[str, xr.DataArray]:
        """The variables of the posterior by name."""
        return arrays_of(self.posterior)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the posterior's variables."""
        return tuple(str(name) for name in self.posterior.data_vars)

    @property
    def num_chains(self) -> int:
        """The number of chains."""
        return self.posterior.sizes["chain"]

    @property
    def num_draws(self) -> int:
        """The number of draws in each chain."""
        return self.posterior.sizes["draw"]

    def values(self, name: str) -> Float[np.ndarray, "chain draw *event"]:
        """Return the draws of a variable; reject it if it is not numeric or lacks chain or draw."""
        return checked(self.arrays[name], self.argument).values

    def draws(self, var_names: str | Sequence[str] | None = None, *, finite: bool = True) -> Draws:
        """Arrange variables, by default all, as scalar parameters; omit entries that are finite in no draw.

        Reject a point estimate, fewer than 4 draws per chain, and variables that are unknown, not numeric, or without
        the axes chain and draw. If `finite`, also reject draws that are not finite.
        """
        self.check_sampled()
        chosen = tuple(choose_variables(self.variables, var_names))
        if chosen not in self._draws:
            variables = [checked(self.arrays[name], self.argument) for name in chosen]
            if self.num_draws < MIN_DRAWS:
                raise ArgumentError(
                    f"`{self.argument}` has too few draws per chain for diagnostics ({self.num_draws}; at least "
                    f"{MIN_DRAWS} are needed): sample more draws."
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
        """The name of a variable that looks like unused weights of the draws, or an empty string."""
        stats = self.group(schema.SAMPLE_STATS)
        guessed = (array for name, array in self.arrays.items() if name in self.kinds.guessed)
        return unread_weights(stats.data_vars.values() if stats is not None else (), guessed)

    def check_sampled(self) -> None:
        """Raise `ArgumentError` for a point estimate."""
        if self.is_point_estimate:
            raise ArgumentError(
                f"`{self.argument}` is a point estimate (method optimize), so spread and convergence cannot be "
                "judged. Sample the model with nuts, or use laplace for a Gaussian around the estimate."
            )

    def stat(self, name: str) -> Float[np.ndarray, "chain draw"] | None:
        """Return a variable of the group `sample_stats` in float64; None if it is not recorded."""
        stats = self.group(schema.SAMPLE_STATS)
        if stats is None or name not in stats:
            return None
        values = np.asarray(checked(stats[name], self.argument).values, dtype=np.float64)
        if values.shape[:2] != (due := (self.num_chains, self.num_draws)):
            raise ArgumentError(
                f"The sampler statistic `{name}` of `{self.argument}` has shape {values.shape}, but the posterior "
                f"has {due[0]} chain(s) of {due[1]} draw(s). Use another copy of the posterior, or delete the "
                "statistic."
            )
        return values

    @property
    def diverging(self) -> Bool[np.ndarray, "chain draw"] | None:
        """A mask of the divergent transitions; None if they are not recorded."""
        return None if (values := self.stat(schema.DIVERGING)) is None else values > 0

    @property
    def x(self) -> np.ndarray | None:
        """The inputs that a network was fitted to; None if there is no network or no record of them."""
        return self._of_network(schema.CONSTANT_DATA, schema.INPUTS)

    @property
    def y(self) -> np.ndarray | None:
        """The targets or labels that a network was fitted to; None if there is no network or no record of them."""
        return self._of_network(schema.OBSERVED_DATA, schema.OUTPUTS)

    def _of_network(self, group: str, name: str) -> np.ndarray | None:
        if not self.attribute(schema.MODEL):
            return None
        dataset = self.group(group)
        return None if dataset is None or name not in dataset else dataset[name].values

    @property
    def data(self) -> dict[str, xr.Dataset]:
        """The groups of data that the posterior has."""
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
        """The network of the posterior; None for any other model."""
        return self._described(schema.MODEL, schema.network_of)

    @cached_property
    def declared_symmetry(self) -> Symmetry:
        """The symmetry that the posterior declares, true or not; empty if it declares none.

        Sign flips of an angle whose draws meet across the cut of its circle are omitted: they map a mode to itself.
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
        """Make a symmetry of these variables from blocks, or from strings that declare blocks."""
        return as_symmetry(symmetry, event_shapes(self.posterior))

    def _described[T](self, name: str, read: Callable[[schema.Attributes], T]) -> T:
        try:
            return read(self.tree.attrs)
        except ValueError as error:
            raise ArgumentError(
                f"The attribute '{name}' of `{self.argument}` cannot be read (value: "
                f"{str(self.attribute(name))[:60]!r}). Delete the attribute, or use the original posterior."
            ) from error

    @cached_property
    def symmetry_evidence(self) -> Evidence | None:
        """The recorded check of the declared symmetry; None if there is no record."""
        return schema.evidence_of(self.tree.attrs)

    @property
    def found_symmetry(self) -> dict[str, Any]:
        """The recorded result of the symmetry search before the run; empty if there is none."""
        return schema.found_symmetry_of(self.tree.attrs)

    @cached_property
    def declares_equal_modes(self) -> bool:
        """True if a declared symmetry implies equal modes, no check refutes it, and the draws are not aligned yet."""
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
        """True if the draws are independent: they come from an approximation or an ensemble."""
        return self.is_variational or self.is_ensemble

    @cached_property
    def is_point_estimate(self) -> bool:
        """True if the posterior is only an optimum of the log density."""
        return self.attribute(schema.METHOD) == "optimize"

    @cached_property
    def is_ensemble(self) -> bool:
        """True if the draws are the separately trained members of an ensemble."""
        trained = schema.TRAINING in self.tree.children
        return trained or self.attribute(schema.METHOD) == "ensemble"

    def part(self, dim: str, which: slice) -> View:
        """Return a view of some chains or some draws, without the group `alignment`."""
        numbers = self.posterior[dim].values[which]

        def those(group: xr.Dataset) -> xr.Dataset:
            if dim in group.sizes and schema.EVERY in group.attrs:  # It has only some of the draws.
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
    object that ArviZ converts to a tree. The attributes of a `Dataset` become those of the tree. Draws with weights
    (`log_weight` in `sample_stats`) are resampled. Messages call the posterior `argument`, and new views get
    `log_density`. Raise `TypeError` for any other object and `PosteriorFileError` for a file that cannot be read.
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
    """Open the files of a posterior lazily; they stay open as long as the view exists.

    If the files cannot be opened, messages call them `argument`. Later messages use `name`, by default the first file.
    """
    tree = open_tree(paths, lazy=True, argument=argument)
    folders = (Path(), *dict.fromkeys(path.parent for path in paths))
    view = View(taken_by_weight(tree, argument), name or str(paths[0]), folders=folders)
    view = replace(view, log_density=density(view))
    weakref.finalize(view, tree.close)  # The nodes of a tree refer to each other and live longer.
    return view
