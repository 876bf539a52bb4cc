"""The checker: its estimators against ArviZ's, its group's action against ours, and planted faults."""

import ast
import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import norm

from onebasin.models import Complement, Exchangeable, Flip
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.symmetry.group import Group
from onebasin.truth import checker, criteria
from onebasin.truth.checker import estimators, labels
from onebasin.truth.checker.verdict import _convergence

from ..analysis.conftest import autoregression
from ..each import each

SOURCES = sorted(Path(checker.__file__).parent.glob("*.py"))
MAKERS = ("onebasin", "arviz", "arviz_stats", "xarray", "jax", "pandas")


@each("path", SOURCES)
def test_checker_imports_nothing_that_makes_references(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] in MAKERS for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1
            assert node.level == 1 or str(node.module).split(".")[0] not in MAKERS


@each("rho", [-0.6, 0.0, 0.5, 0.95])
@each("shift", [0.0, 2.0])
def test_estimators_are_those_of_the_paper(rng, rho, shift):
    x = autoregression(rng, rho, (4, 500))
    x[-1] += shift
    x = np.exp(0.5 * x)
    assert estimators.rhat(x) == pytest.approx(float(array_stats.rhat(x, method="rank")), rel=1e-6)
    for own, method in ((estimators.bulk_ess, "bulk"), (estimators.tail_ess, "tail")):
        options = {"prob": (0.05, 0.95)} if method == "tail" else {}
        theirs = float(array_stats.ess(x, method=method, **options))
        assert own(x) == pytest.approx(theirs, rel=0.01)


BLOCKS = {
    "permutation": (Exchangeable({"a": 0, "b": 1}), {"a": (3,), "b": (2, 3)}),
    "signs": (Exchangeable({"a": 1}, flips=True), {"a": (4, 3)}),
    "two axes": (Exchangeable({"a": (0, 1), "b": 0}), {"a": (3, 3), "b": (3,)}),
    "complement": (Exchangeable({"a": 0}, complements=("t",)), {"a": (2,), "t": ()}),
    "flip": (Flip(("a", "b")), {"a": (5,), "b": (2,)}),
    "weights": (Complement("t"), {"t": (4,)}),
}


@each("word", BLOCKS)
def test_moved_draws_are_seen_to_be_out_of_place(rng, word):
    block, shapes = BLOCKS[word]
    group = Group((block,), shapes)
    centre = {
        n: rng.uniform(0.1, 0.4, s) + np.arange(np.prod(s)).reshape(s) for n, s in shapes.items()
    }
    if "t" in shapes:
        centre["t"] = rng.uniform(0.1, 0.3, shapes["t"])
    scale = {n: np.full(s, 0.3) for n, s in shapes.items()}
    draws = {n: c + 0.01 * rng.normal(size=(400, *np.shape(c))) for n, c in centre.items()}
    said = {"centre": {n: v.tolist() for n, v in centre.items()}}
    said["scale"] = {n: v.tolist() for n, v in scale.items()}
    symmetry = json.loads(to_json((block,)))
    assert labels.share_in_place(draws, symmetry, said, 1e-9) == 1.0
    element = group.random(rng, (400,))
    moved = group.act(element, draws)
    still = np.ones(400, bool)
    for name in draws:
        still &= (moved[name] == draws[name]).reshape(400, -1).all(axis=1)
    assert 0 < still.mean() < 1
    assert labels.share_in_place(moved, symmetry, said, 1e-9) == pytest.approx(still.mean())


def test_level_of_ess_is_that_of_all_estimates_together():
    """Of 50 independent quantities (generator 0) none fails; next to independent ones and antithetic ones do."""
    rng = np.random.default_rng(0)
    seen = {}
    for rho in (0.0, 0.15, -0.15):
        values = {f"x[{i}]": autoregression(rng, rho, (10, 1000)) for i in range(50)}
        found = {each.name: each for each in _convergence(values)}
        seen[rho] = [found[f"{word} ESS"].holds for word in ("bulk", "tail")]
        low, high = criteria.ess_bounds(10_000, 100)
        assert f"from {low:.0f} to {high:.0f}" in found["bulk ESS"].found
    assert seen[0.0] == [True, True] and not seen[0.15][0] and not seen[-0.15][0]
    assert criteria.ess_bounds() == pytest.approx((8941.70, 11058.30), abs=0.01)
    # The tail beyond is that of four standard errors, by the number of estimates.
    width = (10_000 - criteria.ess_bounds(10_000, 1220)[0]) / np.sqrt(70_000)
    assert 1220 * norm.sf(width) == pytest.approx(norm.sf(4))


