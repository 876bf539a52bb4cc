"""`onebasin demo`, as a user runs it on a machine without a compiler."""

import os
import re
import subprocess
import sys

import platformdirs
import pytest

from ..docs.running import ROOT

COMMAND = "from onebasin.cli.main import main; raise SystemExit(main())"


def number(label: str, printed: str) -> float:
    """Return the number after a label."""
    found = re.search(rf"{re.escape(label)} +(-?[\d.]+(?:e-?\d+)?)", printed)
    assert found, label
    return float(found[1])


@pytest.mark.full
def test_demo_shows_both_examples_without_a_compiler(tmp_path):
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    unset = ("CMDSTAN", "CONDA_PREFIX", "CXX", "MAKE", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {
        "PATH": str(nowhere),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "JAX_COMPILATION_CACHE_DIR": str(platformdirs.user_cache_path("onebasin") / "jax"),
        "PYTHONPATH": str(ROOT),
    }
    how = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", COMMAND, "demo"], check=False, **how)
    assert (done.returncode, done.stderr) == (0, "")
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    for before, after in (
        ("R-hat of these draws (the limit is 1.01)", "R-hat of the aligned draws"),
        ("R-hat of NUTS as sampled", "R-hat of NUTS aligned"),
    ):
        assert number(before, printed) > 1.1
        assert number(after, printed) < 1.01
    assert number("Change of the log density under it, at most", printed) < 1e-9
    assert number("Largest deviation from this constant, 10 points", printed) < 1e-9
    last = printed.splitlines()[-1]
    report = tmp_path / last.removeprefix("The same with pictures: ")
    assert report == tmp_path / "demo" / "report.html"
    page = report.read_text(encoding="utf-8")
    assert "symmetrised VI" in page
    assert "unclear" not in (printed + page).lower()
