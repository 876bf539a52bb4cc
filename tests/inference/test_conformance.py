"""Laws of every method in the registry: seeds, chains, groups, refusals, symmetry, checkpoints, progress.

A new method needs an `Example`: small settings, and what its posterior has.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpyro
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy.stats import norm

import onebasin as ob
from onebasin.inference.contracts.engines import ENGINES
from onebasin.inference.contracts.method import LIMIT_MB, Method
from onebasin.inference.mcmc import places
from onebasin.inference.methods import METHODS, engines_of
from onebasin.inference.runs import checkpoint
from onebasin.inference.runs.kept import kept_draws
from onebasin.models import Exchangeable, Target
from onebasin.posteriors.view import as_view

FREE_MIXTURE = Path(__file__).parents[1] / "stan" / "programs" / "known" / "free_mixture.stan"
Y = np.array([-2.3, -1.9, -2.0, -1.6, 1.7, 2.2, 2.0, 2.4])
CHAINS = frozenset({"lp", "energy", "step_size", "n_steps", "acceptance_rate", "diverging"})
FIT = frozenset({"lp", "log_q"})
EVERY_POSTERIORS = frozenset(
    {
        *("target", "model", "symmetry", "kinds", "program", "program_name", "data_sha256"),
        *("method", "engine", "settings", "seed", "versions", "machine", "command"),
        *("created_at", "wall_time", "attempts"),
    }
)
"""Attributes that all posteriors have."""


@dataclass(frozen=True, eq=False)
class Example:
    """A small run of a method, and what its posterior has beyond every posterior's.

    Attributes
    ----------
    name : str
        In the registry.
    settings : mapping
        Names and values of a small run.
    engines : tuple of str
        The engines that run it here; methods that move by JAX on a Stan program are in `test_stan_by_jax.py`.
    several : str
        Setting that says how many independent chains, fits or members there are; empty where there is one result.
    axis : str
        Axis of the posterior along which these lie.
    statistics : set of str
        Names in the group `sample_stats`.
    groups : set of str
        Groups besides those of the model.
    attributes : set of str
        Attributes besides those of every posterior.
    fit : set of str
        Names in the group `variational`, of a method that has one.
    recorded : str
        The attribute `method`, where that is not the name.
    gradients : int
        Gradients that a step of a chain takes.
    points : int
        Points at which a declared symmetry is checked before the run.
    """

    name: str
    settings: Mapping[str, Any]
    engines: tuple[str, ...] = ("numpyro",)
    several: str = ""
    axis: str = "chain"
    statistics: frozenset[str] = FIT
    groups: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset({"gradient_evaluations"})
    fit: frozenset[str] = frozenset()
    recorded: str = ""
    gradients: int = 1
    points: int = 5

    @property
    def kind(self) -> type[Method]:
        """The method's class."""
        return METHODS[self.name]


_SHORT = {"chains": 2, "warmup": 60, "draws": 40}
_CHAINS = frozenset({"warmup_seconds", "sampling_seconds", "gradient_evaluations"})
EXAMPLES = (
    Example(
        "nuts",
        _SHORT,
        engines=("numpyro", "stanli", "cmdstan", "nutpie"),
        several="chains",
        statistics=CHAINS | {"tree_depth"},
        attributes=_CHAINS | {"max_tree_depth"},
    ),
    Example(
        "hmc",
        _SHORT,
        engines=("numpyro", "cmdstan"),
        several="chains",
        statistics=CHAINS,
        attributes=_CHAINS,
    ),
    Example(
        "mclmc",
        {**_SHORT, "thin": 2},
        several="chains",
        statistics=(CHAINS - {"energy", "acceptance_rate"}) | {"length", "energy_variance"},
        attributes=_CHAINS | {"stein_identities", "blackjax"},
        gradients=2,
    ),
    Example(
        "modes",
        {**_SHORT, "starts": 4},
        statistics=CHAINS | {"tree_depth", "mode"},
        groups=frozenset({"modes"}),
        attributes=_CHAINS | {"max_tree_depth"},
    ),
    Example(
        "advi",
        {"iterations": 200, "draws": 40},
        engines=("numpyro", "stanli", "cmdstan"),
        groups=frozenset({"variational"}),
        fit=frozenset({"elbo", "iteration"}),
        recorded="advi-meanfield",
        attributes=frozenset({"gradient_evaluations", "converged"}),
    ),
    Example(
        "symmetrised",
        {"fits": 2, "steps": 60, "evaluate_every": 20, "report_draws": 20, "draws": 40},
        several="fits",
        groups=frozenset({"variational"}),
        attributes=frozenset({"gradient_evaluations", "converged", "information_side"}),
        fit=frozenset({"elbo", "iteration", "information", "loc", "scale"}),
        recorded="symmetrised-vi",
        points=2,
    ),
    Example(
        "ensemble",
        {"members": 3, "epochs": 8, "batch_size": 4},
        several="members",
        axis="draw",
        statistics=frozenset({"lp"}),
        groups=frozenset({"training"}),
    ),
    Example(
        "laplace",
        {"draws": 40},
        engines=("numpyro", "stanli", "cmdstan"),
        groups=frozenset({"variational"}),
        fit=frozenset({"loc", "scale_tril"}),
        attributes=frozenset({"converged"}),
    ),
    Example(
        "optimize",
        {"starts": 1},
        engines=("numpyro", "stanli", "cmdstan"),
        statistics=frozenset({"lp"}),
        attributes=frozenset({"converged"}),
    ),
    Example(
        "dadvi",
        {"starts": 4, "draws": 40},
        groups=frozenset({"variational"}),
        fit=frozenset({"loc", "scale_tril", "elbo"}),
        attributes=frozenset({"gradient_evaluations", "log_density_evaluations", "converged"}),
    ),
    Example(
        "pathfinder",
        {"draws": 40},
        engines=("stanli", "cmdstan"),
        statistics=FIT | {"path"},
        groups=frozenset({"variational"}),
        fit=frozenset({"log_ratio"}),
        attributes=frozenset({"converged"}),
    ),
)


