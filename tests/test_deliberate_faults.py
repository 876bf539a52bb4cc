"""Faults that the suite must catch: each is planted in a copy of the sources, and the tests named must fail.

A fault is one line changed: a sign in a Jacobian, a transposed weight, an off-by-one in a rank. Where a planted
line no longer stands in the sources, the fault is stale, and its test says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("models", "stan", "inference", "analysis", "studies")


@dataclass(frozen=True)
class Fault:
    """One line of the sources, what is planted in its place, and the test files that must notice."""

    what: str
    line: str
    planted: str
    tests: str
    select: str = ""


FAULTS = (
    Fault(
        "sign of the Jacobian of the Givens chart",
        "rows = _log_derivative(x, math.pi / 2) + _powers(x) * log_cos",
        "rows = _log_derivative(x, math.pi / 2) - _powers(x) * log_cos",
        "test_transforms.py",
    ),
    Fault(
        "signs flip although the activation is not odd",
        "flips = f.odd and bool(outgoing)",
        "flips = bool(outgoing)",
        "test_blocks.py",
        "models",
    ),
    Fault(
        "weights transposed in the Stan program",
        "return to_matrix(segment(weights, w, num_in * num_out), num_in, num_out);",
        "return to_matrix(segment(weights, w, num_in * num_out), num_out, num_in)';",
        "test_parity.py",
        "stan",
    ),
    Fault(
        "scale squared in the Stan program's prior of the noise",
        "sigma ~ normal(0, noise_scale);",
        "sigma ~ normal(0, square(noise_scale));",
        "test_parity.py",
        "stan",
    ),
    Fault(
        "off by one in the rank behind a permutation p-value",
        "return as_large / (permutations + 1)",
        "return (as_large - 1) / (permutations + 1)",
        "test_two_sample.py",
    ),
    Fault(
        "off by one in the tree depth",
        'stats["tree_depth"] = np.floor(np.log2(stats["n_steps"] + 1)).astype(np.int64)',
        'stats["tree_depth"] = np.floor(np.log2(stats["n_steps"])).astype(np.int64)',
        "test_sample.py",
        "mcmc",
    ),
    Fault(
        "signs not moved along when group elements are composed",
        "along(first.signs, then.permutation) * then.signs",
        "first.signs * then.signs",
        "test_group.py",
    ),
    Fault(
        "assignments that cost most instead of least",
        "best[row] = linear_sum_assignment(_priced(costs[row]))[1]",
        "best[row] = linear_sum_assignment(-_priced(costs[row]))[1]",
        "test_optimum.py",
    ),
    Fault(
        "log score averaged over draws but not over chains",
        "return logsumexp(values, axis=(0, 1)) - np.log(values.shape[0] * values.shape[1])",
        "return logsumexp(values, axis=(0, 1)) - np.log(values.shape[1])",
        "test_regression.py",
    ),
    Fault(
        "one term missing from the permanent",
        "terms = jnp.where(previous >= 0, level[previous] + values[column], -jnp.inf)",
        "terms = jnp.where(previous > 0, level[previous] + values[column], -jnp.inf)",
        "test_permanent.py",
    ),
    Fault(
        "log densities brought to data units with the wrong sign",
        "return math.fsum(np.log(y_sd))",
        "return -math.fsum(np.log(y_sd))",
        "test_*standardising.py",
    ),
    Fault(
        "a statement that holds in some comparisons counted as reproduced",
        "if all(holds):",
        "if any(holds):",
        "test_study.py",
    ),
)


def _sources() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if os.path.lexists(ROOT / name)]


def _plant(fault: Fault, copy: Path) -> None:
    """Copy the sources with the fault in them."""
    for name in _sources():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    holders = [
        path
        for room in ROOMS
        for path in (copy / room).rglob("*")
        if path.suffix in (".py", ".stan", ".stanfunctions")
        and fault.line in path.read_text(encoding="utf-8")
    ]
    assert len(holders) == 1, f"stale fault: {fault.line!r} stands in {len(holders)} files"
    text = holders[0].read_text(encoding="utf-8")
    holders[0].write_text(text.replace(fault.line, fault.planted), encoding="utf-8")


def _run(fault: Fault, folder: Path) -> subprocess.CompletedProcess[str]:
    files = [
        str(path) for path in (folder / "tests").rglob(fault.tests) if fault.select in path.parts
    ] or [str(path) for path in (folder / "tests").rglob(fault.tests)]
    assert files, f"stale fault: no test file {fault.tests}"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_fault_is_caught(fault: Fault, tmp_path: Path) -> None:
    _plant(fault, tmp_path)
    done = _run(fault, tmp_path)
    assert done.returncode == 1, done.stdout[-2000:]  # tests ran, and one of them failed
    assert " failed" in done.stdout.splitlines()[-1], done.stdout[-2000:]
