"""The makefile of an assembled home, as cmdstanpy and make users call it."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from onebasin.stan.home.assemble import Home

pytestmark = pytest.mark.stan

HEADER_PROGRAM = """
functions {
  real doubled(real x);
}
generated quantities {
  real y = doubled(21);
}
"""


def make(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    tool = os.environ.get("MAKE", "make")
    return subprocess.run(
        [tool, *arguments], cwd=home.path, capture_output=True, text=True, check=False
    )


def test_the_precompiled_header_is_used(own_home, bernoulli):
    if not list(own_home.path.glob("build/default/pch/**/*.gch")):
        pytest.skip("this compiler goes without")
    exe = Path(bernoulli.exe_file)
    assert make(own_home, f"{exe}.hpp").returncode == 0
    dry = make(own_home, "--dry-run", "--always-make", str(exe)).stdout
    (line,) = [line for line in dry.splitlines() if f"-c '{exe}.hpp'" in line]
    words = [word for word in shlex.split(line) if word not in ("-c", "-o", f"{exe}.o")]
    done = subprocess.run(
        [*words, "-H", "-fsyntax-only"], cwd=own_home.path, capture_output=True, text=True
    )
    assert done.stderr.startswith("! build/default/pch/stan/model/model_header.hpp.gch")
    assert "\nx " not in done.stderr  # none was refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("STAN_OPENCL=true", "build"), "STAN_OPENCL is not available in this CmdStan home"),
        (("STAN_MPI=true", "build"), "STAN_MPI is not available in this CmdStan home"),
        (("{}/none",), "No rule to make target"),
        (
            ("STANCFLAGS=--allow-undefined", "{}/doubled"),
            "there is no {}/user_header.hpp that would; name the header with",
        ),
        (
            ("STANCFLAGS=--allow-undefined", "USER_HEADER={}/none.hpp", "{}/doubled"),
            "there is no {}/none.hpp that would",
        ),
    ],
)
def test_what_is_not_there_is_refused(own_home, tmp_path, words, said):
    (tmp_path / "doubled.stan").write_text(HEADER_PROGRAM)
    done = make(own_home, *(word.format(tmp_path) for word in words))
    assert done.returncode != 0
    assert said.format(tmp_path) in done.stderr


def test_flags_that_change_the_model_alone_reach_it_and_nothing_else(own_home, tmp_path):
    (tmp_path / "a(1).stan").write_text("parameters { real x; } model { x ~ std_normal(); }")
    dry = make(own_home, "--dry-run", "CXXFLAGS=-O1 -g", f"{tmp_path}/a(1)").stdout
    (line,) = (line for line in dry.splitlines() if " -c " in line)  # no driver of its own
    words = shlex.split(line)
    assert words.index("-O1") > words.index("-O3")  # the last one counts
    assert f"{tmp_path}/a(1).hpp" in words
    removed = [line for line in dry.splitlines() if line.startswith("rm ")]
    assert not any(".hpp" in line for line in removed)  # make would remove what it made on the way
