"""Folders that look like CmdStan, and what is in a cache."""

from pathlib import Path


def make_cmdstan(path: Path, version: str = "2.36.0") -> Path:
    path.mkdir(parents=True)
    (path / "makefile").write_text(f"# a makefile\nCMDSTAN_VERSION := {version}\n")
    return path


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())
