"""Requests: arguments that fit every method on every engine, and requests that are rejected."""

import inspect
import io
import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
import xarray as xr
from jax.scipy.special import logsumexp
from numpyro import distributions as dist
from scipy.stats import norm

import onebasin as ob
from onebasin.inference.contracts.method import ENGINES, engine_for, found_at, implemented
from onebasin.inference.density.numpyro import NumpyroDensity
from onebasin.inference.infer import FUNCTIONS, METHODS, method_named
from onebasin.inference.mcmc import chains
from onebasin.inference.runs import checkpoint
from onebasin.inference.runs.keywords import LIMIT_MB, RUNNING
from onebasin.models import BayesianNetwork, Exchangeable, Network, Target
from onebasin.models.numpyro_target import numpyro_model
from onebasin.posteriors.view import as_view
from onebasin.stan import stan_program
from onebasin.stan.interpreter.runtime import identity

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
from .known import MEAN, RATE, SHAPE, assert_mean, known_target


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
            place = values.dims.index(method.axis)
            out[f"{group}/{name}"] = np.moveaxis(values.to_numpy(), place, 0)
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
    assert set(f"{method.attributes} {EVERY_POSTERIORS}".split()) <= set(attributes)
    assert (attributes["engine"], attributes["seed"]) == (case.engine, 1)
    assert attributes["method"] == (method.recorded or method.name)
    assert ("nutpie" in attributes) == (case.engine == "nutpie")
    if "variational" in tree.children:
        assert {*method.fit.split()} <= set(tree["variational"].data_vars)
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
    own = {"variational" if case.method.fit else case.method.group} - {""}
    if case.method.name == "laplace" and case.by_stan:
        own = set()  # neither engine tells the curvature
    if case.method.name in ("nuts", "hmc") and case.engine != "nutpie":
        own |= {"adaptation"}
    return {"posterior", "sample_stats"} | of_model | own


def statistics_of(case: Case) -> set[str]:
    without = {"diverging"} if (case.method.name, case.engine) == ("hmc", "cmdstan") else set()
    return {*case.method.statistics.split()} - without


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
        ob.errors.SymmetryError, match=f"declared symmetry of '{wrong.name}' does not hold"
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
        assert {*example.engines.split()} <= set(engines_of(example.kind)), example.name


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
        lacks = rf"`engine` is '{case.engine}', but the target '\w+' has no {lack}"
        words = rf"{lacks}|has no Stan program, which \w+ needs"
        with pytest.raises(ValueError, match=words):
            run(case, target=target)
        refused += 1
    assert refused == 14


TARGET = BayesianNetwork(Network(1, (2,))).condition(np.zeros((3, 1)), np.zeros((3, 1)), name="net")


def test_engine_that_is_not_named_is_the_one_that_the_target_has(tmp_path):
    (tmp_path / "m.stan").write_text("parameters { real a; } model { a ~ std_normal(); }")
    numpyro_model = Target("m", numpyro_model=lambda: None)
    for target, name in [
        (TARGET, "numpyro"),  # both
        (numpyro_model, "numpyro"),
        (stan_program(tmp_path / "m.stan"), "stanli"),
    ]:
        assert engine_for(target, None) == name
        assert engine_for(target, "stan") == "cmdstan"


@pytest.mark.parametrize("cls", FUNCTIONS)
def test_a_class_and_its_function_have_the_same_fields_in_the_same_order_with_the_same_defaults(
    cls,
):
    shown = inspect.signature(FUNCTIONS[cls]).parameters
    shared = dict([*inspect.signature(ob.infer).parameters.items()][2:-1])
    assert list(shared) == list(RUNNING)
    assert list(shown) == ["target", *(f.name for f in fields(cls)), *RUNNING]
    for name, default in {
        **{f.name: f.default for f in fields(cls)},
        **{name: of.default for name, of in shared.items()},
    }.items():
        assert repr(shown[name].default) == repr(default)
    assert method_named(cls.name) == cls()


