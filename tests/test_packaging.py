"""pyproject.toml, the locks and environment.yml say the same."""

import ast
import functools
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from onebasin.stan.interpreter.runtime import BEYOND, FIRST

ROOT = Path(__file__).parents[1]
ROOMS = ("base", "models", "posteriors", "stan", "analysis", "inference", "truth", "studies", "cli")

# conda-forge's name where it is not the package index's. CmdStan is a package of its own there.
CONDA_NAMES = {
    "httpstan": "cmdstan",
    "matplotlib": "matplotlib-base",
    "playwright": "playwright-python",
}
# Bounds that differ: httpstan and cmdstan number their releases differently.
CONDA_BOUNDS = {"cmdstan": SpecifierSet(">=2.36")}
# What only conda has to be told: the interpreter, and the tool that installs the project itself.
CONDA_ONLY = {"python", "pip"}

# What the second lock and environment.yml bring besides what runs; `cuda` is for machines that have it.
EXTRAS = ("cluster", "cmdstan", "data", "mclmc", "notebook", "zarr", "docs", "dev")
LOCKS = ("requirements.lock", "requirements-dev.lock")


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def required(project) -> dict[str, Requirement]:
    """Requirements to run, and of every extra that the locks hold, by name."""
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    requirements = [Requirement(line) for line in lines]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names))
    return dict(zip(names, requirements, strict=True))


providers = functools.cache(importlib.metadata.packages_distributions)


def locked_in(name: str) -> dict[str, Requirement]:
    """Requirements of a lock, without their hashes."""
    lines = (ROOT / name).read_text().replace("\\\n", "").splitlines()
    pins = (line.split(" --hash=")[0] for line in lines if not line.startswith("#"))
    requirements = [Requirement(pin) for pin in pins]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names))
    return dict(zip(names, requirements, strict=True))


@pytest.fixture(scope="module")
def locked() -> dict[str, Requirement]:
    """What the two locks pin together: those of `LOCKS` are installed at once."""
    run, dev = (locked_in(name) for name in LOCKS)
    for name in run.keys() & dev.keys():
        assert run[name].specifier == dev[name].specifier, name
    return dev | run


def locked_version(requirement: Requirement) -> Version:
    (pin,) = requirement.specifier
    assert pin.operator == "=="
    assert "*" not in pin.version
    return Version(pin.version)


def test_environment_names_the_packages_of_pyproject_with_equal_bounds(project, required):
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = {}
    *entries, by_pip = environment["dependencies"]
    assert set(by_pip) == {"pip"}
    for entry in (*entries, *by_pip["pip"]):
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


def test_lock_of_what_runs_holds_no_tool_and_no_data_set(project):
    locked = locked_in("requirements.lock")
    for line in project["dependencies"]:
        assert canonicalize_name(Requirement(line).name) in locked
    extras = project["optional-dependencies"]
    # setuptools builds the project itself; the others run beneath what runs (xarray and rich ask for them).
    brought = {"setuptools", "packaging", "markdown-it-py"}
    unwanted = {Requirement(line).name for name in EXTRAS for line in extras[name]} - brought
    assert unwanted & locked.keys() == set()


@pytest.mark.parametrize("name", LOCKS)
def test_lock_pins_exact_versions_with_hashes_and_names_no_place(name):
    for requirement in locked_in(name).values():
        locked_version(requirement)
        assert requirement.url is None
    text = (ROOT / name).read_text()
    assert not re.search(r"://|\bfile:|@|(^|\s)[./~]*/", text, flags=re.MULTILINE)
    for entry in re.findall(r"^[a-z](?:.*\\\n)*.*", text, flags=re.MULTILINE):
        pin, *hashes = entry.split(" \\\n    ")
        assert hashes, pin
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", text) for text in hashes), pin


def test_imported_packages_are_declared(project):
    """What a room imports itself is asked for by name, not brought by something else."""
    extras = project["optional-dependencies"]
    # What runs in a notebook alone may import what notebooks have, an engine its package, the cluster Dask's.
    optional = ("cluster", "data", "mclmc", "notebook", "nutpie", "parquet", "pymc", "zarr")
    lines = project["dependencies"] + [line for name in optional for line in extras[name]]
    declared = {Requirement(line).name for line in lines}
    provided = providers()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module]
            for top in {module.split(".")[0] for module in modules}:
                if top not in sys.stdlib_module_names and top != "onebasin":
                    assert declared & set(map(canonicalize_name, provided.get(top, [top]))), (
                        f"{path} imports {top}"
                    )


def test_version_is_written_once(project):
    version = project["version"]
    assert importlib.metadata.version("onebasin") == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version


def test_nothing_needs_docstrings_to_run():
    script = (
        "import sys, onebasin as ob\n"
        "assert ob.nuts.__doc__ is None and all(hasattr(ob, name) for name in ob.__all__)\n"
        "from onebasin.cli.main import main\n"
        "sys.exit(main(['sample', '--help']))"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_installed_interpreter_is_one_that_was_compared_with_cmdstan(project):
    (asked,) = (r for r in map(Requirement, project["dependencies"]) if r.name == "stanli")
    first, beyond = (".".join(map(str, numbers)) for numbers in (FIRST, BEYOND))
    assert asked.specifier == SpecifierSet(f">={first},<{beyond}")
    version = importlib.metadata.version("stanli")
    assert asked.specifier.contains(version)
    records = (ROOT / "benchmarks" / "interpreter" / "record").rglob("*")
    assert any(version in path.name for path in records), f"no record of stanli {version}"
