"""Checkpoints: files with the state of a run, and the fingerprint that identifies the run.

A fingerprint is a hash of everything that decides a run's draws. It covers the target's name, description and data.
For a Stan program it covers the text with every included file, the compiler's flags, the data and CmdStan's version.
For a NumPyro model it covers the programs of the log density, gradient and quantities, with every bit of their
constants. It also covers the versions of onebasin and of the numerical libraries, and the method, settings, seed and
declared symmetry that the caller adds.

Chains have their own folders, ``chain-0`` and so on; the state of training is one file. Files are removed or replaced
only if they have one of the names below and either carry a fingerprint or are damaged. If other files exist, they
stay, and so does the folder.
"""

import hashlib
import json
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.checks import check_path
from onebasin.base.errors import InferenceError, NoFingerprint
from onebasin.base.files.netcdf import read_arrays
from onebasin.base.files.writing import Seal, examine, sealing, sweep
from onebasin.base.run_log import notice
from onebasin.models.target import Target

from ..contracts.method import ENGINES, as_dict, bound, definition_of, named
from .posterior import package_versions

NUMPYRO_VERSIONS = ("onebasin", "jax", "jaxlib", "numpyro", "numpy", "optax", "scipy")

FOREIGN = ("pure_callback", "io_callback", "ffi_call")
"""Primitives that compute outside JAX, so that the traced program does not determine the draws."""


def fingerprint(
    target: Target | None, *, engine: str, progress: Callable[[str], None] | None = None, **how: Any
) -> str | None:
    """Hash everything that decides a run's draws; if that is unknown, print a notice and return None.

    `how` has more values that decide the draws: numbers, text, arrays, frozen settings, or JSON of these. The target's
    definition for another engine is ignored. `progress` is called with a line of text before a long computation. Raise
    ValueError if the engine does not support the target, and StanError if its program does not parse.
    """
    engine = named(engine)
    try:
        known = [*_target(target, engine, progress), engine, how]
        text = json.dumps(known, sort_keys=True, default=_say)
    except NoFingerprint as reason:
        of = "This run" if target is None else f"The model of {target.name!r}"
        notice(
            f"{of} has no fingerprint, because {reason}. The run saves no checkpoint and cannot be resumed."
        )
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _target(
    target: Target | None, engine: str, progress: Callable[[str], None] | None
) -> Iterator[Any]:
    """Yield everything that decides the draws of a target on an engine."""
    if target is None:
        yield package_versions(*NUMPYRO_VERSIONS)
        return
    yield target.name, target.describe(), target.inputs, target.outputs
    if engine in ENGINES and (package := ENGINES[engine].package):
        yield package_versions(package)
    by_stan = target.stan_program is not None or target.is_network
    if by_stan and (definition_of(target, engine) == "stan" or target.numpyro_model is None):
        yield _stan(bound(target, engine), progress), package_versions("onebasin")
        if engine == "numpyro":  # JAX samples the program's density.
            yield package_versions(*NUMPYRO_VERSIONS)
        return
    yield package_versions(*NUMPYRO_VERSIONS)
    if target.numpyro_model is not None:
        import jax
        import numpyro  # noqa: F401 - loads the packages in the list below

        # Include JAX's flags for random numbers and matrix products in this process, and the loaded versions.
        flags = ("default_prng_impl", "threefry_partitionable", "default_matmul_precision")
        process = {f"jax_{name}": str(getattr(jax.config, f"jax_{name}", None)) for name in flags}
        process |= {n: sys.modules[n].__version__ for n in ("jax", "jaxlib", "numpyro")}
        yield list(_numpyro(target)), process


def _stan(target: Target, progress: Callable[[str], None] | None) -> tuple[str, Any]:
    from onebasin.stan.compile import source_key, translate
    from onebasin.stan.home.assemble import find_cmdstan
    from onebasin.stan.interpreter.runtime import full_text, identity, included_files
    from onebasin.stan.program import definition

    program = definition(target)
    if program.chosen().accepted is not None:
        text = full_text(program.path, included_files(program.path))
        return json.dumps([text, {"stanli": identity()}]), dict(program.data)
    home = find_cmdstan(progress=progress)
    return source_key(translate(program.path, home), home), dict(program.data)


