"""Checkpoints of a run: arrays in files, marked with the run that they are of, and the folder in which they lie.

The folder is looked at before a run, and emptied of what is ours after it. Chains lie in folders of their own,
``chain-0`` and so on, the state of training in a file. Ours are files of the names below that hold our mark or nothing
that anybody could read; whatever else lies there, and then the folder, stays.
"""

import re
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.base.checks import check_path
from onebasin.base.errors import InferenceError
from onebasin.base.files.sizes import read_arrays
from onebasin.base.files.writing import Seal, examine, sealing, sweep
from onebasin.base.run_log import notice

MARK = "fingerprint"  # The array that says which run a file is of.

_NAME = re.compile(r"(chain-\d+|state)\.npz")  # chains in one file are those of earlier versions
_CHAIN = re.compile(r"chain-(\d+)(-[0-9a-f]{8})?")
_IN_CHAIN = re.compile(r"draws-\d{6,}\.npz|stan-.*")
_LOCK = ".lock"


def chain_folder(folder: Path, number: int, fingerprint: str) -> Path:
    """Return the folder of a chain of a run; next to that of another run, where there is one."""
    usual = folder / f"chain-{number}"
    own = folder / f"chain-{number}-{fingerprint[:8]}"
    try:
        mark = str(read_arrays(state_file(usual))[MARK])
    except (OSError, ValueError, KeyError):  # nothing is there, or it is damaged
        mark = fingerprint
    return own if own.exists() or mark != fingerprint else usual


def chunk_file(folder: Path, index: int) -> Path:
    """A chunk of a chain's draws, in the chain's folder."""
    return folder / f"draws-{index:06d}.npz"


def state_file(folder: Path) -> Path:
    """Return the file for the state of training, or for that of a chain in its folder."""
    return folder / "state.npz"


def check_folder(folder: Path) -> None:
    """Reject a folder in which nothing can be kept, before anything is sampled."""
    if folder.exists() and not folder.is_dir():
        raise InferenceError(
            f"{folder}, where finished chains are to be kept, is no folder; move it away."
        )
    for path in folder.glob("*"):
        if (_NAME.fullmatch(path.name) and not _is_ours(path)) or (
            _CHAIN.fullmatch(path.name) and not _is_our_chain(path)
        ):
            raise InferenceError(
                f"{path} would be replaced by a finished chain, but no run has written it; move it away."
            )


def remove(folder: Path) -> list[str]:
    """Delete what runs have kept in a folder, and the folder if it is empty then; return the names of what stays."""
    if not folder.is_dir():
        return []
    sweep(folder)
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and _is_ours(path):
            path.unlink(missing_ok=True)
        elif _CHAIN.fullmatch(path.name) and _is_our_chain(path):
            remove_chain(path)
        elif path.name == _LOCK and path.is_file():  # of a process that was killed
            path.unlink(missing_ok=True)
    stays = sorted(path.name for path in folder.iterdir())
    if not stays:
        with suppress(OSError):  # a link to a folder stays
            folder.rmdir()
    return stays


def kept_draws(folder: Path) -> list[int]:
    """Count the kept draws of each chain in a folder."""
    found = []
    for path in sorted(folder.glob("chain-*")):
        if _CHAIN.fullmatch(path.name):
            with suppress(OSError, ValueError, KeyError):
                found.append(int(read_arrays(state_file(path))["draws"]))
    return found


def clear(folder: Path) -> None:
    """Delete all that a chain has kept in its folder, but for its state."""
    sweep(folder)
    for file in folder.iterdir():
        if _IN_CHAIN.fullmatch(file.name):
            file.unlink(missing_ok=True)


def remove_chain(path: Path) -> None:
    """Delete what a chain has kept in its folder, and the folder if nothing else is in it."""
    if not path.is_dir():
        return
    clear(path)  # before the state, without which what is left would be taken for somebody else's
    with suppress(OSError):  # something of somebody else is in it
        if [file.name for file in path.iterdir()] == [state_file(path).name]:
            state_file(path).unlink()
        path.rmdir()


def _is_our_chain(path: Path) -> bool:
    """Tell whether a folder of our name has our state, or nothing that anybody would miss."""
    if path.is_symlink() or not path.is_dir():
        return False
    if state_file(path).exists():
        return _is_ours(state_file(path))
    return all(file.name.startswith(".") for file in path.iterdir())


def _is_ours(path: Path) -> bool:
    """Tell whether a file of our name has our mark, or is damaged: an archive of other arrays is somebody else's."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{MARK}.npy" in archive.namelist()
    except zipfile.BadZipFile:
        return True


SECONDS = 30.0  # Least time between two writings of a state.


def write(path: Path, fingerprint: str, arrays: Mapping[str, Any]) -> None:
    """Write arrays with a seal; the folder is made where it does not exist, the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sealing(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **{MARK: np.array(fingerprint)}, **arrays)


def read(path: Path, fingerprint: str) -> dict[str, np.ndarray] | None:
    """The arrays, or None where there is no whole file of this very run; a notice tells of a damaged one."""
    if not path.exists():
        return None
    if examine(path) is not Seal.SEALED:
        notice(f"{path} is damaged (its checksum is missing or wrong): what it kept is made again.")
        return None
    arrays = read_arrays(path)
    return None if str(arrays.pop(MARK)) != fingerprint else arrays


def pack(state: Any) -> dict[str, np.ndarray]:
    """A whole pytree of arrays and random keys; of HMC position, momentum, step size, metric, and what adapts them."""
    import jax  # here, as below: chains of Stan are kept without it

    leaves = enumerate(jax.tree.leaves(state))
    return {f"leaf-{i}": np.asarray(jax.random.key_data(v) if _is_key(v) else v) for i, v in leaves}


def unpack(arrays: Mapping[str, np.ndarray], like: Any) -> Any:
    """The state that `pack` has put into arrays, bit for bit; `like` has its structure and types."""
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
"""A state to go on from, a pytree of arrays, with the losses (or whatever is traced) until then."""


class Keeper:
    """The place where training is kept every half minute: in a folder, made where it does not exist, or nowhere.

    The fingerprint says whether a file found there is of this very run.
    """

    def __init__(self, folder: Path | None = None, fingerprint: str = "") -> None:
        if folder is not None:
            check_folder(folder)
        self.path = None if folder is None else state_file(folder)
        self.fingerprint, self.seconds = fingerprint, SECONDS
        self._written = time.monotonic()

    def load(self, like: Kept) -> Kept:
        """Return the kept state, or `like`, the start, where there is none of this run."""
        arrays = None if self.path is None else read(self.path, self.fingerprint)
        if arrays is None:
            return like
        return unpack(arrays, like[0]), list(arrays["losses"])

    def save(self, kept: Kept) -> None:
        """Called after every epoch; writes the state and the losses, if the last time is long enough ago."""
        if self.path is None or time.monotonic() - self._written < self.seconds:
            return
        state, losses = kept
        write(self.path, self.fingerprint, {"losses": np.stack(losses), **pack(state)})
        self._written = time.monotonic()


def keeper_in(folder: str | Path | None, fingerprint: Callable[[], str | None]) -> Keeper:
    """Return the keeper of a folder, one that keeps nothing where there is no folder or the run has no fingerprint."""
    if folder is None:
        return Keeper()
    place, mark = check_path("checkpoint", folder), fingerprint()
    return Keeper() if mark is None else Keeper(place, mark)
