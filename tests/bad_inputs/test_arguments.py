"""Every argument of every public name, given what it cannot take: a right answer or an `OnebasinError`, in time."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

import onebasin as ob
from onebasin.base.errors import OnebasinError

from . import files as f
from .test_kinds import LABELS, SHORT, Y, one, target, three

SECONDS = 20
HOSTILE: dict[str, Any] = {
    "None": None,
    "a thing": slice(3),
    "true": True,
    "nan": np.nan,
    "inf": -np.inf,
    "-1": -1,
    "0": 0,
    "half": 0.5,
    "1e12": 10**12,
    "no text": "",
    "text": "no such thing",
    "zero byte": "a\0b",
    "bytes": b"mu",
    "list": [],
    "mapping": {},
    "nones": [None],
    "masked": np.ma.masked_all((3, 1)),
    "complex": 1j,
}
NUMBERS = {"nan", "inf", "a thing", "text", "nones", "complex"}
"""What no parameter of numbers takes."""


def _fit() -> Any:
    return ob.advi(target(one), iterations=20, draws=10)


def _of_network() -> dict[str, Any]:
    return {"posterior": f.network()}


def _declared() -> dict[str, Any]:
    return {"posterior": f.mixture(declared=True)}


def _target() -> dict[str, Any]:
    return {"target": target()}


def _simulated(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"x": rng.normal()}, {}


Needed = Callable[[], dict[str, Any]]
"""Makes the arguments that a call needs."""


def _each(names: str, needed: Needed) -> dict[str, Needed]:
    return dict.fromkeys(names.split(), needed)


CHEAP: dict[str, Needed] = {
    **_each("diagnose summary elbo fit_gaussian loo", lambda: {"posterior": f.mixture()}),
    **_each("barriers summarise_predictions", _of_network),
    "align": lambda: {"posterior": f.mixture(), "symmetry": LABELS},
    "aligned_quantity": lambda: {"symmetry": LABELS},
    "compare": lambda: {
        "posteriors": {"a": f.mixture(), "b": f.mixture(seed=2)},
        "truth": "a",
        "permutations": 9,
    },
    "keep_compiled": lambda: {"folder": "kept"},
    "load_data": lambda: {"name": "relu-teacher"},
    "numpyro_model": lambda: {"model": three},
    "open_posterior": lambda: {"path": "no.nc"},
    "open_reference": lambda: {"name": "no such"},
    "predict": lambda: {"posterior": f.network(), "new_data": np.zeros((1, 2))},
    "prior": lambda: {"target": target(), "draws": 2},
    "compare_models": lambda: {"models": f.mixture()},
    "networks.predict": lambda: {
        "model": ob.networks.BayesianNetwork(ob.networks.Network(2, (2,))),
        "draws": f.network()["posterior"].to_dataset(),
        "x": np.zeros((1, 2)),
    },
    "save": lambda: {"tree": f.mixture(), "path": "a.nc", "force": True},
    "score_predictions": lambda: {"draws": np.ones((1, 4, 3, 1)), "y": Y},
    "stan_program": lambda: {"path": "no.stan"},
    "transpositions": lambda: {"posterior": f.mixture(declared=True)},
    # Parts of models, and settings
    **_each("Categorical Gaussian NormalPrior Parametrisation", dict),
    **_each("Advi Dadvi DistillationSettings Ensemble Hmc Laplace Mclmc Modes", dict),
    **_each("Nuts Optimize Pathfinder Symmetrised", dict),
    "BayesianNetwork": lambda: {"network": ob.networks.Network(1, (2,))},
    "Counterparts": lambda: {"tuples": (("a", "b"),)},
    "Complement": lambda: {"names": ("x",)},
    "Exchangeable": lambda: {"axes": {"mu": 0}},
    "Family": lambda: {"name": "a", "simulate": _simulated, "condition": target},
    "Flip": lambda: {"names": ("mu",)},
    "Network": lambda: {"in_dim": 1, "hidden": (2,)},
    "Rotation": lambda: {"axes": {"load": 1}},
    "Rescalable": lambda: {"incoming": {"W": 0}, "outgoing": {"V": 0}},
    "Target": lambda: {"name": "t", "numpyro_model": three},
    "target": lambda: {"model": lambda p: -(p["x"] ** 2), "parameters": {"x": "real"}},
}
"""What a call needs that takes little time, by the public name."""

COSTLY: dict[str, Needed] = {
    **_each("advi dadvi ensemble hmc jax_density laplace mclmc nuts optimize pathfinder", _target),
    **_each("find_symmetry sample_modes symmetrised_vi", _target),
    "calibrate": lambda: {
        "family": ob.truth.Family.of_numpyro(lambda y=None: one("y"), observed="y"),
        "method": ob.Nuts(chains=1, warmup=10, draws=10),
        "simulations": 2,
    },
    "check_symmetry": lambda: {"target": target(symmetry=(ob.Exchangeable({"mu": 0}),))},
    "cmdstan_model": lambda: {"path": "no.stan"},
    "distil": lambda: {
        "posterior": f.network(),
        "x": np.zeros((2, 2)),
        "settings": ob.approximations.DistillationSettings(steps=2),
    },
    "find_modes": lambda: {"target": target(), "starts": 2},
    "generated_quantities": lambda: {"target": target(one), "draws": _fit()},
    "infer": lambda: {"target": target(), "method": SHORT},
    "log_density": lambda: {"target": target(one), "points": {"x": 0.0}},
    "mixture_gap": lambda: {"target": target(one), "posterior": _fit()},
    "open_library": lambda: {"program": "no.stan"},
    "predict_with_noise": CHEAP["networks.predict"],
    "report": lambda: {"posteriors": f.mixture()},
    **_each(
        "plot.densities plot.elbo plot.forest plot.pair plot.predictive plot.uncertainty",
        lambda: {"posteriors": f.mixture()},
    ),
    **_each("plot.aligned plot.barriers plot.labels plot.ranks plot.traces", _declared),
    **_each(
        "plot.autocorrelation plot.energy plot.ess plot.loo_pit plot.rhat",
        lambda: {"posterior": f.mixture()},
    ),
    "plot.khat": lambda: {"loo": f.mixture()},
    "plot.calibration": lambda: {"calibration": None},
    "plot.comparison": lambda: {"comparison": None},
    "plot.predictions": lambda: {"predictions": None},
    "plot.prior": lambda: {"prior": f.mixture(), "posterior": f.mixture()},
}
RAISED = {"InferenceError", "OnebasinError", "PosteriorFileError", "StanError", "SymmetryError"}


@contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"no answer in {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_number(parameter: inspect.Parameter) -> bool:
    words = str(parameter.annotation).replace(" | None", "")
    return words in ("int", "float", "<class 'int'>", "<class 'float'>")


def _public(name: str) -> Any:
    """Return a public name, which may lack the name of its module."""
    module, _, name = name.rpartition(".")
    rooms = (getattr(ob, module),) if module else (ob, ob.networks, ob.approximations, ob.truth)
    return next((getattr(r, name) for r in rooms if name in dir(r)), None) or getattr(ob.stan, name)


def faults_of(name: str, needed: Needed) -> Iterator[str]:
    """Call a public name with every hostile value in the place of each argument, and say what goes wrong."""
    function = _public(name)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        for word, value in HOSTILE.items():
            call = f"{name}({parameter.name}={word})"
            try:
                with _in_time():
                    function(**needed() | {parameter.name: value})
            except OnebasinError as error:
                if "object at 0x" in str(error):
                    yield f"{call}: {error}"
            except Exception as error:
                last = error.__traceback__
                while last is not None and last.tb_next is not None:
                    last = last.tb_next
                place = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last else ""
                yield f"{call}: {type(error).__name__}: {str(error)[:200]} ({place})"
            else:
                if _is_number(parameter) and word in NUMBERS:
                    yield f"{call}: taken"
            finally:
                plt.close("all")


def test_every_public_name_is_tried():
    modules = {n for n in ob.__all__ if inspect.ismodule(getattr(ob, n))}
    public = {n for n in ob.__all__ if n[0] != "_"} - modules
    for name in modules - {"errors", "plot", "stan"}:
        module = getattr(ob, name)
        public |= {n for n in module.__all__ if inspect.isfunction(getattr(module, n))}
    tried = {name.rpartition(".")[-1] for name in CHEAP.keys() | COSTLY.keys()}
    assert public - RAISED - tried == {"references"}  # which takes none
    assert {name.removeprefix("plot.") for name in PLOTS} == set(ob.plot.__all__)


def _check(table: dict[str, Needed], names: list[str]) -> None:
    faults = [fault for name in names for fault in faults_of(name, table[name])]
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)


@pytest.mark.skipif(sys.platform == "win32", reason="no alarms")
def test_cheap_names_refuse_what_they_cannot_take(here):
    _check(CHEAP, list(CHEAP))


PLOTS = [name for name in COSTLY if name.startswith("plot.")]


def test_plots_refuse_what_they_cannot_take(here):
    _check(COSTLY, PLOTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COSTLY.keys() - PLOTS))
def test_costly_names_refuse_what_they_cannot_take(here, name):
    _check(COSTLY, [name])