def _numpyro(target: Target) -> Iterator[Any]:
    """Yield a description of a NumPyro model: names, the program for XLA, and its constants.

    The model is traced in double precision, so that no data are rounded. The program's text has every bit of small
    constants, and is the same in every process.
    """
    import jax
    import jax.numpy as jnp

    from onebasin.base.precision import precision

    from ..density.network import density_of

    with precision("float64"):
        density = density_of(target)
        like = {n: jax.ShapeDtypeStruct(c.shape, jnp.float64) for n, c in density.charts.items()}

        def computed(coordinates: Any) -> Any:
            log_density = jax.value_and_grad(density.log_density_at)(coordinates)
            return log_density, density.quantities(coordinates)

        try:
            closed, results = jax.make_jaxpr(computed, return_shape=True)(like)
            if found := [name for name in FOREIGN if f" {name}[" in str(closed)]:
                raise NoFingerprint(f"the model calls code outside JAX ({found[0]})")
            program = jax.jit(partial(jax.core.eval_jaxpr, closed.jaxpr))
            traced = program.trace(closed.consts, *jax.tree.leaves(like))
            text = traced.lower(lowering_platforms=("cpu",)).as_text()
        except (TypeError, ValueError, NotImplementedError, jax.errors.JAXTypeError) as error:
            raise NoFingerprint(f"JAX cannot trace the model ({type(error).__name__})") from error
        yield [str(jax.tree.structure(tree)) for tree in (like, results)]
        yield hashlib.sha256(text.encode()).hexdigest()
        for value in closed.consts:
            is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
            yield jax.random.key_data(value) if is_key else value


def _say(value: Any) -> Any:
    """Convert a value to JSON: a dataclass field by field, anything else to a hash of its bits as an array."""
    if hasattr(value, "__dataclass_fields__"):
        return type(value).__name__, as_dict(value)
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise NoFingerprint(f"the model depends on a Python object of type {type(value).__name__}")
    content = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8))
    return array.dtype.str, array.shape, content.hexdigest()


MARK = "fingerprint"  # Name of the array that identifies the run to which a file belongs.

_NAME = re.compile(r"(chain-\d+|state)\.npz")  # Earlier versions saved a chain in one file.
_CHAIN = re.compile(r"chain-(\d+)(-[0-9a-f]{8})?")
_IN_CHAIN = re.compile(r"draws-\d{6,}\.npz|stan-.*")
_LOCK = ".lock"


def chain_folder(folder: Path, number: int, fingerprint: str) -> Path:
    """Return the folder of a chain; use a different name if the usual folder belongs to another run."""
    usual = folder / f"chain-{number}"
    own = folder / f"chain-{number}-{fingerprint[:8]}"
    try:
        mark = str(read_arrays(state_file(usual))[MARK])
    except (OSError, ValueError, KeyError):  # The file is missing or damaged.
        mark = fingerprint
    return own if own.exists() or mark != fingerprint else usual


def chunk_file(folder: Path, index: int) -> Path:
    """Return the file of a chunk of draws in a chain's folder."""
    return folder / f"draws-{index:06d}.npz"


def state_file(folder: Path) -> Path:
    """Return the file with the state of training, or of a chain in its folder."""
    return folder / "state.npz"


def check_folder(folder: Path) -> None:
    """Reject a folder in which nothing can be saved, before anything is sampled."""
    if folder.exists() and not folder.is_dir():
        raise InferenceError(
            f"`checkpoint` is {folder}, which is not a folder. Choose another name."
        )
    for path in folder.glob("*"):
        if (_NAME.fullmatch(path.name) and not _is_ours(path)) or (
            _CHAIN.fullmatch(path.name) and not _is_our_chain(path)
        ):
            raise InferenceError(
                f"A finished chain would replace the file {path}, which onebasin did not write. Move the file to "
                "another folder."
            )


def remove(folder: Path) -> list[str]:
    """Delete the checkpoints in a folder, and the folder if it is then empty; return the names of other files."""
    if not folder.is_dir():
        return []
    sweep(folder)
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and _is_ours(path):
            path.unlink(missing_ok=True)
        elif _CHAIN.fullmatch(path.name) and _is_our_chain(path):
            remove_chain(path)
        elif path.name == _LOCK and path.is_file():  # Left by a process that was killed.
            path.unlink(missing_ok=True)
    stays = sorted(path.name for path in folder.iterdir())
    if not stays:
        with suppress(OSError):  # A symbolic link to a folder stays.
            folder.rmdir()
    return stays


def kept_draws(folder: Path) -> list[int]:
    """Count the saved draws of each chain in a folder."""
    found = []
    for path in sorted(folder.glob("chain-*")):
        if _CHAIN.fullmatch(path.name):
            with suppress(OSError, ValueError, KeyError):
                found.append(int(read_arrays(state_file(path))["draws"]))
    return found


