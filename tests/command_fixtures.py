"""Fixtures that run commands as a user does, with samplers that answer at once."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from onebasin import inference
from onebasin.base.errors import OnebasinError
from onebasin.cli.main import main
from onebasin.inference import Nuts
from onebasin.inference.mcmc.chains import ChainPlace, Gathered, Standing
from onebasin.inference.runs.posterior import build
from onebasin.models import NetworkTarget
from onebasin.stan.home.assemble import find_cmdstan
from onebasin.studies.lab.study import Cell, Outcomes

NORMAL = """
data { int<lower=1> n; vector[n] y; }
parameters { real mu; vector[2] other; }
model { mu ~ normal(0, 10); other ~ std_normal(); y ~ normal(mu, 1); }
"""
DATA = {"n": 4, "y": [1.0, 2.0, 3.0, 6.0]}

TEACHER = {"W1": [[0.7071, -0.7071], [0.7071, 0.7071]], "b1": [0.0, 1.0]}
TEACHER |= {"W2": [[0.7071], [0.7071]], "b2": [0.5]}


@dataclass(frozen=True)
class Answer:
    """The answer of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The parsed JSON of stdout."""
        return json.loads(self.out)


@pytest.fixture
def onebasin(capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run `onebasin` with these arguments."""

    def run(*words: str | Path) -> Answer:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@dataclass
class Sampler:
    """A stand-in for the package `inference` that records its calls, and returns draws around a fixed point.

    Attributes
    ----------
    calls
        One mapping per call, with target, method, engine, settings, seed and checkpoint.
    before
        Function that receives each call before the answer; it may raise an error.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
    before: Callable[[dict[str, Any]], None] = lambda call: None

    @property
    def last(self) -> dict[str, Any]:
        """The most recent call."""
        return self.calls[-1]

    def infer(self, target, method, *, engine=None, **how):
        """Replace `inference.infer`."""
        engine = engine or "numpyro"
        call = {"target": target, "method": method.label, "settings": method, "engine": engine}
        self.calls.append(call | how)
        self.before(self.last)
        return fake_posterior(target, method.label, engine, method, how["seed"])


def keep_chain(folder: Path, number: int, draws: int) -> None:
    """Save a chain with some draws as a checkpoint, as a sampler does."""
    place = ChainPlace(number, Gathered(1, draws), folder, "of some run")
    place.restore()
    place.put(0, {"mu": np.zeros(draws)}, {})
    place.save(lambda: Standing(draws), now=True)


class InMemory(Outcomes):
    """Outcomes in memory, without files."""

    def tree(self, cell: Cell) -> xr.DataTree:
        return self.paths[cell]


def chain_stats(shape, rng, *, tree_depth):
    """Return the statistics of healthy chains, without the log density."""
    same = {"diverging": False, "n_steps": 7, "acceptance_rate": 0.8, "step_size": 0.25}
    found = {name: np.full(shape, value) for name, value in same.items()}
    return found | {"tree_depth": tree_depth, "energy": rng.normal(size=shape)}


def fake_posterior(target: Any, method: str, engine: str, settings: Any, seed: int) -> xr.DataTree:
    """Return independent draws around the teacher, or around 0, as a posterior that passes every check."""
    sampled = isinstance(settings, Nuts) or method == "hmc"
    shape = (settings.chains if sampled else 1, getattr(settings, "draws", 1))
    word = f"{target.name} {method} {engine} {seed}"
    rng = np.random.default_rng(list(word.encode()))
    stats = {"lp": rng.normal(size=shape)}
    how: dict[str, Any] = {"engine": engine, "method": method, "seed": seed, "wall_time": 1.5}
    how |= {"settings": settings.recorded(), "gradient_evaluations": 7 * shape[0] * shape[1]}
    groups = {}
    if sampled:
        stats |= chain_stats(shape, rng, tree_depth=rng.integers(2, 5, size=shape))
        how |= {"max_tree_depth": 10, "sampling_seconds": [1.0], "warmup_seconds": [1.0]}
    elif method == "optimize":
        how["converged"] = 1
    else:
        stats["log_q"] = stats["lp"] + 0.1 * rng.normal(size=shape)
        how["converged"] = 1
        elbo = {"elbo": ("evaluation", [-9.0, -3.0]), "iteration": ("evaluation", [100, 200])}
        groups = {"variational": xr.Dataset(elbo)}
    return build(target, _draws(target, shape, rng), stats, how, groups=groups)


def _draws(target: Any, shape: tuple[int, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    if not isinstance(target, NetworkTarget):
        return {"mu": rng.normal(size=shape)}
    shapes = target.model.network.shapes
    teacher = shapes == {name: np.shape(value) for name, value in TEACHER.items()}
    draws = {
        name: (np.asarray(TEACHER[name]) if teacher else 0.0)
        + 0.05 * rng.normal(size=(*shape, *size))
        for name, size in shapes.items()
    }
    if target.model.parametrisation.unit_norm:
        draws["W1"] /= np.linalg.norm(draws["W1"], axis=2, keepdims=True)
    return draws | {"sigma": 0.5 * np.exp(0.05 * rng.normal(size=shape))}


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Sampler:
    """Replace the package `inference` by the stand-in."""
    stand_in = Sampler()
    monkeypatch.setattr(inference, "infer", stand_in.infer)
    return stand_in


@pytest.fixture(scope="session")
def cmdstan_is_there() -> None:
    """Assemble CmdStan first, so that commands print no messages about it."""
    find_cmdstan()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(here: Path) -> Path:
    """Write a Stan program with its data."""
    (here / "normal.stan").write_text(NORMAL)
    (here / "data.json").write_text(json.dumps(DATA))
    return here / "normal.stan"


@pytest.fixture
def sample(onebasin, program):
    """Sample this program."""
    return lambda *words: onebasin("sample", "normal.stan", "data.json", "--out", "run.nc", *words)


@pytest.fixture
def asked(sample, sampler):
    """Return the request that these arguments make to the sampler, without sampling, writing or diagnosing."""

    def stop(call: dict[str, Any]) -> None:
        raise OnebasinError("stopped")

    def ask(*words: str) -> dict[str, Any]:
        answer = sample(*words)
        assert answer.err == "onebasin: stopped\n", answer.err
        return sampler.last

    sampler.before = stop
    return ask


@pytest.fixture
def kills(monkeypatch):
    """Return the module of the benchmark that kills commands at random moments."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    return import_module("kills")