def test_every_method_has_an_engine_and_every_place_holds_its_implementation():
    for method in METHODS.values():
        places = [place for engine in ENGINES if (place := implemented(method, engine))]
        if find_spec("nutpie") is None:
            places = [place for place in places if ".nutpie:" not in place]
        assert places and all(callable(found_at(place)) for place in places)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("method", "how", "said"),
    [
        ({"draws": 5}, {}, "`method` must be a name.*; got 'dict'"),
        (
            ob.Nuts(),
            {"draws": 5},
            r"`draws` cannot be given separately.*Write Nuts\(draws=\.\.\.\)",
        ),
        ("mclmc", {"start": {}}, "`init` gives values, but mclmc does not accept"),
        ("advi", {"checkpoint": "a"}, "`checkpoint` is 'a', but advi saves nothing before it ends"),
        ("mclmc", {"engine": "stan"}, "`engine` is 'cmdstan', but mclmc uses JAX"),
        (
            "pathfinder",
            {"engine": "numpyro"},
            "which cannot run pathfinder. Use engine='stanli' or 'cmdstan'",
        ),
        (
            "hmc",
            {"engine": "nutpie"},
            r"which cannot run hmc \(it has nuts\)\. Use engine='numpyro' or",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(method, how, said):
    if how.get("engine") == "nutpie" and find_spec("nutpie") is None:
        pytest.skip("nutpie is not installed")
    with pytest.raises((TypeError, ValueError), match=said):
        ob.infer(TARGET, method, **how)


@pytest.mark.parametrize(
    "words", ["mu,sigma", ["mu,sigma"], (Exchangeable({"mu": 0, "sigma": 0}),)]
)
def test_a_symmetry_is_given_in_blocks_or_in_words(tmp_path, words):
    program = tmp_path / "m.stan"
    program.write_text("parameters { vector[2] mu; vector[2] sigma; }")
    for make in (partial(stan_program, program), partial(numpyro_model, lambda: None)):
        assert make(symmetry=words).symmetry == (Exchangeable({"mu": 0, "sigma": 0}),)


def test_a_method_that_takes_no_numpyro_model_names_others():
    with pytest.raises(
        ValueError, match=r"has no Stan program, which pathfinder needs\. Use `dadvi`"
    ):
        ob.pathfinder(Target("m", numpyro_model=lambda: None))


PROGRAMS = Path(__file__).parents[2] / "notebooks" / "programs"
SHORT = ob.Mclmc(chains=2, warmup=300, draws=60, thin=2)
QUICK = ob.Symmetrised(steps=200, evaluate_every=100, report_draws=50, draws=40)
WORDS = "mu,sigma,1-theta"
START = {"mu": [-1.0, 1.0], "sigma": [1.0, 1.0], "theta": 0.5}


def mixture(**more: Any) -> Target:
    return ob.stan_program(PROGRAMS / "mixture.stan", PROGRAMS / "mixture.json", **more)


def numpyro_mixture() -> Target:
    """The same in NumPyro, which has the same coordinates in the same order."""
    y = np.asarray(json.loads((PROGRAMS / "mixture.json").read_text())["y"])

    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0).expand([2]).to_event(1))
        theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
        weights = jnp.log(jnp.stack([theta, 1 - theta]))
        parts = dist.Normal(mu[None], sigma[None]).log_prob(y[:, None]) + weights[None]
        numpyro.factor("y", jnp.sum(logsumexp(parts, axis=1)))

    return Target("mixture", numpyro_model=model, symmetry=mixture(symmetry=WORDS).symmetry)


@pytest.fixture(scope="module")
def mixture_chains() -> xr.DataTree:
    return ob.infer(mixture(symmetry=WORDS), method=SHORT, seed=3)


@pytest.mark.stan
def test_a_posterior_is_that_of_the_interpreter(mixture_chains):
    assert (mixture_chains.attrs["engine"], mixture_chains.attrs["method"]) == ("stanli", "mclmc")
    assert mixture_chains["posterior"]["mu"].shape == (2, 60, 2)
    groups = ("log_likelihood", "posterior_predictive")
    assert len({mixture_chains[name]["y"].shape for name in groups}) == 1
    assert "real<lower=0, upper=1> theta" in mixture_chains.attrs["program"]
    assert json.loads(mixture_chains.attrs["symmetry_evidence"])["draws"] > 0
    assert ob.diagnose(mixture_chains).verdict in ("usable", "aligned", "invariant", "unusable")
    density = ob.jax_density(mixture())
    last = {n: mixture_chains["posterior"][n].to_numpy()[1, -1] for n in density.names}
    found = float(density.log_density(density.unconstrain(last)))
    assert mixture_chains["sample_stats"]["lp"].to_numpy()[1, -1] == pytest.approx(found, rel=1e-10)


@pytest.mark.stan
def test_hmc_of_numpyro_takes_a_program():
    """By itself, as the interpreter has none."""
    tree = ob.hmc(known_target("stan"), seed=2, chains=2, warmup=300, draws=800)
    assert (tree.attrs["engine"], tree.attrs["method"]) == ("numpyro", "hmc")
    assert tree.attrs["engine_build"] == identity()
    assert_mean(tree.posterior["tau"].to_numpy(), SHAPE / RATE)
    assert_mean(tree.posterior["x"].to_numpy()[..., 1], MEAN[1])


@pytest.mark.stan
@pytest.mark.slow
def test_symmetrised_vi_is_that_of_the_same_numpyro_model():
    fit = ob.infer(mixture(symmetry=WORDS), method=QUICK, start=START, seed=1)
    other = ob.infer(numpyro_mixture(), method=QUICK, start=START, seed=1)
    assert fit.attrs["engine"] == "stanli"
    names = ("loc", "scale", "elbo", "information", "symmetrised_elbo_lower")
    for name in names:
        found, expected = (tree["variational"][name].to_numpy() for tree in (fit, other))
        if "elbo" in name:  # a half normal has twice the density of Stan's normal
            expected = expected - 2 * np.log(2)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(fit["posterior"]["mu"], other["posterior"]["mu"], rtol=1e-6)
    assert "y_rep" not in fit["posterior"] and fit["posterior_predictive"]["y"].shape[:2] == (1, 40)


@pytest.mark.stan
@pytest.mark.parametrize(
    ("given", "words"),
    [({"anneal": 0.5}, "does not separate the prior from"), ({"batch_size": 5}, "`batch_size`")],
)
def test_what_needs_a_network_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        ob.infer(mixture(symmetry=WORDS), replace(QUICK, **given))
