"""The origin of a posterior: its program's text, its data's hash, kinds of variables; versions, commit and machine."""

import hashlib
import inspect
import os
import platform
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.errors import CmdStanNotFound
from onebasin.models.numpyro_target import NumpyroTarget
from onebasin.models.target import Named, Target
from onebasin.posteriors import schema
from onebasin.posteriors.view import GENERATED, PARAMETER, TRANSFORMED, is_named_as_generated
from onebasin.stan.home.assemble import existing_cmdstan

from ..contracts.method import LIBRARIES, named


@dataclass(frozen=True)
class Origin:
    """The origin of draws."""

    # Text of the Stan program or of the NumPyro model's function, and what it is called; empty
    # where there is none, as for a network, which describes itself.
    program: str = ""
    program_name: str = ""
    data_sha256: str = ""  # hash of the data; empty if none are known
    # Of variables, where the program tells them before it runs.
    kinds: Mapping[str, str] = field(default_factory=dict)
    # Axes of variables and of observed data, where they have names.
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Of a NumPyro model, axes and array of what its sites observe, and of the numbers and arrays
    # among its other arguments.
    observed: Mapping[str, Named] = field(default_factory=dict)
    constant: Mapping[str, Named] = field(default_factory=dict)

    def attributes(self, variables: Iterable[str]) -> dict[str, Any]:
        """The root attributes of a posterior that holds these variables."""
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
    """Read what a target is made of, before a run.

    A target without a definition for the engine raises ValueError, and a program that does not parse StanError.
    """
    if target.is_network:
        named = target.inputs | target.outputs
        digest = data_sha256({name: values for name, (_, values) in named.items()})
        return Origin(data_sha256=digest, dims=target.dims)
    if engine != "stan":
        return _of_numpyro(target)
    from onebasin.stan.interpreter.runtime import full_text
    from onebasin.stan.program import check_roles, definition
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
    from onebasin.base.precision import precision

    from ..density.numpyro import is_observation, sites_of
    from .groups_numpyro import plate_dims

    with precision("float64"):  # whatever the run's, as in fingerprints
        sites = sites_of(target, data=True)
        seen = {
            name: np.asarray(site["value"]) for name, site in sites.items() if is_observation(site)
        }
        dims = plate_dims(sites, target.dims)
    given = dict(target.data) if isinstance(target, NumpyroTarget) else {}
    # The function that states the model: handlers and partial functions are taken off.
    model: Any = target.numpyro_model
    while (
        inner := getattr(model, "__wrapped__", None)
        or getattr(model, "func", None)
        or (getattr(model, "fn", None))
    ):
        model = inner
    name = getattr(model, "__qualname__", "") or type(model).__qualname__
    text = ""
    with suppress(OSError, TypeError):  # it was typed at a prompt, or is not a function
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
    """The numbers and arrays among a model's arguments, without those that its sites observe."""
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
    """Arrays with their axes: named ones, or those that ArviZ would give them."""
    named = {}
    for name, array in arrays.items():
        axes = tuple(dims.get(name, ()))
        if len(axes) != array.ndim:
            axes = tuple(f"{name}_dim_{place}" for place in range(array.ndim))
        named[name] = (axes, array)
    return named


_EXACT = 2.0**53  # Whole numbers up to here are the same in floating point.


def data_sha256(data: Mapping[str, Any]) -> str:
    """Hash named values; empty text where there are none.

    Equal values have the same hash, whatever holds them; names, shapes and values count, the order of names does not.
    """
    if not data:
        return ""
    digest = hashlib.sha256()
    for name in sorted(data):
        digest.update(_line(name.encode()))
        value = data[name]
        if isinstance(value, Mapping):  # a tuple of Stan's
            digest.update(b"tuple" + data_sha256({str(k): v for k, v in value.items()}).encode())
            continue
        kind, array = _canonical(np.asarray(value))
        digest.update(_line(f"{kind}{array.shape}".encode()))
        digest.update(memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b"")
    return digest.hexdigest()


def _line(content: bytes) -> bytes:
    """Bytes that cannot run into what follows."""
    return len(content).to_bytes(8, "little") + content


def _canonical(array: np.ndarray) -> tuple[str, np.ndarray]:
    """The values in one type: whole numbers of 64 bits, else double precision; what are not numbers as text."""
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
    """Versions of Python, of the packages that a number may depend on, and of CmdStan if there is one."""
    found = {"python": platform.python_version(), **package_versions(*PACKAGES)}
    try:
        home = existing_cmdstan()
    except CmdStanNotFound:
        home = None
    return found if home is None else found | {"stan": ".".join(map(str, home.version))}


def commit() -> str | None:
    """The commit of the sources, marked where they have been changed; None outside their own repository.

    An installed copy may lie in a repository of its user's, whose commit says nothing of the sources.
    """
    source = Path(__file__).resolve()
    top = _git(source.parent, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != source.parents[2]:
        return None
    if _git(source.parent, "ls-files", "--error-unmatch", source.name) is None:
        return None
    return _git(source.parent, "describe", "--always", "--dirty", "--abbrev=12")


def machine(engine: str = "numpyro") -> str:
    """A line of text: processor, cores, and the device that the engine computes on."""
    device = "cpu"
    if named(engine) not in LIBRARIES:
        import jax

        device = jax.default_backend()
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, device {device}"


def _git(folder: Path, *words: str) -> str | None:
    """Return git's facts about the repository that a folder lies in; None without one."""
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def package_versions(*names: str) -> dict[str, str]:
    """Versions of installed packages."""
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
