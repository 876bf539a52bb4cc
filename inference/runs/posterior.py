"""Build, save and load posteriors as `DataTree`s, and describe their origin.

docs/reference/posterior.md describes the groups and attributes.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import xarray as xr

from onebasin.base.errors import CmdStanNotFound
from onebasin.base.files.netcdf import pieces
from onebasin.base.precision import precision
from onebasin.base.run_log import notice
from onebasin.models.numpyro_target import NumpyroTarget
from onebasin.models.target import Named, Target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import (
    LIMIT_MB,
    DrawGroup,
    Values,
    bytes_a_draw,
    labelled,
    network_groups,
    why_left_out,
)
from onebasin.posteriors.schema import LOG_LIKELIHOOD, LOG_PRIOR, POSTERIOR_PREDICTIVE
from onebasin.posteriors.scratch import close_with
from onebasin.posteriors.view import GENERATED, PARAMETER, TRANSFORMED, is_named_as_generated
from onebasin.stan.home.assemble import existing_cmdstan
from onebasin.stan.program import ProgramQuantities, check_roles, definition, find_roles

from ..contracts.method import LIBRARIES, Found, definition_of, named

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import NetworkTarget


@dataclass(frozen=True)
class Origin:
    """The model and the data from which draws come."""

    program: str = ""
    """Text of the Stan program or the NumPyro model's function; empty for a network."""
    program_name: str = ""
    data_sha256: str = ""  # Hash of the data; empty if there are none.
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of variables, if known before the run."""
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Named axes.
    observed: Mapping[str, Named] = field(default_factory=dict)  # Data of a NumPyro model's sites.
    constant: Mapping[str, Named] = field(default_factory=dict)  # Other numeric arguments.

    def attributes(self, variables: Iterable[str]) -> dict[str, Any]:
        """Return the root attributes of a posterior with these variables."""
        kinds = {name: self.kinds.get(name, PARAMETER) for name in variables}
        said = {
            schema.PROGRAM: self.program,
            schema.PROGRAM_NAME: self.program_name,
            schema.DATA_SHA256: self.data_sha256,
        }
        return {schema.KINDS: kinds} | said


NOWHERE = Origin()
"""The origin of draws without a model."""


def origin_of(target: Target, engine: str, progress: Callable[[str], None] | None = None) -> Origin:
    """Describe the model and the data of a target, before a run.

    Raise ValueError if the target has no definition for the engine, and StanError if its program does not parse.
    """
    if target.is_network:
        named = target.inputs | target.outputs
        digest = data_sha256({name: values for name, (_, values) in named.items()})
        return Origin(data_sha256=digest, dims=target.dims)
    if engine != "stan":
        return _of_numpyro(target)
    from onebasin.stan.interpreter.runtime import full_text
    from onebasin.stan.run import declarations

    program = definition(target)
    info = declarations(program, progress)
    check_roles(program.roles, info.derived, program.path.name)
    kinds = dict.fromkeys(info.parameters, PARAMETER)
    kinds |= dict.fromkeys(info.transformed, TRANSFORMED)
    kinds |= dict.fromkeys(info.generated, GENERATED)
    return Origin(
        full_text(program.path, info.includes),
        program.path.name,
        data_sha256(program.data),
        kinds,
        target.dims,
    )


def _of_numpyro(target: Target) -> Origin:
    from ..density.numpyro import is_observation, sites_of
    from .groups_numpyro import plate_dims

    with precision("float64"):  # The same for every precision of the run, as in fingerprints.
        sites = sites_of(target, data=True)
        seen = {n: np.asarray(s["value"]) for n, s in sites.items() if is_observation(s)}
        dims = plate_dims(sites, target.dims)
    given = dict(target.data) if isinstance(target, NumpyroTarget) else {}
    # Find the function that defines the model, without handlers and partial arguments.
    model: Any = target.numpyro_model
    while (
        inner := getattr(model, "__wrapped__", None)
        or getattr(model, "func", None)
        or (getattr(model, "fn", None))
    ):
        model = inner
    name = getattr(model, "__qualname__", "") or type(model).__qualname__
    text = ""
    with suppress(OSError, TypeError):  # Defined at a prompt, or not a function.
        source, file = textwrap.dedent(inspect.getsource(model)), inspect.getsourcefile(model)
        text, name = source, f"{Path(file).name}:{name}" if file else name
    return Origin(
        text,
        name,
        data_sha256(given or seen),
        {
            name: GENERATED if is_named_as_generated(name) else TRANSFORMED
            for name, site in sites.items()
            if site["type"] == "deterministic"
        },
        dims,
        with_axes(seen, dims),
        with_axes(unobserved(given, seen.values()), dims),
    )


def unobserved(data: Mapping[str, Any], seen: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the numbers and arrays among a model's arguments that its sites do not observe."""
    seen, found = list(seen), {}
    for name, value in data.items():
        if isinstance(value, bool | int | float) or hasattr(value, "__array__"):
            array = np.asarray(value)
            if array.dtype.kind in "biuf" and not any(
                np.array_equal(array, each, equal_nan=True) for each in seen
            ):
                found[name] = array
    return found


