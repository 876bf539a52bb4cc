"""Putting a CmdStan home together from the httpstan wheel.

The wheel ships Stan's C++ headers, the libraries they need and ``stanc``. To these come a makefile
and a command-line driver of our own (``stan/cmdstan``). The result lives in the user's cache and
holds everything it needs: the wheel's files are hard-linked into it (copied where the cache is on
another file system), so that it outlives the environment the wheel was installed in.

A home's folder is named after all that it was made from (Stan, wheel, compiler, sources, flags). A
change of any of these gives another folder; the old one is left alone.
"""

import errno
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
from importlib import resources
from pathlib import Path

from .errors import HomeBuildError
from .home import MARKER, Home, Progress, read_home
from .toolchain import Toolchain, Wheel, find_toolchain, find_wheel

_FREE_BYTES = 1_500_000_000
_BYTES_PER_JOB = 2_500_000_000


def assemble(
    *,
    cache_dir: Path | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Home:
    """Build a CmdStan home in the cache, or return the one that is there.

    Parameters
    ----------
    cache_dir
        Where homes are kept; by default ``cmdstan`` in the user's cache for onebasin.
    jobs
        Compilers at once; by default as many as cores and memory allow.
    force
        Build again even if the home is there.
    progress
        Called with the name of each stage.

    Raises
    ------
    HomeBuildError
        A tool is missing, the cache cannot be written, or a compilation failed.
    """
    report = progress or (lambda stage: None)
    toolchain, wheel = find_toolchain(), find_wheel()
    root = cache_dir or default_cache()
    target = root / _folder_name(toolchain, wheel)
    try:
        return _assemble_locked(target, toolchain, wheel, jobs, force, report)
    except OSError as error:
        raise HomeBuildError(_os_error_advice(root, error)) from error


def assembled_path(cache_dir: Path | None = None) -> Path | None:
    """Where the home for this machine's compiler and wheel is, or would be.

    Returns
    -------
    Path or None
        ``None`` where the compiler or the wheel is missing.
    """
    try:
        name = _folder_name(find_toolchain(), find_wheel())
    except HomeBuildError:
        return None
    return (cache_dir or default_cache()) / name


def remove(cache_dir: Path | None = None) -> list[Path]:
    """Delete every assembled home, and say which.

    Programs that were compiled with them stop working, since they load a library from there.
    """
    root = cache_dir or default_cache()
    removed = [path for path in sorted(root.glob("cmdstan-*")) if path.is_dir()]
    for path in removed:
        shutil.rmtree(path)
    return removed


def default_cache() -> Path:
    """Return the folder of assembled homes: ``cmdstan`` in the user's cache for onebasin."""
    import platformdirs

    return platformdirs.user_cache_path("onebasin") / "cmdstan"


def is_complete(path: Path) -> bool:
    """Whether a folder is a home whose build came to its end."""
    return os.path.isfile(path / MARKER)  # unlike Path.is_file, false where it may not look


def _sources() -> Path:
    return Path(str(resources.files(__package__))) / "cmdstan"


def _folder_name(toolchain: Toolchain, wheel: Wheel) -> str:
    digest = hashlib.sha256()
    for part in (*map(str, vars(toolchain).values()), wheel.version, platform.machine()):
        digest.update(part.encode() + b"\0")
    for path in sorted(_sources().rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(_sources()).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return (
        f"cmdstan-{wheel.stan_version}-httpstan-{wheel.version}"
        f"-{toolchain.kind}-{toolchain.version}-{digest.hexdigest()[:10]}"
    )


def _assemble_locked(
    target: Path,
    toolchain: Toolchain,
    wheel: Wheel,
    jobs: int | None,
    force: bool,
    report: Progress,
) -> Home:
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    report("waiting for the cache")
    with FileLock(target.with_name(f"{target.name}.lock")):
        if is_complete(target) and not force:
            return read_home(target, "assembled")
        # Whoever holds the lock owns every unfinished folder of this name: its builder was killed.
        for leftover in target.parent.glob(f".{target.name}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            _build(partial, target, toolchain, wheel, jobs or _default_jobs(), report)
            if target.exists():
                shutil.rmtree(target)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    report("done")
    return read_home(target, "assembled")


def _build(
    partial: Path, target: Path, toolchain: Toolchain, wheel: Wheel, jobs: int, report: Progress
) -> None:
    if shutil.disk_usage(target.parent).free < _FREE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
    report("linking Stan's headers")
    for name in ("include", "lib"):
        shutil.copytree(
            wheel.folder / name,
            partial / name,
            copy_function=_link_or_copy,
            ignore=shutil.ignore_patterns("pybind11"),
        )
    (partial / "bin").mkdir()
    shutil.copy2(wheel.folder / "stanc", partial / "bin" / "stanc")
    (partial / "bin" / "stanc").chmod(0o755)
    shutil.copytree(_sources(), partial, dirs_exist_ok=True)
    _fill_in(partial / "makefile", toolchain, wheel, jobs)
    log = target.with_name(f"{target.name}.log")
    _run_make([toolchain.make, f"-j{jobs}", "build"], partial, log, report)
    facts = {"toolchain": vars(toolchain), "httpstan": wheel.version, "stan": wheel.stan_version}
    (partial / MARKER).write_text(json.dumps(facts, indent=2) + "\n")


def _link_or_copy(source: str | Path, destination: str | Path) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, destination)


def _fill_in(makefile: Path, toolchain: Toolchain, wheel: Wheel, jobs: int) -> None:
    text = makefile.read_text()
    for word, value in {
        "@VERSION@": wheel.stan_version,
        "@CXX@": toolchain.compiler,
        "@COMPILER_KIND@": toolchain.kind,
        "@JOBS@": str(jobs),
    }.items():
        text = text.replace(word, value)
    makefile.write_text(text)


def _run_make(command: list[str], folder: Path, log: Path, report: Progress) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        # An outer make's job server and options are not ours.
        if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    console: list[str] = []
    with (
        log.open("w") as log_file,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                console.append(line)
                log_file.write(line)
                if line.startswith(("compiling the driver", "precompiling")):
                    report(line.strip())
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    if process.returncode != 0:
        raise HomeBuildError(
            "The CmdStan home could not be compiled; the compiler said:",
            console="".join(console),
            log=log,
        )


def _default_jobs() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = _BYTES_PER_JOB
    return max(1, min(cores or 1, memory // _BYTES_PER_JOB))


def _os_error_advice(root: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk of `{root}` is full: a CmdStan home takes 1.2 GB. Make room, or set "
            "XDG_CACHE_HOME to a folder on another disk."
        )
    return (
        f"The CmdStan home cannot be written under `{root}`: {error.strerror or error}. Set "
        "XDG_CACHE_HOME to a folder that can be written."
    )
