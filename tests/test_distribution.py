"""What is built and installed: one package, whole, that works away from its source and beside others' names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import platformdirs
import pytest

pytestmark = pytest.mark.full  # builds and installs

ROOT = Path(__file__).parents[1]
ROOMS = ("base", "models", "posteriors", "stan", "analysis", "inference", "truth", "studies", "cli")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
# What an earlier run has compiled, this one need not.
KEPT = {
    "JAX_COMPILATION_CACHE_DIR": str(platformdirs.user_cache_path("onebasin") / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
BUILT_FROM = ("onebasin", *ROOMS, "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md")


def _run(*command: str | Path, cwd: Path) -> str:
    """Run a command that knows nothing of this checkout, and return what it writes."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | KEPT
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _build(kind: str, source: Path, out: Path) -> Path:
    """Call the build backend in a source tree, without a network."""
    script = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
    _run(sys.executable, "-c", script, cwd=source)
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def sources() -> list[str]:
    """The files that git knows or would take: build products beside them are not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *BUILT_FROM]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip("not a git checkout: the files of the source cannot be told from products")
    return [name for name in result.stdout.splitlines() if os.path.lexists(ROOT / name)]


@pytest.fixture(scope="module")
def source(sources, tmp_path_factory) -> Path:
    """A copy of the source, links as links."""
    folder = tmp_path_factory.mktemp("source")
    for name in sources:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def packaged(sources) -> set[str]:
    """What the one package holds: its own files, and those of the rooms that are linked into it."""
    own = {name for name in sources if name.startswith("onebasin/") and not (ROOT / name).is_dir()}
    return own | {
        f"onebasin/{name}" for name in sources if name.startswith(tuple(f"{r}/" for r in ROOMS))
    }


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> Path:
    return _build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory) -> Path:
    return _build("sdist", source, tmp_path_factory.mktemp("sdist"))


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_wheel_holds_one_package_and_every_file_of_it(wheel, packaged):
    names = set(_contents(wheel))
    assert {name.split("/")[0] for name in names} == {"onebasin", f"onebasin-{VERSION}.dist-info"}
    assert {name for name in names if name.startswith("onebasin/")} == packaged
    assert {"onebasin/py.typed", "onebasin/__init__.pyi", "onebasin/stan/__init__.py"} <= packaged


def test_wheel_declares_the_console_script_and_the_licence(wheel):
    held = _contents(wheel)
    (scripts,) = [text for name, text in held.items() if name.endswith("entry_points.txt")]
    assert b"onebasin = onebasin.cli.main:main" in scripts
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_sdist_holds_real_files_under_the_links(sdist, packaged):
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    top = f"onebasin-{VERSION}/"
    names = {member.name.removeprefix(top) for member in members if member.isfile()}
    assert {name for name in names if name.startswith("onebasin/")} == packaged
    rest = {name for name in names - packaged if not name.startswith("onebasin.egg-info/")}
    project = {"PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert rest == project | {"LICENSE", "MANIFEST.in"}


def test_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "out").mkdir()
    rebuilt = _build("wheel", tmp_path / f"onebasin-{VERSION}", tmp_path / "out")
    assert _contents(rebuilt) == _contents(wheel)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """Programs of a fresh environment in which the wheel is installed, beside the locked packages."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    programs = home / "bin"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # A plain line adds a place to look in; the editable install of this checkout there is not followed.
    (site / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["install", "--quiet", "--no-compile", "--no-deps", "--no-index", wheel]
    _run(sys.executable, "-m", "pip", "--python", programs / "python", *install, cwd=home)
    return programs


@pytest.fixture
def crowded(tmp_path) -> Path:
    """A folder of a user who has PyStan, programs and a module under the names of the rooms."""
    for name in ("stan", "models", "inference", "studies"):
        (tmp_path / f"{name}.py").write_text(f"mine = {name!r}\n")
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "model.stan").write_text("parameters { real x; }")
    return tmp_path


SMOKE = """
import onebasin as ob
import stan, models, inference, studies
from pathlib import Path

assert [m.mine for m in (stan, models, inference, studies)] == ["stan", "models", "inference", "studies"]
assert "site-packages" in ob.__file__, ob.__file__
assert ob.__version__ == "@VERSION"
data = ob.networks.load_data("sinc", num_obs=8)
network = ob.networks.BayesianNetwork(ob.networks.Network(1, (2,), 1, "tanh"))
settings = ob.Nuts(chains=2, warmup=20, draws=20)
posterior = ob.infer(network.condition(data.x, data.y), engine="numpyro", method=settings, progress=False)
ob.save(posterior, "run.nc")
ob.report(ob.open_posterior("run.nc"), "report.html")

from onebasin.stan.network import program_path
program = program_path(network.condition(data.x, data.y))
assert program.is_file() and "site-packages" in str(program), program
assert (Path(ob.__file__).parent / "stan" / "cmdstan").is_dir()
"""


def test_installed_wheel_works_without_its_source_and_beside_others(installed, crowded):
    _run(installed / "python", "-c", SMOKE.replace("@VERSION", VERSION), cwd=crowded)
    assert "<table" in (crowded / "report.html").read_text()
    assert '"rhat"' in _run(installed / "onebasin", "diagnose", "run.nc", "--json", cwd=crowded)
