"""Laws of every method in the registry: seeds, chains, groups, refusals, symmetry, checkpoints, progress.

A new method needs an `Example` in `examples.py`: small settings, and what its posterior has.
"""

import io
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import onebasin as ob
from onebasin.inference.contracts.method import ENGINES
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.mcmc import chains
from onebasin.inference.methods import METHODS
from onebasin.inference.runs import checkpoint
from onebasin.inference.runs.keywords import LIMIT_MB
from onebasin.posteriors.view import as_view

from .examples import (
    CASES,
    EVERY_POSTERIORS,
    EXAMPLES,
    Case,
    Example,
    Y,
    engines_of,
    made,
    network,
    pair,
    parametrised,
    run,
    stan_mixture,
    target_of,
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
    for module in (chains, checkpoint):
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
    how = {"seed": 1, "predictive_mb": LIMIT_MB, "check_symmetry": True}
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


@parametrised(CASES, runs_again=True)
def test_another_seed_gives_other_draws_and_progress_is_shown_in_terminals(case, monkeypatch):
    first = posterior(case)
    terminal = in_terminal(monkeypatch)
    other = run(case, seed=2)
    assert terminal.getvalue() != ""
    assert differ(other, first)
    assert case.by_stan or "log_likelihood" not in other.children  # its limit is 0 megabytes


@parametrised([case for case in CASES if not resumes(case)], runs_again=True)
def test_the_same_seed_gives_the_same_draws_and_no_progress_where_none_is_wanted(case, monkeypatch):
    """Runs that resume show it of themselves, below."""
    before = posterior(case)
    terminal = in_terminal(monkeypatch)
    assert_same(run(case, seed=1, progress=False), before)
    assert terminal.getvalue() == ""


@parametrised([case for case in CASES if case.method.several], runs_again=True)
def test_chains_differ_and_depend_on_their_number_alone(case):
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
def test_a_posterior_has_its_groups_statistics_and_attributes(case, tmp_path):
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
    if method.name != "ensemble":
        found = as_view(tree).symmetry_evidence
        assert found is not None
        assert (found.points, found.holds, found.unresolved) == (5, True, ())
        assert found.draws > 0
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


@cache
def density_of(*, is_network: bool) -> NumpyroDensity:
    return ob.jax_density(network() if is_network else pair())


@parametrised([case for case in CASES if not case.by_stan])
def test_log_densities_are_those_of_the_draws(case):
    """`lp` of the whole density, and the terms of the likelihood in closed form."""
    tree, target = posterior(case), target_of(case)
    draws = tree["posterior"].to_dataset()
    density = density_of(is_network=target.is_network)
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


@parametrised([case for case in CASES if case.method.name in ("nuts", "symmetrised")])
def test_a_wrong_symmetry_is_refused_before_the_run(case, monkeypatch):
    """By all methods alike; by those that need one whatever `check_symmetry` says."""
    wrong = stan_mixture("mu") if case.by_stan else pair((1.0, 2.0))
    nothing_runs(monkeypatch)
    asked = case.method.name == "nuts"
    with pytest.raises(
        ob.errors.SymmetryError, match=f"`symmetry` of '{wrong.name}' does not hold"
    ):
        run(case, target=wrong, seed=1, check_symmetry=asked)


def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a method begins its own work."""
    monkeypatch.setattr(
        "onebasin.inference.runs.run.Job", lambda *_, **__: pytest.fail("the run began")
    )


@parametrised([case for case in CASES if resumes(case)], runs_again=True)
def test_a_run_that_was_killed_ends_as_an_undisturbed_one(case, tmp_path, monkeypatch):
    """Killed half-way, as counted in files."""
    undisturbed, whole = first_run(case)
    written = dies_after(whole // 2, monkeypatch)
    with pytest.raises(Killed):
        run(case, seed=1, checkpoint=tmp_path)
    assert written() == whole // 2 > 0
    written, terminal = dies_after(None, monkeypatch), in_terminal(monkeypatch)
    assert_same(run(case, seed=1, checkpoint=tmp_path, progress=False), undisturbed)
    assert written() < whole
    assert terminal.getvalue() == ""


def test_every_method_has_an_example_on_engines_that_it_has():
    assert {example.name for example in EXAMPLES} == set(METHODS)
    for example in EXAMPLES:
        assert set(example.engines) <= set(engines_of(example.kind)), example.name


def test_an_unknown_field_is_refused_with_those_that_there_are():
    for example in EXAMPLES:
        names = re.escape(", ".join(field.name for field in fields(example.kind)))
        with pytest.raises(TypeError, match=f"has no field `nonsense`; it has {names}"):
            made(example, nonsense=1)
        words = f"`nonsense` is not an argument of {example.name}. It takes {names}."
        with pytest.raises(TypeError, match=words):
            ob.infer(network(), example.name, nonsense=1)
    with pytest.raises(TypeError, match=r"Did you mean `draws`\?"):  # NumPyro's word
        ob.infer(network(), "nuts", num_samples=3)


@pytest.mark.usefixtures("unchecked")
def test_an_engine_that_a_method_does_not_have_is_refused():
    for method in EXAMPLES:
        for engine in {*ENGINES, "pymc"} - set(engines_of(method.kind)):
            with pytest.raises((TypeError, ValueError), match="engine"):
                run(Case(method, engine), target=network())


def test_an_engine_that_the_target_has_no_definition_for_is_refused(monkeypatch):
    nothing_runs(monkeypatch)
    refused = 0
    for case in CASES:
        if case.by_stan:
            target, lack = pair(), "Stan program. Use engine='numpyro'"
        elif "cmdstan" in case.method.engines and not case.method.kind.stan_by_jax:
            target, lack = stan_mixture(), "NumPyro model. Use engine='stanli'"
        else:
            continue
        words = rf"`engine` is '{case.engine}', but the target '\w+' has no {lack}|has no Stan program, and \w+ takes"
        with pytest.raises(ValueError, match=words):
            run(case, target=target)
        refused += 1
    assert refused == 14