def test_reference_that_is_made_passes_but_for_its_number_of_draws(made):
    verdict = checker.check(made, "mixture-2")
    assert verdict.from_draws
    holds = {each.name: each.holds for each in verdict.criteria}
    assert holds["files"] and holds["summary"] and holds["labelling"] and holds["E-FMI"]
    assert not holds["10,000 draws"]
    assert "does not pass: 10,000 draws" in verdict.title


@pytest.fixture
def broken(made, tmp_path):
    """A copy of a reference, which may be broken."""
    return shutil.copytree(made, tmp_path / "copy", ignore=shutil.ignore_patterns("chains"))


def resealed(folder: Path, part: str) -> None:
    """Write the checksum of a part that was changed, as who plants a fault would."""
    path = folder / "mixture-2.info.json"
    info = json.loads(path.read_text())
    info["sha256"][part] = checker.files.digest(folder / f"mixture-2.{part}")
    path.write_text(json.dumps(info))


def failing(folder: Path) -> set[str]:
    return {each.name for each in checker.check(folder, "mixture-2").failed} - {"10,000 draws"}


def test_corrupted_file_is_refused(broken):
    for part in ("summary.json", "draws.nc", "full.nc"):
        path = broken / f"mixture-2.{part}"
        whole = path.read_bytes()
        content = bytearray(whole)
        content[len(content) // 2] ^= 1
        path.write_bytes(bytes(content))
        verdict = checker.check(broken, "mixture-2")
        assert not verdict.passes, part
        assert "checksum differs" in verdict.sentence, part
        assert "truth make mixture-2" in verdict.sentence, part
        path.write_bytes(whole)


FAULTS = {
    "a chain elsewhere": (
        {"posterior/mu": lambda mu: mu + 3 * mu.std() * (np.arange(4) == 0)[:, None, None]},
        {"R-hat", "summary"},
    ),
    "dependent draws": (
        {"posterior/sigma": lambda sigma: np.repeat(sigma[:, ::4], 4, axis=1)},
        {"lag-1 autocorrelation", "bulk ESS"},
    ),
    "slow energy": (
        {"trajectory/energy": lambda energy: np.cumsum(energy - energy.mean(), axis=1)},
        {"E-FMI"},
    ),
    "other labels": (
        {
            "posterior/mu": lambda mu: mu[..., ::-1],
            "posterior/sigma": lambda sigma: sigma[..., ::-1],
            "posterior/theta": lambda theta: 1 - theta,
        },
        {"labelling", "summary"},
    ),
}


def change(folder: Path, changes: dict) -> None:
    with h5py.File(folder / "mixture-2.full.nc", "r+") as file:
        for name, function in changes.items():
            file[name][...] = function(file[name][()])
    resealed(folder, "full.nc")


@pytest.mark.parametrize("fault", FAULTS)
def test_draws_with_a_fault_are_refused(broken, fault):
    changes, fails = FAULTS[fault]
    change(broken, changes)
    assert fails <= failing(broken)


def test_divergence_is_refused(broken):
    sound = failing(broken)  # what short chains fail by themselves
    change(broken, {"trajectory/diverging": lambda d: np.arange(d.size).reshape(d.shape) == 0})
    assert failing(broken) - sound == {"divergences"}


def rewritten(folder: Path, change) -> Path:
    """Change the summary of a reference."""
    path = folder / "mixture-2.summary.json"
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))
    resealed(folder, "summary.json")
    return folder


def test_wrong_summary_is_refused(broken):
    def wider(said):
        said["parameters"]["mu[0]"][1] *= 1.05

    assert "summary" in failing(rewritten(broken, wider))


def test_files_without_all_draws_are_judged_by_what_is_there(broken):
    (broken / "mixture-2.full.nc").unlink()
    verdict = checker.check(broken, "mixture-2")
    assert not verdict.from_draws
    assert [each.name for each in verdict.failed] == ["recorded checks"]


def test_other_posterior_does_not_agree(made, broken):
    def moved(said):
        said["parameters"]["mu[0]"][0] += 0.5 * said["parameters"]["mu[0]"][1]

    other = rewritten(broken, moved)
    found = checker.agree((made, "mixture-2"), (other, "mixture-2"))
    assert not found.agrees
    assert found.worst.quantity == "mu[0]"


def test_unconverged_references_are_not_compared(made, broken):
    def unconverged(said):
        place = said["columns"].index("rhat")
        for table in ("parameters", "invariants"):
            for row in said[table].values():
                row[place] = 1.2

    other = rewritten(broken, unconverged)
    found = checker.agree((made, "mixture-2"), (other, "mixture-2"))
    assert not found.agrees
    assert "R-hat of 1.200" in found.sentence
