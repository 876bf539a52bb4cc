"""The folder in which a run keeps what it has on its way: looked at before, emptied of what is ours after.

Ours are files of the names below that hold our mark or nothing that anybody could read; whatever else lies there, and
then the folder, stays.
"""

from __future__ import annotations

import re
import zipfile
from contextlib import suppress
from pathlib import Path

from onebasin.models.storage.leftovers import sweep

from .errors import InferenceError

MARK = "fingerprint"
"""The array that says which run a file is of."""

_NAME = re.compile(r"(chain-\d+|state)\.npz")


def chain_file(folder: Path, number: int) -> Path:
    """Where a finished chain is kept."""
    return folder / f"chain-{number}.npz"


def state_file(folder: Path) -> Path:
    """Where the state of training is kept."""
    return folder / "state.npz"


def check_folder(folder: Path) -> None:
    """Refuse a folder in which nothing can be kept, before anything is sampled.

    Raises
    ------
    InferenceError
        If it is no folder, or a file of somebody else has one of our names.
    """
    if folder.exists() and not folder.is_dir():
        raise InferenceError(
            f"{folder}, where finished chains are to be kept, is no folder; move it away."
        )
    for path in folder.glob("*.npz"):
        if _NAME.fullmatch(path.name) and not _is_ours(path):
            raise InferenceError(
                f"{path} would be replaced by a finished chain, but no run has written it; move it away."
            )


def remove(folder: Path) -> list[str]:
    """Delete what runs have kept in a folder, and the folder if nothing else is in it.

    Returns
    -------
    list of str
        Names of what stays there.
    """
    if not folder.is_dir():
        return []
    sweep(folder)
    for path in folder.iterdir():
        if _NAME.fullmatch(path.name) and _is_ours(path):
            path.unlink(missing_ok=True)
    stays = sorted(path.name for path in folder.iterdir())
    if not stays:
        with suppress(OSError):  # a link to a folder stays
            folder.rmdir()
    return stays


def count_chains(folder: Path) -> int:
    """How many finished chains are kept in a folder."""
    return len(list(folder.glob("chain-*.npz")))


def _is_ours(path: Path) -> bool:
    """Whether a file of our name has our mark, or is damaged: an archive of other arrays is somebody else's."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{MARK}.npy" in archive.namelist()
    except zipfile.BadZipFile:
        return True