@dataclass(frozen=True)
class Case:
    """A method on one of its engines."""

    method: Example
    engine: str

    @property
    def by_stan(self) -> bool:
        """True if the engine runs a Stan program, a process a run."""
        return self.engine in ("stanli", "cmdstan")

    def __str__(self) -> str:
        return f"{self.method.name}-{self.engine}"


def run(case: Case, *, target: Target | None = None, **arguments: Any) -> xr.DataTree:
    """Infer; arguments with the names of the method's fields are fields. Predictions only where a limit is given."""
    arguments = {"predictive_mb": 0.0} | arguments
    fields = {
        n: arguments.pop(n) for n in [*arguments] if n in case.method.kind.__dataclass_fields__
    }
    method = made(case.method, **fields)
    return ob.infer(target or target_of(case), method, engine=case.engine, **arguments)


def made(example: Example, **own: Any) -> Method:
    """Make the method of an example, with other values of some fields."""
    return example.kind(**{**example.settings, **own})


@cache
def pair(weights: tuple[float, float] = (1.0, 1.0)) -> Target:
    """A weighted sum of two means, which are interchangeable where their weights are equal."""

    def model(y: Any) -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 2).expand([2]).to_event(1))
        tau = numpyro.sample("tau", dist.LogNormal(0, 1))
        with numpyro.plate("point", len(Y)):
            numpyro.sample("y", dist.Normal(weights[0] * mu[0] + weights[1] * mu[1], tau), obs=y)

    return ob.numpyro_model(model, {"y": Y}, symmetry=(Exchangeable({"mu": 0}),), name="pair")


def stan_mixture(*variables: str) -> Target:
    """The program of other tests too, interchangeable in weight, mu and sigma together."""
    block = Exchangeable(dict.fromkeys(variables or ("weight", "mu", "sigma"), 0))
    data = {"N": len(Y), "K": 2, "y": Y}
    return ob.stan_program(FREE_MIXTURE, data, symmetry=(block,), name="mixture")


@cache
def network() -> Target:
    x = np.linspace(-1, 1, 8)[:, None]
    return ob.networks.BayesianNetwork(ob.networks.Network(1, (2,), 1, "tanh")).condition(
        x, np.sin(2 * x)
    )


def target_of(case: Case) -> Target:
    if case.method.name == "ensemble":
        return network()
    return stan_mixture() if case.by_stan else pair()


CASES = [Case(example, engine) for example in EXAMPLES for engine in example.engines]


def parametrised(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, marks=[pytest.mark.stan] if case.engine == "cmdstan" else [])
            for case in cases
        ],
        ids=str,
    )


class Terminal(io.StringIO):
    """Stands for a terminal on stderr."""

    def isatty(self) -> bool:
        return True


