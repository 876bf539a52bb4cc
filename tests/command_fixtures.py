"""Commands as a user types them, and samplers that answer at once."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import util
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
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, parsed."""
        return json.loads(self.out)


@pytest.fixture
def onebasin(capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run `onebasin` with these words."""

    def run(*words: str | Path) -> Answer:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@dataclass
class Sampler:
    """A stand-in for the inference room: it records the calls, and draws around a fixed point.

    Attributes
    ----------
    calls
        One mapping a call: target, method, engine, settings, seed, checkpoint.
    before
        Called with each call before it is answered; may raise.
    """

    calls: list[dict[str, Any]] = field(default_factory=list)
    before: Callable[[dict[str, Any]], None] = lambda call: None

    @property
    def last(self) -> dict[str, Any]:
        """The last call."""
        return self.calls[-1]

    def infer(self, target, method, *, engine=None, **how):
        """Stand for `inference.infer`."""
        engine = engine or "numpyro"
        call = {"target": target, "method": method.label, "settings": method, "engine": engine}
        self.calls.append(call | how)
        self.before(self.last)
        return fake_posterior(target, method.label, engine, method, how["seed"])


def keep_chain(folder: Path, number: int, draws: int) -> None:
    """Keep a chain of some draws, as a sampler does."""
    place = ChainPlace(number, Gathered(1, draws), folder, "of some run")
    place.restore()
    place.put(0, {"mu": np.zeros(draws)}, {})
    place.save(lambda: Standing(draws), now=True)


class InMemory(Outcomes):
    """Outcomes that were never written."""

    def tree(self, cell: Cell) -> xr.DataTree:
        return self.paths[cell]


def chain_stats(shape, rng, *, tree_depth):
    """Statistics of chains that nothing is wrong with, but for their log density."""
    same = {"diverging": False, "n_steps": 7, "acceptance_rate": 0.8, "step_size": 0.25}
    found = {name: np.full(shape, value) for name, value in same.items()}
    return found | {"tree_depth": tree_depth, "energy": rng.normal(size=shape)}


def fake_posterior(target: Any, method: str, engine: str, settings: Any, seed: int) -> xr.DataTree:
    """Draw around the teacher (or around 0) independently: a posterior that passes every check."""
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
    """Put the stand-in in the place of the inference room."""
    stand_in = Sampler()
    monkeypatch.setattr(inference, "infer", stand_in.infer)
    return stand_in


@pytest.fixture(scope="session")
def cmdstan_is_there() -> None:
    """Assemble CmdStan beforehand, so that a command has nothing to say of it."""
    find_cmdstan()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def program(here: Path) -> Path:
    """A Stan program with its data."""
    (here / "normal.stan").write_text(NORMAL)
    (here / "data.json").write_text(json.dumps(DATA))
    return here / "normal.stan"


@pytest.fixture
def sample(onebasin, program):
    """Sample that program."""
    return lambda *words: onebasin("sample", "normal.stan", "data.json", "--out", "run.nc", *words)


@pytest.fixture
def asked(sample, sampler):
    """Return what the sampler is asked for by these words; nothing is drawn, written or judged."""

    def stop(call: dict[str, Any]) -> None:
        raise OnebasinError("stopped")

    def ask(*words: str) -> dict[str, Any]:
        answer = sample(*words)
        assert answer.err == "onebasin: stopped\n", answer.err
        return sampler.last

    sampler.before = stop
    return ask


@pytest.fixture(scope="module")
def kills():
    """The benchmark that ends commands at random moments, as a module."""
    path = Path(__file__).parents[1] / "benchmarks" / "kills.py"
    spec = util.spec_from_file_location("kills", path)
    module = util.module_from_spec(spec)
    sys.modules["kills"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["kills"]
