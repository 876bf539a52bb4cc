"""A CmdStan home and a few tiny programs, made once for the whole session."""

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
    """The machine's CmdStan, assembled if there is none."""
    found = find_cmdstan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMDSTAN", str(found.path))  # restored at the end; `activate` sets it too
        activate(found)
        yield found


@pytest.fixture(scope="session")
def own_home(cmdstan_home: Home) -> Home:
    """A home of ours, for what is ours alone."""
    if cmdstan_home.origin != "assembled":
        pytest.skip("another CmdStan is in use")
    return cmdstan_home


@pytest.fixture(scope="session")
def compiled(
    cmdstan_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., cmdstanpy.CmdStanModel]:
    """Compile a program of `programs/` on first use; keyword arguments are make variables.

    Without such, a copy of what the user's cache holds of it: compiled once a machine.
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
    """CmdStan drops `profile.csv` where it runs; and a `make` around the tests must not speak to those inside."""
    monkeypatch.chdir(tmp_path)
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Without cmdstanpy's running commentary."""
    caplog.set_level(logging.ERROR, logger="cmdstanpy")


@pytest.fixture(scope="session")
def bernoulli(compiled) -> cmdstanpy.CmdStanModel:
    """A success probability with a conjugate prior."""
    return compiled("bernoulli")


@pytest.fixture(scope="session")
def gauss(compiled) -> cmdstanpy.CmdStanModel:
    """A multivariate Gaussian."""
    return compiled("gauss")