def in_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let stderr be a terminal from now on, in the test itself: pytest puts its own stream there between phases."""
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    return out


class Killed(BaseException):
    """Stands for the end of the process."""


def dies_after(limit: int | None, patch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Let hours pass between two looks at the clock, and the process die after so many files; gives their counter."""
    clock = SimpleNamespace(monotonic=count(0.0, 3600.0).__next__)
    for module in (places, checkpoint):
        patch.setattr(module, "time", clock)
    real, lock, done = WRITE, threading.Lock(), [0]

    def write(*arguments: Any) -> None:
        with lock:
            if done[0] == limit:
                raise Killed
            done[0] += 1
            real(*arguments)

    patch.setattr(checkpoint, "write", write)
    return lambda: done[0]


WRITE = checkpoint.write


def resumes(case: Case) -> bool:
    """CmdStan's chains go on with other numbers (`mcmc/test_stan_resume.py`)."""
    return case.method.kind.resumes and not case.by_stan


@cache
def first_run(case: Case) -> tuple[xr.DataTree, int]:
    """The posterior of a case, kept on its way where it can be, and the number of its files; the tests share it."""
    how = {"seed": 1, "predictive_mb": LIMIT_MB}
    if not resumes(case):
        return run(case, **how), 0
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        written = dies_after(None, patch)
        return run(case, **how, checkpoint=Path(folder) / "whole"), written()


def posterior(case: Case) -> xr.DataTree:
    return first_run(case)[0]


def draws_of(tree: xr.DataTree, method: Example) -> dict[str, np.ndarray]:
    """Variables and statistics with the axis of chains, fits or members first."""
    out = {}
    for group in ("posterior", "sample_stats"):
        for name, values in tree[group].data_vars.items():
            out[f"{group}/{name}"] = np.moveaxis(
                values.to_numpy(), values.dims.index(method.axis), 0
            )
    return out


def assert_same(found: xr.DataTree, wanted: xr.DataTree) -> None:
    for group in ("posterior", "sample_stats"):
        xr.testing.assert_identical(found[group].to_dataset(), wanted[group].to_dataset())


def differ(one: xr.DataTree, other: xr.DataTree) -> bool:
    both = (one["posterior"].to_dataset(), other["posterior"].to_dataset())
    return all(not np.array_equal(both[0][name], both[1][name]) for name in both[0])


