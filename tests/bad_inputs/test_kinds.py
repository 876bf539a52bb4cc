"""Every row of `kinds.txt`: a command, data of a program, or a call, and how each is refused.

Every public door is tried with what people hand in. Texts of errors that no public call reaches are tested where they
are raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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

from ..each import lines
from . import files as f
from .cases import REFUSED, Call, Case, File

PROGRAMS = Path(__file__).parents[1] / "stan" / "programs"
WHOLE = {"D": 2, "mu": [0, 0], "Sigma": [[1, 0], [0, 1]]}
SHORT_RUN = "--out run.nc --chains 1 --warmup 10 --draws 10 --no-progress"
SAMPLE = f"sample gauss.stan data.json {SHORT_RUN}"
GAUSS = (PROGRAMS / "gauss.stan").read_text()
RUN = {"run.nc": f.good}
PROGRAM = {"a.stan": "parameters { real x; } model { x ~ std_normal(); }"}
MODEL = """
import numpyro


def model(y):
    numpyro.sample("y", numpyro.distributions.Normal(numpyro.sample("x", numpyro.distributions.Normal()), 1), obs=y)
"""
FILES: dict[str, dict[str, File | None]] = {
    "": {},
    "run": RUN,
    "runs": RUN | {"other.nc": f.other, "net.nc": f.of_network},
    "program": PROGRAM,
    "hopeless": {"hopeless.stan": (PROGRAMS / "hopeless.stan").read_text()},
    "gauss": {"gauss.stan": GAUSS, "data.json": f.data(**WHOLE)},
    "model": {"m.py": MODEL, "y.json": f.data(y=[1.0, 2.0])},
}


@dataclass(frozen=True)
class Kind:
    """One section of the table."""

    surface: str
    how: frozenset[str]
    rows: str

    def said(self, word: str) -> str:
        """What follows a word of the section's head."""
        return next((h.removeprefix(word).strip() for h in self.how if h.startswith(word)), "")


def kinds(surface: str, *, stan: bool = False) -> Iterator[Kind]:
    """Read the sections of a surface."""
    for section in Path(__file__).with_name("kinds.txt").read_text().split("\n== ")[1:]:
        head, _, rows = section.partition("\n")
        of, _, name = head.partition(": ")
        how = frozenset(part.strip() for part in name.split(";")[1:])
        if of == surface and ("stan" in how) == stan:
            yield Kind(of, how, rows)


def commands(*, stan: bool = False) -> Iterator[Case]:
    """The rows of commands, each named by its words."""
    for kind in kinds("command line", stan=stan):
        before = f"{kind.said('before')} ".lstrip()
        files = FILES[kind.said("files")]
        code = int(kind.said("code") or REFUSED)
        for row, says in lines(kind.rows):
            words = before + row
            yield Case(words, words, says, files, code, own_words="own words" in kind.how)


def data(*, stan: bool = False) -> Iterator[Case]:
    """The rows of data, given to one program."""
    for kind in kinds("data", stan=stan):
        for row, says in lines(kind.rows):
            named = says if stan else ("`DATA.json`", *says)
            yield Case(row, SAMPLE, named, {"gauss.stan": GAUSS, "data.json": row}, own_words=True)


def test_commands(refuse):
    refuse(commands())


def test_data(refuse):
    refuse(data())


@pytest.mark.stan
def test_commands_and_data_for_which_a_program_is_run(refuse):
    refuse(commands(stan=True))
    refuse(data(stan=True))


LABELS = (ob.Exchangeable({"mu": 0, "sigma": 0}),)
SHORT = ob.Nuts(chains=1, warmup=5, draws=5)
X, Y = np.zeros((3, 1)), np.zeros((3, 1))


def three() -> None:
    """State a model of three exchangeable numbers."""
    numpyro.sample("mu", dist.Normal(0, 1).expand([3]).to_event(1))


def one(name: Any = "x", scale: float = 1.0) -> None:
    """State a model of one number."""
    numpyro.sample(name, dist.Normal(0, scale))


def discrete() -> None:
    """State a model with a count."""
    numpyro.sample("k", dist.Poisson(3))


def nothing() -> None:
    """State no variable at all."""


def twice() -> None:
    """State two variables of one name."""
    one()
    one()


def pair() -> None:
    """State a tuple of values."""
    one()
    numpyro.deterministic("pair", (1.0, 2.0))


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


def bare() -> xr.DataTree:
    """A posterior of a network that keeps no data."""
    return f.changed(f.network(), lambda groups, _: groups.pop("constant_data"))


def pointwise(chains: int = 2, obs: int = 60) -> xr.DataTree:
    """A posterior with a log likelihood, of chains that agree."""
    draws = np.random.default_rng(1).normal(size=(chains, 40))
    terms = {"y": (("chain", "draw", "obs"), draws[..., None] + np.zeros(obs))}
    groups = {"posterior": {"mu": (("chain", "draw"), draws)}, "log_likelihood": terms}
    return xr.DataTree.from_dict({name: xr.Dataset(group) for name, group in groups.items()})


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


def calls(text: str) -> Iterable[Call]:
    """Read rows of calls; they are text, so that no checker of types sees what they hand in."""
    names = {**globals(), "nan": np.nan, "inf": np.inf, "xr": xr}
    return [Call(typed, partial(eval, typed, names), says) for typed, says in lines(text)]


def test_calls(refuse_calls):
    for kind in kinds("Python"):
        refuse_calls(calls(kind.rows))


def test_methods_refuse_what_is_no_target(refuse_calls):
    for method in (
        *("nuts", "hmc", "advi", "symmetrised_vi", "networks.ensemble", "check_symmetry"),
        *("optimize", "laplace", "pathfinder"),
    ):
        handed = "3", "None", "three"
        refuse_calls(calls("\n".join(f"ob.{method}({word})  | `target`" for word in handed)))
    for reader in ("diagnose", "align", "approximations.fit_gaussian"):
        handed = "3", "None", "xr.DataTree()", "xr.Dataset()", "xr.Dataset({'mu': ('x', Y[0])})"
        refuse_calls(calls("\n".join(f"ob.{reader}({word})  | `posterior`" for word in handed)))