def with_axes(
    arrays: Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]]
) -> dict[str, Named]:
    """Pair arrays with the names of their axes, by default ArviZ's names."""
    named = {}
    for name, array in arrays.items():
        axes = tuple(dims.get(name, ()))
        if len(axes) != array.ndim:
            axes = tuple(f"{name}_dim_{place}" for place in range(array.ndim))
        named[name] = (axes, array)
    return named


_EXACT = 2.0**53  # Integers up to this value are exact in floating point.


def data_sha256(data: Mapping[str, Any]) -> str:
    """Hash named values; return an empty string if there are none.

    The hash depends on names, shapes and values, but not on the types of containers or the order of names.
    """
    if not data:
        return ""
    digest = hashlib.sha256()
    for name in sorted(data):
        digest.update(_line(name.encode()))
        value = data[name]
        if isinstance(value, Mapping):  # A Stan tuple.
            digest.update(b"tuple" + data_sha256({str(k): v for k, v in value.items()}).encode())
            continue
        kind, array = _canonical(np.asarray(value))
        digest.update(_line(f"{kind}{array.shape}".encode()))
        digest.update(memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b"")
    return digest.hexdigest()


def _line(content: bytes) -> bytes:
    """Prefix bytes with their length, so that they cannot merge with the bytes that follow."""
    return len(content).to_bytes(8, "little") + content


def _canonical(array: np.ndarray) -> tuple[str, np.ndarray]:
    """Convert values to one type: 64-bit integers if possible, else double precision; other values to text."""
    if array.dtype.kind in "bi":
        return "whole", array.astype("<i8")
    if array.dtype.kind in "uf":
        whole = np.abs(array) < _EXACT
        if whole.all() and (array == np.rint(array)).all():
            return "whole", array.astype("<i8")
        return "real", array.astype("<f8")
    if array.dtype.kind == "c":
        return "complex", array.astype("<c16")
    return "text", np.frombuffer(repr(array.tolist()).encode(), np.uint8)


PACKAGES = ("onebasin", "jax", "numpyro", "stanli", "cmdstanpy", "arviz", "numpy")


def versions() -> dict[str, str]:
    """Return versions of Python, of packages on which results may depend, and of CmdStan if installed."""
    found = {"python": platform.python_version(), **package_versions(*PACKAGES)}
    try:
        home = existing_cmdstan()
    except CmdStanNotFound:
        home = None
    return found if home is None else found | {"stan": ".".join(map(str, home.version))}


