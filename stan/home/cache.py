"""The cache of the homes that :mod:`.assemble` makes: their names, what is there, removal.

A home's folder is named after all that it was made from (Stan, wheel, compiler, sources, flags). A
change of any of these gives another folder; the old one is left alone until it is removed.
"""

import hashlib
import os
import platform
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from onebasin.base.files.cache import user_cache

from .directory import MARKER, read_marker
from .errors import HomeBuildError
from .toolchain import Toolchain, Wheel, find_toolchain, find_wheel

PART = "cmdstan"
"""The folder of the user's cache in which they are."""

_OURS = re.compile(r"cmdstan-.+-httpstan-.+-[0-9a-f]{10}")
"""Names that `folder_name` gives; whatever else lies in the cache is somebody else's."""


@dataclass(frozen=True)
class AssembledHome:
    """One home in the cache."""

    path: Path
    stan: str
    httpstan: str
    compiler: str  # With its kind, as ``gcc 12.2.0``.
    flag_sets: tuple[str, ...]  # Those that have a driver, as ``default`` or ``threads``.
    size: int  # Bytes on disk; files shared with the wheel by a hard link count in full.
    current: bool  # It belongs to the present compiler and wheel, so that it would be used now.


def default_cache() -> Path:
    """Return the folder of assembled homes: ``cmdstan`` in the user's cache for onebasin."""
    return user_cache(PART)


def assembled_path() -> Path | None:
    """Return the path of the home for this machine's compiler and wheel, existing or not; None where one is missing."""
    try:
        name = folder_name(find_toolchain(), find_wheel())
    except HomeBuildError:
        return None
    return default_cache() / name


def folder_name(toolchain: Toolchain, wheel: Wheel) -> str:
    """Name a home after the versions of what it is made from, and a hash of them and its sources."""
    digest = hashlib.sha256()
    for part in (*map(str, vars(toolchain).values()), wheel.version, platform.machine()):
        digest.update(part.encode() + b"\0")
    for path in sorted(sources().rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(sources()).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return (
        f"cmdstan-{wheel.stan_version}-httpstan-{wheel.version}"
        f"-{toolchain.kind}-{toolchain.version}-{digest.hexdigest()[:10]}"
    )


def sources() -> Path:
    """Return the folder of what is ours in a home: the makefile, the driver, the example."""
    return Path(__file__).parents[1] / "cmdstan"


def is_complete(path: Path) -> bool:
    """Tell whether a folder is a home whose build came to its end."""
    return os.path.isfile(path / MARKER)  # unlike Path.is_file, false where it may not look


def assembled_homes() -> list[AssembledHome]:
    """List the homes in the cache whose build was completed, in the order of their names."""
    current = assembled_path()
    homes = []
    for path in sorted(default_cache().glob("cmdstan-*")):
        facts = read_marker(path) if is_complete(path) else None
        if not facts or not {"toolchain", "stan", "httpstan"} <= facts.keys():  # it is damaged
            continue
        builds = sorted((path / "build").iterdir()) if (path / "build").is_dir() else []
        tools = facts["toolchain"]
        home = AssembledHome(
            path=path,
            stan=facts["stan"],
            httpstan=facts["httpstan"],
            compiler=f"{tools['kind']} {tools['version']}",
            flag_sets=tuple(folder.name for folder in builds if (folder / "engines.o").exists()),
            size=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            current=path == current,
        )
        homes.append(home)
    return homes


def remove(*, keep_current: bool = False) -> list[Path]:
    """Delete assembled homes with their logs, and what killed builds left; return the folders that are gone.

    Programs that were compiled with a home stop working, since they load a library from there. A home that somebody is
    building at this moment is left alone; `keep_current` spares the one of the present compiler and wheel.
    """
    from filelock import FileLock, Timeout

    root = default_cache()
    spared = assembled_path() if keep_current else None
    names = {entry.name.lstrip(".").removesuffix(".lock") for entry in root.glob("*.lock")}
    names |= {entry.name for entry in root.glob("cmdstan-*") if entry.is_dir()}
    removed: list[Path] = []
    for name in sorted(filter(_OURS.fullmatch, names)):
        if root / name == spared:
            continue
        # The lock stays: somebody may have opened it to wait, and would then hold a file that is no more.
        with suppress(Timeout), FileLock(root / f"{name}.lock", timeout=0):
            folders = [root / name, *sorted(root.glob(f".{name}.*"))]
            gone = [folder for folder in folders if folder.is_dir() and not folder.is_symlink()]
            for folder in gone:
                shutil.rmtree(folder)
            (root / f"{name}.log").unlink(missing_ok=True)
            removed += gone
    return removed
