"""What is said where a program needs CmdStan and there is none."""

import platform
import re
import sys

import pytest

import onebasin as ob
from onebasin.base.errors import CmdStanNotFound, HomeBuildError
from onebasin.stan.choice import choose
from onebasin.stan.compile import compile_program
from onebasin.stan.home.assemble import how_to_install

TUPLE = "parameters { tuple(real, real) a; }\nmodel { a.1 ~ std_normal(); a.2 ~ std_normal(); }\n"
NORMAL = "parameters { real mu; }\nmodel { mu ~ std_normal(); }\n"


@pytest.fixture(autouse=True)
def bare(empty_machine, monkeypatch, tmp_path):
    """Hide httpstan and every compiler, on a platform that httpstan has wheels for."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "httpstan", None)


def program(folder, text):
    """Write a program."""
    path = folder / "program.stan"
    path.write_text(text)
    return path


def test_a_refused_program_says_why_and_how_to_get_cmdstan(tmp_path):
    said = (
        "The program needs CmdStan, because stanli does not support tuples. CmdStan is not installed: run "
        "`pip install 'onebasin[cmdstan]'`"
    )
    refused = program(tmp_path, TUPLE)
    with pytest.raises(CmdStanNotFound, match=f"^{re.escape(said)}\\.$"):
        choose(refused, {})
    with pytest.raises(HomeBuildError, match=r"^CmdStan is not installed: run `pip install"):
        compile_program(program(tmp_path, NORMAL))  # by who asks for CmdStan


def test_a_program_that_the_interpreter_takes_needs_neither(tmp_path):
    target = ob.stan_program(program(tmp_path, NORMAL))
    tree = ob.nuts(target, chains=1, warmup=50, draws=50, seed=1, progress=False)
    assert tree.posterior["mu"].shape == (1, 50)


@pytest.mark.parametrize(
    ("system", "machine", "said"),
    [
        ("Darwin", "arm64", "pip install 'onebasin[cmdstan]'"),
        ("Linux", "aarch64", "run `install_cmdstan`, which needs"),
        ("Windows", "AMD64", "install_cmdstan --compiler"),
    ],
)
def test_the_way_to_cmdstan_depends_on_the_platform(monkeypatch, system, machine, said):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert said in how_to_install()