def commit() -> str | None:
    """Return the commit of the sources, marked if they were changed; None outside onebasin's own repository."""
    source = Path(__file__).resolve()
    top = _git(source.parent, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != source.parents[2]:
        return None
    if _git(source.parent, "ls-files", "--error-unmatch", source.name) is None:
        return None
    return _git(source.parent, "describe", "--always", "--dirty", "--abbrev=12")


def machine(engine: str = "numpyro") -> str:
    """Describe the processor, cores and device of the engine in one line."""
    device = "cpu"
    if named(engine) not in LIBRARIES:
        import jax

        device = jax.default_backend()
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, device {device}"


def _git(folder: Path, *words: str) -> str | None:
    """Return the output of a git command in a folder; None if it fails."""
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def package_versions(*names: str) -> dict[str, str]:
    """Return versions of installed packages."""
    return {name: _version(name) for name in names}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


@cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def build(
    target: Target,
    draws: Mapping[str, Values],
    stats: Mapping[str, Values],
    attributes: Mapping[str, Any],
    *,
    origin: Origin = NOWHERE,
    groups: Mapping[str, xr.Dataset] = MappingProxyType({}),
    predictive_mb: float = LIMIT_MB,
    folder: Path | None = None,
) -> xr.DataTree:
    """Build a posterior from draws and statistics, with the groups and attributes of docs/reference/posterior.md.

    Draws are arrays (chain, draw, ...) by variable, and statistics are arrays (chain, draw). A `DataArray` that is
    still in its file stays there. `attributes` describe the run, in values that JSON supports. `origin` describes the
    target when the run began; without it, no other groups are computed. `groups` are additional groups, such as the
    parameters of a fit. Log likelihoods, predictions and log priors may take `predictive_mb` megabytes in total. Large
    groups are written to `folder`, if one is given.
    """
    engine = definition_of(target, attributes.get(schema.ENGINE, "numpyro"))
    settings = attributes.get(schema.SETTINGS)
    rest = beside(
        target,
        draws,
        origin,
        engine=engine,
        seed=attributes.get(schema.SEED, 0),
        dtype=settings.get("dtype", "float64") if isinstance(settings, Mapping) else "float64",
        limit_mb=predictive_mb,
        folder=folder,
    )
    whole = {
        schema.POSTERIOR: DrawGroup(rest.draws, {**target.dims, **origin.dims}).to_dataset(
            target.coords
        ),
        schema.SAMPLE_STATS: DrawGroup(stats).to_dataset(),
        **rest.datasets(target.coords),
        **groups,
    }
    tree = xr.DataTree.from_dict(whole)
    described = {
        schema.TARGET: target.name,
        schema.MODEL: target.describe(),
        schema.SYMMETRY: schema.encode_symmetry(target.symmetry),
        schema.VERSIONS: versions(),
        schema.MACHINE: machine(engine),
        schema.COMMAND: "",
        schema.CREATED_AT: schema.now(),
        schema.ATTEMPTS: [],
    } | origin.attributes(rest.draws)
    if rest.left_out:
        described[schema.LEFT_OUT] = rest.left_out
    tree.attrs = {k: schema.encode(v) for k, v in {**described, **attributes}.items()}
    for group in rest.groups.values():
        if group.filed is not None:
            close_with(tree, group.filed)
    return tree


def add_warmup(tree: xr.DataTree, found: Found) -> None:
    """Add the draws of a warmup to a posterior, with the same variables, axes and labels."""
    like = tree[schema.POSTERIOR].to_dataset()
    dims = {str(n): tuple(map(str, v.dims[2:])) for n, v in like.data_vars.items()}
    values = {name: found.draws[name] for name in dims}
    labels = {str(n): a.values for n, a in like.coords.items() if n not in schema.SAMPLE_DIMS}
    tree[schema.WARMUP_POSTERIOR] = xr.DataTree(DrawGroup(values, dims).to_dataset(labels))
    tree[schema.WARMUP_SAMPLE_STATS] = xr.DataTree(DrawGroup(found.stats).to_dataset())
    if found.filed is not None:
        close_with(tree, found.filed)


Draws = dict[str, Values]


def stan_groups(
    target: Target, draws: Mapping[str, Values], origin: Origin
) -> tuple[Draws, dict[str, DrawGroup], ProgramQuantities]:
    """Divide a Stan program's variables into the posterior and the other groups; also return their roles.

    A variable that the declared symmetry moves stays in the posterior, whatever its name. No array is copied.
    """
    program = definition(target)
    kinds = origin.kinds
    moved = {name for block in target.symmetry for name in block.variables}
    named = {name for _, name in program.roles.named}
    shapes = {
        name: values.shape[2:]
        for name, values in draws.items()
        if (kinds.get(name) == GENERATED and name not in moved) or name in named
    }
    derived = [n for n in draws if kinds.get(n, PARAMETER) != PARAMETER and n not in moved]
    data = arrays_of(program.data)
    found = find_roles(program.roles, data, shapes, priors=derived)
    # Stan writes integers like reals; ArviZ distinguishes counts from measurements by their type.
    counts = {n for n in draws if kinds.get(n) == GENERATED and _is_declared_int(n, origin.program)}
    predicted = found.posterior_predictive.items()
    counts |= {own for of, own in predicted if of in data and data[of].dtype.kind in "biu"}
    draws = {n: _as_whole(values) if n in counts else values for n, values in draws.items()}
    groups = {
        LOG_LIKELIHOOD: _group(draws, found.log_likelihood, target, found),
        POSTERIOR_PREDICTIVE: _group(draws, found.posterior_predictive, target, found),
        LOG_PRIOR: _group(draws, {n: n for n in found.log_prior}, target, found),
    }
    stays = {name: values for name, values in draws.items() if name not in found.moved}
    if not stays:
        return dict(draws), {}, found
    return stays, {name: group for name, group in groups.items() if group.values}, found


def arrays_of(data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the data that are arrays of numbers, without Stan's tuples."""
    arrays = {n: np.asarray(v) for n, v in data.items() if not isinstance(v, Mapping)}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "biufc"}


def axes_of(target: Target, found: ProgramQuantities, name: str) -> tuple[str, ...] | None:
    """Return the axis names of observed data, or of their predictions or log likelihoods; None if there are none."""
    for of in (name, found.posterior_predictive.get(name), found.log_likelihood.get(name)):
        if of is not None and of in target.dims:
            return tuple(target.dims[of])
    return None


def _is_declared_int(name: str, program: str) -> bool:
    return re.search(rf"\bint\b(\s*<[^>]*>)?\s+{re.escape(name)}\b", program) is not None


def _as_whole(values: Values) -> Values:
    """Convert values to integers if all are whole and exact in double precision."""
    if values.dtype.kind != "f":
        return values
    if isinstance(values, np.ndarray):
        return values.astype(np.int64) if _is_whole(values) else values
    if not all(_is_whole(rows.values) for chain in values for rows in pieces(chain)):
        return values
    return values.astype(np.int64)


def _is_whole(values: np.ndarray) -> bool:
    return bool(((values == np.rint(values)) & (np.abs(values) < 2**53)).all())


def _group(
    draws: Mapping[str, Values], names: Mapping[str, str], target: Target, found: ProgramQuantities
) -> DrawGroup:
    values = {name: draws[own] for name, own in names.items()}
    dims = {n: axes for n in names if (axes := axes_of(target, found, n)) is not None}
    fitting = {n: axes[: values[n].ndim - 2] for n, axes in dims.items()}
    return DrawGroup(values, {n: a for n, a in fitting.items() if len(a) == values[n].ndim - 2})


POINTWISE = (LOG_LIKELIHOOD, POSTERIOR_PREDICTIVE)


class Beside(NamedTuple):
    """The draws of the group `posterior`, and the other groups of a posterior."""

    draws: Mapping[str, Values]  # The group `posterior`.
    groups: Mapping[str, DrawGroup]  # Log likelihoods, predictions, log priors.
    observed: Mapping[str, Named]  # Observed data: axes and array.
    constant: Mapping[str, Named]
    left_out: Mapping[str, str] = MappingProxyType({})  # Missing groups with the reasons.

    def datasets(self, coords: Mapping[str, Any]) -> dict[str, xr.Dataset]:
        """Return the groups other than `posterior`."""
        found = {name: group.to_dataset(coords) for name, group in self.groups.items()}
        data = {schema.OBSERVED_DATA: self.observed, schema.CONSTANT_DATA: self.constant}
        for name, arrays in data.items():
            if arrays:
                found[name] = labelled(xr.Dataset(dict(arrays)), coords)
        return found


def beside(
    target: Target,
    draws: Mapping[str, Values],
    origin: Origin,
    *,
    engine: str,
    seed: int,
    dtype: str,
    limit_mb: float,
    folder: Path | None = None,
) -> Beside:
    """Find or compute the other groups of a run's posterior; write large groups to `folder`, if one is given.

    If a log likelihood or a prediction cannot be computed, a notice and `left_out` give the reason; draws are kept.
    """
    groups: dict[str, DrawGroup] = {}
    left: dict[str, str] = {}
    if origin is NOWHERE:
        return Beside(draws, {}, target.outputs, target.inputs)
    if target.is_network:
        net = cast("NetworkTarget", target)
        with precision(dtype):
            pointwise = network_groups(
                net.model, draws, net.x, net.y, seed=seed, limit_mb=limit_mb, folder=folder
            )
        if pointwise is None:
            why = why_left_out(bytes_a_draw(net.model, net.y), limit_mb)
            left = dict.fromkeys(POINTWISE, why)
        return Beside(draws, pointwise or {}, net.outputs, net.inputs, left)
    if engine == "stan":
        stays, groups, found = stan_groups(target, draws, origin)
        arrays = arrays_of(definition(target).data)
        named = with_axes(arrays, {n: axes_of(target, found, n) or () for n in arrays})
        observed = {name: named[name] for name in found.observed}
        constant = {name: value for name, value in named.items() if name not in observed}
        return Beside(stays, groups, observed, constant)
    from .groups_numpyro import numpyro_groups, reason

    if origin.observed:
        try:
            with precision(dtype):
                groups, left = numpyro_groups(
                    target, draws, origin.dims, seed=seed, limit_mb=limit_mb, folder=folder
                )
        except Exception as error:
            left = dict.fromkeys(POINTWISE, reason(error))
        if limit_mb:
            for group, why in left.items():
                notice(f"The posterior of {target.name!r} has no group {group}: {why}.")
    return Beside(draws, groups, origin.observed, origin.constant, left)
