"""pyproject.toml, the lock, environment.yml and a built wheel say the same."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
ROOMS = ("models", "stan", "inference", "analysis", "studies")

# conda-forge's name where it is not the package index's. CmdStan is a package of its own there.
CONDA_NAMES = {"httpstan": "cmdstan", "matplotlib": "matplotlib-base"}
# Bounds that differ: httpstan and cmdstan number their releases differently.
CONDA_BOUNDS = {"cmdstan": SpecifierSet(">=2.36")}
# What only conda has to be told: the interpreter, and the tool that installs the project itself.
CONDA_ONLY = {"python", "pip"}


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def required(project) -> dict[str, Requirement]:
    """Requirements to run and to develop, by name."""
    lines = project["dependencies"] + project["optional-dependencies"]["dev"]
    requirements = [Requirement(line) for line in lines]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names))
    return dict(zip(names, requirements, strict=True))


@pytest.fixture(scope="module")
def locked() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names))
    return dict(zip(names, requirements, strict=True))


def locked_version(requirement: Requirement) -> Version:
    (pin,) = requirement.specifier
    assert pin.operator == "=="
    assert "*" not in pin.version
    return Version(pin.version)


def test_environment_names_the_packages_of_pyproject_with_equal_bounds(project, required):
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = {}
    for entry in environment["dependencies"]:
        requirement = Requirement(entry)
        conda[requirement.name] = requirement.specifier
    expected = {
        CONDA_NAMES.get(name, name): requirement.specifier for name, requirement in required.items()
    }
    expected |= CONDA_BOUNDS
    assert conda["python"] == SpecifierSet(project["requires-python"])
    assert {name: conda[name] for name in conda if name not in CONDA_ONLY} == expected
    assert environment["name"] == "onebasin"
    assert environment["channels"] == ["conda-forge", "nodefaults"]


def test_lock_satisfies_every_bound(required, locked):
    for name, requirement in required.items():
        assert name in locked, f"{name} is not in the lock: run `make lock`"
        version = locked_version(locked[name])
        assert requirement.specifier.contains(version, prereleases=True), name


def test_lock_pins_exact_versions_and_names_no_place(locked):
    for requirement in locked.values():
        locked_version(requirement)
        assert requirement.url is None
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|\bfile:|^\s*-|@|(^|\s)[./~]*/", text, flags=re.MULTILINE)


@pytest.mark.parametrize("python", ["3.12", "3.13", "3.14"])
@pytest.mark.parametrize(("system", "machine"), [("linux", "x86_64"), ("darwin", "arm64")])
def test_lock_holds_the_dependencies_on_every_supported_machine(
    locked, required, python, system, machine
):
    where = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
    }
    for name in required:
        marker = locked[name].marker
        assert marker is None or marker.evaluate(where), name


def test_python_versions_agree(project):
    assert (ROOT / ".python-version").read_text().strip() == "3.12"
    assert project["requires-python"] == ">=3.12"
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["ruff"]["target-version"] == "py312"
    assert tools["mypy"]["python_version"] == "3.12"
    assert re.search(r"^MIN_PYTHON := 3\.12$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_version_is_written_once(project):
    version = project["version"]
    assert importlib.metadata.version("onebasin") == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            assert "__version__ =" not in path.read_text(encoding="utf-8"), path


def test_licence_is_apache_2(project):
    assert project["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text.splitlines()[1]
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.fixture(scope="module")
def sources() -> list[str]:
    """The files of the rooms that git knows or would take: build products beside them are not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOMS]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip("not a git checkout: the files of the source cannot be told from products")
    return [name for name in result.stdout.splitlines() if (ROOT / name).exists()]


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory) -> zipfile.ZipFile:
    """The wheel that the build backend makes of a copy of the source, without a network."""
    source = tmp_path_factory.mktemp("source")
    for name in [*sources, "pyproject.toml", "LICENSE", "README.md"]:
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    out = tmp_path_factory.mktemp("wheel")
    script = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=source, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.mark.parametrize("room", ROOMS)
def test_wheel_holds_every_file_of_the_rooms(wheel, sources, room):
    expected = {name for name in sources if name.startswith(f"{room}/")}
    assert f"{room}/__init__.py" in expected
    assert expected - set(wheel.namelist()) == set()


def test_wheel_declares_the_console_script_and_the_licence(wheel):
    names = wheel.namelist()
    (scripts,) = [name for name in names if name.endswith("entry_points.txt")]
    assert "onebasin = studies.cli:main" in wheel.read(scripts).decode()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests/") for name in names)