@parametrised(CASES)
def test_the_seed_decides_the_draws_and_progress_is_shown_in_terminals(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = posterior(case)
    terminal = in_terminal(monkeypatch)
    other = run(case, seed=2, progress=False)
    assert terminal.getvalue() == ""
    again = run(
        case, seed=1
    )  # in a terminal, progress is shown without being asked for; nothing is kept
    assert terminal.getvalue() != ""
    assert_same(again, first)
    assert differ(other, first)


@parametrised([case for case in CASES if case.method.several])
def test_chains_differ_and_depend_on_their_number_alone(case: Case) -> None:
    """So do fits and members; their number changes the order of sums at most."""
    method = case.method
    number = method.settings[method.several]
    few, many = (
        draws_of(tree, method)
        for tree in (posterior(case), run(case, seed=1, **{method.several: number + 1}))
    )
    exact = case.engine != "numpyro"
    for name, values in many.items():
        assert len(values) == number + 1
        np.testing.assert_allclose(
            values[:number], few[name], rtol=0 if exact else 1e-6, atol=0 if exact else 1e-9
        )
    names = [name for name in many if name.startswith("posterior/")]
    for one in range(number + 1):
        for other in range(one):
            assert not any(np.array_equal(many[name][one], many[name][other]) for name in names)


@parametrised(CASES)
def test_a_posterior_has_its_groups_statistics_and_attributes(case: Case, tmp_path: Path) -> None:
    method, tree = case.method, posterior(case)
    assert set(tree.children) == groups_of(case)
    assert set(tree["sample_stats"].data_vars) == statistics_of(case)
    for group in ("posterior", "sample_stats"):
        for name, values in tree[group].data_vars.items():
            assert values.dims[:2] == ("chain", "draw"), name
            assert np.isfinite(values).all(), name
    sizes = {name: method.settings.get(name, 1) for name in ("chains", "draws")}
    if method.several:
        sizes["draws" if method.axis == "draw" else "chains"] = method.settings[method.several]
    assert dict(tree["posterior"].sizes) | {"chain": sizes["chains"], "draw": sizes["draws"]} == (
        dict(tree["posterior"].sizes)
    )
    for name, kind in {"diverging": "b", "tree_depth": "i", "n_steps": "i"}.items():
        if name in tree["sample_stats"]:
            assert tree["sample_stats"][name].dtype.kind == kind, name
    attributes = tree.attrs
    assert method.attributes | EVERY_POSTERIORS <= set(attributes)
    assert (attributes["engine"], attributes["seed"]) == (case.engine, 1)
    assert attributes["method"] == (method.recorded or method.name)
    assert ("nutpie" in attributes) == (case.engine == "nutpie")
    if "variational" in tree.children:
        assert method.fit <= set(tree["variational"].data_vars)
    assert json.loads(attributes["settings"]) == made(method).recorded()
    assert attributes["wall_time"] > 0
    assert attributes["target"] == target_of(case).name
    if method.several == "chains":
        steps = int(tree["sample_stats"]["n_steps"].sum())
        assert attributes["gradient_evaluations"] == method.gradients * steps
        for name in ("warmup_seconds", "sampling_seconds"):
            assert len(json.loads(attributes[name])) == method.settings["chains"]
    xr.testing.assert_identical(ob.open_posterior(ob.save(tree, tmp_path / "run.nc")), tree)


def groups_of(case: Case) -> set[str]:
    """The data and what is computed from draws: a Stan program has what it computes itself."""
    if case.by_stan:
        of_model = {"observed_data", "constant_data"}
    elif case.method.name == "ensemble":
        of_model = {"observed_data", "constant_data", "log_likelihood", "posterior_predictive"}
    else:
        of_model = {"observed_data", "log_likelihood", "posterior_predictive", "log_prior"}
    own = case.method.groups
    if case.method.name == "laplace" and case.by_stan:
        own = frozenset()  # neither engine tells the curvature
    if case.method.name in ("nuts", "hmc") and case.engine != "nutpie":
        own |= {"adaptation"}
    return {"posterior", "sample_stats"} | of_model | own


def statistics_of(case: Case) -> set[str]:
    if (case.method.name, case.engine) == ("hmc", "cmdstan"):
        return set(case.method.statistics - {"diverging"})
    return set(case.method.statistics)


@parametrised([case for case in CASES if not case.by_stan])
def test_log_densities_are_those_of_the_draws(case: Case) -> None:
    """`lp` of the whole density, and the terms of the likelihood in closed form."""
    tree, target = posterior(case), target_of(case)
    draws = tree["posterior"].to_dataset()
    density = ob.jax_density(target)
    values = {name: draws[name].to_numpy()[-1, -1] for name in density.names}
    vector = density.unconstrain(values)
    expected = float(density.log_density(vector))
    if case.method.name == "optimize":  # in the variables' own space
        expected -= float(density.log_jacobian(vector))
    assert float(tree["sample_stats"]["lp"][-1, -1]) == pytest.approx(expected, rel=1e-8)
    if not target.is_network:
        mean, sd = draws["mu"].sum("mu_dim_0").to_numpy(), draws["tau"].to_numpy()
        terms = norm.logpdf(Y, mean[..., None], sd[..., None])
        np.testing.assert_allclose(tree["log_likelihood"]["y"], terms, rtol=1e-10)
        np.testing.assert_array_equal(tree["observed_data"]["y"], Y)


@parametrised([case for case in CASES if case.method.name != "ensemble"])
def test_a_declared_symmetry_is_checked_on_the_density_before_the_run(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = as_view(posterior(case)).symmetry_evidence
    assert found is not None
    points = case.method.points
    assert (found.points, found.draws > 0, found.holds, found.unresolved) == (
        points,
        True,
        True,
        (),
    )
    wrong = stan_mixture("mu") if case.by_stan else pair((1.0, 2.0))
    nothing_runs(monkeypatch, but_its_check=case.method.kind.checks_symmetry)
    with pytest.raises(
        ob.errors.SymmetryError, match=f"`symmetry` of '{wrong.name}' does not hold"
    ):
        run(case, target=wrong, seed=1)


def nothing_runs(monkeypatch: pytest.MonkeyPatch, *, but_its_check: bool = False) -> None:
    """Fail where a method begins its own work, or where it begins to optimise after a check of its own."""

    def unreached(*_: Any, **__: Any) -> None:
        pytest.fail("the run began")

    if not but_its_check:
        monkeypatch.setattr("onebasin.inference.runs.run.Job", unreached)
    monkeypatch.setattr("onebasin.inference.variational.engine.TrainingLoop.run", unreached)


@parametrised([case for case in CASES if resumes(case)])
def test_a_run_that_was_killed_ends_as_an_undisturbed_one(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed half-way, as counted in files."""
    undisturbed, whole = first_run(case)
    written = dies_after(whole // 2, monkeypatch)
    with pytest.raises(Killed):
        run(case, seed=1, checkpoint=tmp_path)
    assert written() == whole // 2 > 0
    written = dies_after(None, monkeypatch)
    assert_same(run(case, seed=1, checkpoint=tmp_path), undisturbed)
    assert written() < whole


CHILD = """
import sys, time
sys.path.insert(0, {root!r})
from onebasin.base.processes.libraries import prepare_jax
prepare_jax()
from onebasin.inference.runs import checkpoint
from onebasin.inference.mcmc import places
from tests.inference.test_conformance import CASES, LONG, run
places.SECONDS, write = 0.0, checkpoint.write
checkpoint.write = lambda *arguments: (write(*arguments), time.sleep(0.1))
run(CASES[0], seed=1, checkpoint={folder!r}, **LONG)
"""
LONG = {"chains": 1, "draws": 500}


def test_a_process_that_is_killed_leaves_what_the_next_one_goes_on_from(tmp_path: Path) -> None:
    """The one test of this package with a real SIGKILL."""
    code = CHILD.format(root=str(Path(__file__).parents[2]), folder=str(tmp_path / "kept"))
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as child:
        until = time.monotonic() + 100
        while not any(kept_draws(tmp_path / "kept")) and time.monotonic() < until:
            assert child.poll() is None, child.communicate()[1]
            time.sleep(0.02)
        child.kill()
    (kept,) = kept_draws(tmp_path / "kept")
    assert 0 < kept < LONG["draws"]
    whole = run(CASES[0], seed=1, **LONG)
    assert_same(run(CASES[0], seed=1, checkpoint=tmp_path / "kept", **LONG), whole)


def faults_of(attempts: list[tuple[str, Callable[[], Any], type[Exception], str]]) -> list[str]:
    """Names of the attempts that are not refused with this error and these words."""
    faults = []
    for name, attempt, error, words in attempts:
        try:
            attempt()
        except error as refusal:
            if re.search(words, str(refusal)) is None:
                faults.append(f"{name}: {refusal}")
        else:
            faults.append(f"{name} is not refused")
    return faults


def test_every_method_has_an_example_on_engines_that_it_has() -> None:
    assert {example.name for example in EXAMPLES} == set(METHODS)
    for example in EXAMPLES:
        assert set(example.engines) <= set(engines_of(example.kind)), example.name


def test_an_unknown_field_is_refused_with_those_that_there_are() -> None:
    attempts = []
    for example in EXAMPLES:
        names = ", ".join(field.name for field in fields(example.kind))
        words = f"has no field `nonsense`; it has {re.escape(names)}"
        attempts.append((example.name, partial(made, example, nonsense=1), TypeError, words))
        words = f"`nonsense` is no argument of {example.name}; it takes {re.escape(names)}"
        call = partial(ob.infer, network(), example.name, nonsense=1)
        attempts.append((example.name, call, TypeError, words))
    assert faults_of(attempts) == []
    with pytest.raises(TypeError, match=r"Did you mean `draws`\?$"):  # NumPyro's word
        ob.infer(network(), "nuts", num_samples=3)


@pytest.mark.usefixtures("unchecked")
def test_an_engine_that_a_method_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []
    for method in EXAMPLES:
        for engine in {*ENGINES, "pymc"} - set(engines_of(method.kind)):
            case = Case(method, engine)
            call = partial(run, case, target=network())  # whose symmetry needs no check
            attempts.append((str(case), call, (TypeError, ValueError), "engine"))
    assert faults_of(attempts) == []


def test_an_engine_that_the_target_has_no_definition_for_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing_runs(monkeypatch)
    attempts = []
    for method in EXAMPLES:
        for case in (Case(method, engine) for engine in method.engines):
            if case.by_stan:
                target, lack = pair(), "Stan program; use engine='numpyro'"
            elif "cmdstan" in method.engines and not method.kind.stan_by_jax:
                target, lack = stan_mixture(), "NumPyro model; use engine='stanli'"
            else:
                continue
            there = rf"`engine` is '{case.engine}', but the target '\w+' has no {lack}"
            attempts.append((str(case), partial(run, case, target=target), ValueError, there))
    assert len(attempts) == 14
    assert faults_of(attempts) == []


def test_seeds_and_limits_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_runs(monkeypatch)
    seed, limit = "`seed` must be a whole number from 0", "`predictive_mb` must be a finite number"
    attempts = [
        (f"{case} {given}", partial(run, case, **given), ValueError, words)
        for case in CASES
        for given, words in (
            ({"seed": -1}, seed),
            ({"seed": 2**32}, seed),
            ({"predictive_mb": -1.0}, limit),
            ({"predictive_mb": float("nan")}, limit),
        )
    ]
    assert faults_of(attempts) == []
