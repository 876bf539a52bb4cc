"""Every locked package has a wheel on each platform, and the interpreter is one of the versions that were compared."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from onebasin.stan.interpreter.runtime import BEYOND, FIRST

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "benchmarks" / "interpreter" / "record"
MACOS = [f"macosx_{major}_0" for major in (15, 14, 13, 12, 11)]
LINUX = [f"manylinux_2_{minor}" for minor in (34, 31, 28, 27, 24, 17, 12, 5)]
PLATFORMS = {
    ("linux", "x86_64"): [f"{name}_x86_64" for name in (*LINUX, "manylinux2014")],
    ("linux", "aarch64"): [f"{name}_aarch64" for name in (*LINUX, "manylinux2014")],
    ("darwin", "arm64"): [f"{name}_{kind}" for name in MACOS for kind in ("arm64", "universal2")],
    ("darwin", "x86_64"): [
        f"{name}_{kind}"
        for name in (*MACOS, "macosx_10_15", "macosx_10_13", "macosx_10_12", "macosx_10_9")
        for kind in ("x86_64", "universal2")
    ],
    ("win32", "AMD64"): ["win_amd64"],
}
"""Tags of wheels by `sys_platform` and `platform_machine`."""
WITHOUT = {("darwin", "x86_64"): {"jaxlib"}}
"""Packages without a wheel on a platform: JAX has left Macs with Intel processors."""


def interpreter() -> Requirement:
    """Return what pyproject.toml asks for."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (found,) = (r for r in map(Requirement, lines) if r.name == "stanli")
    return found


def test_installed_interpreter_is_one_that_pyproject_allows():
    assert interpreter().specifier.contains(metadata.version("stanli"))


def test_runtime_allows_the_versions_of_pyproject():
    first, beyond = (".".join(map(str, numbers)) for numbers in (FIRST, BEYOND))
    assert interpreter().specifier == SpecifierSet(f">={first},<{beyond}")


def test_installed_interpreter_has_a_record_of_its_comparison():
    if not RECORDS.is_dir():
        return  # no comparison has been recorded
    version = Version(metadata.version("stanli"))
    names = [path.name for path in RECORDS.rglob("*")]
    assert any(str(version) in name for name in names), f"no record of stanli {version}: {names}"


def pins(system: str, machine: str) -> list[str]:
    """Return the pins of the base lock that hold on a platform."""
    where = {
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
        "os_name": "nt" if system == "win32" else "posix",
        "python_version": "3.12",
        "python_full_version": "3.12.0",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    lines = (ROOT / "requirements.lock").read_text().replace("\\\n", "").splitlines()
    held = [Requirement(line.split(" --hash=")[0]) for line in lines if not line.startswith("#")]
    return [
        f"{each.name}{each.specifier}"
        for each in held
        if (each.marker is None or each.marker.evaluate(where))
        and each.name not in WITHOUT.get((system, machine), set())
    ]


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    """Run pip to its end."""
    command = [sys.executable, "-m", "pip", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def index() -> None:
    """Skip where pip reaches no package index."""
    asked = ("install", "--dry-run", "--ignore-installed", "--no-deps", "--retries=0", "stanio")
    done = pip(*asked)
    if done.returncode:
        pytest.skip("pip reaches no package index")


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS, ids="-".join)
def test_every_locked_package_has_a_wheel(index, tmp_path, platform):
    tags = [f"--platform={tag}" for tag in PLATFORMS[platform]]
    how = ("--only-binary=:all:", "--no-deps", "--python-version=3.12", "--implementation=cp")
    done = pip(
        "install", "--quiet", "--dry-run", f"--target={tmp_path}", *how, *tags, *pins(*platform)
    )
    assert done.returncode == 0, done.stderr
