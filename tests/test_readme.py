"""What the README shows runs, and says what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_first_example_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _blocks("python")[0]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "teacher.nc").exists()
    said = dict(line.split(": ") for line in _blocks("text")[-1].strip().splitlines())
    printed = dict(line.split(": ") for line in done.stdout.strip().splitlines())
    assert said.keys() == printed.keys()
    for name, value in said.items():
        # Another processor may round otherwise, and a chain is chaotic: the message, not the digits.
        assert abs(float(printed[name]) - float(value)) < 0.1, name


@pytest.mark.stan
def test_three_lines_lead_from_pip_to_a_fitted_stan_model(tmp_path: Path) -> None:
    (block,) = (block for block in _blocks("sh") if "pip install ." in block)
    install, *lines = block.strip().splitlines()
    assert install.startswith("pip install . ")
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["Mean", "StdDev", "R_hat"]
    assert [row.split()[0] for row in rows] == ["lp__", "theta"]
    assert float(rows[1].split()[1]) == pytest.approx(0.25, abs=0.02)  # Beta(3, 9)


def test_commands_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", "\n".join(_blocks("sh")), re.MULTILINE):
        assert f"\n{command}:" in makefile
    for link in re.findall(
        r"\]\((docs/[^)]+|[A-Z]+\.?[a-z]*|studies/results)\)", (ROOT / "README.md").read_text()
    ):
        assert (ROOT / link).exists(), link
