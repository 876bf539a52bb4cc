"""Build the binaries of `calls.c` for all platforms: `python -m onebasin.stan.native.build`.

The compiler is that of the package `ziglang`, which cross-compiles. Equal sources give equal bytes. `built/record.json`
says what the binaries were built from, so that a test finds those that are out of date.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from onebasin.base.files.writing import working_folder

from .library import BUILT, FLAGS, RECORD, SOURCE, headers

TARGETS = {
    "linux-x86_64.so": "x86_64-linux-gnu.2.17",
    "linux-aarch64.so": "aarch64-linux-gnu.2.17",
    "macos-arm64.dylib": "aarch64-macos.11.0",
    "macos-x86_64.dylib": "x86_64-macos.11.0",
    "windows-x86_64.dll": "x86_64-windows-gnu",
}
"""Binary to the target that it is compiled for, with the oldest C library or system that it runs on."""
_OWN = {
    "linux": ("-Wl,-soname,calls.so",),
    "macos": ("-Wl,-install_name,@rpath/calls.dylib",),
    "windows": (),
}
"""Flags of a system. Without a name, a library is named after the place where it was built."""


def build() -> None:
    """Build all binaries and write their record."""
    BUILT.mkdir(exist_ok=True)
    binaries = {}
    with working_folder("zig") as folder:
        for name, target in TARGETS.items():
            flags = ("-target", target, *FLAGS, "-s", *_OWN[name.partition("-")[0]])
            made = folder / name
            words = (*flags, "-I", str(headers()), SOURCE.name, "-o", str(made))
            _zig("cc", *words, cache=folder)
            (BUILT / name).write_bytes(made.read_bytes())
            binaries[name] = {"target": target, "sha256": _digest(BUILT / name)}
    record = {
        "source": _digest(SOURCE),
        "zig": _zig("version").strip(),
        "jaxlib": version("jaxlib"),
        "flags": [*FLAGS, "-s"],
        "binaries": binaries,
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _zig(*words: str, cache: Path | None = None) -> str:
    caches = {f"ZIG_{part}_CACHE_DIR": str(cache) for part in ("GLOBAL", "LOCAL") if cache}
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *words],
        cwd=SOURCE.parent,
        env=os.environ | caches,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"zig {' '.join(words)}\n{done.stderr}")
    return done.stdout


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    build()
