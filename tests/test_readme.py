"""The README's first example answers what it shows, and its commands can be typed again; all blocks run in `docs`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

ROOT = Path(__file__).parents[1]

# What one process has compiled, the next one need not.
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(platformdirs.user_cache_path("onebasin") / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def _blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def _run(script: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **CACHE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NUMBER = re.compile(r"\d+\.\d+")


@pytest.mark.stan
def test_first_example_answers_what_the_readme_shows(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "programs").symlink_to(ROOT / "notebooks" / "programs")
    came = _run(_blocks("python")[0], tmp_path)
    shown, _, rest = _blocks("text")[0].partition("\n...")
    assert not rest.strip()
    assert NUMBER.sub("#", came).startswith(NUMBER.sub("#", shown))
    for there, here in zip(NUMBER.findall(came), NUMBER.findall(shown), strict=False):
        # Another processor may round otherwise, and a chain is chaotic: the message, not the digits.
        assert abs(float(there) - float(here)) < 0.1


@pytest.mark.stan
def test_three_lines_lead_from_pip_to_a_fitted_stan_model(tmp_path: Path) -> None:
    page = _blocks("sh", "docs/guides/cmdstan.md")
    (block,) = (block for block in page if "pip install ." in block)
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


def test_commands_of_the_readme_can_be_typed_again() -> None:
    """A run that is there is taken as it is; whatever else writes a file says that it may replace it."""
    lines = [line for line in "\n".join(_blocks("sh")).splitlines() if " --out " in line]
    made: dict[str, str] = {}
    for line in lines:
        words = line.partition("#")[0].split()
        out = words[words.index("--out") + 1]
        assert words[1] in ("sample", "study") or "--force" in words, line
        assert out not in made, f"{line} writes over what {made[out]} made"
        made[out] = line
    assert lines
