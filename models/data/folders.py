"""The folders that are searched for data files: a folder given, `$ONEBASIN_DATA`, then the user's cache.

Nothing is downloaded. The environment is read at the call, never at import.
"""

import os
from pathlib import Path

import platformdirs

from onebasin.base.errors import OnebasinError

VARIABLE = "ONEBASIN_DATA"


class MissingDataError(OnebasinError, RuntimeError):
    """A data file is not there; the message says where it was looked for."""


class CorruptDataError(OnebasinError, RuntimeError):
    """A data file is there but cannot be what it should be; the message says why."""


def find(subfolder: str, names: tuple[str, ...], *, folder: Path | None = None) -> list[Path]:
    """Find the files of one data set, all in the same folder, or raise `MissingDataError`.

    They are looked for in `folder` and nowhere else, or else in the sub-folder of `$ONEBASIN_DATA` and of the cache.
    """
    chosen = os.environ.get(VARIABLE)
    bases = [Path(chosen).expanduser()] if chosen else []
    bases.append(Path(platformdirs.user_cache_dir("onebasin")) / "data")
    places = [folder] if folder else [base / subfolder for base in bases]
    for place in places:
        paths = [place / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    looked = ", ".join(str(place) for place in places)
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    raise MissingDataError(
        f"{listed} not found in {looked}: put {'it' if len(names) == 1 else 'them'} in "
        f"the folder {subfolder}/ of a directory and set the environment variable {VARIABLE} to "
        "that directory, or give `folder`"
    )
