"""Every row of `kinds.txt`: a command, data of a program, or a call, and how each is rejected."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr

import onebasin as ob

from . import files as f
from .cases import Case, File, lines

X_IN_STAN = "parameters { real x; } model { x ~ std_normal(); }"
GAUSS = (Path(__file__).parents[1] / "stan" / "programs" / "gauss.stan").read_text()
SAMPLE = "sample gauss.stan data.json --out run.nc --chains 1 --warmup 10 --draws 10 --no-progress"
MODEL = """
import numpyro


def model(y):
    numpyro.sample("y", numpyro.distributions.Normal(numpyro.sample("x", numpyro.distributions.Normal()), 1), obs=y)
"""
FILES: dict[str, dict[str, File | None]] = {
    "": {},
    "runs": {
        "run.nc": f.good,
        "other.nc": f.other,
        "net.nc": f.of_network,
        "net2.nc": f.of_network,
        "words.npz": "x",
        "wide.npz": f.points(x=np.zeros((4, 3))),
        "folder": None,
    },
    "program": {"a.stan": X_IN_STAN},
    "model": {"m.py": MODEL, "y.json": '{"y": [1.0, 2.0]}'},
}


def kinds(surface: str) -> Iterator[tuple[dict[str, str], str]]:
    """What the head of each section of a surface says, by its first word, and the section's rows."""
    for section in Path(__file__).with_name("kinds.txt").read_text().split("\n== ")[1:]:
        head, _, rows = section.partition("\n")
        of, _, name = head.partition(": ")
        said = (part.strip().partition(" ") for part in name.split(";")[1:])
        if of == surface:
            yield {word: rest for word, _, rest in said}, rows


def commands() -> Iterator[Case]:
    """The rows of commands."""
    for how, rows in kinds("command line"):
        before = f"{how.get('before', '')} ".lstrip()
        for row, names in lines(rows):
            words = (before + row).replace("\\0", "\0")
            yield Case(words, names, FILES[how.get("files", "")], int(how.get("code", 1)))


def rows(surface: str) -> list[tuple[str, tuple[str, ...]]]:
    """The rows of another surface."""
    return [row for _, text in kinds(surface) for row in lines(text)]


@pytest.mark.parametrize("case", list(commands()), ids=lambda case: case.words)
def test_commands(refuse, case):
    refuse(case)


@pytest.mark.stan
@pytest.mark.parametrize(("data", "names"), rows("data"), ids=str)
def test_data(refuse, data, names):
    refuse(Case(SAMPLE, names, {"gauss.stan": GAUSS, "data.json": data}))


LABELS = (ob.Exchangeable({"mu": 0, "sigma": 0}),)
SHORT = ob.Nuts(chains=1, warmup=5, draws=5)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


def three() -> None:
    """State a model of three exchangeable numbers."""
    numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))


def one(name: Any = "x") -> None:
    """State a model of one number."""
    numpyro.sample(name, dist.Normal(0, 1))


def discrete() -> None:
    """State a model with a count."""
    numpyro.sample("k", dist.Poisson(3))


def nothing() -> None:
    """State no variable at all."""


def twice() -> None:
    """State two variables of one name."""
    one()
    one()


def nowhere() -> None:
    """State a density that is zero everywhere."""
    one()
    numpyro.factor("never", -jnp.inf)


def target(model: Any = three, **more: Any) -> Any:
    return ob.Target("t", numpyro_model=model, **more)


def network(**more: Any) -> Any:
    return ob.networks.BayesianNetwork(ob.networks.Network(1, (2,)), **more)


def of(*shape: Any, **how: Any) -> Any:
    """Prepare a network of a shape, which takes its other parts."""
    return partial(ob.networks.BayesianNetwork, ob.networks.Network(*shape, **how))


def classifier() -> Any:
    return of(1, (2,), 2)(likelihood=ob.networks.Categorical())


def nuts(model: Any = three, **more: Any) -> Any:
    return ob.infer(target(model), method=SHORT, **more)


def align(*arguments: Any, **more: Any) -> Any:
    return ob.align(f.mixture(), *(arguments or (LABELS,)), **more)


def calibrate(simulate: Any = None, condition: Any = lambda data: target(one), **more: Any) -> Any:
    """Calibrate two simulations of one number."""

    def simulated(rng: np.random.Generator) -> Any:
        return {"x": rng.normal()}, {}

    family = ob.truth.Family("f", simulate or simulated, condition)
    return ob.calibrate(family, more.pop("method", SHORT), simulations=2, **more)


NAMES = {**globals(), "nan": np.nan, "xr": xr}


@pytest.mark.parametrize(("call", "names"), rows("Python"), ids=str)
def test_calls(here, call, names):
    """They are text, so that no checker of types sees what they hand in."""
    kind, *names = names
    with pytest.raises(ob.OnebasinError) as caught:
        eval(call, NAMES)
    assert isinstance(caught.value, getattr(builtins, kind, None) or getattr(ob.errors, kind))
    assert not [name for name in names if name not in str(caught.value)]
    assert not list(here.iterdir())
