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

from onebasin.base.extras import EXTRAS as EXTRAS_BY_PACKAGE

from .each import each

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


def test_every_user_installs_only_what_is_listed_here(project):
    """900 MB are the limit of `pip install onebasin`: a new dependency needs a reason, or an extra."""
    listed = """
        arviz arviz-base arviz-plots arviz-stats cloudpickle cmdstanpy filelock h5netcdf h5py jax jaxtyping jinja2
        lazy-loader markupsafe matplotlib numpy numpyro optax pandas pillow platformdirs pydantic rich scipy stanio
        stanli threadpoolctl typer xarray
    """
    assert [Requirement(line).name for line in project["dependencies"]] == listed.split()


providers = functools.cache(importlib.metadata.packages_distributions)


@each("extra", EXTRAS_BY_PACKAGE)
def test_an_extra_brings_the_package_by_which_it_is_known(project, extra):
    names = {Requirement(line).name for line in project["optional-dependencies"][extra]}
    provided = providers()  # looks through all that is installed, for seconds
    package = EXTRAS_BY_PACKAGE[extra]
    assert names & set(map(canonicalize_name, provided.get(package, [package])))


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
    unwanted = {Requirement(line).name for name in EXTRAS for line in extras[name]} - {
        "setuptools",
        "packaging",
        "markdown-it-py",
    }
    assert unwanted & locked.keys() == set()


@each("name", LOCKS)
def test_lock_pins_exact_versions_with_hashes_and_names_no_place(name):
    for requirement in locked_in(name).values():
        locked_version(requirement)
        assert requirement.url is None
    text = (ROOT / name).read_text()
    assert not re.search(r"://|\bfile:|@|(^|\s)[./~]*/", text, flags=re.MULTILINE)
    for entry in re.findall(r"^[a-z](?:.*\\\n)*.*", text, flags=re.MULTILINE):
        pin, *hashes = entry.split(" \\\n    ")
        assert hashes, pin
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), pin


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


@each("python", ["3.12", "3.13", "3.14"])
@each(
    ("system", "machine"),
    [
        ("linux", "x86_64"),
        ("linux", "aarch64"),
        ("darwin", "arm64"),
        ("darwin", "x86_64"),
        ("win32", "AMD64"),
    ],
)
def test_lock_holds_the_dependencies_on_every_supported_machine(
    locked, required, python, system, machine
):
    where = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system],
    }
    for name, requirement in required.items():
        if requirement.marker is None or requirement.marker.evaluate(where):
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


def test_citation_and_changelog_are_of_this_version(project):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    titles = " ".join(reference["title"] for reference in citation["references"])
    assert all(
        word in titles for word in ("Identifiability", "Symmetries", "Compact", "Permutation")
    )
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(name for name in headings if name != "Unreleased") == project["version"]


def test_nothing_needs_docstrings_to_run():
    script = (
        "import sys, onebasin as ob\n"
        "assert ob.nuts.__doc__ is None and all(hasattr(ob, name) for name in ob.__all__)\n"
        "from onebasin.cli.main import main\n"
        "sys.exit(main(['sample', '--help']))"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