def clear(folder: Path) -> None:
    """Delete everything that a chain has saved in its folder, except its state."""
    sweep(folder)
    for file in folder.iterdir():
        if _IN_CHAIN.fullmatch(file.name):
            file.unlink(missing_ok=True)


def remove_chain(path: Path) -> None:
    """Delete everything that a chain has saved in its folder, and the folder if it contains nothing else."""
    if not path.is_dir():
        return
    clear(path)  # First, because other files would not be recognised without the state.
    with suppress(OSError):  # The folder contains other files.
        if [file.name for file in path.iterdir()] == [state_file(path).name]:
            state_file(path).unlink()
        path.rmdir()


def _is_our_chain(path: Path) -> bool:
    """Return whether a folder with a chain's name has a state that onebasin wrote, or only hidden files."""
    if path.is_symlink() or not path.is_dir():
        return False
    if state_file(path).exists():
        return _is_ours(state_file(path))
    return all(file.name.startswith(".") for file in path.iterdir())


def _is_ours(path: Path) -> bool:
    """Return whether a file with a checkpoint's name has a fingerprint or is damaged."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{MARK}.npy" in archive.namelist()
    except zipfile.BadZipFile:
        return True


SECONDS = 30.0  # Minimum time between saves of the state of training.


def write(path: Path, fingerprint: str, arrays: Mapping[str, Any]) -> None:
    """Write arrays with a checksum, completely or not at all; create the folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sealing(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **{MARK: np.array(fingerprint)}, **arrays)


def read(path: Path, fingerprint: str) -> dict[str, np.ndarray] | None:
    """Read the arrays; return None if the file is missing, belongs to another run or is damaged (with a notice)."""
    if not path.exists():
        return None
    if examine(path) is not Seal.SEALED:
        notice(
            f"{path} is damaged (its checksum is missing or wrong), so its contents are computed again."
        )
        return None
    arrays = read_arrays(path)
    return None if str(arrays.pop(MARK)) != fingerprint else arrays


def pack(state: Any) -> dict[str, np.ndarray]:
    """Convert a pytree of arrays and random keys, such as the state of HMC, to named arrays."""
    import jax  # Imported here and below, because saving Stan's chains does not need JAX.

    leaves = enumerate(jax.tree.leaves(state))
    return {f"leaf-{i}": np.asarray(jax.random.key_data(v) if _is_key(v) else v) for i, v in leaves}


def unpack(arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """Restore the state that `pack` converted, bit for bit; `like` has the same structure and types."""
    import jax
    import jax.numpy as jnp

    leaves, tree = jax.tree.flatten(like)

    def restored(array: np.ndarray, leaf: Any) -> Any:
        if _is_key(leaf):
            return jax.random.wrap_key_data(jnp.asarray(array))
        return jnp.asarray(array, leaf.dtype)

    found = [restored(arrays[f"leaf-{i}"], leaf) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, found)


def _is_key(leaf: Any) -> bool:
    import jax

    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


Kept = tuple[Any, list[np.ndarray]]
"""A state to resume from (a pytree of arrays), with the trace up to that state, such as losses."""


class Keeper:
    """Storage for the state of training, saved every half minute in a folder, or not at all."""

    def __init__(self, folder: Path | None = None, fingerprint: str = "") -> None:
        if folder is not None:
            check_folder(folder)
        self.path = None if folder is None else state_file(folder)
        self.fingerprint, self.seconds = fingerprint, SECONDS
        self._written = time.monotonic()

    def load(self, like: Kept) -> Kept:
        """Return the saved state of this run, or the start `like` if there is none."""
        arrays = None if self.path is None else read(self.path, self.fingerprint)
        if arrays is None:
            return like
        return unpack(arrays, like[0]), list(arrays["losses"])

    def save(self, kept: Kept) -> None:
        """Save the state and the trace, if the last save is long enough ago."""
        if self.path is None or time.monotonic() - self._written < self.seconds:
            return
        state, losses = kept
        write(self.path, self.fingerprint, {"losses": np.stack(losses), **pack(state)})
        self._written = time.monotonic()


def keeper_in(folder: str | Path | None, fingerprint: Callable[[], str | None]) -> Keeper:
    """Return the keeper for a folder; it saves nothing if there is no folder or the run has no fingerprint."""
    if folder is None:
        return Keeper()
    place, mark = check_path("checkpoint", folder), fingerprint()
    return Keeper() if mark is None else Keeper(place, mark)
