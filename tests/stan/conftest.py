"""A CmdStan home and a few small programs, made once per session."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import cmdstanpy
import pytest

from onebasin.stan.compile import compile_program
from onebasin.stan.home.assemble import Home, activate, find_cmdstan

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def cmdstan_home() -> Iterator[Home]:
    """Return the CmdStan of the machine; assemble it if there is none."""
    found = find_cmdstan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMDSTAN", str(found.path))  # Restored at the end; `activate` sets it too.
        activate(found)
        yield found


@pytest.fixture(scope="session")
def own_home(cmdstan_home: Home) -> Home:
    """Return a home that onebasin assembled, for features that only such a home has."""
    if cmdstan_home.origin != "assembled":
        pytest.skip("another CmdStan is in use")
    return cmdstan_home


@pytest.fixture(scope="session")
def compiled(
    cmdstan_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., cmdstanpy.CmdStanModel]:
    """Return a function that compiles a program of `programs/` on first use, with make variables as keywords.

    Without make variables, it copies the program from the user's cache, so a machine compiles it only once.
    """
    models: dict[tuple, cmdstanpy.CmdStanModel] = {}

    def get(name: str, **cpp_options) -> cmdstanpy.CmdStanModel:
        key = (name, *sorted(cpp_options.items()))
        if key not in models:
            source, folder = PROGRAMS / f"{name}.stan", tmp_path_factory.mktemp(name)
            shutil.copy(source, folder)
            if not cpp_options:
                cached, _ = compile_program(source)
                shutil.copy(str(cached.exe_file), folder / name)
            models[key] = cmdstanpy.CmdStanModel(
                stan_file=folder / source.name, cpp_options=cpp_options
            )
        return models[key]

    return get


@pytest.fixture(autouse=True)
def work_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a temporary folder, where CmdStan writes `profile.csv`, and without the variables of an outer `make`."""
    monkeypatch.chdir(tmp_path)
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Silence the log messages of cmdstanpy."""
    caplog.set_level(logging.ERROR, logger="cmdstanpy")


@pytest.fixture(scope="session")
def bernoulli(compiled) -> cmdstanpy.CmdStanModel:
    """Return the program of a success probability with a conjugate prior."""
    return compiled("bernoulli")


@pytest.fixture(scope="session")
def gauss(compiled) -> cmdstanpy.CmdStanModel:
    """Return the program of a multivariate Gaussian."""
    return compiled("gauss")
